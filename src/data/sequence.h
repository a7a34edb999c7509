/* The students of a block in time-major order. */
#ifndef COHORT_SEQUENCE_H
#define COHORT_SEQUENCE_H

#include "base/base.h"

/* n students, the longest first, so that the first active[t] are active in step t. Row
 * offset[t] + i of any table belongs to step t of student i. The rows of a step are contiguous,
 * and nothing is padded: there is one row per attempt. */
struct sequence {
    size_t n, n_steps, n_rows;
    uint32_t *student; /* n: the i-th student as a student of the shard */
    size_t *active;    /* n_steps + 1; active[n_steps] = 0 */
    size_t *offset;    /* n_steps + 1 */
    size_t capacity, step_capacity;
};

/* Sorts students by length[student], the longest first, ties in the given order. */
void sequence_sort(uint32_t *students, size_t n, const uint32_t *length);

/* Arranges students by length[student], ties in the given order; skips those of length 0.
 * Begins as all zeros; memory is kept for the next block. */
void sequence_arrange(struct sequence *sequence, const uint32_t *students, size_t n,
                      const uint32_t *length);
void sequence_free(struct sequence *sequence);

#endif
