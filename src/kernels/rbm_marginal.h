/* Kernels that sum out the hidden units of a Boltzmann machine. */
#ifndef COHORT_RBM_MARGINAL_H
#define COHORT_RBM_MARGINAL_H

#include "base/base.h"

/* Rows have `width` numbers, a multiple of WIDTH. Padding units have the input BINARY_OFF:
 * their mean is 0, and they add 0 to sums of S(x) = log(1 + e^x). */
#define BINARY_OFF ((real)-1e30)

struct rbm_marginal_table {
    /* Both states of one visible unit:
     *     s0 = sigma(x + w0)
     *     s1 = sigma(x + w1)
     *     returns sum_j S(x_j + w1_j) - S(x_j + w0_j) */
    real (*pair)(const real *x, const real *w0, const real *w1, size_t width, real *s0,
                 real *s1);
    /* Returns sum_j S(x_j). */
    real (*worth)(const real *x, size_t width);
    /* Derivatives through units with means r and derivatives d: g = d r (1 - r), e += g. */
    void (*back)(const real *d, const real *r, real *e, real *g, size_t n);
    /* h = 1 where u < mean, else 0. */
    void (*draw)(const real *mean, const real *u, real *h, size_t n);
};
extern const struct rbm_marginal_table *rbm_marginal;

#endif
