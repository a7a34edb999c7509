/* The true parameters in a data set: writing them with their digest, and checking that. */
#ifndef COHORT_TRUTH_H
#define COHORT_TRUTH_H

#include "base/base.h"
#include "base/h5.h"

/* Reads /truth of an open data set and compares it with its digest, before any of its numbers are
 * used. `known`: there is nothing to check, or it was checked; false: an earlier version wrote
 * the truth, without a digest. */
CHECKED enum status truth_check(hid_t file, bool *known);

#endif
