/* Cross-entropy of a logistic or softmax output, with its derivative. */
#ifndef COHORT_CROSS_ENTROPY_H
#define COHORT_CROSS_ENTROPY_H

#include "base/base.h"

/* The loss of outcome y (0 to 1) at logit x; d = y - p, minus its derivative by x. */
double cross_entropy_logistic(double x, double y, double *d);

/* The loss of class `target` of n at logits x; d, n numbers: minus the derivatives by x. Both
 * arrays have room for a multiple of WIDTH, and so many numbers of d are written. */
double cross_entropy_softmax(const real *x, size_t n, size_t target, real *d);

#endif
