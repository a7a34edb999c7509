/* Other markings of the same data, for cross-validation and refits. */
#ifndef COHORT_RESPLIT_H
#define COHORT_RESPLIT_H

#include "base/base.h"
#include "data/dataset.h"

/* Marks fold `fold` (1 .. n_folds) as test, the next one as valid and the others as train.
 * Where whole students were split, a fold is every n_folds-th student of the data set, whose
 * order is random; where attempts were withheld, it is a random share of all attempts. What the
 * import held out for the final test belongs to no fold: its outcome becomes unknown. */
void resplit_folds(struct shard *shard, int64_t n_folds, int64_t fold, uint64_t seed);

/* Marks the validation attempts as training attempts, whose outcomes are shown where they are
 * known; returns how many there were. */
int64_t resplit_join(struct shard *shard);

#endif
