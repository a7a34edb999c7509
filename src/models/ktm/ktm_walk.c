/* The features of a student's attempts, made while walking along them. They are in no data set
 * and no checkpoint; training keeps some in memory from pass to pass (ktm_cache.c).
 *
 * An attempt tells later ones that it was made (attempts, elapsed, previous) and, if its
 * outcome is shown, what the outcome was (wins, fails, previous). Each feature keeps its own
 * counts, by item or skill. A count left by another walk is void, so nothing is cleared in
 * between.
 *
 * A count with a window (within) is the length of a queue. What is counted enters with its
 * time, and leaves at the first attempt that is too late for it. So a window costs two
 * operations per attempt, whatever its length, and memory for the attempts of one student. */
#include "base/memory.h"
#include "models/ktm/ktm_internal.h"
#include <math.h>
#include <sleef.h>

static size_t n_past(const struct ktm_feature *f, const struct model *model)
{
    if (f->what < KTM_ATTEMPTS)
        return 0;
    return f->of == KTM_OF_ITEM ? model->n_items : f->of == KTM_OF_SKILL ? model->n_skills : 1;
}

void ktm_walk_create(struct ktm_walk *walk, const struct ktm_design *design,
                     const struct model *model, size_t longest)
{
    *walk = (struct ktm_walk){.design = design, .dataset = model->dataset};
    walk->most_skills = 1;
    for (size_t i = 0; i < model->n_items; i++)
        walk->most_skills = size_max(walk->most_skills, model->dataset->item_first[i + 1] -
                                                            model->dataset->item_first[i]);
    walk->first = NEW_SCRATCH(uint32_t, 1);
    ktm_walk_reserve(walk, longest);
    for (size_t j = 0; j < design->n; j++)
        walk->past[j] = NEW(struct ktm_past, n_past(&design->list[j], model));
}

void ktm_walk_free(struct ktm_walk *walk)
{
    for (size_t j = 0; j < KTM_MOST_FEATURES; j++) {
        memory_free(walk->past[j]);
        memory_free(walk->moments[j].list);
    }
    memory_free(walk->own);
    memory_free(walk->place);
    memory_free(walk->first);
    memory_free(walk->row);
    memory_free(walk->x);
}

/* log(1 + n), with a table for small integers. */
static real log_of(double n)
{
    enum { KNOWN = 1024 };
    static real known[KNOWN];
    if (n < KNOWN && n == (double)(size_t)n) {
        real *value = &known[(size_t)n];
        if (*value == 0 && n > 0)
            *value = (real)Sleef_cinz_log1pd1_u10purec(n);
        return *value;
    }
    return (real)Sleef_cinz_log1pd1_u10purec(n);
}

static inline void emit(struct ktm_walk *walk, size_t *n, size_t row, real x)
{
    if (walk->own != NULL && walk->own[row])
        return;
    walk->row[*n] = (uint32_t)row;
    walk->x[*n] = x;
    ++*n;
}

/* The entry of a count, acting by the current item or one of its skills. */
static inline void emit_count(struct ktm_walk *walk, const struct ktm_feature *f,
                              const struct ktm_past *past, size_t by, size_t *n)
{
    if (past->walk == walk->number && past->value > 0)
        emit(walk, n, f->first_row + by,
             f->value == KTM_LOG ? log_of(past->value) : (real)past->value);
}

static void emit_time(struct ktm_walk *walk, const struct ktm_feature *f,
                      const struct ktm_past *past, int64_t time, size_t by, size_t *n)
{
    const bool met = past->walk == walk->number;
    const double gap = met ? fmax(0, (double)time - past->value) : 0;
    if (f->value == KTM_LOG) {
        if (gap > 0)
            emit(walk, n, f->first_row + by, log_of(gap));
        return;
    }
    int exponent = 0;
    frexp(1 + gap, &exponent);
    const size_t bin = met ? size_min((size_t)exponent, KTM_BINS - 1) : 0;
    emit(walk, n, f->first_row + by * f->n_each + bin, 1);
}

static void emit_previous(struct ktm_walk *walk, const struct ktm_feature *f, size_t by,
                          size_t *n)
{
    const struct dataset *d = walk->dataset;
    const size_t first_row = f->first_row + by * f->n_each + walk->last_seen;
    if (walk->last_item < 0)
        return;
    if (f->of == KTM_OF_ITEM) {
        emit(walk, n, first_row + 3 * (size_t)walk->last_item, 1);
        return;
    }
    for (uint64_t k = d->item_first[walk->last_item]; k < d->item_first[walk->last_item + 1];
         k++)
        emit(walk, n, first_row + 3 * d->item_skills[k], 1);
}

