/* The arithmetic of item response models, with the same bits on every CPU. */
#ifndef COHORT_IRT_H
#define COHORT_IRT_H

#include "base/base.h"

/* The answers of one student side by side, padded to a multiple of WIDTH: discriminations a (a
 * row of `n` numbers for each dimension), difficulties b, outcomes y. Padding is an answer that
 * is certain: a = 0, b = IRT_CERTAIN, y = 0. */
#define IRT_CERTAIN ((real)1000)

struct irt_table {
    /* u, n uniform numbers in [0, 1), become standard normal ones; n is a multiple of 2 WIDTH,
     * u[i] and u[i + n/2] are a pair. */
    void (*normal)(real *u, size_t n);

    /* x_j = sum_k a_kj theta_k - b_j: leaves e_j = y_j - sigma(x_j), returns the sum of
     * y_j x_j - log(1 + e^x_j), which is the answers' log-likelihood. */
    real (*respond)(size_t n_dims, const real *theta, const real *a, const real *b,
                    const real *y, size_t n, real *e);

    /* slope_k = sum_j a_kj e_j: the derivative of the log-likelihood by theta. */
    void (*slope)(size_t n_dims, const real *a, const real *e, size_t n, real *slope);

    /* da_kj += scale theta_k e_j, db_j -= scale e_j: the derivatives by the items. */
    void (*credit)(size_t n_dims, const real *theta, real scale, const real *e, size_t n,
                   real *da, real *db);
};
extern const struct irt_table *irt;

#endif
