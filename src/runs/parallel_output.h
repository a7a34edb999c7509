/* Tables that all ranks write together, as text or HDF5. */
#ifndef COHORT_PARALLEL_OUTPUT_H
#define COHORT_PARALLEL_OUTPUT_H

#include "base/atomic_file.h"
#include "base/base.h"
#include "base/comm.h"
#include "base/h5.h"
#include "data/dataset.h"
#include <stdio.h>

/* What comes before all rows, between two rows and after all rows. */
struct text_frame {
    const char *head, *between, *tail;
};

/* Rank 0, before an output is written: refuses to replace a file that something else wrote, since
 * such a name is a mistake. The output itself begins as `pattern` says (an extended regular
 * expression), and is `what`, as in "a file of predictions". */
CHECKED enum status parallel_output_check_old(const char *path, const char *pattern,
                                              const char *what);

/* Collective: writes a text with the rows of rank 0, of rank 1, and so on. `row` prints row r
 * of this rank's n_rows. The path is one of output_stream.h. A file appears complete or not at
 * all. No rank holds more than a piece of it. */
CHECKED enum status parallel_output_text(const struct comm *comm, const char *path,
                                         const struct text_frame *frame, size_t n_rows,
                                         void (*row)(FILE *out, size_t r, const void *arg),
                                         const void *arg);

/* The same with a head only. */
CHECKED enum status parallel_output_write(const struct comm *comm, const char *path,
                                          const char *head, size_t n_rows,
                                          void (*row)(FILE *out, size_t r, const void *arg),
                                          const void *arg);

/* Rank 0: begins an HDF5 file under a temporary name; ends it, given the `status` of what
 * happened in between: commits the file or removes it. */
CHECKED enum status parallel_output_h5_begin(const char *path, struct atomic_file *draft,
                                             hid_t *file);
CHECKED enum status parallel_output_h5_end(enum status status, const char *path,
                                           struct atomic_file *draft, hid_t file);

/* Collective: writes an array of which each rank holds some rows, in rank order; n_columns = 0:
 * a vector. Rank 0 holds the file. */
CHECKED enum status parallel_output_h5_array(const struct comm *comm, hid_t file,
                                             const char *name, hid_t file_type, hid_t type,
                                             size_t n_rows, size_t n_columns,
                                             const void *values);

#endif
