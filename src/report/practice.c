/* Learning curves of skills. A student's attempts at a skill are numbered 1, 2, 3, ... in the
 * order in which they were made, whatever their split and whether or not their outcome is known.
 * An attempt at an item with several skills is an attempt at each of them. Point n of a skill
 * has the scored answers at nth attempts:
 *
 *     share right     right / n
 *     mean chance     chance / n
 *
 * All sums are of integers, so that they have the same bits on any number of ranks. */
#include "report/practice.h"
#include "base/memory.h"
#include "report/report_internal.h"
#include <math.h>
#include <string.h>

static bool is_scored(const struct practice_source *source, uint64_t t)
{
    return !isnan(source->chance[t]) && mark_outcome(source->shard->mark[t]) != UNKNOWN;
}

void practice_answers(const struct practice_source *source, int64_t *n)
{
    const uint32_t *things = NULL;
    for (uint64_t t = 0; t < source->shard->n_attempts; t++)
        for (size_t k = is_scored(source, t) ? source->things(source->arg, t, &things) : 0;
             k-- > 0;)
            n[things[k]]++;
}

static void add(struct practice_point *point, bool right, float chance)
{
    point->n++;
    point->right += right;
    point->chance += report_score_fixed(chance);
}

void practice_count(const struct practice_source *source, const uint32_t *slot,
                    struct practice_point *points)
{
    const struct shard *shard = source->shard;
    uint32_t *before = NEW(uint32_t, source->n_things);
    const uint32_t *things = NULL;
    for (size_t s = 0; s < shard->n_students; s++) {
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const bool right = mark_outcome(shard->mark[t]) == CORRECT;
            for (size_t k = source->things(source->arg, t, &things); k-- > 0;) {
                const size_t nth = before[things[k]]++;
                if (nth >= PRACTICE_POINTS || !is_scored(source, t))
                    continue;
                add(&points[nth], right, source->chance[t]);
                if (slot[things[k]] != UINT32_MAX)
                    add(&points[slot[things[k]] * PRACTICE_POINTS + nth], right,
                        source->chance[t]);
            }
        }
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            for (size_t k = source->things(source->arg, t, &things); k-- > 0;)
                before[things[k]] = 0;
    }
    memory_free(before);
}

size_t practice_length(const struct practice_point *points, int64_t fewest)
{
    size_t n = 0;
    while (n < PRACTICE_POINTS && points[n].n >= fewest)
        n++;
    return n;
}

double practice_rise(const struct practice_point *points, size_t n)
{
    const size_t wide = size_min(3, n / 2);
    struct practice_point first = {0}, last = {0};
    for (size_t i = 0; i < wide; i++) {
        first.n += points[i].n;
        first.right += points[i].right;
        last.n += points[n - 1 - i].n;
        last.right += points[n - 1 - i].right;
    }
    return first.n > 0 && last.n > 0
               ? (double)last.right / (double)last.n - (double)first.right / (double)first.n
               : NAN;
}
