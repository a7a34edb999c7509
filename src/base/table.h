/* A table of numbers with named rows and columns. */
#ifndef COHORT_TABLE_H
#define COHORT_TABLE_H

#include "base/base.h"
#include "base/names.h"

/* `row_names` names the rows. If it is empty, the code that prints the table uses the names of
 * items or skills, or numbers the rows from 1. */
struct table {
    const char *name;    /* of a file or section: "items" */
    const char *row;     /* what a row is: "item", "skill", ... */
    const char *caption; /* how to read it, for people who meet it first; "" if it needs none */
    size_t n_rows, n_columns;
    struct names row_names, columns;
    double *values; /* n_rows x n_columns; NAN: an empty cell */
};

/* `columns` is a list of words separated by spaces. */
void table_create(struct table *table, const char *name, const char *row, size_t n_rows,
                  const char *columns);
void table_free(struct table *table);

static inline double *table_row(const struct table *table, size_t r)
{
    return table->values + r * table->n_columns;
}

/* The column with this name; SIZE_MAX: none. */
size_t table_column(const struct table *table, const char *name);

/* The name of row r: its own, else from `names` if that has one per row, else its number in
 * `buffer`. */
const char *table_row_name(const struct table *table, const struct names *names, size_t r,
                           char buffer[32]);

#endif
