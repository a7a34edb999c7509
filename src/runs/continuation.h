/* What a run and its continuation must have in common. */
#ifndef COHORT_CONTINUATION_H
#define COHORT_CONTINUATION_H

#include "base/base.h"
#include "base/config.h"
#include "runs/checkpoint.h"

/* Whether `config`, the text of what `groups` were resolved to, continues the run of a
 * checkpoint. */
CHECKED enum status continuation_check(const struct checkpoint *checkpoint, const char *config,
                                       const struct option_group *groups, size_t n_groups);

/* A line if the arithmetic of its kind has changed since the run was begun, with this revision
 * of it. */
void continuation_say_numerics(const char *run, const char *kind, int64_t revision,
                               const char *config);

#endif
