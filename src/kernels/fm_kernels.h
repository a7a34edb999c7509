/* Kernels of a factorization machine: pairwise interactions of sparse features. */
#ifndef COHORT_FM_KERNELS_H
#define COHORT_FM_KERNELS_H

#include "base/base.h"

/* The features of n attempts. Those of attempt t are entries first[t] <= e < first[t + 1], each
 * a row of the tables below and a value x. Row 0 is the bias: every attempt has it with value
 * 1; it is not stored. */
struct fm_features {
    size_t n;
    const uint32_t *first; /* n + 1 */
    const uint32_t *row;
    const real *x;
};

/* A weight w and k factors v per row. Rows of v have `stride` numbers (a multiple of WIDTH),
 * zero after the first k. k = 0: v is not read. */
struct fm_point {
    real *w, *v;
    size_t k, stride;
};

/* The score f of an attempt and its derivatives, with sums over the features of the attempt:
 *
 *     S     = sum x v
 *     f     = w_0 + sum x w + 1/2 (S . S - sum x^2 v . v)
 *     df/dw = x
 *     df/dv = x (S - x v)
 *
 * All sums have one fixed order; the results of attempt t depend on attempt t only. */
struct fm_kernels_table {
    /* score[t] = f, and row t of `sum` = S; rows have `stride` numbers. */
    void (*score)(const struct fm_features *attempts, const struct fm_point *at, real *sum,
                  real *score);
    /* slope[t] = directional derivative of f along `along`. */
    void (*slope)(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const struct fm_point *along, real *slope);
    /* to += sum over attempts of r[t] df, including the bias. */
    void (*spread)(const struct fm_features *attempts, const struct fm_point *at,
                   const real *sum, const real *r, const struct fm_point *to);
    /* to += sum over attempts of d[t] (df)^2, element by element. */
    void (*curve)(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const real *d, const struct fm_point *to);
};
extern const struct fm_kernels_table *fm_kernels;

#endif
