/* Exact sums. Floating-point addition is not associative, so a floating-point sum over ranks
 * depends on the number of ranks. Integers add exactly in any order: each block converts its
 * terms to fixed point, and nothing is rounded again until the total is converted back.
 *
 * Each rank owns a slice of the parameter vector:
 *
 *     tallies          reduce-scatter     optimizer         allgather
 *     rank 0  a b c -> sum of a        -> new slice a  ->   a b c
 *     rank 1  a b c -> sum of b        -> new slice b  ->   a b c
 *     rank 2  a b c -> sum of c        -> new slice c  ->   a b c
 *
 * The traffic is that of one allreduce, but the ranks share the optimizer's work and memory
 * instead of repeating it. */
#include "learn/exact_sum.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

static size_t number_size(bool wide)
{
    return wide ? sizeof(int64_t) : sizeof(int32_t);
}

void tally_create(struct tally *tally, size_t n, bool wide, int bits,
                  const struct exact_slices *slices)
{
    *tally = (struct tally){.n = n, .wide = wide, .bits = bits};
    tally_expect(tally, 1024);
    const size_t page = 4096;
    tally->n_bytes = (n * number_size(wide) + page - 1) / page * page;
    if (slices != NULL)
        shared_memory_create(&tally->shared, slices->comm,
                             tally->n_bytes * (size_t)slices->comm->size);
    tally->values =
        tally->shared.bytes != NULL
            ? (char *)tally->shared.bytes + tally->n_bytes * (size_t)slices->comm->rank
            : memory_zeroed(n, number_size(wide));
}

void tally_destroy(struct tally *tally)
{
    if (tally->shared.bytes == NULL)
        memory_free(tally->values);
    shared_memory_destroy(&tally->shared);
    memory_free(tally->received);
    *tally = (struct tally){0};
}

void tally_clear(struct tally *tally)
{
    memset(tally->values, 0, tally->n * number_size(tally->wide));
}

void tally_expect(struct tally *tally, size_t n_terms)
{
    tally->most = floor(0x1p62 / (double)size_max(1, n_terms));
}

void tally_add(struct tally *tally, size_t at, const real *values, size_t n)
{
    const double unit = (double)((uint64_t)1 << tally->bits), most = tally->most;
    int64_t *to = (int64_t *)tally->values + at;
    ENSURE(tally->wide && at + n <= tally->n);
    for (size_t i = 0; i < n; i++) {
        const double scaled = (double)values[i] * unit;
        if (fabs(scaled) <= most)
            to[i] += (int64_t)rint(scaled);
        else
            tally->out_of_range++;
    }
}

void tally_add_loss(struct tally *tally, double loss)
{
    const double scaled = ldexp(loss, LOSS_BITS);
    if (fabs(scaled) < 0x1p56)
        exact_sum_add(&tally->loss, rint(scaled));
    else
        tally->out_of_range++;
}

void exact_slices_create(struct exact_slices *slices, const struct comm *comm,
                         struct params *params)
{
    *slices = (struct exact_slices){.comm = comm, .params = params};
    slices->cuts = NEW(size_t, (size_t)comm->size + 1);
    for (int r = 0; r <= comm->size; r++)
        slices->cuts[r] = params_cut(params, (size_t)r, (size_t)comm->size);
    shared_memory_create(&slices->shared, comm, params->n * sizeof(real));
    if (slices->shared.bytes == NULL)
        return;
    slices->own_value = params->value;
    params->value = slices->shared.bytes;
    const size_t start = slices->cuts[comm->rank];
    memcpy(params->value + start, slices->own_value + start,
           (slices->cuts[comm->rank + 1] - start) * sizeof(real));
    comm_barrier(comm);
}

void exact_slices_destroy(struct exact_slices *slices)
{
    if (slices->shared.bytes != NULL) {
        memcpy(slices->own_value, slices->params->value, slices->params->n * sizeof(real));
        slices->params->value = slices->own_value;
    }
    shared_memory_destroy(&slices->shared);
    memory_free(slices->cuts);
    *slices = (struct exact_slices){0};
}

static size_t slice_size(const struct exact_slices *slices, int r)
{
    return slices->cuts[r + 1] - slices->cuts[r];
}

static void add_slice(void *to, const void *from, size_t n, bool wide)
{
    if (wide)
        for (size_t i = 0; i < n; i++)
            ((int64_t *)to)[i] += ((const int64_t *)from)[i];
    else
        for (size_t i = 0; i < n; i++)
            ((int32_t *)to)[i] += ((const int32_t *)from)[i];
}

