/* The true parameters of simulated answers, from CSV files. */
#ifndef COHORT_TRUTHS_H
#define COHORT_TRUTHS_H

#include "base/base.h"
#include "data/builder.h"

enum { TRUTHS_MOST = 16 };
struct truths {
    struct truth list[TRUTHS_MOST];
    size_t n;
};

/* `text` is NAME=FILE,...; a table has one row or column per student (n_rows, in the order of
 * the file), item or skill. Begins as all zeros; free it after a failure too. */
CHECKED enum status truths_read(struct truths *truths, const char *text,
                                const struct builder_result *result, uint64_t n_rows);
void truths_free(struct truths *truths);

#endif
