/* layer 3 (learning): predictions sorted by probability over all ranks. */
#ifndef COHORT_STRETCH_H
#define COHORT_STRETCH_H

#include "learn/metrics.h"

/* The attempts with the probabilities that one rank owns, ascending; rank 0 owns the lowest.
 * Attempts with equal probabilities are on one rank, the incorrect ones first. */
struct stretch {
    size_t n;
    uint32_t *key; /* pattern of the probability and, as its last bit, the outcome */
    uint32_t *student;
};

/* Collective. Each rank brings its own predictions; stretches have about the same length. */
void stretch_fill(struct stretch *stretch, const struct comm *comm,
                  const struct prediction *predictions, size_t n);
void stretch_free(struct stretch *stretch);

#endif
