/* The terminal of the user. */
#ifndef COHORT_TERMINAL_H
#define COHORT_TERMINAL_H

#include "base/base.h"

/* The columns of the terminal that shows this process's stderr, directly or passed on by
 * mpirun; 0: there is none, or it is not known. COHORT_LIVE=yes or no decides instead. */
size_t terminal_columns(void);

/* "1.5 s", "45 s", "12 min", "3 h 20 min". */
void terminal_duration(double seconds, char *text, size_t size);

#endif
