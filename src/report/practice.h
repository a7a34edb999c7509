/* Right answers by the number of attempts at a skill. */
#ifndef COHORT_PRACTICE_H
#define COHORT_PRACTICE_H

#include "data/dataset.h"

enum { PRACTICE_POINTS = 20 };

/* Answers at the nth attempt; `chance` is the sum of the model's chances in units of 2^-30. */
struct practice_point {
    int64_t n, right, chance;
};

/* Attempts of students and what is practised in them. */
struct practice_source {
    const struct shard *shard;
    const float *chance; /* of each attempt of the shard; NaN: not scored */
    size_t n_things;     /* skills, or items */
    /* The things practised in attempt t; returns how many. */
    size_t (*things)(const void *arg, uint64_t t, const uint32_t **things);
    const void *arg;
};

/* Adds the scored answers of each thing: n_things numbers. */
void practice_answers(const struct practice_source *source, int64_t *n);

/* Adds points: PRACTICE_POINTS for each slot. slot[k] is that of thing k, or UINT32_MAX; all
 * things add to slot 0. */
void practice_count(const struct practice_source *source, const uint32_t *slot,
                    struct practice_point *points);

/* How many points from the first on have at least `fewest` answers. */
size_t practice_length(const struct practice_point *points, int64_t fewest);

/* The share right at the last of n points minus that at the first: of three points each, or of
 * fewer where n is small. */
double practice_rise(const struct practice_point *points, size_t n);

#endif
