/* Training a finished run's model further, on new data. */
#ifndef COHORT_UPDATE_H
#define COHORT_UPDATE_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/checkpoint.h"
#include "runs/settings.h"

/* Collective: like settings_create, with train.update naming a finished run. The settings are
 * those of that run; the user sets data= and run=, and may change [train] and [optimizer]. */
CHECKED enum status update_settings(const struct comm *comm, struct settings *settings,
                                    struct config *config);

/* The section [update] of a checkpoint's configuration, to append to config_text; caller
 * frees. */
char *update_text(const struct update *update);

/* Collective: opens the checkpoint that an update starts from, which must not have changed, and
 * gives `dataset` the items of both. */
CHECKED enum status update_open(const struct settings *settings, const struct comm *comm,
                                struct dataset *dataset, struct checkpoint *original);

/* Collective: the values that the model starts from, after its init. */
CHECKED enum status update_start(const struct settings *settings, const struct comm *comm,
                                 const struct dataset *dataset,
                                 const struct checkpoint *original);

#endif
