/* A sort over all ranks. Floats from 0 to 1 are ordered like their bit patterns.
 *
 *     1. Each rank counts its attempts in buckets, by the leading bits of the patterns; the
 *        histogram is summed over ranks.
 *     2. The buckets are split into one range per rank with about equally many attempts. A
 *        bucket, and so a group of equal probabilities, is never divided.
 *     3. Each attempt is sent to the owner of its bucket as one packed 64-bit number.
 *     4. Each rank sorts what it received by radix.
 *
 * Cost: one sum of half a megabyte, one exchange, three passes over the data. */
#include "learn/parallel_sort.h"
#include "base/fail.h"
#include "base/memory.h"
#include <string.h>

/* Patterns of floats from 0 to 1 have 30 bits; the bucket is the leading 16. */
enum {
    ONE_PATTERN = 0x3f800000,
    BUCKET_BITS = 14,
    N_BUCKETS = (ONE_PATTERN >> BUCKET_BITS) + 1
};

/* An attempt packed for sorting: probability (31 bits; a zero loses its sign), outcome (1 bit),
 * student (32 bits). */
static uint64_t pack(const struct prediction *attempt)
{
    ENSURE(attempt->probability >= 0 && attempt->probability <= 1);
    uint32_t pattern = 0;
    memcpy(&pattern, &attempt->probability, sizeof pattern);
    return (uint64_t)(pattern << 1 | attempt->correct) << 32 | attempt->student;
}

static size_t bucket_of(uint64_t packed)
{
    return packed >> (33 + BUCKET_BITS);
}

/* Sends every attempt to the rank that owns its range of probabilities, unsorted. */
static uint64_t *exchange(const struct comm *comm, const struct prediction *predictions,
                          size_t n, size_t *n_got)
{
    int64_t *histogram = NEW(int64_t, N_BUCKETS);
    for (size_t t = 0; t < n; t++)
        histogram[bucket_of(pack(&predictions[t]))]++;
    comm_sum_i64(comm, histogram, N_BUCKETS);
    int64_t n_all = 0;
    for (size_t b = 0; b < N_BUCKETS; b++)
        n_all += histogram[b];
    int *owner = NEW(int, N_BUCKETS);
    __int128 n_below = 0;
    for (size_t b = 0; b < N_BUCKETS; b++) {
        /* Empty buckets above the last attempt would get an owner beyond the last rank. */
        owner[b] = histogram[b] > 0 ? (int)(n_below * comm->size / n_all) : 0;
        n_below += histogram[b];
    }

    size_t *n_to = NEW(size_t, (size_t)comm->size), *next = NEW(size_t, (size_t)comm->size);
    for (size_t t = 0; t < n; t++)
        n_to[owner[bucket_of(pack(&predictions[t]))]]++;
    for (int r = 1; r < comm->size; r++)
        next[r] = next[r - 1] + n_to[r - 1];
    uint64_t *outgoing = NEW_SCRATCH(uint64_t, n);
    for (size_t t = 0; t < n; t++) {
        const uint64_t packed = pack(&predictions[t]);
        outgoing[next[owner[bucket_of(packed)]]++] = packed;
    }
    for (int r = 0; r < comm->size; r++)
        n_to[r] *= sizeof *outgoing;
    uint64_t *got = comm_exchange(comm, outgoing, n_to, n_got);
    *n_got /= sizeof *got;
    memory_free(histogram);
    memory_free(owner);
    memory_free(n_to);
    memory_free(next);
    memory_free(outgoing);
    return got;
}

/* Radix sort by the upper 32 bits, 11 at a time from the low end. */
static void sort_by_probability(uint64_t **packed, size_t n)
{
    enum { DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS, N_ROUNDS = 3 };
    size_t(*first)[N_DIGITS] = memory_zeroed(N_ROUNDS, sizeof *first);
    for (size_t t = 0; t < n; t++)
        for (int round = 0; round < N_ROUNDS; round++)
            first[round][(*packed)[t] >> (32 + round * DIGIT_BITS) & (N_DIGITS - 1)]++;
    uint64_t *from = *packed, *to = NEW_SCRATCH(uint64_t, n);
    for (int round = 0; round < N_ROUNDS; round++) {
        size_t n_below = 0;
        for (size_t d = 0; d < N_DIGITS; d++) {
            const size_t n_here = first[round][d];
            first[round][d] = n_below;
            n_below += n_here;
        }
        for (size_t t = 0; t < n; t++)
            to[first[round][from[t] >> (32 + round * DIGIT_BITS) & (N_DIGITS - 1)]++] = from[t];
        uint64_t *const swap = from;
        from = to;
        to = swap;
    }
    memory_free(to);
    memory_free(first);
    *packed = from;
}

void parallel_sort_fill(struct parallel_sort *part, const struct comm *comm,
                        const struct prediction *predictions, size_t n)
{
    uint64_t *packed = exchange(comm, predictions, n, &part->n);
    sort_by_probability(&packed, part->n);
    part->key = NEW_SCRATCH(uint32_t, part->n);
    part->student = NEW_SCRATCH(uint32_t, part->n);
    for (size_t t = 0; t < part->n; t++) {
        part->key[t] = (uint32_t)(packed[t] >> 32);
        part->student[t] = (uint32_t)packed[t];
    }
    memory_free(packed);
}

void parallel_sort_free(struct parallel_sort *part)
{
    memory_free(part->key);
    memory_free(part->student);
}
