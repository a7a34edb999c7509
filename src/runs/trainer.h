/* Trains a model in a run directory. */
#ifndef COHORT_TRAINER_H
#define COHORT_TRAINER_H

#include "base/base.h"
#include "base/comm.h"
#include "data/dataset.h"
#include "learn/metrics.h"
#include "runs/baseline.h"
#include "runs/settings.h"

/* The report of a finished run. */
struct result {
    int64_t epochs, best_epoch;
    double best, seconds;
    bool stopped_early, converged, was_finished;
    bool is_mixed; /* trained with the arithmetic of several versions of cohort */
    struct score scores[N_SPLITS];           /* of the best epoch; n = 0: none */
    double baselines[N_SPLITS][N_BASELINES]; /* log-losses on the same attempts; NaN: none */
};

/* Collective: starts or continues the run that `settings` describe, or finds it finished.
 * STOPPED after a signal, with everything saved. */
CHECKED enum status trainer_run(const struct comm *comm, struct settings *settings,
                                struct result *result);

#endif
