/* Vector arithmetic with the same bits on every CPU. */
#ifndef COHORT_VEC_H
#define COHORT_VEC_H

#include "base/base.h"
#include "base/rng.h"

/* The kernels are compiled once per instruction set; `vec` points to the table for this CPU
 * (see src/kernels/dispatch.c). All arithmetic is element-wise, sums have one fixed order, and
 * nothing is fused, so the tables differ only in speed. Lengths are multiples of WIDTH, arrays
 * are aligned. */
struct vec_table {
    /* x = exp(x), 1 / (1 + exp(-x)), log(1 + exp(x)) */
    void (*exp)(real *x, size_t n);
    void (*sigmoid)(real *x, size_t n);
    void (*softplus)(real *x, size_t n);

    /* out[i] = a uniform number in [0, 1); writes n rounded up to a multiple of 64 numbers.
     * Number i of group g, which begins at out[64 g], is
     *     upper 24 bits of word i / 16 of rng_words(rng, 16 g + i % 16), times 2^-24 */
    void (*uniform)(const struct rng *rng, real *out, size_t n);

    /* count[i] = a Binomial(copies, 1 / (1 + exp(-logit[i]))) number, from u[i] by
     * inversion. */
    void (*binomial)(const real *logit, const real *u, int copies, uint8_t *count, size_t n);

    /* q = round(x * 2^bits), with x limited to [-limit, limit] and NaN replaced by 0. */
    void (*quantize)(const real *x, real limit, int bits, int32_t *q, size_t n);

    /* One step of gradient ascent with momentum on n parameters in rows of `stride` columns.
     * The gradient is in fixed point, 32 bits (wide: 64):
     *     g = unit statistics
     *     v = momentum v + g
     *     w = w + rate[column] v - decay[column] w
     * Returns the largest |w|, infinity if any is NaN or above 1e30. */
    double (*momentum)(real *w, real *v, const void *statistics, bool wide, double unit,
                       const real *rate, const real *decay, real momentum, size_t stride,
                       size_t n);
    /* The same with Adam; rate[] and epsilon include the bias corrections:
     *     m = beta[0] m + (1 - beta[0]) g
     *     v = beta[1] v + (1 - beta[1]) g^2
     *     w = w + rate[column] m / (sqrt(v) + epsilon) - decay[column] w */
    double (*adam)(real *w, real *m, real *v, const void *statistics, bool wide, double unit,
                   const real *rate, const real *decay, const real beta[2], real epsilon,
                   size_t stride, size_t n);
};
extern const struct vec_table *vec;

#endif
