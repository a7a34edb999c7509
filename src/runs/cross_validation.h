/* K-fold cross-validation. */
#ifndef COHORT_CROSS_VALIDATION_H
#define COHORT_CROSS_VALIDATION_H

#include "base/base.h"
#include "base/comm.h"
#include "runs/trainer.h"

/* Mean and standard deviation (`spread`) of the scores over the folds, per split. */
struct cross_validation {
    struct score mean[N_SPLITS], spread[N_SPLITS]; /* n = 0: none */
    bool is_mixed;                                 /* one of the runs: see struct result */
};

/* Collective: trains train.folds runs in the directories fold-1, fold-2, ... of the run
 * directory, each of which can be stopped and continued like any other. Writes result.json with
 * the mean and standard deviation of the scores over the folds. */
CHECKED enum status cross_validation_run(const struct comm *comm,
                                         const struct settings *settings,
                                         struct cross_validation *folds);

#endif
