/* What an RBM does to the rows of its large tables. */
#ifndef COHORT_RBM_ROWS_H
#define COHORT_RBM_ROWS_H

#include "base/base.h"

/* Sparse rows: the visible side of an RBM is a table of rows, `per_item` (1 or 2) for each
 * item, row k of item i being the weights of outcome k (only outcome 1 if per_item is 1). A
 * unit is an item and an outcome: unit = 2 * item + outcome. count[a] of `copies` copies of
 * unit a's item are correct. */
struct row_shape {
    size_t stride; /* of a row; a multiple of WIDTH */
    int per_item;  /* 1: bernoulli, 2: softmax */
    int copies;
};

struct rbm_rows_table {
    /* x += copies * the rows of the units, one after the other */
    void (*gather)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                   size_t n, real *x);
    /* logit[a] = g . (row 1 - row 0) of unit a's item, for a < n; 0 up to the next multiple of
     * WIDTH */
    void (*dot)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                size_t n, const real *g, real *logit);
    /* x += sum of count[a] row 1 + (copies - count[a]) row 0 */
    void (*mix)(const struct row_shape *shape, const real *table, const uint32_t *unit,
                const uint8_t *count, size_t n, real *x);
    /* The statistics of a student, data minus model, added to a tally of 32 (or, wide, 64)
     * bits: row k of item(a) += copies [outcome(a) = k] data - (copies of outcome k in
     * count[a]) model `scratch` has (copies + 2) * stride numbers. */
    void (*tally)(const struct row_shape *shape, void *tally, bool wide, const uint32_t *unit,
                  const uint8_t *count, size_t n, const int32_t *data, const int32_t *model,
                  int32_t *scratch);
};
extern const struct rbm_rows_table *rbm_rows;

#endif
