/* Titles for the tables of models and their pictures. */
#ifndef COHORT_REPORT_TITLES_H
#define COHORT_REPORT_TITLES_H

#include "base/table.h"

/* Of a table of a kind of model; of a picture of one of its columns (caller frees that), and of
 * the axis of its values. */
const char *report_title_of_table(const char *kind, const struct table *table);
char *report_title_of_column(const char *kind, const struct table *table, size_t column);
const char *report_title_of_values(const char *kind, const struct table *table, size_t column);

/* Of a column of the table itself: effects have the name of their rows there. */
const char *report_title_of_head(const struct table *table, size_t column);

/* Columns a_1, error_a_1, ... of abilities that are skills get the names of these: "a: Angles". */
void report_titles_name_abilities(struct table *table, const struct names *skills);

#endif
