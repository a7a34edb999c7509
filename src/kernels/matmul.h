/* Products of matrices, with the same bits on every machine. */
#ifndef COHORT_MATMUL_H
#define COHORT_MATMUL_H

#include "base/base.h"

/* A matrix B (depth x columns) that was packed for products: panels of WIDTH columns one after
 * the other, each with its rows end to end, so that a product reads it from front to back. */
struct packed {
    size_t depth, columns; /* columns: rounded up to a multiple of WIDTH, zeros behind */
    real *value;
};

/* B = b (depth x columns, rows `stride` apart), or the transpose of b (columns x depth). Begins
 * as all zeros; memory is kept when a matrix of the same shape is packed again. */
void matmul_pack(struct packed *packed, size_t depth, size_t columns, const real *b,
                 size_t stride, bool transposed);
void matmul_free(struct packed *packed);

struct matmul_table {
    /* c (n x columns) += a (n x depth) B; strides of a and c. Every number of c is a sum in the
     * order of depth, each term added with one rounding: its bits depend on its own row of a
     * and column of B alone, not on n, and are the same with every instruction set. */
    void (*add)(size_t n, const real *a, size_t a_stride, const struct packed *b, real *c,
                size_t c_stride);

    /* c (rows x columns) += alpha a^T b, a (n x rows), b (n x columns): what n rows of inputs
     * and derivatives say of a matrix of weights. Sums are in the order of the n rows, each
     * term added with one rounding to what c held; alpha is 1 or -1. Rows of c are a multiple
     * of WIDTH apart. */
    void (*outer)(size_t n, size_t rows, size_t columns, real alpha, const real *a,
                  size_t a_stride, const real *b, size_t b_stride, real *c, size_t c_stride);
};
extern const struct matmul_table *matmul;

#endif
