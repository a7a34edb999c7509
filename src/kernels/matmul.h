/* Matrix products with the same bits on every machine. */
#ifndef COHORT_MATMUL_H
#define COHORT_MATMUL_H

#include "base/base.h"

/* A matrix B (depth x columns) packed for products: panels of WIDTH columns one after the
 * other, the rows of each panel contiguous, so that a product reads it sequentially. */
struct packed {
    size_t depth, columns; /* columns: rounded up to a multiple of WIDTH, padded with zeros */
    real *value;
};

/* B = b (depth x columns, rows `stride` apart), or the transpose of b (columns x depth).
 * `packed` must be zero at first; memory is reused if the shape is the same. */
void matmul_pack(struct packed *packed, size_t depth, size_t columns, const real *b,
                 size_t stride, bool transposed);
void matmul_free(struct packed *packed);

struct matmul_table {
    /* c (n x columns) += a (n x depth) B. Every element of c is a sum in the order of depth,
     * each term added with one rounding. Its bits depend only on its row of a and column of B,
     * not on n, and are the same with every instruction set. */
    void (*add)(size_t n, const real *a, size_t a_stride, const struct packed *b, real *c,
                size_t c_stride);

    /* c (rows x columns) += alpha a^T b, a (n x rows), b (n x columns): the gradient of a
     * weight matrix from n rows of inputs and derivatives. Terms are added to c in the order of
     * the n rows, each with one rounding; alpha is 1 or -1. c_stride is a multiple of WIDTH. */
    void (*outer)(size_t n, size_t rows, size_t columns, real alpha, const real *a,
                  size_t a_stride, const real *b, size_t b_stride, real *c, size_t c_stride);
};
extern const struct matmul_table *matmul;

#endif
