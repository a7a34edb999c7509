/* Kernels of item response models, with the same bits on every CPU. */
#ifndef COHORT_IRT_H
#define COHORT_IRT_H

#include "base/base.h"

/* The answers j of one student, padded to a multiple of WIDTH: discriminations a (a row of `n`
 * numbers per dimension k), difficulties b, outcomes y. With the student's ability theta:
 *
 *     x_j            = sum_k a_kj theta_k - b_j
 *     P(y_j = 1)     = sigma(x_j)
 *     log-likelihood = sum_j y_j x_j - log(1 + e^x_j)
 *     d/dtheta_k     = sum_j a_kj e_j        where e_j = y_j - sigma(x_j)
 *     d/da_kj        = theta_k e_j
 *     d/db_j         = -e_j
 *
 * Padding is an answer with a certain outcome: a = 0, b = IRT_CERTAIN, y = 0. */
#define IRT_CERTAIN ((real)1000)

struct irt_table {
    /* Turns n uniform numbers in [0, 1) into standard normal ones; n is a multiple of 2 WIDTH,
     * u[i] and u[i + n/2] are a pair. */
    void (*normal)(real *u, size_t n);

    /* Computes e_j and returns the log-likelihood. */
    real (*respond)(size_t n_dims, const real *theta, const real *a, const real *b,
                    const real *y, size_t n, real *e);

    /* slope_k = sum_j a_kj e_j */
    void (*slope)(size_t n_dims, const real *a, const real *e, size_t n, real *slope);

    /* da_kj += scale theta_k e_j
     * db_j  -= scale e_j */
    void (*credit)(size_t n_dims, const real *theta, real scale, const real *e, size_t n,
                   real *da, real *db);
};
extern const struct irt_table *irt;

#endif
