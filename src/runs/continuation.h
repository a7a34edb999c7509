/* Checks that settings continue a given run. */
#ifndef COHORT_CONTINUATION_H
#define COHORT_CONTINUATION_H

#include "base/base.h"
#include "base/config.h"
#include "runs/checkpoint.h"

/* Whether `config`, the text of the resolved `groups`, can continue the run of a checkpoint. */
CHECKED enum status continuation_check(const struct checkpoint *checkpoint, const char *config,
                                       const struct option_group *groups, size_t n_groups);

/* Whether the arithmetic of the model kind is another one than that of the revision with which
 * the run was started. Prints a note if it has changed since; checkpoint_open warns if it is
 * newer than this program. */
bool continuation_say_numerics(const char *run, const char *kind, int64_t revision,
                               const char *config);

#endif
