/* Principal components of a small table. */
#ifndef COHORT_COMPONENTS_H
#define COHORT_COMPONENTS_H

#include "base/base.h"

/* The first `k` components of n rows of m numbers: score[i * k + c] is the place of row i along
 * component c, and share[c] the share of the variance that it explains. Components beyond the
 * rank are zero. Returns the variance of the rows, summed over the columns. */
double components_take(const double *rows, size_t n, size_t m, size_t k, double *score,
                       double *share);

#endif
