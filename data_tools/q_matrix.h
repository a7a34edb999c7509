/* Which items need which skills, as a table of 0 and 1. */
#ifndef COHORT_Q_MATRIX_H
#define COHORT_Q_MATRIX_H

#include "base/base.h"
#include "data/builder.h"

/* Read a Q-matrix and add its skills to the builder's items. A first column of names says which
 * row is which item. Without it, items are the rows or columns in their order (q_matrix_read),
 * or those with their numbers (q_matrix_read_named). The shape of the matrix decides whether it
 * is items by skills or skills by items; it may have a header. */
CHECKED enum status q_matrix_read(const char *path, struct builder *builder);
CHECKED enum status q_matrix_read_named(const char *path, struct builder *builder);

#endif
