/* Predictions of one target per student, and their scores. */
#ifndef COHORT_TARGETS_H
#define COHORT_TARGETS_H

#include "base/base.h"
#include "learn/metrics.h"
#include "learn/model.h"

struct target_prediction {
    uint32_t student; /* of the data set */
    double target;    /* NaN: unknown */
    double mean;      /* predicted; TASK_CHANCE: the probability of 1 */
    double variance;  /* predicted, or NaN */
};

/* Predicts for the students of the shard whose last attempt is in the set of bits `splits`,
 * including those with an unknown target. Caller frees. Not collective. */
CHECKED enum status targets_predict(const struct model *model, void *work,
                                    const struct shard *shard, unsigned splits,
                                    struct target_prediction **targets, size_t *n);

/* Collective; each rank contributes its students in the order of the data set, and all ranks
 * get the same bits on any number of ranks. Unknown targets are skipped. TASK_CHANCE has all
 * scores; a target above one half counts as correct. Other tasks have `correct` (the mean of
 * the targets), log_loss (negative log of the predicted density; TASK_SCORE: of a normal
 * distribution with the best common variance), rmse and r2; the rest is NaN. */
void targets_score(const struct comm *comm, const struct model *model,
                   const struct target_prediction *targets, size_t n, struct score *score);

#endif
