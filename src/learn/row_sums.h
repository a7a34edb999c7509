/* layer 2 (the problem): sums for the few rows of a large table that a block touches. */
#ifndef COHORT_TOUCHED_H
#define COHORT_TOUCHED_H

#include "base/base.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

struct touched {
    size_t row_size, n, capacity;
    uint32_t *row;  /* n: rows of the panel, in the order they were met */
    int32_t *place; /* for each row of the panel: its place here, -1: none */
    real *sum;      /* n x row_size */
};

void touched_create(struct touched *touched, const struct panel *panel);
void touched_free(struct touched *touched);

/* The sum for a row of the panel, zero when it is met first; good until the next call. */
real *touched_at(struct touched *touched, size_t row);

/* Adds all sums to a tally and forgets them. */
void touched_flush(struct touched *touched, const struct panel *panel, struct tally *tally);

#endif
