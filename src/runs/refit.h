/* Training a finished run's model again, on training and validation attempts together. */
#ifndef COHORT_REFIT_H
#define COHORT_REFIT_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/trainer.h"

/* Collective: like settings_create, with train.refit naming a finished run. The settings are
 * those of that run and its best epoch. The user may set locations ([data], [run]) and repeat
 * settings, but not change them. */
CHECKED enum status refit_settings(const struct comm *comm, struct settings *settings,
                                   struct config *config);

/* The section [refit] of a checkpoint's configuration, to append to config_text; caller
 * frees. */
char *refit_text(const struct refit *refit);

/* The digest in that section; NULL: not a refit. */
const char *refit_digest(const struct config *config);

#endif
