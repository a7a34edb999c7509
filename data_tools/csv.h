/* Reads records of cells from CSV, TSV and similar files. */
#ifndef COHORT_CSV_H
#define COHORT_CSV_H

#include "base/base.h"
#include "base/names.h"
#include "data_tools/text.h"

struct csv {
    struct text text;
    char delimiter;
    bool no_quotes; /* " is an ordinary character */
    bool stops[256];
    struct span *cells; /* of the current record */
    size_t n_cells, capacity;
    struct span record; /* all of it, as in the file */
    char *kept;         /* a copy of it, where unquoting changed the buffer */
    size_t kept_capacity;
    uint64_t line;  /* where it begins */
    bool malformed; /* it has text after a closing quote */
    char **columns; /* names in the header, if there is one */
    size_t n_columns;
};

/* `delimiter` 0: tab, comma, semicolon or |, whichever is most frequent in the first line. */
CHECKED enum status csv_open(struct csv *csv, const char *path, char delimiter, bool no_quotes);
void csv_close(struct csv *csv);

/* Reads the next record that is not blank into csv->cells. Cells are unquoted and valid until
 * the next call; *got is false at the end of the file. */
CHECKED enum status csv_next(struct csv *csv, bool *got);

/* Reads the next record as the header. */
CHECKED enum status csv_read_header(struct csv *csv);

/* Cells of a column in the next records, without reading them: as many as are in the buffer,
 * at most `most`. Skips missing cells. */
void csv_sample(const struct csv *csv, size_t column, size_t most, struct names *cells);

/* The column with this name, exact or else ignoring case, or else read as Latin-1; a name that ends in * matches the
 * first column with that prefix. SIZE_MAX if there is none. */
size_t csv_column(const struct csv *csv, const char *name);

/* Fails because the column of an option is missing. Suggests the nearest one and lists all. */
enum status csv_no_column(const struct csv *csv, const char *name, const char *flag);
/* The same where no option names the column: the file may have no header. */
enum status csv_no_usual_column(const struct csv *csv, const char *name, const char *flag);

#endif
