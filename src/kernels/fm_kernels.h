/* Sparse features in pairs: the arithmetic of a factorization machine. */
#ifndef COHORT_FM_KERNELS_H
#define COHORT_FM_KERNELS_H

#include "base/base.h"

/* n attempts; those of attempt t are entries first[t] .. first[t + 1], each a row of a table
 * and a value x. Row 0 is the bias: every attempt has it with the value 1, without being said.
 */
struct fm_features {
    size_t n;
    const uint32_t *first; /* n + 1 */
    const uint32_t *row;
    const real *x;
};

/* A weight w and k factors v for each row; rows of v are `stride` numbers long (a multiple of
 * WIDTH, those behind k are zero). k = 0: v is not looked at. */
struct fm_point {
    real *w, *v;
    size_t k, stride;
};

/* The score of an attempt and its derivatives (S = sum of x v, of the attempt):
 *
 *     f = w_0 + sum x w + 1/2 (S . S - sum x^2 v . v)
 *     df/dw = x,   df/dv = x (S - x v)
 *
 * All sums have one fixed order; what belongs to attempt t comes from attempt t alone. */
struct fm_kernels_table {
    /* score[t] = f, and sum = S, n rows of `stride`. */
    void (*score)(const struct fm_features *attempts, const struct fm_point *at, real *sum,
                  real *score);
    /* slope[t] = the change of f along `along`. */
    void (*slope)(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const struct fm_point *along, real *slope);
    /* to += sum over attempts of r[t] df; the bias too. */
    void (*spread)(const struct fm_features *attempts, const struct fm_point *at,
                   const real *sum, const real *r, const struct fm_point *to);
    /* to += sum over attempts of d[t] (df)^2, number by number. */
    void (*curve)(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const real *d, const struct fm_point *to);
};
extern const struct fm_kernels_table *fm_kernels;

#endif
