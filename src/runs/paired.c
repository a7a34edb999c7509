/* Which of several models is better? Two scores with overlapping intervals may still differ for
 * certain: on a class of weak students all models score badly together. So the models are
 * compared on the same bootstrap samples of students, replicate by replicate:
 *
 *                  replicate 1    replicate 2    ...
 *     model a        a(1)           a(2)               each a score of the same students,
 *     model b        b(1)           b(2)               drawn once for all models
 *     difference   a(1) - b(1)    a(2) - b(2)    ...   the middle 95 % is the interval
 *
 * What all models have in common cancels. A difference is real if its interval excludes 0. The
 * weight of a student in a replicate depends on the seed, the replicate and the student alone
 * (metrics.c), so nothing needs to be stored to draw the same students for the next model, and
 * all numbers have the same bits on any number of ranks. A model minus itself is exactly 0.
 *
 * An interval is for its pair alone: of 20 pairs of equally good models, about one looks
 * different. */
#include "runs/paired.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

void paired_start(struct paired *paired, const struct comm *comm, size_t n_replicates,
                  uint64_t seed)
{
    ENSURE(n_replicates > 0);
    *paired = (struct paired){.comm = comm, .n_replicates = n_replicates, .seed = seed};
}

void paired_free(struct paired *paired)
{
    for (size_t e = 0; e < paired->n; e++)
        memory_free(paired->entries[e].replicates);
    memory_free(paired->entries);
    *paired = (struct paired){0};
}

/* Collective: the number of attempts, and a sum over them that does not depend on their order
 * (splitmix64 of student, outcome and whether it is the first). Items and groups have no part in
 * it: their numbers are those of a model, which places new ones after its own. */
static void attempts_digest(const struct comm *comm, const struct prediction *list, size_t n,
                            int64_t digest[2])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x =
            (uint64_t)list[i].student << 32 | (uint64_t)list[i].is_first << 1 | list[i].correct;
        x += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        sum += (x ^ x >> 31) >> 32; /* the sum of 2^31 attempts fits */
    }
    digest[0] = (int64_t)n;
    digest[1] = (int64_t)sum;
    comm_sum_i64(comm, digest, 2);
}

enum status paired_add(struct paired *paired, const struct prediction *list, size_t n)
{
    int64_t attempts[2];
    attempts_digest(paired->comm, list, n, attempts);
    if (paired->n > 0 && memcmp(attempts, paired->attempts, sizeof attempts) != 0)
        return fail(BAD_USER,
                    "the models do not predict the same attempts: the first has %lld, number "
                    "%zu has %lld, with other students or outcomes",
                    (long long)paired->attempts[0], paired->n + 1, (long long)attempts[0]);
    memcpy(paired->attempts, attempts, sizeof attempts);
    GROW(paired->entries, paired->n, paired->capacity);
    struct paired_entry *entry = &paired->entries[paired->n++];
    *entry =
        (struct paired_entry){.replicates = NEW_SCRATCH(struct score, paired->n_replicates)};
    metrics_score(paired->comm, list, n, &entry->score);
    metrics_resample(paired->comm, list, n, paired->n_replicates, paired->seed,
                     entry->replicates);
    entry->low = entry->high = entry->score;
    metrics_span(entry->replicates, paired->n_replicates, &entry->low, &entry->high);
    return OK;
}

struct paired_difference paired_difference(const struct paired *paired, size_t a, size_t b,
                                           enum metric metric)
{
    struct paired_entry *const first = &paired->entries[a], *const second = &paired->entries[b];
    struct paired_difference difference = {.value = *metrics_value(&first->score, metric) -
                                                    *metrics_value(&second->score, metric)};
    double *values = NEW_SCRATCH(double, paired->n_replicates);
    for (size_t r = 0; r < paired->n_replicates; r++)
        values[r] = *metrics_value(&first->replicates[r], metric) -
                    *metrics_value(&second->replicates[r], metric);
    metrics_middle(values, paired->n_replicates, &difference.low, &difference.high);
    memory_free(values);
    const int sign = difference.low > 0 ? 1 : difference.high < 0 ? -1 : 0;
    difference.better = metrics_up(metric) ? -sign : sign;
    return difference;
}

size_t *paired_ranking(const struct paired *paired, enum metric metric)
{
    size_t *order = NEW(size_t, paired->n);
    for (size_t e = 0; e < paired->n; e++) {
        const double value = *metrics_value(&paired->entries[e].score, metric);
        size_t place = e;
        for (; place > 0; place--) {
            const double other =
                *metrics_value(&paired->entries[order[place - 1]].score, metric);
            if (!(metrics_up(metric) ? value > other : value < other))
                break;
            order[place] = order[place - 1];
        }
        order[place] = e;
    }
    return order;
}
