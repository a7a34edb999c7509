/* layer 1 (instruments): files that are whole or not there: temporary, fsync, rename, fsync. */
#ifndef COHORT_STORE_H
#define COHORT_STORE_H

#include "base/base.h"

/* Makes a file that grows beyond what the user's limits allow a failed write, with a sentence,
 * in place of a signal that ends the program; once per process. */
void store_start(void);

/* Writes `bytes` to `path` so that a kill or a full disk at any moment leaves either the old
 * file or the new one. */
CHECKED enum status store_write(const char *path, const void *bytes, size_t n_bytes);

/* The same, and the file that was at `path` is `kept` after that; it takes that name only when
 * the new one is whole on the disk, so that there are two good files until there are three. */
CHECKED enum status store_write_keeping(const char *path, const char *kept, const void *bytes,
                                        size_t n_bytes);

/* For writers that need a path of their own (HDF5): store_begin makes an empty file of a
 * temporary name beside `path`, waiting for another job that has just begun the same; then
 * store_commit makes it durable and renames it, or store_abandon removes it. Both end the
 * draft.
 */
struct store_draft {
    char *name; /* NULL: none was begun */
    int file;   /* open for writing, and locked */
};
CHECKED enum status store_begin(struct store_draft *draft, const char *path);
CHECKED enum status store_commit(struct store_draft *draft, const char *path);
void store_abandon(struct store_draft *draft);
char *store_temporary(const char *path); /* the name; caller frees */

/* The whole of a plain file, with a NUL byte after it (caller frees). */
CHECKED enum status store_read(const char *path, char **bytes, size_t *n_bytes);

/* At most n bytes from its beginning; how many there were, 0 if it cannot be read. */
size_t store_peek(const char *path, void *bytes, size_t n);

/* Makes a directory and those above it; it may exist. */
CHECKED enum status store_directory(const char *path);
bool store_exists(const char *path);
bool store_is_directory(const char *path);
bool store_has(const char *directory, const char *name);

#endif
