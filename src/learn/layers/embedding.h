/* Rows of a table: looked up and added as inputs, or multiplied with a state as outputs.
 *
 *     input      x += scale row                  d row += scale dx
 *     output     score = row . h + bias          d row += d h,  d bias += d,  dh += d row
 *
 * A table has a row for each item or skill, and a block of students meets few of them: only
 * those are read, and their gradients are gathered in row_sums. Never a product with a vector
 * of zeros and a one. */
#ifndef COHORT_EMBEDDING_H
#define COHORT_EMBEDDING_H

#include "base/base.h"
#include "kernels/rnn_cells.h"
#include "learn/params.h"
#include "learn/row_sums.h"

struct embedding {
    size_t panel; /* as outputs, number `width` of a row is its bias */
    size_t width; /* of x or h, a multiple of WIDTH */
};

static inline const real *embedding_row(const struct embedding *table,
                                        const struct params *params, size_t row)
{
    return params_rows(params, table->panel) + row * params->panels[table->panel].stride;
}

static inline void embedding_add(const struct embedding *table, const struct params *params,
                                 size_t row, real scale, real *x)
{
    rnn_cells->add(scale, embedding_row(table, params, row), x, table->width);
}

static inline void embedding_add_backward(const struct embedding *table, size_t row, real scale,
                                          const real *dx, struct row_sums *sums)
{
    rnn_cells->add(scale, dx, row_sums_at(sums, row), table->width);
}

static inline real embedding_score(const struct embedding *table, const struct params *params,
                                   size_t row, const real *h)
{
    const real *const w = embedding_row(table, params, row);
    return rnn_cells->dot(w, h, table->width) + w[table->width];
}

static inline void embedding_score_backward(const struct embedding *table,
                                            const struct params *params, size_t row, real d,
                                            const real *h, real *dh, struct row_sums *sums)
{
    real *const sum = row_sums_at(sums, row);
    rnn_cells->add(d, h, sum, table->width);
    sum[table->width] += d;
    rnn_cells->add(d, embedding_row(table, params, row), dh, table->width);
}

#endif
