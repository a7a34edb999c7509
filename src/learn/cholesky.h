/* Dense symmetric systems on one rank, with the same bits on every machine. */
#ifndef COHORT_CHOLESKY_H
#define COHORT_CHOLESKY_H

#include "base/base.h"

/* A matrix of n rows is stored as one of cholesky_order(n) rows, end to end; only the lower
 * triangle counts. Rows from n on must be those of the unit matrix. */
static inline size_t cholesky_order(size_t n)
{
    return (n + 3) / 4 * 4;
}

/* Replaces a positive definite matrix of this order by its Cholesky factor; false: it is not
 * positive definite. cholesky_solve replaces a vector v by the inverse of the matrix times v.
 */
CHECKED bool cholesky_factor(double *matrix, size_t order);
void cholesky_solve(const double *factor, size_t order, double *vector);

#endif
