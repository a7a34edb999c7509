/* A session belongs to one student, a school to many. The effect of a level that only one
 * student trained depends on that student's answers alone, later ones included: a prediction
 * that used it would know the future. So models that learn effects of levels skip these effects
 * when they predict, just as they skip what they learned about the student. Which levels these
 * are depends on the training attempts, and is stored with the model.
 *
 * Every rank counts the students who trained a level, up to two. A student is on one rank only,
 * so the sum over ranks decides. */
#include "data/own_levels.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>

/* Counts the students of the shard with training attempts of each level, up to two. */
static void count_students(const struct shard *shard, size_t k, int64_t *count, uint32_t *last)
{
    const size_t n_covariates = shard->dataset->covariates.names.n;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const double level = shard->covariate[t * n_covariates + k];
            if (isnan(level) || mark_split(shard->mark[t]) != TRAIN ||
                mark_outcome(shard->mark[t]) == UNKNOWN)
                continue;
            const size_t l = (size_t)level;
            if (count[l] < 2 && last[l] != s + 1) {
                last[l] = (uint32_t)s + 1;
                count[l]++;
            }
        }
}

void own_levels_find(struct dataset *dataset, const struct shard *shard)
{
    struct covariates *covariates = &dataset->covariates;
    if (covariates->own == NULL && covariates->names.n > 0)
        covariates_reserve_own(covariates);
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t n = covariates_n_levels(covariates, k);
        if (n == 0)
            continue;
        int64_t *count = NEW(int64_t, n);
        uint32_t *last = NEW(uint32_t, n);
        count_students(shard, k, count, last);
        comm_sum_i64(dataset->comm, count, n);
        size_t n_own = 0;
        for (size_t l = 0; l < n; l++) {
            covariates->own[k][l] = count[l] < 2;
            n_own += count[l] == 1;
        }
        if (n_own > 0)
            log_say("note: %zu of %zu levels of %s occur in the training attempts of only one "
                    "student; predictions do not use their effects, which were learned from "
                    "that student's later answers too",
                    n_own, n, names_get(&covariates->names, k));
        memory_free(count);
        memory_free(last);
    }
}
