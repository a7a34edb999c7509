/* Dense symmetric systems on one rank, with the same bits on every machine. */
#ifndef COHORT_CHOLESKY_H
#define COHORT_CHOLESKY_H

#include "base/base.h"

/* A matrix of order n is stored as one of order cholesky_order(n), rows contiguous; only the
 * lower triangle is used. Rows from n on must be those of the unit matrix. */
static inline size_t cholesky_order(size_t n)
{
    return (n + 3) / 4 * 4;
}

/* cholesky_factor replaces a positive definite matrix A by its Cholesky factor; false: A is not
 * positive definite. cholesky_solve replaces a vector v by A^-1 v. */
CHECKED bool cholesky_factor(double *matrix, size_t order);
void cholesky_solve(const double *factor, size_t order, double *vector);

#endif
