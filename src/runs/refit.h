/* A chosen model trained again, on training and validation attempts together. */
#ifndef COHORT_REFIT_H
#define COHORT_REFIT_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/trainer.h"

/* Collective: as settings_create, where train.refit may name a finished run. The settings are
 * then those of that run's best epoch; the user may add the places ([data], [run]) and repeat
 * settings, but not change them. */
CHECKED enum status refit_settings(const struct comm *comm, struct settings *settings,
                                   struct config *config);

/* What a checkpoint's configuration says of it, to be added to config_text; caller frees. */
char *refit_text(const struct refit *refit);

/* The digests that such a configuration names, NULL: it is of no refit. */
const char *refit_digest(const struct config *config);

#endif
