/* Signals that ask a run to save and stop. */
#ifndef COHORT_SIGNALS_H
#define COHORT_SIGNALS_H

#include "base/base.h"

/* From now on USR1, TERM and the first INT (Ctrl-C) do not end the program, but are recorded. */
void signals_catch(void);
bool signals_came(void); /* this rank received one */

#endif
