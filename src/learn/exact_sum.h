/* Sums of statistics whose bits do not depend on the order of addition. */
#ifndef COHORT_EXACT_SUM_H
#define COHORT_EXACT_SUM_H

#include "base/base.h"
#include "base/comm.h"
#include "base/shared_memory.h"
#include "learn/params.h"

/* How the ranks share the work of a step: rank r owns elements cuts[r] <= i < cuts[r + 1] of
 * the flat vector. Ranks on one node keep the parameters in shared memory; otherwise they send
 * each other the changed slices. */
struct exact_slices {
    const struct comm *comm;
    size_t *cuts; /* comm->size + 1 */
    struct params *params;
    real *own_value; /* the parameters' private memory, while params->value is shared */
    struct shared_memory shared; /* holds params->value */
};

/* Collective. Until destroyed, params->value may be memory that all ranks share. */
void exact_slices_create(struct exact_slices *slices, const struct comm *comm,
                         struct params *params);
void exact_slices_destroy(struct exact_slices *slices);

/* The statistics of a mini-batch, one number per parameter (same flat layout), in fixed point:
 * the integer k stands for k 2^-bits. 32 bits if the model can bound its sums, else 64. */
struct tally {
    size_t n;
    bool wide;
    int bits;
    double most;                 /* the largest term in fixed point; others are out of range */
    void *values;                /* int32_t or int64_t [n] */
    int64_t n_scored;            /* attempts summed in `loss` */
    int64_t loss;                /* fixed point, LOSS_BITS */
    int64_t out_of_range;        /* numbers that did not fit: training diverges */
    void *received;              /* the own slice of the sum, as received */
    struct shared_memory shared; /* the tallies of all ranks, one after the other */
    size_t n_bytes;              /* of one tally in shared memory, padded */
};
#ifdef COHORT_REAL_DOUBLE
enum { LOSS_BITS = 40 }; /* fine enough for differences of losses to show a gradient */
#else
enum { LOSS_BITS = 20 };
#endif

/* Collective over the slices' ranks; slices = NULL: a tally that is never summed. */
void tally_create(struct tally *tally, size_t n, bool wide, int bits,
                  const struct exact_slices *slices);
void tally_destroy(struct tally *tally);
void tally_clear(struct tally *tally);

/* At most n_terms terms will be added to any element, over all ranks. A term is out of range if
 * a sum of n_terms such terms could overflow. Default: 1024. */
void tally_expect(struct tally *tally, size_t n_terms);

/* Adds n numbers of ordinary floating point from place `at` on (wide tallies only). */
void tally_add(struct tally *tally, size_t at, const real *values, size_t n);

/* Adds to the loss; NaN and what is too large count as out of range. */
void tally_add_loss(struct tally *tally, double loss);

/* Adds an integer read from data or a file, which may be of any size or NaN. A sum that is too
 * large wraps around: useless, but the same on any number of ranks. */
static inline void exact_sum_add(int64_t *sum, double whole)
{
    const int64_t most = (int64_t)1 << 62;
    const int64_t term = whole >= 0x1p62    ? most
                         : whole <= -0x1p62 ? -most
                         : whole == whole   ? (int64_t)whole
                                            : 0;
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)term);
}

static inline double tally_unit(const struct tally *tally)
{
    return 1.0 / (double)((uint64_t)1 << tally->bits);
}

/* Most numbers that ranks send each other at once; tests set a small value. */
extern size_t exact_sum_piece;

/* Collective: each rank's own slice of `tally` becomes the sum over all ranks; the rest is
 * lost. */
void exact_sum(const struct exact_slices *slices, struct tally *tally);

/* Collective: after each rank has updated its slice, gives all ranks all parameters. */
void exact_slices_share(const struct exact_slices *slices);

/* Collective: every rank has computed the same `flat`; copies it into the parameters. */
void exact_slices_publish(const struct exact_slices *slices, const real *flat);

/* Collective: rank 0 collects a flat vector from the slices of all ranks; and the reverse. */
void exact_slices_collect(const struct exact_slices *slices, real *flat);
void exact_slices_hand_out(const struct exact_slices *slices, real *flat);

#endif
