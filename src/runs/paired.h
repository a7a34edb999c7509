/* Several models on the same attempts: their scores, and which differences are real. */
#ifndef COHORT_PAIRED_H
#define COHORT_PAIRED_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/metrics.h"

/* The score of one model minus that of another, with a 95 % interval. */
struct paired_difference {
    double value, low, high;
    int better; /* -1: the first model is better, 1: the second, 0: the interval includes 0 */
};

/* One model on all attempts. low, high: 95 % interval of each metric. */
struct paired_entry {
    struct score score, low, high;
    struct score *replicates;
};

struct paired {
    const struct comm *comm;
    size_t n, capacity, n_replicates;
    uint64_t seed;
    int64_t attempts[2]; /* what all lists have in common: how many, and a sum of hashes */
    struct paired_entry *entries;
};

/* Compares models with n_replicates > 0 bootstrap samples of the students. */
void paired_start(struct paired *paired, const struct comm *comm, size_t n_replicates,
                  uint64_t seed);
void paired_free(struct paired *paired);

/* Collective: adds a model by its predictions of this rank's attempts; its number is the order
 * of adding. Fails unless they are of the attempts (students, outcomes) of the first list, in
 * any distribution over ranks. The same bits on any number of ranks. */
CHECKED enum status paired_add(struct paired *paired, const struct prediction *list, size_t n);

/* Not collective. Entry a minus entry b in a metric. */
struct paired_difference paired_difference(const struct paired *paired, size_t a, size_t b,
                                           enum metric metric);

/* The numbers of all entries, the best by the metric first, equal ones as they were added.
 * Caller frees. */
size_t *paired_ranking(const struct paired *paired, enum metric metric);

#endif
