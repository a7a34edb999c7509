/* Settings that change from epoch to epoch. */
#ifndef COHORT_SCHEDULE_H
#define COHORT_SCHEDULE_H

#include "base/base.h"

/* Pairs epoch:value with rising epochs, as in "10:3 20:5": sets `value` to what the schedule
 * says of an epoch, if it says anything. False if the text is no schedule of values from 1 to
 * `most`. */
bool schedule_at(const char *text, int64_t epoch, int64_t most, int64_t *value);

#endif
