/* layer 5 (what people do with runs): k-fold cross-validation. */
#ifndef COHORT_CROSSVAL_H
#define COHORT_CROSSVAL_H

#include "base/base.h"
#include "base/comm.h"
#include "runs/trainer.h"

/* Scores over the folds, of each split. */
struct crossval {
    struct score mean[N_SPLITS], spread[N_SPLITS]; /* n = 0: none */
};

/* Collective: trains train.folds runs in directories fold-1, fold-2, ... of the run directory,
 * each of which can be stopped and continued like any other, and writes result.json with the
 * mean and spread of the scores over the folds. */
CHECKED enum status crossval_run(const struct comm *comm, const struct settings *settings,
                                 struct crossval *crossval);

#endif
