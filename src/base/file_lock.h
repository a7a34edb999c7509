/* Locks on files, by which jobs keep out of each other's way. */
#ifndef COHORT_FILE_LOCK_H
#define COHORT_FILE_LOCK_H

#include "base/base.h"

/* As long as it is to be had: within file_lock_take's and file_lock_wait's `seconds`. */
#define LOCK_FOREVER INT32_MAX

/* Opens the file, which it makes if need be, and locks it for this job; closing it lets go.
 * `file` is -1 after OK: for all of `seconds` somebody else had it. */
CHECKED enum status file_lock_take(const char *path, int32_t seconds, int *file);

/* The same of an open file: 0 it is locked, EAGAIN somebody else has it, or why there are no
 * locks. */
int file_lock_wait(int file, int32_t seconds);

/* Whether somebody has the file locked now. */
bool file_lock_is_held(const char *path);

#endif
