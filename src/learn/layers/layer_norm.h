/* Layer normalisation, forward and backward. */
#ifndef COHORT_LAYER_NORM_H
#define COHORT_LAYER_NORM_H

#include "base/base.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

/* Rows have size_padded(n) numbers; those beyond n are zero in y and dx. */
struct layer_norm {
    size_t n;
    size_t panel; /* row 0: gain, row 1: bias */
};

/* Declares the tensor `name`, (2, n): gain and bias. */
void layer_norm_declare(struct layer_norm *norm, struct params *params, size_t n,
                        const char *name);
void layer_norm_init(const struct layer_norm *norm, struct params *params); /* gain 1, bias 0 */

/* y from x, for n_rows rows; `scale` keeps 1 / sd of each row for the way back. */
void layer_norm_forward(const struct layer_norm *norm, const struct params *params,
                        size_t n_rows, const real *x, real *y, real *scale);

/* dx from dy, with x and scale as in forward; adds the gradient to the tally. `scratch` has
 * room for two rows. */
void layer_norm_backward(const struct layer_norm *norm, const struct params *params,
                         size_t n_rows, const real *x, const real *scale, const real *dy,
                         real *dx, real *scratch, struct tally *tally);

#endif
