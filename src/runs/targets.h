/* Predictions of one target a student, and how good they are. */
#ifndef COHORT_TARGETS_H
#define COHORT_TARGETS_H

#include "base/base.h"
#include "learn/metrics.h"
#include "learn/model.h"

struct target_prediction {
    uint32_t student; /* of the data set */
    double target;    /* NaN: unknown */
    double mean,
        variance; /* predicted; TASK_CHANCE: mean is the chance of 1; variance: or NaN */
};

/* The students of the shard who have attempts and whose last one is of a split in the set of
 * bits `splits`, also those with an unknown target. Caller frees. Not collective. */
CHECKED enum status targets_predict(const struct model *model, void *work,
                                    const struct shard *shard, unsigned splits,
                                    struct target_prediction **targets, size_t *n);

/* Collective; each rank brings its own students in the order of the data set, and every rank
 * gets the same bits whatever the number of ranks. Unknown targets are left out. TASK_CHANCE
 * has all scores, a target above one half being correct. Of others there are `correct` (the
 * mean of the targets), log_loss (minus the log of the predicted density; TASK_SCORE: of a
 * normal distribution with the variance that is best for all), rmse and r2; the rest is NaN. */
void targets_score(const struct comm *comm, const struct model *model,
                   const struct target_prediction *targets, size_t n, struct score *score);

#endif
