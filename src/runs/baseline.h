/* Baselines: predictions that a useful model must beat. */
#ifndef COHORT_BASELINE_H
#define COHORT_BASELINE_H

#include "base/base.h"
#include "runs/inference.h"
#include "runs/scoring.h"

enum baseline { BASELINE_ITEMS, BASELINE_AVERAGE, N_BASELINES };

/* The attempts of `predictions` by a baseline instead; `counts` are those of the training
 * attempts of the data that `model` was trained on. Not collective; caller frees. */
struct prediction *baseline_predict(enum baseline baseline, const struct model *model,
                                    const struct shard *shard, const struct item_counts *counts,
                                    const struct predictions *predictions);

/* Log-losses of a model and of the baselines on the same attempts, as one sentence; a warning
 * if the model is not better than each. Nothing where a baseline is NaN. */
void baseline_say(const char *what, double log_loss, const double *baselines);

/* Collective: the training students' targets. */
struct baseline_target {
    double mean, variance;
};
struct baseline_target baseline_target(const struct inference *inference);

#endif
