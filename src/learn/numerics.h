/* Revisions of the arithmetic, to detect runs started with another one. */
#ifndef COHORT_NUMERICS_H
#define COHORT_NUMERICS_H

#include "base/base.h"

/* The revision of a kind's arithmetic in this program, from 1. A checkpoint holds the revision
 * that its run was started with. */
int64_t numerics_revision(const char *kind);

/* Whether a newer program than this one has the revision, with changes unknown here. */
bool numerics_is_newer(const char *kind, int64_t revision);

/* A human-readable list of changes since a revision that affect a kind with these settings (the
 * text of a configuration); NULL: none. The caller frees it. */
char *numerics_since(const char *kind, int64_t revision, const char *settings);

#endif