/* Removes moments that are older than the window. */
static inline void forget(const struct ktm_walk *walk, size_t j, struct ktm_past *past,
                          int64_t time)
{
    const struct ktm_moment *moments = walk->moments[j].list;
    while (past->walk == walk->number && past->value > 0) {
        const struct ktm_moment *oldest = &moments[past->oldest];
        if (time < oldest->time ||
            (uint64_t)time - (uint64_t)oldest->time < walk->design->list[j].within)
            return;
        past->oldest = oldest->next;
        past->value--;
    }
}

/* Adds a moment to the window; has_some: whether the window holds any. */
static void enter(struct ktm_moments *moments, struct ktm_past *past, bool has_some,
                  int64_t time)
{
    const uint32_t m = (uint32_t)moments->n;
    GROW(moments->list, moments->n, moments->room);
    moments->list[moments->n++] = (struct ktm_moment){.time = time};
    if (has_some)
        moments->list[past->newest].next = m;
    else
        past->oldest = m;
    past->newest = m;
}

/* Records an attempt for those after it. */
static inline void remember(struct ktm_walk *walk, size_t j, struct ktm_past *past,
                            const struct ktm_sight *sight)
{
    const struct ktm_feature *f = &walk->design->list[j];
    const bool met = past->walk == walk->number;
    if (sight->asked)
        return;
    if ((f->what == KTM_WINS || f->what == KTM_FAILS) && !mark_is_shown(sight->mark))
        return;
    const bool counts = f->what == KTM_ATTEMPTS ||
                        (f->what == KTM_WINS) == (mark_outcome(sight->mark) == CORRECT);
    if (f->within > 0 && counts)
        enter(&walk->moments[j], past, met && past->value > 0, sight->time);
    past->value = f->what == KTM_TIME ? (double)sight->time
                                      : (met ? f->decay * past->value : 0) + (counts ? 1 : 0);
    past->walk = walk->number;
}

static inline void emit_past(struct ktm_walk *walk, const struct ktm_feature *f,
                             const struct ktm_past *past, const struct ktm_sight *sight,
                             size_t by, size_t *n)
{
    if (f->what == KTM_TIME)
        emit_time(walk, f, past, sight->time, by, n);
    else
        emit_count(walk, f, past, by, n);
}

/* A feature with counts: first emits them for this attempt, then adds the attempt to them. */
static void pass_by(struct ktm_walk *walk, size_t j, const struct ktm_sight *sight, size_t *n)
{
    const struct ktm_feature *f = &walk->design->list[j];
    const size_t item = f->by == KTM_OF_ITEM ? sight->item : 0;
    if (f->of == KTM_OF_SKILL) {
        for (size_t k = 0; k < sight->n_skills; k++) {
            struct ktm_past *past = &walk->past[j][sight->skills[k]];
            if (f->within > 0)
                forget(walk, j, past, sight->time);
            if (sight->wanted)
                emit_past(walk, f, past, sight, f->by == KTM_OF_SKILL ? sight->skills[k] : item,
                          n);
            remember(walk, j, past, sight);
        }
        return;
    }
    struct ktm_past *past = &walk->past[j][f->of == KTM_OF_ITEM ? sight->item : 0];
    if (f->within > 0)
        forget(walk, j, past, sight->time);
    if (sight->wanted && f->by != KTM_OF_SKILL)
        emit_past(walk, f, past, sight, item, n);
    else if (sight->wanted)
        for (size_t k = 0; k < sight->n_skills; k++)
            emit_past(walk, f, past, sight, sight->skills[k], n);
    remember(walk, j, past, sight);
}

/* The entry of a column: none where the cell was empty, for a level unknown to the model and,
 * except in training, for levels of a single student. */
static void emit_column(struct ktm_walk *walk, const struct ktm_feature *f, double cell,
                        bool learning, size_t *n)
{
    const bool is_level = f->what == KTM_LEVEL && !isnan(cell);
    if (is_level && (learning || f->own == NULL || !f->own[(size_t)cell]))
        emit(walk, n, f->first_row + (size_t)cell, 1);
    else if (f->what == KTM_NUMBER && !isnan(cell) && cell != 0)
        emit(walk, n, f->first_row,
             f->value == KTM_LOG ? (real)copysign((double)log_of(fabs(cell)), cell)
                                 : (real)cell);
}

