/* Schedules of the learning rate. */
#ifndef COHORT_LEARNING_RATE_H
#define COHORT_LEARNING_RATE_H

#include "learn/optimizer.h"

enum learning_rate_schedule {
    SCHEDULE_CONSTANT,
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,
    SCHEDULE_STEP
};
extern const char *const learning_rate_schedules[]; /* NULL-terminated */

/* The learning rate of step `step` (counted from 0) of a schedule of n_epochs, with n_steps per
 * epoch. */
double learning_rate_at(const struct optimizer_options *options, int64_t n_epochs, int64_t step,
                        int64_t n_steps);

#endif
