/* What other programs may include: the version, until there is a library. */
#ifndef COHORT_H
#define COHORT_H

#define COHORT_VERSION "0.1.0"

#endif
