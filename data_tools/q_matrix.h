/* Which items need which skills, as a table of 0 and 1. */
#ifndef COHORT_Q_MATRIX_H
#define COHORT_Q_MATRIX_H

#include "base/base.h"
#include "data/builder.h"

/* Reads a Q-matrix and adds its skills to the builder's items. Item i is number place[i] of the
 * matrix. n_items is the number of items in the matrix or, unless `exact`, the smallest allowed
 * number. The shape of the matrix decides whether it is items by skills or skills by items; it
 * may have a header. */
CHECKED enum status q_matrix_read(const char *path, struct builder *builder,
                                  const uint32_t *place, size_t n_items, bool exact);

#endif
