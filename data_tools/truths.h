/* What simulated answers were made from, in somebody's CSV files. */
#ifndef COHORT_TRUTHS_H
#define COHORT_TRUTHS_H

#include "base/base.h"
#include "data/builder.h"

enum { TRUTHS_MOST = 16 };
struct truths {
    struct truth list[TRUTHS_MOST];
    size_t n;
};

/* `text` is NAME=FILE, ...; a table has a row for each student (n_rows of them, as they were
 * read), item or skill, or a column for each. Begins as all zeros, to be freed after a failure
 * too. */
CHECKED enum status truths_read(struct truths *truths, const char *text,
                                const struct builder_result *result, uint64_t n_rows);
void truths_free(struct truths *truths);

#endif
