/* Memory that the ranks of one machine share. */
#ifndef COHORT_SHARED_MEMORY_H
#define COHORT_SHARED_MEMORY_H

#include "base/base.h"
#include "base/comm.h"

struct shared_memory {
    void *bytes; /* NULL: the ranks do not share memory */
    size_t n_bytes;
};

/* Collective: zeroed memory, mapped by all ranks at once; or nothing, on all ranks, where there
 * is only one rank, where they sit on several machines, where the machine has no room for it,
 * or where COHORT_SHARED=no says so. */
void shared_memory_create(struct shared_memory *shared, const struct comm *comm,
                          size_t n_bytes);
void shared_memory_destroy(struct shared_memory *shared);

#endif
