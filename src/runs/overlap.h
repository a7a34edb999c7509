/* Held-out students and attempts that a model has learned from before. */
#ifndef COHORT_OVERLAP_H
#define COHORT_OVERLAP_H

#include "base/base.h"
#include "base/comm.h"
#include "data/dataset.h"

/* Collective: warns if students or attempts that `dataset` holds out were trained on in the data of `run`
 * (with this digest), because scores on them would be too good. Silent if those data are not
 * there any more. */
CHECKED enum status overlap_warn(const struct comm *comm, const char *run, const char *digest,
                                 const struct dataset *dataset);

#endif
