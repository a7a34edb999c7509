/* layer 2 (the problem): k-fold cross-validation as another marking of the same data. */
#ifndef COHORT_FOLDS_H
#define COHORT_FOLDS_H

#include "base.h"
#include "dataset.h"

/* Marks fold `fold` (1 .. n_folds) as test, the next one as valid and the others as train.
 * Where whole students were split, a fold is every n_folds-th student of the data set, whose
 * order is random; where attempts were withheld, it is a random share of all attempts. What the
 * import held out for the final test belongs to no fold: its outcome becomes unknown. */
void folds_mark(struct shard *shard, int64_t n_folds, int64_t fold, uint64_t seed);

#endif
