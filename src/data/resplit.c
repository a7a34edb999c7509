/* A data set marks which attempts are for training, validation and test. Two tasks mark the
 * same attempts differently, without storing it:
 *
 * Folds. The fold of an attempt follows from the order of students in the data set or from
 * named random numbers, so every rank knows it without communication. For K folds and test fold
 * F:
 *
 *     fold     1 .. F-1    F       F+1      F+2 .. K     (after fold K comes fold 1)
 *     split    train       test    valid    train
 *
 * Validation decides when to stop, so it needs a fold of its own: a score on the fold that
 * chose the epoch would flatter the model.
 *
 * Refits. Once validation attempts have chosen the settings and the number of epochs, they
 * become training attempts too. With folds, the fold is marked first, then its validation part
 * joins. */
#include "data/resplit.h"
#include "base/rng.h"

static uint64_t fold_of(const struct shard *shard, size_t s, uint64_t t, uint64_t n_folds,
                        uint64_t seed)
{
    const size_t student = shard->first_student + s;
    if (!shard->dataset->withheld)
        return student % n_folds;
    const struct rng rng = {.seed = seed, .purpose = RNG_SPLIT, .who = (uint32_t)student};
    return rng_below(&rng, (uint32_t)(t - shard->first[s]), n_folds);
}

void resplit_folds(struct shard *shard, int64_t n_folds, int64_t fold, uint64_t seed)
{
    const uint64_t n = (uint64_t)n_folds, test = (uint64_t)fold - 1;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const uint8_t mark = shard->mark[t];
            const bool step = mark & MARK_STEP;
            if (mark_split(mark) == TEST) {
                shard->mark[t] = mark_make(UNKNOWN, TRAIN, false, step);
                continue;
            }
            const uint64_t own = fold_of(shard, s, t, n, seed);
            const enum split split = own == test ? TEST : own == (test + 1) % n ? VALID : TRAIN;
            const enum outcome outcome = mark_outcome(mark);
            const bool shown =
                outcome != UNKNOWN && (split == TRAIN || !shard->dataset->withheld);
            shard->mark[t] = mark_make(outcome, split, shown, step);
        }
}

int64_t resplit_join(struct shard *shard)
{
    int64_t n = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        const uint8_t mark = shard->mark[t];
        if (mark_split(mark) != VALID)
            continue;
        const enum outcome outcome = mark_outcome(mark);
        shard->mark[t] = mark_make(outcome, TRAIN, outcome != UNKNOWN, mark & MARK_STEP);
        n++;
    }
    return n;
}
