/* Softmax of a row, forward and backward. */
#ifndef COHORT_SOFTMAX_H
#define COHORT_SOFTMAX_H

#include "base/base.h"

/* w_j = e^x_j / sum_k e^x_k in place of n numbers x; returns log sum_k e^x_k. The row has room
 * for a multiple of WIDTH; zeros follow the n weights. n = 0 (nothing to attend to) leaves a
 * row of zeros. */
double softmax_forward(real *x, size_t n);

/* Derivatives by w in dw are replaced by those by x. */
void softmax_backward(const real *w, real *dw, size_t n);

#endif
