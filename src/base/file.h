/* Plain files and directories. */
#ifndef COHORT_FILE_H
#define COHORT_FILE_H

#include "base/base.h"

/* Reads a whole plain file and adds a NUL byte (caller frees). */
CHECKED enum status file_read(const char *path, char **bytes, size_t *n_bytes);

/* Reads at most n bytes from its start; returns how many, 0 if it cannot be read. */
size_t file_peek(const char *path, void *bytes, size_t n);

/* Creates a directory and its parents; it may exist. */
CHECKED enum status file_make_directory(const char *path);
bool file_exists(const char *path);
bool file_is_directory(const char *path);
bool file_is_plain(const char *path);            /* not a directory, a pipe or a device */
bool file_is_same(const char *a, const char *b); /* two names of one file, or equal names */
bool file_is_in(const char *directory, const char *name);
bool file_ends_in(const char *path, const char *ending);

#endif