/* Ranks on one node: each reads its slice of the others' tallies in shared memory. */
static void sum_shared(const struct exact_slices *slices, struct tally *tally)
{
    const struct comm *comm = slices->comm;
    const size_t at = slices->cuts[comm->rank] * number_size(tally->wide);
    comm_barrier(comm);
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank)
            add_slice((char *)tally->values + at,
                      (const char *)tally->shared.bytes + tally->n_bytes * (size_t)r + at,
                      slice_size(slices, comm->rank), tally->wide);
}

/* MPI counts are int: longer vectors are sent slice by slice, in pieces. */
size_t exact_sum_piece = (size_t)1 << 30;

static void sum_pieces(const struct exact_slices *slices, struct tally *tally,
                       MPI_Datatype type)
{
    const struct comm *comm = slices->comm;
    for (int r = 0; r < comm->size; r++)
        for (size_t at = slices->cuts[r]; at < slices->cuts[r + 1]; at += exact_sum_piece) {
            void *const piece = (char *)tally->values + at * number_size(tally->wide);
            MPI_Reduce(comm->rank == r ? MPI_IN_PLACE : piece, piece,
                       (int)size_min(exact_sum_piece, slices->cuts[r + 1] - at), type, MPI_SUM,
                       r, comm->mpi);
        }
}

static void sum_sent(const struct exact_slices *slices, struct tally *tally)
{
    const struct comm *comm = slices->comm;
    const size_t size = number_size(tally->wide), own = slice_size(slices, comm->rank);
    const MPI_Datatype type = tally->wide ? MPI_INT64_T : MPI_INT32_T;
    if (tally->n > exact_sum_piece) {
        sum_pieces(slices, tally, type);
        return;
    }
    int *counts = NEW(int, (size_t)comm->size);
    for (int r = 0; r < comm->size; r++)
        counts[r] = (int)slice_size(slices, r);
    if (tally->received == NULL)
        tally->received = memory_scratch(own, size);
    MPI_Reduce_scatter(tally->values, tally->received, counts, type, MPI_SUM, comm->mpi);
    memcpy((char *)tally->values + slices->cuts[comm->rank] * size, tally->received,
           own * size);
    memory_free(counts);
}

void exact_sum(const struct exact_slices *slices, struct tally *tally)
{
    if (tally->shared.bytes != NULL)
        sum_shared(slices, tally);
    else if (slices->comm->size > 1)
        sum_sent(slices, tally);
}

void exact_slices_share(const struct exact_slices *slices)
{
    const struct comm *comm = slices->comm;
    if (slices->shared.bytes != NULL) {
        comm_barrier(comm);
        return;
    }
    if (comm->size == 1)
        return;
    const MPI_Datatype type = sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
    if (slices->params->n > exact_sum_piece) {
        for (int r = 0; r < comm->size; r++)
            comm_broadcast(comm, slices->params->value + slices->cuts[r],
                           slice_size(slices, r) * sizeof(real), r);
        return;
    }
    int *counts = NEW(int, 2 * (size_t)comm->size), *starts = counts + comm->size;
    for (int r = 0; r < comm->size; r++) {
        counts[r] = (int)slice_size(slices, r);
        starts[r] = (int)slices->cuts[r];
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, type, slices->params->value, counts, starts, type,
                   comm->mpi);
    memory_free(counts);
}

void exact_slices_publish(const struct exact_slices *slices, const real *flat)
{
    const int rank = slices->comm->rank;
    const size_t start = slices->cuts[rank];
    comm_barrier(slices->comm); /* no rank reads the old parameters any more */
    memcpy(slices->params->value + start, flat + start,
           slice_size(slices, rank) * sizeof *flat);
    exact_slices_share(slices);
}

void exact_slices_collect(const struct exact_slices *slices, real *flat)
{
    const int rank = slices->comm->rank;
    size_t n_all = 0;
    real *all = comm_gather(slices->comm, flat + slices->cuts[rank],
                            slice_size(slices, rank) * sizeof *flat, &n_all);
    if (all != NULL)
        memcpy(flat, all, n_all);
    memory_free(all);
}

void exact_slices_hand_out(const struct exact_slices *slices, real *flat)
{
    const int rank = slices->comm->rank;
    comm_scatter(slices->comm, flat, flat + slices->cuts[rank],
                 slice_size(slices, rank) * sizeof *flat);
}
