/* Sums of a logistic regression with few unknowns, in double precision. */
#ifndef COHORT_LOGISTIC_SUMS_H
#define COHORT_LOGISTIC_SUMS_H

#include "base/base.h"

/* A table of n rows and 1 + k columns: the first holds ones and is not stored, column c > 0 is
 * x[(c - 1) * stride ..]. n is a multiple of 8, arrays are aligned. Compiled once for every
 * instruction set, like vec.h: sums have one fixed order, nothing is fused, the tables differ
 * in speed alone. */
struct logistic_rows {
    const double *x;
    size_t stride, k, n;
};

struct logistic_sums_table {
    /* With eta = offset + the table times b and p = 1 / (1 + exp(-eta)): r = p - outcome, and
     * d = p (1 - p). */
    void (*look)(const struct logistic_rows *rows, const double *offset, const double *outcome,
                 const double *b, double *r, double *d);
    /* Sums over the rows x: slope = sum of r x, and the lower triangle of curve, whose rows are
     * 1 + k numbers long, = sum of d x x^T. `scratch` has n numbers. */
    void (*sums)(const struct logistic_rows *rows, const double *r, const double *d,
                 double *scratch, double *slope, double *curve);
};
extern const struct logistic_sums_table *logistic_sums;

#endif
