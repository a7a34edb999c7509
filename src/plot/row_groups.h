/* An order of rows in which similar ones are neighbours. */
#ifndef COHORT_ROW_GROUPS_H
#define COHORT_ROW_GROUPS_H

#include "base/base.h"

/* Orders n rows of n_columns numbers. order[i] is the row in place i; begins[i]: the row in place
 * i is the first of a group, of which there are at most n_groups. */
void row_groups_order(const double *rows, size_t n, size_t n_columns, size_t n_groups,
                      size_t *order, bool *begins);

#endif
