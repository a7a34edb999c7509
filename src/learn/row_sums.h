/* Sums for the few rows of a large table that a block touches. */
#ifndef COHORT_ROW_SUMS_H
#define COHORT_ROW_SUMS_H

#include "base/base.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

struct row_sums {
    size_t row_size, n, capacity;
    uint32_t *row;  /* n: rows of the panel, in the order they were met */
    int32_t *place; /* for each row of the panel: its place here, -1: none */
    real *sum;      /* n x row_size */
};

void row_sums_create(struct row_sums *row_sums, const struct panel *panel);
void row_sums_free(struct row_sums *row_sums);

/* The sum for a row of the panel, zero when it is met first; good until the next call. */
real *row_sums_at(struct row_sums *row_sums, size_t row);

/* Adds all sums to a tally and forgets them. */
void row_sums_flush(struct row_sums *row_sums, const struct panel *panel, struct tally *tally);

#endif
