/* Kernels on the rows of an RBM's weight table. */
#ifndef COHORT_RBM_ROWS_H
#define COHORT_RBM_ROWS_H

#include "base/base.h"

/* The visible side of an RBM is a table with `per_item` rows (1 or 2) per item. Row k of an
 * item holds the weights of outcome k; if per_item is 1, there is only the row of outcome 1. A
 * unit is an item and an outcome: unit = 2 * item + outcome. count[a] of the `copies` copies of
 * unit a's item are correct. */
struct row_shape {
    size_t stride; /* numbers per row, a multiple of WIDTH */
    int per_item;  /* 1: bernoulli, 2: softmax */
    int copies;
};

struct rbm_rows_table {
    /* x += copies * the rows of the units, one after the other */
    void (*gather)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                   size_t n, real *x);
    /* logit[a] = g . (row 1 - row 0) of unit a's item, for a < n; padded with 0 to the next
     * multiple of WIDTH */
    void (*dot)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                size_t n, const real *g, real *logit);
    /* x += sum of count[a] row 1 + (copies - count[a]) row 0 */
    void (*mix)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                const uint8_t *count, size_t n, real *x);
    /* Adds the statistics of a student, data minus model, to a tally of 32 bits (wide: 64):
     *     row 1 of item(a) += copies [outcome(a) = 1] data - count[a] model
     *     row 0 of item(a) += copies [outcome(a) = 0] data - (copies - count[a]) model
     * `scratch` has (copies + 2) * stride numbers. */
    void (*tally)(const struct row_shape *shape, void *tally, bool wide, const uint32_t *unit,
                  const uint8_t *count, size_t n, const int32_t *data, const int32_t *model,
                  int32_t *scratch);
};
extern const struct rbm_rows_table *rbm_rows;

#endif
