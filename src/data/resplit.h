/* Temporary splits of a data set, for cross-validation and refits. */
#ifndef COHORT_RESPLIT_H
#define COHORT_RESPLIT_H

#include "base/base.h"
#include "data/dataset.h"

/* Marks fold `fold` (1 .. n_folds) as test, the next one as valid and the others as train. If
 * the import split students, a fold is every n_folds-th student of the data set, whose order is
 * random; if it withheld attempts, a fold is a random share of all attempts. Test attempts of
 * the import belong to no fold: their outcomes become unknown. */
void resplit_folds(struct shard *shard, int64_t n_folds, int64_t fold, uint64_t seed);

/* Marks the validation attempts as training attempts, and shows their outcomes if known.
 * Returns how many there were. */
int64_t resplit_join(struct shard *shard);

#endif