/* A feature of the attempt itself or of the one before. */
static void name(struct ktm_walk *walk, const struct ktm_feature *f,
                 const struct ktm_sight *sight, size_t *n)
{
    if (f->what == KTM_ITEM)
        emit(walk, n, f->first_row + sight->item, 1);
    else if (f->what == KTM_STUDENT && sight->student_row > 0)
        emit(walk, n, sight->student_row, 1);
    else if (f->what == KTM_LEVEL || f->what == KTM_NUMBER)
        emit_column(walk, f, sight->columns[f->column], sight->learning, n);
    else if (f->what == KTM_PREVIOUS && f->by != KTM_OF_SKILL)
        emit_previous(walk, f, f->by == KTM_OF_ITEM ? sight->item : 0, n);
    else
        for (size_t k = 0; f->what != KTM_STUDENT && k < sight->n_skills; k++)
            if (f->what == KTM_SKILL)
                emit(walk, n, f->first_row + sight->skills[k], 1);
            else
                emit_previous(walk, f, sight->skills[k], n);
}

void ktm_walk_begin(struct ktm_walk *walk)
{
    walk->number++;
    walk->last_item = -1;
    walk->last_seen = 0;
    for (size_t j = 0; j < walk->design->n; j++)
        walk->moments[j].n = 0;
    ktm_walk_clear(walk);
}

void ktm_walk_clear(struct ktm_walk *walk)
{
    walk->n = 0;
    walk->first[0] = 0;
}

void ktm_walk_reserve(struct ktm_walk *walk, size_t n)
{
    if (n <= walk->room)
        return;
    walk->room = n;
    walk->place = memory_resize(walk->place, n, sizeof *walk->place);
    walk->first = memory_resize(walk->first, n + 1, sizeof *walk->first);
}

void ktm_walk_attempt(struct ktm_walk *walk, struct ktm_sight *sight)
{
    const struct dataset *dataset = walk->dataset;
    const size_t most = walk->design->n * walk->most_skills * walk->most_skills;
    size_t n_entries = walk->first[walk->n];
    sight->skills = dataset->item_skills + dataset->item_first[sight->item];
    sight->n_skills = dataset->item_first[sight->item + 1] - dataset->item_first[sight->item];
    if (n_entries + most > walk->entry_room) {
        walk->entry_room = 2 * (n_entries + most);
        walk->row = memory_resize(walk->row, walk->entry_room, sizeof *walk->row);
        walk->x = memory_resize(walk->x, walk->entry_room, sizeof *walk->x);
    }
    for (size_t j = 0; j < walk->design->n; j++)
        if (walk->design->list[j].what >= KTM_ATTEMPTS)
            pass_by(walk, j, sight, &n_entries);
        else if (sight->wanted)
            name(walk, &walk->design->list[j], sight, &n_entries);
    if (!sight->asked) {
        walk->last_item = sight->item;
        walk->last_seen = mark_is_shown(sight->mark) ? (uint32_t)mark_outcome(sight->mark) : 2;
    }
    if (sight->wanted)
        walk->first[++walk->n] = (uint32_t)n_entries;
    walk->attempts = (struct fm_features){walk->n, walk->first, walk->row, walk->x};
}

void ktm_walk_student(struct ktm_walk *walk, const struct shard *shard, size_t s,
                      unsigned splits, bool learning, size_t student_row)
{
    const size_t n_columns = walk->dataset->covariates.names.n;
    const uint64_t start = shard->first[s];
    ktm_walk_begin(walk);
    walk->attempts = (struct fm_features){0, walk->first, walk->row, walk->x};
    for (uint64_t t = start; t < shard->first[s + 1]; t++) {
        const uint8_t mark = shard->mark[t];
        struct ktm_sight sight = {.item = shard->item[t],
                                  .mark = mark,
                                  .wanted = (splits >> mark_split(mark) & 1) &&
                                            !(learning && mark_outcome(mark) == UNKNOWN),
                                  .time = shard->time ? shard->time[t] : 0,
                                  .learning = learning,
                                  .student_row = student_row,
                                  .columns =
                                      n_columns > 0 ? shard->covariate + t * n_columns : NULL};
        if (sight.wanted)
            walk->place[walk->n] = (uint32_t)(t - start);
        ktm_walk_attempt(walk, &sight);
    }
}
