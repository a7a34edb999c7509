/* A model with its data on all ranks, trained step by step. */
#ifndef COHORT_STEPPER_H
#define COHORT_STEPPER_H

#include "base/base.h"
#include "data/lanes.h"
#include "learn/exact_sum.h"
#include "learn/model.h"
#include "learn/optimizer.h"
#include "runs/checkpoint.h"
#include "runs/trainer.h"

struct stepper {
    const struct comm *comm;
    const struct settings *settings;
    struct model *model; /* owned by the settings */
    struct dataset dataset;
    struct lanes lanes;
    struct shard shard;
    void *work;          /* the model's view of the shard */
    int64_t n_hidden;    /* answers that training skips (own_levels.h), over all ranks */
    struct shard scored; /* if there are any: the shard with these answers; shares its arrays */
    int64_t n_training;  /* attempts, over all ranks */
    int64_t n_joined;    /* of a refit: former validation attempts, over all ranks */
    struct exact_slices slices;
    struct optimizer optimizer;
    struct tally tally;         /* of the last step; its loss and counts add up until cleared */
    bool converged;             /* for a kind that learns by passes */
    struct checkpoint original; /* of an update, until the model has started */
    double share;               /* fraction of the training attempts used in the last pass */
};

/* Collective: reads the data, declares the model and initialises it. Destroy it even after a
 * failure. */
CHECKED enum status stepper_create(struct stepper *stepper, const struct comm *comm,
                                   const struct settings *settings);
void stepper_destroy(struct stepper *stepper);

/* What predictions are made from: the shard with the answers that training skips. Close it before
 * the next step. */
struct view {
    const struct shard *shard;
    void *work;
};
struct view stepper_open_view(const struct stepper *stepper);
void stepper_close_view(const struct stepper *stepper, struct view *view);

/* Collective: steps 0 .. lanes.n_steps - 1 of epochs 0, 1, 2, ... */
void stepper_begin_epoch(struct stepper *stepper, int64_t epoch);
CHECKED enum status stepper_step(struct stepper *stepper, int64_t epoch, int64_t step);

#endif
