/* What started this process, by the environment it left. */
#ifndef COHORT_LAUNCHER_H
#define COHORT_LAUNCHER_H

#include "base/base.h"

struct launcher {
    const char *variable; /* that says it; NULL: nobody but a shell */
    int size, rank;
};

/* How many processes were started together and which one this is. COHORT_MPI=no: never mind
 * the launcher; COHORT_MPI=yes: one that leaves no sign. */
struct launcher launcher_look(void);

#endif
