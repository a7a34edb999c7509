/* Kernels of a logistic regression with few coefficients, in double precision. */
#ifndef COHORT_LOGISTIC_SUMS_H
#define COHORT_LOGISTIC_SUMS_H

#include "base/base.h"

/* A table of n rows and 1 + k columns. Column 0 holds ones and is not stored; any other column
 * c begins at x[(c - 1) * stride]. n is a multiple of 8, arrays are aligned. Like vec.h,
 * compiled once per instruction set: sums have one fixed order, nothing is fused, and the
 * tables differ only in speed. */
struct logistic_rows {
    const double *x;
    size_t stride, k, n;
};

struct logistic_sums_table {
    /* eta = offset + the table times b
     * p   = 1 / (1 + exp(-eta))
     * r   = p - outcome
     * d   = p (1 - p) */
    void (*look)(const struct logistic_rows *rows, const double *offset, const double *outcome,
                 const double *b, double *r, double *d);
    /* Sums over the rows x of the table:
     *     slope = sum r x
     *     curve = sum d x x^T      (lower triangle; rows have 1 + k numbers)
     * `scratch` has n numbers. */
    void (*sums)(const struct logistic_rows *rows, const double *r, const double *d,
                 double *scratch, double *slope, double *curve);
};
extern const struct logistic_sums_table *logistic_sums;

#endif
