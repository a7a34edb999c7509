/* Memory that the ranks of one node share. */
#ifndef COHORT_SHARED_MEMORY_H
#define COHORT_SHARED_MEMORY_H

#include "base/base.h"
#include "base/comm.h"

struct shared_memory {
    void *bytes; /* NULL: the ranks do not share memory */
    size_t n_bytes;
};

/* Collective: zeroed memory, mapped by all ranks. On all ranks NULL if there is only one rank,
 * if the ranks are on several nodes, if the node has no room, or if COHORT_SHARED=no. */
void shared_memory_create(struct shared_memory *shared, const struct comm *comm,
                          size_t n_bytes);
void shared_memory_destroy(struct shared_memory *shared);

#endif
