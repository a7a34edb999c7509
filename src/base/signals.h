/* Signals that ask a run to save and stop. */
#ifndef COHORT_SIGNALS_H
#define COHORT_SIGNALS_H

#include "base/base.h"

/* From now on USR1 and TERM do not end the program, but are recorded. */
void signals_catch(void);
bool signals_came(void); /* this rank received one */

#endif
