/* Shared by import_columns.c, import_columns_find.c and import_columns_meta.c. */
#ifndef COHORT_IMPORT_COLUMNS_H
#define COHORT_IMPORT_COLUMNS_H

#include "data_tools/csv.h"
#include "data_tools/import.h"
#include "data_tools/time_reader.h"

enum { IMPORT_COLUMNS_MOST_JOINED = 4 };

/* Columns whose cells are joined to one name, usually one column; n = 0: none. */
struct field {
    size_t columns[IMPORT_COLUMNS_MOST_JOINED];
    size_t n;
    bool is_guessed; /* a usual name, not one of an option */
};

/* Times of answers, by the key that two files share. */
struct moments {
    struct name_index keys;
    int64_t *microseconds;
    size_t capacity;
};

/* The cells and the lists of skills with which an item occurred, as hashes. */
struct item_cells {
    uint64_t last;  /* skills and group of its last row; 0 at first */
    uint64_t first; /* the first list of skills; 0: none yet */
    uint64_t *more; /* n_more others, with room for BUILDER_MOST_VARIANTS; NULL: none */
    uint8_t n_more, last_variant;
};

struct columns {
    struct import *import;
    const struct import_preset *preset;
    struct csv csv;
    struct field student, item, outcome, time, skills, group, split, key, target;
    struct field covariates[IMPORT_MOST_COVARIATES];
    const char *skill_separator;
    bool is_ordered; /* by --order: `time` is not a time */
    struct time_reader reader;
    bool has_reader;    /* the format of times is known */
    char time_name[80]; /* the column that it was learned from */
    double threshold;   /* NAN: outcomes are right or wrong */
    struct moments moments;
    struct item_cells *cells_of_item;
    size_t n_cells_of_item, cells_capacity;
    char *joined; /* buffer for a joined name */
    size_t joined_capacity;
};

/* import_columns_find.c: which column is what. */
CHECKED enum status import_columns_find(struct columns *c);
CHECKED enum status import_columns_find_field(const struct csv *csv, const char *flag,
                                              const char *named, const char *usual, bool needed,
                                              struct field *field);
/* Says which columns were guessed, and which are not used. */
void import_columns_say(const struct columns *c);

/* import_columns_meta.c: --time-meta and --item-meta. */
CHECKED enum status import_columns_read_moments(struct columns *c);
CHECKED enum status import_columns_read_items(struct columns *c);

/* import_columns.c. A joined cell is valid until the next one. */
struct span import_columns_join(struct columns *c, const struct field *field);
static inline struct span import_columns_cell(struct columns *c, const struct field *field)
{
    return field->n == 1 ? span_trim(c->csv.cells[field->columns[0]])
                         : import_columns_join(c, field);
}
/* Each of these parses one thing of a row. A bad one sets *is_bad; the status is still OK if
 * bad rows are skipped. */
CHECKED enum status import_columns_check_shape(struct columns *c, bool *is_bad);
/* The first file decides the format of times: before its first row is read. */
CHECKED enum status import_columns_learn_times(struct columns *c, const struct field *field);
CHECKED enum status import_columns_read_time(struct columns *c, const struct field *field,
                                             int64_t *microseconds, bool *is_bad);
/* Reads the skills and the group of an item, unless the row repeats them. Returns the number of
 * this list of skills among the item's, as of builder_variant. */
uint8_t import_columns_read_item(struct columns *c, uint32_t item);

#define BAD_ROW(...)                                                                           \
    import_bad_row(c->import, c->csv.text.path, c->csv.line, c->csv.record, __VA_ARGS__)

#endif
