/* Levels of factors that only one student trained. */
#ifndef COHORT_OWN_LEVELS_H
#define COHORT_OWN_LEVELS_H

#include "base/base.h"
#include "data/dataset.h"

/* Collective, before training: fills `own` of the data set's covariates from the training
 * attempts of all ranks, and prints how many levels of each factor these are. */
void own_levels_find(struct dataset *dataset, const struct shard *shard);

#endif
