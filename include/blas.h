/* layer 1 (instruments): products of matrices by the BLAS, by rows. */
#ifndef COHORT_BLAS_H
#define COHORT_BLAS_H

#include "base.h"

/* All matrices are stored by rows, a row `stride` numbers after the one before. The bits of a
 * row depend on the shape of the whole product, so shapes may depend on the block, never on the
 * number of ranks. Nothing happens where n is 0. */
struct matrix {
    const real *values;
    size_t stride;
};

/* c (n x columns) = a (n x depth) * b (depth x columns) + beta c */
void blas_forward(size_t n, size_t columns, size_t depth, struct matrix a, struct matrix b,
                  real beta, real *c, size_t c_stride);

/* c (n x columns) = a (n x depth) * b^T, b (columns x depth), + beta c */
void blas_back(size_t n, size_t columns, size_t depth, struct matrix a, struct matrix b,
               real beta, real *c, size_t c_stride);

/* c (rows x columns) = alpha a^T b + beta c, a (n x rows), b (n x columns) */
void blas_outer(size_t n, size_t rows, size_t columns, real alpha, struct matrix a,
                struct matrix b, real beta, real *c, size_t c_stride);

#endif
