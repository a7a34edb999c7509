/* Which arithmetic a run was begun with. */
#ifndef COHORT_NUMERICS_H
#define COHORT_NUMERICS_H

#include "base/base.h"

/* The revision of a kind's arithmetic in this program, from 1. Checkpoints hold the one that
 * their run began with. */
int64_t numerics_revision(const char *kind);

/* What has changed since a revision in the arithmetic of a kind with these settings (the text
 * of a configuration), for people; NULL: nothing. Caller frees. */
char *numerics_since(const char *kind, int64_t revision, const char *settings);

#endif
