/* layer 0 (ground): memory that the ranks of one machine share. */
#ifndef COHORT_SHARED_H
#define COHORT_SHARED_H

#include "base/base.h"
#include "base/comm.h"

struct shared {
    void *bytes; /* NULL: the ranks do not share memory */
    size_t n_bytes;
};

/* Collective: zeroed memory, mapped by all ranks at once; or nothing, on all ranks, where there
 * is only one rank, where they sit on several machines, where the machine has no room for it,
 * or where COHORT_SHARED=no says so. */
void shared_create(struct shared *shared, const struct comm *comm, size_t n_bytes);
void shared_destroy(struct shared *shared);

#endif
