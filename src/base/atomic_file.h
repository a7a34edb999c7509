/* Files that are whole or not there: temporary, fsync, rename, fsync. */
#ifndef COHORT_ATOMIC_FILE_H
#define COHORT_ATOMIC_FILE_H

#include "base/base.h"

/* Makes a file that grows beyond what the user's limits allow a failed write, with a sentence,
 * in place of a signal that ends the program; once per process. */
void atomic_file_start(void);

/* Writes `bytes` to `path` so that a kill or a full disk at any moment leaves either the old
 * file or the new one. */
CHECKED enum status atomic_file_write(const char *path, const void *bytes, size_t n_bytes);

/* The same, and the file that was at `path` is `kept` after that; it takes that name only when
 * the new one is whole on the disk, so that there are two good files until there are three. */
CHECKED enum status atomic_file_write_keeping(const char *path, const char *kept,
                                              const void *bytes, size_t n_bytes);

/* For writers that need a path of their own (HDF5): atomic_file_begin makes an empty file of a
 * temporary name beside `path`, waiting for another job that has just begun the same; then
 * atomic_file_commit makes it durable and renames it, or atomic_file_abandon removes it. Both
 * end the draft.
 */
struct atomic_file {
    char *name; /* NULL: none was begun */
    int file;   /* open for writing, and locked */
};
CHECKED enum status atomic_file_begin(struct atomic_file *draft, const char *path);
CHECKED enum status atomic_file_commit(struct atomic_file *draft, const char *path);
void atomic_file_abandon(struct atomic_file *draft);
char *atomic_file_temporary(const char *path); /* the name; caller frees */

#endif
