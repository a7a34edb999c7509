/* A dense layer, y = b + x W, forward and backward. */
#ifndef COHORT_DENSE_H
#define COHORT_DENSE_H

#include "base/base.h"
#include "kernels/matmul.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

/* Rows of x have size_padded(n_in) numbers, rows of y size_padded(n_out); zeros, or at least
 * finite numbers, fill them up. */
struct dense {
    size_t n_in, n_out;
    size_t weight, bias; /* panels: n_in rows of n_out numbers; one row of n_out */
};

/* Declares both panels and their tensors, under these names. */
void dense_declare(struct dense *dense, struct params *params, size_t n_in, size_t n_out,
                   const char *weight, const char *bias);
/* Weights uniform within +-size; biases stay zero. */
void dense_init(const struct dense *dense, struct params *params, uint64_t seed, double size);

/* The weights as they are now, packed for products; again when they have changed. `backward`:
 * transposed too. Begins as zeros. */
struct dense_packed {
    struct packed forward, backward;
};
void dense_pack(const struct dense *dense, const struct params *params,
                struct dense_packed *packed, bool backward);
void dense_unpack(struct dense_packed *packed);

/* y = b + x W for n rows. */
void dense_forward(const struct dense *dense, const struct params *params,
                   const struct dense_packed *packed, size_t n, const real *x, real *y);

/* Adds the gradients of W and b to the tally; dx = dy W^T, unless dx is NULL. `scratch` has
 * room for n_in rows of y. */
void dense_backward(const struct dense *dense, const struct params *params,
                    const struct dense_packed *packed, size_t n, const real *x, const real *dy,
                    real *dx, real *scratch, struct tally *tally);

#endif
