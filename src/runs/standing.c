/* Where students stand. A student's attempts are told to the model one by one (learn/live.h); at
 * any point it can be asked about items:
 *
 *     attempts   a(1) a(2) ... a(t) | ?        chance at item i:  P(right | a(1) ... a(t))
 *                                              chance at skill k: its mean over the items of k
 *
 * A model that knows more than answers (bkt: P(known)) tells the mastery of a skill by that; a
 * model by abilities (vae, lme) answers with the chances that these give. */
#include "runs/standing.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>

enum status standing_open(struct standing *standing, const struct inference *inference)
{
    const struct dataset *dataset = &inference->dataset;
    *standing = (struct standing){.inference = inference};
    if (model_task(inference->model) != TASK_TRACE)
        return fail(BAD_USER,
                    "%s: this model predicts one target per student, not single answers, so "
                    "it has no chances at items and skills",
                    inference->checkpoint.path);
    standing->by_item = dataset->n_skills == 0;
    skill_items_make(&standing->skills, dataset, standing->by_item);
    standing->empty = NEW(double, dataset->covariates.names.n);
    for (size_t c = 0; c < dataset->covariates.names.n; c++)
        standing->empty[c] = NAN;
    standing->p = NEW(real, dataset->n_items);
    standing->live = live_create(inference->model, inference->work, dataset);
    standing->n_slots = live_together(standing->live);
    standing->slots = NEW(struct standing_slot, standing->n_slots);
    for (size_t i = 0; i < standing->n_slots; i++) {
        standing->slots[i] = (struct standing_slot){
            .student = SIZE_MAX, .n_attempts = NEW(uint32_t, standing->skills.n)};
        live_add(standing->live);
    }
    return OK;
}

void standing_close(struct standing *standing)
{
    live_destroy(standing->live);
    skill_items_free(&standing->skills);
    for (size_t i = 0; i < standing->n_slots; i++)
        memory_free(standing->slots[i].n_attempts);
    memory_free(standing->slots);
    memory_free(standing->empty);
    memory_free(standing->p);
    *standing = (struct standing){0};
}

/* Counts attempt t of the shard for the skills of its own item, not of one that stands in. */
static void count(struct standing *standing, struct standing_slot *slot, uint64_t t)
{
    const struct inference *inference = standing->inference;
    const struct shard *shard = &inference->shard;
    const uint32_t item = stand_ins_asked(&inference->stand_ins, shard, t);
    if (standing->by_item && item < inference->dataset.n_items)
        slot->n_attempts[item]++;
    const uint32_t *skills = NULL;
    const size_t n =
        standing->by_item ? 0 : stand_ins_skills(&inference->stand_ins, shard, t, &skills);
    for (size_t k = 0; k < n; k++)
        slot->n_attempts[skills[k]]++;
}

/* The student in a slot is s, of whom nothing is known. */
static void begin(struct standing *standing, size_t slot, size_t s)
{
    struct standing_slot *place = &standing->slots[slot];
    live_restart(standing->live, slot);
    place->student = s;
    place->supposed = false;
    place->next = standing->inference->shard.first[s];
    for (size_t k = 0; k < standing->skills.n; k++)
        place->n_attempts[k] = 0;
}

/* The next attempt of the student in a slot, which becomes known. */
static struct live_attempt pass(struct standing *standing, size_t slot)
{
    const struct shard *shard = &standing->inference->shard;
    const size_t n_columns = shard->dataset->covariates.names.n;
    const uint64_t t = standing->slots[slot].next++;
    count(standing, &standing->slots[slot], t);
    return (struct live_attempt){shard->item[t], shard->mark[t],
                                 shard->time != NULL ? shard->time[t] : 0,
                                 n_columns > 0 ? shard->covariate + t * n_columns : NULL};
}

