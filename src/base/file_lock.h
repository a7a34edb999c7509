/* Locks on files, so that two jobs do not write the same files. */
#ifndef COHORT_FILE_LOCK_H
#define COHORT_FILE_LOCK_H

#include "base/base.h"

/* As `seconds` of file_lock_take and file_lock_wait: no time limit. */
#define LOCK_FOREVER INT32_MAX

/* Opens the file, creates it if necessary, and locks it for this job; closing it unlocks it. OK
 * with `file` -1: another job held the lock for all of `seconds`. */
CHECKED enum status file_lock_take(const char *path, int32_t seconds, int *file);

/* The same for an open file. Returns 0 if locked, EAGAIN if another job holds it, or the errno
 * that says why locks do not work. */
int file_lock_wait(int file, int32_t seconds);

/* Whether any process holds the lock now. */
bool file_lock_is_held(const char *path);

#endif
