/* The settings of a run, whatever it starts from. */
#ifndef COHORT_RUN_SETTINGS_H
#define COHORT_RUN_SETTINGS_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/settings.h"

/* Collective: takes ownership of `config` and fills the settings: those of a run of its own,
 * with defaults that follow from the data, of a refit (train.refit) or of an update
 * (train.update). */
CHECKED enum status run_settings(const struct comm *comm, struct settings *settings,
                                 struct config *config);

#endif
