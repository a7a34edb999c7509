/* Students of a block side by side in time. */
#ifndef COHORT_SEQUENCE_H
#define COHORT_SEQUENCE_H

#include "base/base.h"

/* n students, the longest first, so that those still there at step t are the first active[t].
 * Row offset[t] + i of any table belongs to step t of student i; a step's rows lie together,
 * and nothing is padded: there are as many rows as attempts. */
struct sequence {
    size_t n, n_steps, n_rows;
    uint32_t *student; /* n: which student of the shard is the i-th here */
    size_t *active;    /* n_steps + 1; active[n_steps] = 0 */
    size_t *offset;    /* n_steps + 1 */
    size_t capacity, step_capacity;
};

/* Puts students in order of length[student], the longest first, ties in the order given. */
void sequence_sort(uint32_t *students, size_t n, const uint32_t *length);

/* Arranges students by length[student], ties in the order given; those of length 0 are left
 * out. Begins as all zeros; memory is kept for the next block. */
void sequence_arrange(struct sequence *sequence, const uint32_t *students, size_t n,
                      const uint32_t *length);
void sequence_free(struct sequence *sequence);

#endif
