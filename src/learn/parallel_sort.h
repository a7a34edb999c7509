/* Predictions sorted by probability over all ranks. */
#ifndef COHORT_PARALLEL_SORT_H
#define COHORT_PARALLEL_SORT_H

#include "learn/metrics.h"

/* The attempts with the probabilities that one rank owns, ascending; rank 0 owns the lowest.
 * Attempts with equal probabilities are on one rank, the incorrect ones first. */
struct parallel_sort {
    size_t n;
    uint32_t *key; /* pattern of the probability and, as its last bit, the outcome */
    uint32_t *student;
};

/* Collective. Each rank brings its own predictions; stretches have about the same length. */
void parallel_sort_fill(struct parallel_sort *part, const struct comm *comm,
                        const struct prediction *predictions, size_t n);
void parallel_sort_free(struct parallel_sort *part);

#endif
