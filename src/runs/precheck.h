/* Looks before a run begins or goes on. */
#ifndef COHORT_PRECHECK_H
#define COHORT_PRECHECK_H

#include "runs/stepper.h"

/* Collective: warns of settings that cannot act, because no validation score decides anything.
 * (A refit, which has none, takes the settings of another run.) */
void precheck_settings(const struct settings *settings, const struct stepper *stepper);

#endif
