/* Virtual workers, so that P ranks compute what one rank would. */
#ifndef COHORT_LANES_H
#define COHORT_LANES_H

#include "base/base.h"
#include "data/dataset.h"

/* students --(split by attempts)--> lanes --(split)--> ranks
 *
 * Each of n_lanes lanes holds a range of students of the data set, which may be empty. This rank
 * keeps the n_own lanes of its range that have students. In each step every lane provides one
 * block of its training students; the blocks of all lanes are the mini-batch. */
struct lanes {
    size_t n_lanes, n_steps; /* steps per epoch */
    size_t n_own;
    size_t n_training;    /* students, over all ranks */
    size_t most_students; /* in any mini-batch */
    size_t most_blocks;   /* with students, in any mini-batch */
    size_t *number;       /* n_own: which of the n_lanes lanes it is */
    uint64_t *first;      /* n_own + 1: its first student in the data set */
    uint32_t **students; /* n_own: the lane's training students (of the shard), in file order */
    uint32_t **order;    /* n_own: this epoch's order of them */
    size_t *n_students;  /* n_own */
    const uint32_t *length; /* see lanes_fill; if set: */
    size_t **cuts;          /* n_own, n_steps + 1: where a lane's blocks begin */
    uint32_t *step_order;   /* n_steps: which of its blocks a lane provides */
};

/* Creates lanes for `batch` students per step in blocks of about `block`. Also returns the
 * students this rank must read (first_student, n_students). More ranks than lanes is an
 * error. */
CHECKED enum status lanes_create(struct lanes *lanes, const struct dataset *dataset,
                                 size_t batch, size_t block, size_t *first_student,
                                 size_t *n_students);

/* Collective: finds the training students (has_training[s] of the shard) and the number of
 * steps. No training students is an error. With `length` of the shard's students, which must
 * outlive the lanes, blocks hold students of similar length and about equal numbers of
 * attempts; NULL: random students, equally many. */
CHECKED enum status lanes_fill(struct lanes *lanes, const struct shard *shard,
                               const bool *has_training, const uint32_t *length, size_t batch);
void lanes_destroy(struct lanes *lanes);

/* The order of an epoch; then the block of own lane l in a step, as students of the shard. */
void lanes_shuffle(struct lanes *lanes, uint64_t seed, uint32_t epoch);
const uint32_t *lanes_block(const struct lanes *lanes, size_t l, size_t step, size_t *n);

#endif
