/* Files that are complete or absent: temporary file, fsync, rename, fsync. */
#ifndef COHORT_ATOMIC_FILE_H
#define COHORT_ATOMIC_FILE_H

#include "base/base.h"

/* Turns a file that outgrows the user's limit into a failed write with an error message, not a
 * fatal signal. Call once per process. */
void atomic_file_start(void);

/* Writes `bytes` to `path` so that a kill or a full disk at any moment leaves either the old
 * file or the new one. */
CHECKED enum status atomic_file_write(const char *path, const void *bytes, size_t n_bytes);

/* The same, and renames the old file at `path` to `kept`, once the new one is complete on disk:
 * at every moment at least two good files exist. */
CHECKED enum status atomic_file_write_keeping(const char *path, const char *kept,
                                              const void *bytes, size_t n_bytes);

/* For writers that need a path of their own (HDF5). atomic_file_begin creates an empty file
 * with a temporary name beside `path`, and waits if another job is writing it. Then
 * atomic_file_commit syncs and renames it, or atomic_file_abandon removes it. Both end the
 * draft. */
struct atomic_file {
    char *name; /* NULL: not begun */
    int file;   /* open for writing, and locked */
};
CHECKED enum status atomic_file_begin(struct atomic_file *draft, const char *path);
CHECKED enum status atomic_file_commit(struct atomic_file *draft, const char *path);
void atomic_file_abandon(struct atomic_file *draft);
char *atomic_file_temporary(const char *path); /* the name; caller frees */

#endif
