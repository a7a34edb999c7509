/* layer 2 (the problem): sums of statistics whose bits do not depend on the order of addition.
 */
#ifndef COHORT_EXACT_H
#define COHORT_EXACT_H

#include "base.h"
#include "comm.h"
#include "params.h"

/* The statistics of a mini-batch, one number for each parameter (same flat layout), in fixed
 * point: a whole number stands for itself times 2^-bits. 32 bits where the model can bound its
 * sums, else 64. */
struct tally {
    size_t n;
    bool wide;
    int bits;
    void *values;         /* int32_t or int64_t [n] */
    int64_t n_scored;     /* attempts that `loss` is over */
    int64_t loss;         /* fixed point, LOSS_BITS */
    int64_t out_of_range; /* numbers that did not fit: training diverges */
    void *received;       /* what the other ranks sent */
};
enum { LOSS_BITS = 20 };

void tally_create(struct tally *tally, size_t n, bool wide, int bits);
void tally_destroy(struct tally *tally);
void tally_clear(struct tally *tally);

/* Adds n numbers of ordinary floating point from place `at` on (wide tallies only). */
void tally_add(struct tally *tally, size_t at, const real *values, size_t n);

static inline double tally_unit(const struct tally *tally)
{
    return 1.0 / (double)((uint64_t)1 << tally->bits);
}

/* How the ranks share the work of a step: rank r owns numbers cuts[r] .. cuts[r + 1]. */
struct exact_slices {
    const struct comm *comm;
    size_t *cuts; /* comm->size + 1 */
};
void exact_slices_create(struct exact_slices *slices, const struct comm *comm,
                         const struct params *params);
void exact_slices_destroy(struct exact_slices *slices);

/* Collective: each rank's own slice of `tally` becomes the sum over all ranks; the rest is
 * lost. */
void exact_sum(const struct exact_slices *slices, struct tally *tally);

/* Collective: each rank hands its slice of `flat` to all others. */
void exact_share(const struct exact_slices *slices, real *flat);

/* Collective: rank 0 gets the whole of a flat vector of which each rank has its slice; and
 * back. */
void exact_collect(const struct exact_slices *slices, real *flat);
void exact_hand_out(const struct exact_slices *slices, real *flat);

#endif
