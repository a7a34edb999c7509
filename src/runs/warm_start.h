/* A model that starts from the values of another. */
#ifndef COHORT_WARM_START_H
#define COHORT_WARM_START_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/model.h"
#include "runs/checkpoint.h"

/* Collective: copies the values of a checkpoint into a model of the same kind whose items and
 * skills begin with those of the checkpoint. Rows behind them keep their values, and so do
 * tensors whose shape has changed otherwise; these are named in a note. */
CHECKED enum status warm_start(const struct checkpoint *checkpoint, const struct comm *comm,
                               struct model *model);

#endif
