/* Signals that ask a run to save and stop. */
#ifndef COHORT_SIGNALS_H
#define COHORT_SIGNALS_H

#include "base/base.h"

/* From now on USR1 and TERM end nothing by themselves, but are remembered. */
void signals_catch(void);
bool signals_came(void); /* one has come to this rank */

#endif
