/* Levels of factors that belong to one student. */
#ifndef COHORT_OWN_LEVELS_H
#define COHORT_OWN_LEVELS_H

#include "base/base.h"
#include "data/dataset.h"

/* Collective, before training: fills `own` of the data set's covariates from the training
 * attempts of all ranks, and says of each factor how many of its levels are such. */
void own_levels_find(struct dataset *dataset, const struct shard *shard);

#endif
