/* What the files of the training loop share. Nothing else includes this. */
#ifndef COHORT_TRAINER_INTERNAL_H
#define COHORT_TRAINER_INTERNAL_H

#include "base/log.h"
#include "runs/checkpoint.h"
#include "runs/run.h"
#include "runs/stepper.h"
#include "runs/trainer.h"

struct trainer {
    const struct comm *comm;
    struct settings *settings;
    struct model *model;
    struct stepper stepper;
    struct run run;
    char *config; /* as stored in the checkpoint */
    struct progress progress;
    struct score valid; /* of the last validation; n = 0: none */
    double likelihood;  /* of the last validation, if it decides */
    char *best;         /* rank 0: checkpoint of the best epoch, if not written yet */
    size_t n_best;
    double started, saved, spoke; /* points in time */
    double before;                /* seconds of earlier starts; rank 0 */
    double trained;               /* seconds spent in the steps of the epoch */
    double rate;                  /* attempts per second in them */
    int64_t steps_at_start, check_every;
    bool is_mixed; /* see struct result */
};

/* The number of epochs to train, at most. */
static inline int64_t trainer_epochs(const struct trainer *t)
{
    return t->settings->refit.epochs > 0 ? t->settings->refit.epochs
                                         : t->settings->train.epochs;
}

/* Seconds of training in all starts. */
static inline double trainer_elapsed(const struct trainer *t)
{
    return t->before + log_clock() - t->started;
}

/* trainer_state.c. Restores the state of a checkpoint. */
CHECKED enum status trainer_state_restore(struct trainer *t,
                                          const struct checkpoint *checkpoint);

/* Collective: why the settings do not suit the data set: perhaps the directory holds a run of other
 * data, whose settings they are. */
CHECKED enum status trainer_state_refused(const struct trainer *t, enum status refusal);

/* Collective: keeps the best epoch in memory until the next checkpoint is written. */
CHECKED enum status trainer_state_keep_best(struct trainer *t);

/* Collective: writes a snapshot, if the epoch that is completed shall have one. */
CHECKED enum status trainer_state_keep_snapshot(struct trainer *t);

/* Collective: writes the checkpoints. */
CHECKED enum status trainer_state_save(struct trainer *t);

/* trainer_say.c: what is being done, and the line and the record of a finished epoch. */
void trainer_say_progress(const struct trainer *t);
char *
trainer_grid(const struct trainer *t); /* model_fit's grid, as "2x3", or NULL; caller frees */
CHECKED enum status trainer_say_epoch(struct trainer *t, double loss, bool best);

#endif
