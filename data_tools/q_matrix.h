/* Which items need which skills, as a table of 0 and 1. */
#ifndef COHORT_Q_MATRIX_H
#define COHORT_Q_MATRIX_H

#include "base/base.h"
#include "data/builder.h"

/* Reads a Q-matrix and gives the builder's items their skills. Item i is number place[i] of the
 * matrix; n_items is how many there are, or, unless `exact`, the least that there must be. The
 * matrix may be items by skills or skills by items, with a header or without; its shape tells,
 * and it must fit. */
CHECKED enum status q_matrix_read(const char *path, struct builder *builder,
                                  const uint32_t *place, size_t n_items, bool exact);

#endif
