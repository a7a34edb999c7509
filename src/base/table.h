/* A table of numbers with names, as people read it. */
#ifndef COHORT_TABLE_H
#define COHORT_TABLE_H

#include "base/base.h"
#include "base/names.h"

/* Rows are named by `row_names`; where that is empty, whoever shows the table has the names of
 * its items or skills, or numbers the rows from 1. */
struct table {
    const char *name;    /* of a file or section: "items" */
    const char *row;     /* what a row is: "item", "skill", ... */
    const char *caption; /* how to read it, for people who meet it first; "" if it needs none */
    size_t n_rows, n_columns;
    struct names row_names, columns;
    double *values; /* n_rows x n_columns; NAN: an empty cell */
};

/* `columns` is a list of words between spaces. */
void table_create(struct table *table, const char *name, const char *row, size_t n_rows,
                  const char *columns);
void table_free(struct table *table);

static inline double *table_row(const struct table *table, size_t r)
{
    return table->values + r * table->n_columns;
}

/* The name of row r: its own, else from `names` if that has one for every row, else its number
 * in `buffer`. */
const char *table_row_name(const struct table *table, const struct names *names, size_t r,
                           char buffer[32]);

#endif
