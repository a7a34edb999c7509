/* Records of cells from CSV, TSV and their relatives. */
#ifndef COHORT_CSV_H
#define COHORT_CSV_H

#include "base/base.h"
#include "data_tools/text.h"

struct csv {
    struct text text;
    char delimiter;
    bool no_quotes; /* " is a letter like any other */
    bool stops[256];
    struct span *cells; /* of the record returned last */
    size_t n_cells, capacity;
    struct span record; /* all of it, as it stands in the file */
    uint64_t line;      /* where it begins */
    bool malformed;     /* it has text behind a closing quote */
    char **columns;     /* names in the header, if there is one */
    size_t n_columns;
};

/* `delimiter` 0: the one of tab, comma, semicolon and | that the first line has most of. */
CHECKED enum status csv_open(struct csv *csv, const char *path, char delimiter, bool no_quotes);
void csv_close(struct csv *csv);

/* The next record that is not blank, into csv->cells. Cells have their quotes taken off and are
 * valid until the next call; *got is false at the end of the file. */
CHECKED enum status csv_next(struct csv *csv, bool *got);

/* Takes the next record for the header. */
CHECKED enum status csv_read_header(struct csv *csv);

/* The column of a name, exact or else in any case of letters; a name that ends in * is the
 * first column that begins so. SIZE_MAX if there is none. */
size_t csv_column(const struct csv *csv, const char *name);

/* A failure: there is no such column for a flag. Names the nearest one and lists all. */
enum status csv_no_column(const struct csv *csv, const char *name, const char *flag);

#endif
