/* One line of attempts as they come: a record of CSV, or a JSON object. */
#ifndef COHORT_FOLLOW_LINE_H
#define COHORT_FOLLOW_LINE_H

#include "base/base.h"
#include "data_tools/text.h"
#include "runs/follow_names.h"

/* The texts of a line's fields; start = NULL: absent or empty. JSON numbers and truth values are
 * as JSON writes them; a list is joined by ~~. */
struct follow_line {
    struct span *fields; /* N_FOLLOW_FIELDS + covariates */
    char error[256];     /* "": none */
};

/* Begins as all zeros. */
struct follow_reader {
    struct follow_names names;
    bool json;
    char delimiter;
    size_t *column; /* CSV: of each field; SIZE_MAX: none */
    size_t n_columns;
    struct span *cells;
    size_t cell_room;
    struct json_t *object; /* holds the texts of the last JSON line */
    char *scratch;
    size_t scratch_room;
};

/* The first line that is not blank: the header of CSV, or a first JSON object, which is then to
 * be read as a line too (reader->json). Fails if the header lacks student or item. */
CHECKED enum status follow_reader_begin(struct follow_reader *reader, struct span line,
                                        const struct names *covariates);
/* Reads a line; its bytes change, and the fields point to them or to the reader. */
void follow_reader_line(struct follow_reader *reader, struct span text,
                        struct follow_line *line);
void follow_reader_free(struct follow_reader *reader);

#endif
