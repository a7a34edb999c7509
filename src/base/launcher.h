/* Which launcher started this process, according to the environment. */
#ifndef COHORT_LAUNCHER_H
#define COHORT_LAUNCHER_H

#include "base/base.h"

struct launcher {
    const char *variable; /* the one that tells; NULL: no launcher */
    int size, rank;
};

/* How many processes were started together and which one this is. COHORT_MPI=no ignores the
 * launcher; COHORT_MPI=yes is for one that sets no variable. */
struct launcher launcher_look(void);

#endif
