/* Turns crashes of HDF5 on damaged files into error messages. */
#ifndef COHORT_H5_GUARD_H
#define COHORT_H5_GUARD_H

#include "base/base.h"

/* Once per process. */
void h5_guard_start(void);

/* Names the file that is read from now on, for the message. */
void h5_guard_name(const char *path);

/* Put this first in a function that calls HDF5 to read: until the function returns, a fault is
 * blamed on the file. */
#define H5_GUARD                                                                               \
    __attribute__((cleanup(h5_guard_leave), unused)) int h5_guarded = h5_guard_enter()
int h5_guard_enter(void);
void h5_guard_leave(int *guarded);

#endif