void standing_go(struct standing *standing, size_t s, uint64_t end)
{
    const size_t slot = standing->slot = 0;
    const struct standing_slot *place = &standing->slots[slot];
    if (place->student != s || place->next > end || place->supposed)
        begin(standing, slot, s);
    while (standing->slots[slot].next < end) {
        const struct live_attempt attempt = pass(standing, slot);
        live_tell(standing->live, 1, &slot, &attempt);
    }
}

void standing_gather(struct standing *standing, const uint32_t *students, size_t n)
{
    const struct shard *shard = &standing->inference->shard;
    size_t *active = NEW_SCRATCH(size_t, n), n_active = 0;
    struct live_attempt *attempts = NEW_SCRATCH(struct live_attempt, n);
    for (size_t i = 0; i < n; i++)
        begin(standing, i, students[i]);
    do {
        n_active = 0;
        for (size_t i = 0; i < n; i++)
            if (standing->slots[i].next < shard->first[students[i] + 1]) {
                attempts[n_active] = pass(standing, i);
                active[n_active++] = i;
            }
        live_tell(standing->live, n_active, active, attempts);
    } while (n_active > 0);
    memory_free(active);
    memory_free(attempts);
    standing->slot = 0;
}

void standing_pick(struct standing *standing, size_t slot)
{
    standing->slot = slot;
}

uint32_t standing_attempts(const struct standing *standing, size_t k)
{
    return standing->slots[standing->slot].n_attempts[k];
}

/* The attempt that may come. */
static struct live_attempt next_attempt(const struct standing *standing)
{
    const struct shard *shard = &standing->inference->shard;
    const struct standing_slot *slot = &standing->slots[standing->slot];
    const bool has_time = shard->time != NULL && slot->next > shard->first[slot->student];
    return (struct live_attempt){.mark = mark_make(UNKNOWN, TEST, false, true),
                                 .time = has_time ? shard->time[slot->next - 1] : 0,
                                 .covariate = standing->empty};
}

void standing_suppose(struct standing *standing, size_t k, size_t nth)
{
    const uint64_t first = standing->skills.first[k], n = standing->skills.first[k + 1] - first;
    struct live_attempt attempt = next_attempt(standing);
    if (n == 0)
        return;
    attempt.item = standing->skills.item[first + nth % n];
    attempt.mark = mark_make(CORRECT, TRAIN, true, true);
    standing->slots[standing->slot].supposed = true;
    live_tell(standing->live, 1, &standing->slot, &attempt);
}

void standing_items(struct standing *standing, real *p)
{
    const struct live_attempt when = next_attempt(standing);
    const size_t n = standing->inference->dataset.n_items;
    uint32_t *items = NEW_SCRATCH(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = i;
    live_ask(standing->live, standing->slot, &when, items, n, p);
    memory_free(items);
}

double standing_mean(const struct standing *standing, const real *p, size_t k)
{
    const uint64_t first = standing->skills.first[k], end = standing->skills.first[k + 1];
    double sum = 0;
    for (uint64_t i = first; i < end; i++)
        sum += (double)p[standing->skills.item[i]];
    return end > first ? sum / (double)(end - first) : NAN;
}

double standing_mastery(struct standing *standing, size_t k)
{
    const struct model *model = standing->inference->model;
    const struct live_attempt when = next_attempt(standing);
    const uint64_t first = standing->skills.first[k], n = standing->skills.first[k + 1] - first;
    const uint32_t *items = standing->skills.item + first;
    const bool knows = live_knows(model);
    if (knows && !model->kind->live.knows_items(model)) {
        live_know(standing->live, standing->slot, (uint32_t)k, standing->p);
        return (double)standing->p[0];
    }
    if (!knows && n > 0)
        live_ask(standing->live, standing->slot, &when, items, n, standing->p);
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (knows)
            live_know(standing->live, standing->slot, items[i], &standing->p[i]);
        sum += (double)standing->p[i];
    }
    return n > 0 ? sum / (double)n : NAN;
}
