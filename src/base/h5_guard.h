/* What happens where HDF5 itself falls over a file. */
#ifndef COHORT_H5_GUARD_H
#define COHORT_H5_GUARD_H

#include "base/base.h"

/* Once per process. */
void h5_guard_start(void);

/* The file that is read from now on, for the sentence. */
void h5_guard_name(const char *path);

/* At the beginning of a function that calls HDF5 to read: until it returns, a fault is taken
 * for one of the file. */
#define H5_GUARD                                                                               \
    __attribute__((cleanup(h5_guard_leave), unused)) int h5_guarded = h5_guard_enter()
int h5_guard_enter(void);
void h5_guard_leave(int *guarded);

#endif
