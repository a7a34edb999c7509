/* How well a model, and the baselines, predict a split. */
#ifndef COHORT_SPLIT_SCORE_H
#define COHORT_SPLIT_SCORE_H

#include "base/base.h"
#include "learn/metrics.h"
#include "learn/model.h"
#include "runs/baseline.h"

/* Collective: the scores of a model on the attempts, or targets, of a split. With `counts` of
 * the training attempts, log_loss receives the log-losses of the N_BASELINES baselines on the
 * same attempts (left alone if the model predicts targets). */
CHECKED enum status split_score(const struct comm *comm, const struct model *model, void *work,
                                const struct shard *shard, enum split split,
                                const struct item_counts *counts, struct score *score,
                                double *log_loss);

#endif
