/* A session belongs to one student, a school to many. What a model learns about a level that
 * only one student trained depends on that student's answers alone, later ones included: a
 * prediction of this student that used it would know the future.
 *
 * Levels of factors: models skip such effects when they predict, just as they skip what they
 * learned about the student. Which levels these are depends on the training attempts, and is
 * stored with the model.
 *
 * Items, skills and groups: a model cannot do without what it knows of an item. Here the answers
 * that would give the future away are hidden instead, for every model alike. A student practises
 * a level if an attempt after the first one at it is for training. Practice has parameters of its
 * own, such as a skill's learning rate or the weight of earlier answers, of which students with
 * one attempt say nothing. A student's answer at t is hidden if, with L its item, one of its
 * skills or its group, only this student practised L, and a held-out attempt lies between the
 * student's first attempt at L and t:
 *
 *     item of one student      L         L              L
 *     split                  train     train   test   train
 *                              1         0       ?      hidden
 *
 * Hidden from training, that is: a prediction changes no parameters, and so these answers are
 * part of the history of later attempts there.
 *
 * Most data have no such answers: in splits of whole students or by time, no held-out attempt
 * of a student is followed by a training attempt.
 *
 * Every rank counts the students who trained a level, up to two. A student is on one rank only,
 * so the sum over ranks decides. */
#include "data/own_levels.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

/* One more student at the level, up to two; `last` holds the number of the student
 * counted last, plus one. */
static void count_student(int64_t *count, uint32_t *last, size_t level, size_t s)
{
    if (count[level] < 2 && last[level] != s + 1) {
        last[level] = (uint32_t)s + 1;
        count[level]++;
    }
}

/* Counts the students of the shard with training attempts of each level of factor k, up to two. */
static void count_students(const struct shard *shard, size_t k, int64_t *count, uint32_t *last)
{
    const size_t n_covariates = shard->dataset->covariates.names.n;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const double level = shard->covariate[t * n_covariates + k];
            if (!isnan(level) && mark_trains(shard->mark[t]))
                count_student(count, last, (size_t)level, s);
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

/* The levels of an item: itself, its skills and its group, as numbers in one row. */
static size_t levels_of(const struct dataset *d, uint32_t item, size_t *levels)
{
    size_t n = 0;
    levels[n++] = item;
    for (uint64_t j = d->item_first[item]; j < d->item_first[item + 1]; j++)
        levels[n++] = d->n_items + d->item_skills[j];
    if (d->item_group[item] >= 0)
        levels[n++] = d->n_items + d->n_skills + (size_t)d->item_group[item];
    return n;
}

static size_t most_levels(const struct dataset *d)
{
    size_t most = 2;
    for (size_t i = 0; i < d->n_items; i++)
        most = size_max(most, (size_t)(d->item_first[i + 1] - d->item_first[i]) + 2);
    return most;
}

/* Marks answers of student s. `before` counts the held-out attempts before the first attempt at
 * a level, for the levels that have the student's stamp. */
static int64_t mark_own(struct shard *shard, size_t s, const int64_t *count, uint32_t *stamp,
                        uint32_t *before, size_t *levels)
{
    int64_t n_marked = 0;
    uint32_t n_held_out = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint8_t mark = shard->mark[t];
        const size_t n = levels_of(shard->dataset, shard->item[t], levels);
        bool tells = false;
        for (size_t j = 0; j < n; j++) {
            const size_t l = levels[j];
            if (stamp[l] != s + 1) {
                stamp[l] = (uint32_t)s + 1;
                before[l] = n_held_out;
            }
            tells |= count[l] == 1 && n_held_out > before[l];
        }
        n_held_out += mark_split(mark) != TRAIN;
        if (!tells || !mark_trains(mark))
            continue;
        shard->mark[t] |= MARK_OWN;
        n_marked++;
    }
    return n_marked;
}

/* Counts the students of the shard who practised each level, up to two. Both rows of stamps hold
 * the number of a student plus one: who was seen last at the level, who was counted last. */
static void count_practice(const struct shard *shard, int64_t *count, uint32_t *seen,
                           uint32_t *counted, size_t *levels)
{
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const size_t n = levels_of(shard->dataset, shard->item[t], levels);
            for (size_t j = 0; j < n; j++) {
                const size_t l = levels[j];
                if (seen[l] == s + 1 && mark_trains(shard->mark[t]))
                    count_student(count, counted, l, s);
                seen[l] = (uint32_t)s + 1;
            }
        }
}

/* Whether any student has a training attempt after one that is held out. */
static bool goes_back(const struct shard *shard)
{
    for (size_t s = 0; s < shard->n_students; s++) {
        bool held_out = false;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            held_out |= mark_split(shard->mark[t]) != TRAIN;
            if (held_out && mark_trains(shard->mark[t]))
                return true;
        }
    }
    return false;
}

int64_t own_levels_mark(struct shard *shard)
{
    const struct dataset *d = shard->dataset;
    int64_t any = goes_back(shard);
    comm_max_i64(d->comm, &any, 1);
    if (!any)
        return 0;
    const size_t n = d->n_items + d->n_skills + d->n_groups;
    int64_t *count = NEW(int64_t, n), n_marked = 0;
    uint32_t *stamp = NEW(uint32_t, n), *before = NEW(uint32_t, n);
    size_t *levels = NEW(size_t, most_levels(d));
    count_practice(shard, count, stamp, before, levels);
    comm_sum_i64(d->comm, count, n);
    memset(stamp, 0, n * sizeof *stamp);
    for (size_t s = 0; s < shard->n_students; s++)
        n_marked += mark_own(shard, s, count, stamp, before, levels);
    comm_sum_i64(d->comm, &n_marked, 1);
    memory_free(levels);
    memory_free(before);
    memory_free(stamp);
    memory_free(count);
    return n_marked;
}

int64_t own_levels_hide(struct shard *shard)
{
    const int64_t n = own_levels_mark(shard);
    for (uint64_t t = 0; n > 0 && t < shard->n_attempts; t++)
        if (shard->mark[t] & MARK_OWN)
            shard->mark[t] = mark_make(UNKNOWN, TRAIN, false, shard->mark[t] & MARK_STEP);
    return n;
}
