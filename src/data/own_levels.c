/* A session belongs to one student, a school to many. What a model learns about a level that
 * only one student trained depends on that student's answers alone, later ones included: a
 * prediction of this student that used it would know the future.
 *
 * Levels of factors: models skip such effects when they predict, just as they skip what they
 * learned about the student. Which levels these are depends on the training attempts, and is
 * stored with the model. A numeric covariate that only one student has (it is 0 or missing for
 * all others) is 0 in training.
 *
 * Items, skills and groups: a model cannot do without what it knows of an item. Here the answers
 * that would give the future away are hidden instead, for every model alike. L is an item, one
 * of its skills or its group:
 *
 *     only one student answered L     this student's answers at L are hidden
 *     only one student practised L    those after the student's first attempt at L are hidden
 *
 * A student practises a level if an attempt after the first one there is for training. Practice
 * has parameters of its own, such as a skill's learning rate or the weight of earlier answers,
 * of which students with one attempt say nothing. Both rules hold only where there is something
 * to give away: if a held-out attempt lies between the student's first attempt at L and the
 * student's last training attempt.
 *
 *     item of one student      L               L      L
 *     split                  train    train   test  train   train
 *                            hidden     1       ?   hidden    1
 *
 * The first answer is hidden too. A model reads it through what it learned about L, and that was
 * fitted together with all else it knows of the student, the last answer included.
 *
 * Hidden from training, that is: a prediction changes no parameters, and so these answers are
 * part of the history of later attempts there. Attempts without a known outcome are marked
 * likewise at levels that only one student met, for models that learn from those too.
 *
 * What is hidden trains no level. So two students at a level may become one, and everything is
 * counted again until nothing changes. If that takes MOST_ROUNDS, all training answers after a
 * student's first held-out attempt are hidden, and nothing can be given away.
 *
 * Most data have no such answers: in splits of whole students or by time, no held-out attempt
 * of a student is followed by a training attempt. And data of one student would lose all; there
 * nothing is hidden, with a warning.
 *
 * Every rank counts the students of a level, up to two. A student is on one rank only, so the
 * sum over ranks decides. */
#include "data/own_levels.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { MOST_ROUNDS = 100 };

void own_levels_count(int64_t *count, uint32_t *last, size_t level, size_t s)
{
    if (count[level] < 2 && last[level] != s + 1) {
        last[level] = (uint32_t)s + 1;
        count[level]++;
    }
}

/* Counts the students of the shard with training attempts of each level of factor k, up to two;
 * of a numeric covariate, those for whom it is not always 0. */
static void count_students(const struct shard *shard, size_t k, int64_t *count, uint32_t *last)
{
    const struct covariates *covariates = &shard->dataset->covariates;
    const bool is_factor = covariates_n_levels(covariates, k) > 0;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const double value = shard->covariate[t * covariates->names.n + k];
            if (!isnan(value) && mark_trains(shard->mark[t]) && (is_factor || value != 0))
                own_levels_count(count, last, is_factor ? (size_t)value : 0, s);
        }
}

static void forget_number(struct shard *shard, size_t k)
{
    const struct names *names = &shard->dataset->covariates.names;
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        double *value = &shard->covariate[t * names->n + k];
        *value = isnan(*value) ? *value : 0;
    }
    log_say("note: only one student has training attempts with a %s other than 0; training "
            "takes it as 0, since its effect would tell about that student's later answers",
            names_get(names, k));
}

static void say_levels(size_t n_own, size_t n, const char *name)
{
    if (n_own > 0)
        log_say("note: %zu of %zu levels of %s occur in the training attempts of only one "
                "student; predictions do not use their effects, which were learned from "
                "that student's later answers too",
                n_own, n, name);
}

