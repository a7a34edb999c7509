/* Predictions sorted by probability over all ranks. */
#ifndef COHORT_PARALLEL_SORT_H
#define COHORT_PARALLEL_SORT_H

#include "learn/metrics.h"

/* The attempts in one rank's range of probabilities, ascending; rank 0 has the lowest range.
 * Attempts of equal probability are on one rank, the incorrect ones first. */
struct parallel_sort {
    size_t n;
    uint32_t *key; /* bit pattern of the probability; the last bit is the outcome */
    uint32_t *student;
};

/* Collective. Each rank passes its own predictions; all get about equally many back. */
void parallel_sort_fill(struct parallel_sort *part, const struct comm *comm,
                        const struct prediction *predictions, size_t n);
void parallel_sort_free(struct parallel_sort *part);

#endif
