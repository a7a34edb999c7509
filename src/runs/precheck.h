/* Checks before a run starts or continues. */
#ifndef COHORT_PRECHECK_H
#define COHORT_PRECHECK_H

#include "runs/stepper.h"

/* Collective: fails if the score to monitor is undefined on the validation attempts or targets
 * that are known. */
CHECKED enum status precheck_monitor(const struct settings *settings,
                                     const struct stepper *stepper);

/* Collective: warns of settings that have no effect because no validation score decides
 * anything. A refit has no validation and takes its settings from another run, so it is not
 * warned about. */
void precheck_settings(const struct settings *settings, const struct stepper *stepper);

#endif
