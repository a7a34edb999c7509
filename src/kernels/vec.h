/* Vector arithmetic with the same bits on every CPU. */
#ifndef COHORT_VEC_H
#define COHORT_VEC_H

#include "base/base.h"
#include "base/rng.h"

/* Each kernel is compiled once for every instruction set; `vec` and `rows` point at the tables
 * for this CPU. All arithmetic is element by element, sums have one fixed order, and nothing is
 * fused, so the tables differ in speed and in nothing else. Lengths are multiples of WIDTH,
 * arrays are aligned. */
struct vec_table {
    /* x = exp(x), 1 / (1 + exp(-x)), log(1 + exp(x)) */
    void (*exp)(real *x, size_t n);
    void (*sigmoid)(real *x, size_t n);
    void (*softplus)(real *x, size_t n);

    /* out[i] = a uniform number in [0, 1), n rounded up to a multiple of 64: number i of the
     * group of 64 that begins at index g is word i/16 of rng_words(rng, g + i%16), its upper 24
     * bits. */
    void (*uniform)(const struct rng *rng, real *out, size_t n);

    /* count[i] = a Binomial(copies, 1 / (1 + exp(-logit[i]))) number made from u[i] by
     * inversion. */
    void (*binomial)(const real *logit, const real *u, int copies, uint8_t *count, size_t n);

    /* q = round(x * 2^bits), x limited to +-limit first (NaN becomes 0). */
    void (*quantize)(const real *x, real limit, int bits, int32_t *q, size_t n);

    /* One step of gradient ascent with momentum, of n parameters whose rows have `stride`
     * columns, from statistics in fixed point (32 or 64 bits wide, times 2^-bits and `scale`):
     *     v = momentum v + g;  w = w + rate[column] v - decay[column] w
     * Returns the largest |w|, infinity if any is NaN. */
    double (*momentum)(real *w, real *v, const void *statistics, bool wide, double unit,
                       const real *rate, const real *decay, real momentum, size_t stride,
                       size_t n);
    /* Adam: m, v are running means of g and g^2; rate[] holds the bias-corrected step. */
    double (*adam)(real *w, real *m, real *v, const void *statistics, bool wide, double unit,
                   const real *rate, const real *decay, const real beta[2], real epsilon,
                   size_t stride, size_t n);
};
extern const struct vec_table *vec;

#endif
