/* Levels of factors that only one student trained; items, skills and groups that only one
 * student practised. */
#ifndef COHORT_OWN_LEVELS_H
#define COHORT_OWN_LEVELS_H

#include "base/base.h"
#include "data/dataset.h"

/* Collective, before training: fills `own` of the data set's covariates from the training
 * attempts of all ranks, and prints how many levels of each factor these are. */
void own_levels_find(struct dataset *dataset, const struct shard *shard);

/* Collective, before predicting the data that were trained on: marks the answers (MARK_OWN) that
 * training hides. Returns how many there are on all ranks. */
int64_t own_levels_mark(struct shard *shard);

/* Collective, before training: makes the outcomes of these answers unknown, since they would
 * tell a model about one student's later answers. Returns how many there are on all ranks. */
int64_t own_levels_hide(struct shard *shard);

#endif
