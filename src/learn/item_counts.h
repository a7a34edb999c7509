/* How often each item was answered right and wrong in training. */
#ifndef COHORT_ITEM_COUNTS_H
#define COHORT_ITEM_COUNTS_H

#include "base/base.h"
#include "data/dataset.h"

/* Outcomes of the training attempts of each item, over the whole data set: initial biases, and
 * a baseline. */
struct item_counts {
    size_t n_items;
    int64_t *right, *wrong;
};

/* Collective: over the shards of all ranks. Caller frees `right`. */
void item_counts_take(struct item_counts *counts, const struct shard *shard);

/* The log-odds of a right answer to each item, shrunk towards those of all items together;
 * caller frees. */
double *item_counts_log_odds(const struct item_counts *counts);

#endif
