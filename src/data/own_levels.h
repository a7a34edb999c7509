/* What only one student trained: levels of factors, numeric covariates, items, skills and groups. */
#ifndef COHORT_OWN_LEVELS_H
#define COHORT_OWN_LEVELS_H

#include "base/base.h"
#include "data/dataset.h"

/* Collective: whether any student has an answer to learn from after a held-out attempt, so that
 * a model could tell the future. */
bool own_levels_matter(const struct shard *shard);

/* Counts student s at a level, up to two students; `last` holds the number of the student counted
 * last, plus one. */
void own_levels_count(int64_t *count, uint32_t *last, size_t level, size_t s);

/* Collective, before training: fills `own` of the data set's covariates from the training
 * attempts of all ranks, and prints how many levels of each factor these are. Numbers that only
 * one student has become 0, if own_levels_matter. */
void own_levels_find(struct dataset *dataset, struct shard *shard);

/* Collective, before training and before predicting the data that were trained on: marks the
 * attempts (MARK_OWN) that training hides. Returns how many of them, on all ranks, it would have
 * learned from. */
int64_t own_levels_mark(struct shard *shard);

/* Before training: makes the outcomes of these answers unknown, since they would tell a model
 * about one student's later answers. */
void own_levels_hide(struct shard *shard);

#endif