void own_levels_find(struct dataset *dataset, struct shard *shard)
{
    struct covariates *covariates = &dataset->covariates;
    if (covariates->own == NULL && covariates->names.n > 0)
        covariates_reserve_own(covariates);
    const bool tells = covariates->names.n > 0 && own_levels_matter(shard);
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t n = covariates_n_levels(covariates, k);
        int64_t *count = NEW(int64_t, size_max(n, 1));
        uint32_t *last = NEW(uint32_t, size_max(n, 1));
        count_students(shard, k, count, last);
        comm_sum_i64(dataset->comm, count, size_max(n, 1));
        if (n == 0 && count[0] == 1 && tells)
            forget_number(shard, k);
        size_t n_own = 0;
        for (size_t l = 0; l < n; l++) {
            covariates->own[k][l] = count[l] < 2;
            n_own += count[l] == 1;
        }
        say_levels(n_own, n, names_get(&covariates->names, k));
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

/* The students of each level, up to two, who do one of these things there. */
enum deed { MEET, ANSWER, PRACTISE, N_DEEDS };
struct owners {
    size_t n;
    int64_t *count[N_DEEDS];
    uint32_t *counted[N_DEEDS]; /* the student counted last, plus one */
    uint32_t *seen;             /* the student seen last at a level, plus one */
    uint32_t *before; /* that student's held-out attempts before the first one there */
    size_t *levels;   /* of one item */
};

static void owners_create(struct owners *owners, const struct dataset *d)
{
    owners->n = d->n_items + d->n_skills + d->n_groups;
    for (int deed = 0; deed < N_DEEDS; deed++) {
        owners->count[deed] = NEW(int64_t, owners->n);
        owners->counted[deed] = NEW(uint32_t, owners->n);
    }
    owners->seen = NEW(uint32_t, owners->n);
    owners->before = NEW(uint32_t, owners->n);
    owners->levels = NEW(size_t, most_levels(d));
}

static void owners_free(struct owners *owners)
{
    for (int deed = 0; deed < N_DEEDS; deed++) {
        memory_free(owners->count[deed]);
        memory_free(owners->counted[deed]);
    }
    memory_free(owners->seen);
    memory_free(owners->before);
    memory_free(owners->levels);
}

/* Collective. */
static void count_owners(struct owners *owners, const struct shard *shard)
{
    const size_t n = owners->n;
    for (int deed = 0; deed < N_DEEDS; deed++) {
        memset(owners->count[deed], 0, n * sizeof *owners->count[deed]);
        memset(owners->counted[deed], 0, n * sizeof *owners->counted[deed]);
    }
    memset(owners->seen, 0, n * sizeof *owners->seen);
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const bool trains = mark_trains(shard->mark[t]);
            const size_t n_levels = levels_of(shard->dataset, shard->item[t], owners->levels);
            for (size_t j = 0; j < n_levels; j++) {
                const size_t l = owners->levels[j];
                const bool does[] = {true, trains, trains && owners->seen[l] == s + 1};
                for (int deed = 0; deed < N_DEEDS; deed++)
                    if (does[deed])
                        own_levels_count(owners->count[deed], owners->counted[deed], l, s);
                owners->seen[l] = (uint32_t)s + 1;
            }
        }
    for (int deed = 0; deed < N_DEEDS; deed++)
        comm_sum_i64(shard->dataset->comm, owners->count[deed], n);
    memset(owners->seen, 0, n * sizeof *owners->seen);
}

/* Held-out attempts of student s before the last attempt to learn from. */
static uint32_t held_out_before_last(const struct shard *shard, size_t s)
{
    uint32_t n_held_out = 0, n_before = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        if (mark_trains(shard->mark[t]))
            n_before = n_held_out;
        n_held_out += mark_split(shard->mark[t]) != TRAIN;
    }
    return n_before;
}

/* Marks attempts of student s at levels without a second student; returns how many of them
 * training would have used. */
static int64_t mark_owned(struct shard *shard, size_t s, struct owners *owners)
{
    const uint32_t n_before_last = held_out_before_last(shard, s);
    int64_t n_marked = 0;
    uint32_t n_held_out = 0;
    if (n_before_last == 0)
        return 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const size_t n = levels_of(shard->dataset, shard->item[t], owners->levels);
        const bool trains = mark_trains(shard->mark[t]);
        bool tells = false;
        for (size_t j = 0; j < n; j++) {
            const size_t l = owners->levels[j];
            const bool again = owners->seen[l] == s + 1;
            if (!again) {
                owners->seen[l] = (uint32_t)s + 1;
                owners->before[l] = n_held_out;
            }
            const bool alone = owners->count[MEET][l] == 1 ||
                               (trains && owners->count[ANSWER][l] == 1) ||
                               (trains && again && owners->count[PRACTISE][l] == 1);
            tells |= alone && n_before_last > owners->before[l];
        }
        n_held_out += mark_split(shard->mark[t]) != TRAIN;
        if (tells) {
            shard->mark[t] |= MARK_OWN;
            n_marked += trains;
        }
    }
    return n_marked;
}

/* Marks all answers of student s after the first held-out attempt; returns how many. */
static int64_t mark_later(struct shard *shard, size_t s)
{
    int64_t n_marked = 0;
    bool held_out = false;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        held_out |= mark_split(shard->mark[t]) != TRAIN;
        if (held_out && mark_trains(shard->mark[t])) {
            shard->mark[t] |= MARK_OWN;
            n_marked++;
        }
    }
    return n_marked;
}

bool own_levels_matter(const struct shard *shard)
{
    int64_t any = 0;
    for (size_t s = 0; s < shard->n_students && !any; s++)
        any = held_out_before_last(shard, s) > 0;
    comm_max_i64(shard->dataset->comm, &any, 1);
    return any;
}

int64_t own_levels_mark(struct shard *shard)
{
    if (shard->dataset->n_students == 1 || !own_levels_matter(shard))
        return 0;
    struct owners owners;
    owners_create(&owners, shard->dataset);
    int64_t n_all = 0, n_marked = 1;
    for (int round = 0; n_marked > 0 && round <= MOST_ROUNDS; round++) {
        n_marked = 0;
        count_owners(&owners, shard);
        for (size_t s = 0; s < shard->n_students; s++)
            n_marked +=
                round < MOST_ROUNDS ? mark_owned(shard, s, &owners) : mark_later(shard, s);
        comm_sum_i64(shard->dataset->comm, &n_marked, 1);
        n_all += n_marked;
    }
    owners_free(&owners);
    return n_all;
}

void own_levels_hide(struct shard *shard)
{
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        if ((shard->mark[t] & MARK_OWN) && mark_split(shard->mark[t]) == TRAIN)
            shard->mark[t] =
                mark_make(UNKNOWN, TRAIN, false, shard->mark[t] & MARK_STEP) | MARK_OWN;
}
