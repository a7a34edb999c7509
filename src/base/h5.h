/* HDF5 as cohort uses it: checked, checksummed, byte-identical. */
#ifndef COHORT_H5_H
#define COHORT_H5_H

#include "base/base.h"
#include "base/comm.h"
#include <hdf5.h>
#include <mpi.h>

/* Turns off HDF5's own messages; once per process. */
void h5_start(void);

/* Files. h5_create creates a file on disk, h5_create_image one in memory, whose bytes h5_image
 * returns (caller frees) and which HDF5 never writes to disk. h5_open opens a file for reading,
 * with MPI-IO if several ranks open it together; h5_open_image reads the bytes of the file
 * `path` from memory. A negative id is a failure. */
hid_t h5_create(const char *path);
hid_t h5_create_image(size_t reserve_in_front);
void *h5_image(hid_t file, size_t *n_bytes);
hid_t h5_open(const char *path, MPI_Comm comm, int n_ranks);
hid_t h5_open_image(const char *path, const void *bytes, size_t n_bytes);
/* h5_close completes a file of h5_create on disk; h5_let_go closes one that was read, or whose
 * writing failed. */
CHECKED enum status h5_close(hid_t file, const char *path);
void h5_let_go(hid_t file);

CHECKED enum status h5_group(hid_t file, const char *name);
bool h5_exists(hid_t file, const char *name);

/* Arrays, chunked with Fletcher-32 checksums. `file_type` is the type of the numbers in the
 * file, `type` the one in memory. Only arrays in the form h5_write writes are read: see
 * h5_read.c. */
CHECKED enum status h5_write(hid_t file, const char *name, hid_t file_type, hid_t type,
                             int rank, const uint64_t *shape, const void *values);
/* A vector of n texts, as HDF5's strings of variable length in UTF-8. */
CHECKED enum status h5_write_strings(hid_t file, const char *name, size_t n,
                                     const char *const *texts);
CHECKED enum status h5_shape(hid_t file, const char *name, int *rank, uint64_t shape[4]);

/* The length of an array that must have one dimension. */
CHECKED enum status h5_length(hid_t file, const char *name, uint64_t *n);

/* Elements first .. first + n of a one-dimensional array; or an entire array of any rank, which
 * must have n elements. `comm` is the one of h5_open if all ranks read together (they agree on
 * the status), or NULL. */
CHECKED enum status h5_read_range(hid_t file, const char *name, hid_t type, uint64_t first,
                                  uint64_t n, void *values, const struct comm *comm);
CHECKED enum status h5_read(hid_t file, const char *name, hid_t type, uint64_t n, void *values);

/* Attributes of the root group: one number, or one text. h5_text returns NULL where there is
 * none (caller frees). */
CHECKED enum status h5_write_text(hid_t file, const char *name, const char *text);
CHECKED enum status h5_write_integer(hid_t file, const char *name, int64_t value);
CHECKED enum status h5_write_number(hid_t file, const char *name, double value);
char *h5_text(hid_t file, const char *name);
CHECKED enum status h5_integer(hid_t file, const char *name, int64_t *value);
CHECKED enum status h5_number(hid_t file, const char *name, double *value);

/* Calls visit(name, arg) for every member of a group in name order. */
CHECKED enum status h5_each(hid_t file, const char *group,
                            enum status (*visit)(const char *name, void *arg), void *arg);

#endif
