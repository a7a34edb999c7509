/* A nightly file has items that are newer than the model. Nothing was learned about such an item
 * u itself, so trained items stand in for it: its candidates are the trained items
 *
 *     skill    that have the most of u's skills (if there are fewer than N_STAND_INS, also
 *              those that have one skill of u less, and so on), else
 *     group    of u's group, else
 *     mean     all items.
 *
 * The candidates are sorted by the model's chance for a student of whom nothing is known, and
 * N_STAND_INS of them are chosen at equal distances, from easy to hard:
 *
 *     easy  . . | . . . . | . . . . | . . . . | . .  hard          4 of 20, say
 *
 * The data are predicted that often, each time with another stand-in in the place of u, and the
 * chances are averaged: about the mean chance over all candidates, for any kind of model, at a
 * fixed cost. The name of u decides with which of them it begins, so that unseen items with the
 * same candidates differ in a pass, and no chance depends on what else is in the file: attempts
 * that come one by one (follow.c) are answered alike.
 *
 * An answer to u counts as an answer to the stand-in, so later predictions of the student use
 * it. On public data from which a tenth of the items was removed before training, that was
 * clearly better than not to show it for some kinds (bkt and ktm on ASSISTments 2009) and made
 * little difference for most others.
 *
 * Everything follows from the model, the names and the properties of items. No outcome of the
 * data has a part in the choice. */
#include "runs/stand_ins.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data/skill_items.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const char *const stand_ins_bases[N_BASES + 1] = {"item", "skill", "group", "mean", NULL};

/* One set of candidates, shared by unseen items with the same properties. */
struct candidates {
    uint32_t *item;
    size_t n;
    enum basis basis;
};

struct stand_in_chooser {
    const struct dataset *dataset;
    struct skill_items of_skill;
    uint32_t *rank;   /* of each trained item, from hard to easy */
    uint32_t *shared; /* how many skills a trained item shares; zero between uses */
    uint32_t *found;  /* the items that share any: n_found */
    size_t n_found;
    struct name_index keys; /* of sets of candidates */
    struct candidates *sets;
};

/* The model's chance at every trained item for a student of whom nothing is known: as many
 * students with one attempt each. */
static void first_chances(const struct model *model, const struct dataset *dataset, real *p)
{
    const size_t n = dataset->n_items, width = dataset->covariates.names.n;
    struct shard shard = {.dataset = dataset,
                          .n_students = n,
                          .n_attempts = n,
                          .first = NEW(uint64_t, n + 1),
                          .item = NEW(uint32_t, n),
                          .mark = NEW(uint8_t, n),
                          .time = dataset->has_time ? NEW(int64_t, n) : NULL,
                          .covariate = NEW(double, n *width)};
    uint32_t *students = NEW(uint32_t, n);
    for (size_t i = 0; i < n; i++) {
        shard.first[i + 1] = i + 1;
        shard.item[i] = students[i] = (uint32_t)i;
        shard.mark[i] = mark_make(UNKNOWN, TEST, false, true);
        for (size_t k = 0; k < width; k++)
            shard.covariate[i * width + k] = (double)NAN;
    }
    void *work = model->kind->attach(model, &shard, TO_PREDICT);
    model_predict(model, work, &shard, students, n, 1u << TEST, p);
    model->kind->detach(work);
    memory_free(students);
    shard_free(&shard);
}

struct ranked {
    real p;
    uint32_t item;
};

static int by_chance(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->p < y->p ? -1 : x->p > y->p ? 1 : (x->item > y->item) - (x->item < y->item);
}

/* Models of targets have no chances of answers: their items keep their order. */
static void rank_items(struct stand_in_chooser *chooser, const struct model *model)
{
    const size_t n = chooser->dataset->n_items;
    real *p = NEW(real, n);
    struct ranked *ranked = NEW(struct ranked, n);
    if (model_task(model) == TASK_TRACE)
        first_chances(model, chooser->dataset, p);
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){p[i] >= 0 ? p[i] : 0, (uint32_t)i};
    qsort(ranked, n, sizeof *ranked, by_chance);
    chooser->rank = NEW(uint32_t, n);
    for (size_t r = 0; r < n; r++)
        chooser->rank[ranked[r].item] = (uint32_t)r;
    memory_free(ranked);
    memory_free(p);
}

/* Counts the skills that trained items share with an unseen one. */
static void count_shared(struct stand_in_chooser *chooser, const struct new_item *item)
{
    const struct skill_items *of_skill = &chooser->of_skill;
    chooser->n_found = 0;
    for (size_t j = 0; j < item->n_skills; j++) {
        const uint32_t k = item->skills[j];
        for (uint64_t c = of_skill->first[k]; c < of_skill->first[k + 1]; c++)
            if (chooser->shared[of_skill->item[c]]++ == 0)
                chooser->found[chooser->n_found++] = of_skill->item[c];
    }
}

/* How many trained items share at least so many skills. */
static size_t n_sharing(const struct stand_in_chooser *chooser, size_t least)
{
    size_t n = 0;
    for (size_t c = 0; c < chooser->n_found; c++)
        n += chooser->shared[chooser->found[c]] >= least;
    return n;
}

/* The trained items that share the most skills with an unseen one. */
static void find_by_skill(struct stand_in_chooser *chooser, const struct new_item *item,
                          struct candidates *set)
{
    size_t least = item->n_skills;
    count_shared(chooser, item);
    while (least > 1 && n_sharing(chooser, least) < N_STAND_INS)
        least--;
    set->item = NEW(uint32_t, chooser->n_found);
    for (size_t c = 0; c < chooser->n_found; c++) {
        if (chooser->shared[chooser->found[c]] >= least)
            set->item[set->n++] = chooser->found[c];
        chooser->shared[chooser->found[c]] = 0;
    }
    set->basis = BASIS_SKILL;
}

static void find_by_group(const struct stand_in_chooser *chooser, int32_t group,
                          struct candidates *set)
{
    const struct dataset *d = chooser->dataset;
    set->item = NEW(uint32_t, d->n_items);
    for (size_t i = 0; i < d->n_items; i++)
        if (group < 0 || d->item_group[i] == group)
            set->item[set->n++] = (uint32_t)i;
    set->basis = group < 0 ? BASIS_MEAN : BASIS_GROUP;
}

static void sort_candidates(const struct stand_in_chooser *chooser, struct candidates *set)
{
    struct ranked *ranked = NEW(struct ranked, set->n);
    for (size_t c = 0; c < set->n; c++)
        ranked[c] = (struct ranked){(real)chooser->rank[set->item[c]], set->item[c]};
    qsort(ranked, set->n, sizeof *ranked, by_chance);
    for (size_t c = 0; c < set->n; c++)
        set->item[c] = ranked[c].item;
    memory_free(ranked);
}

/* The set of a key, made by the first item that asks for it. */
static struct candidates *set_of(struct stand_in_chooser *chooser, const char *key,
                                 const struct new_item *item, enum basis basis)
{
    const size_t n = chooser->keys.names.n;
    const uint32_t k = name_index_add(&chooser->keys, key, strlen(key));
    if (k < n)
        return &chooser->sets[k];
    chooser->sets = memory_resize(chooser->sets, n + 1, sizeof *chooser->sets);
    struct candidates *set = &chooser->sets[n];
    *set = (struct candidates){0};
    if (basis == BASIS_SKILL)
        find_by_skill(chooser, item, set);
    else
        find_by_group(chooser, basis == BASIS_GROUP ? item->group : -1, set);
    sort_candidates(chooser, set);
    return set;
}

/* The set of an unseen item: by its skills, its group or all items. */
static const struct candidates *find_set(struct stand_in_chooser *chooser,
                                         const struct new_item *item)
{
    char *key = memory_text("skills");
    for (size_t j = 0; j < item->n_skills; j++) {
        char *longer = memory_text("%s %u", key, item->skills[j]);
        memory_free(key);
        key = longer;
    }
    struct candidates *set = set_of(chooser, key, item, BASIS_SKILL);
    memory_free(key);
    if (set->n == 0 && item->group >= 0) {
        key = memory_text("group %d", item->group);
        set = set_of(chooser, key, item, BASIS_GROUP);
        memory_free(key);
    }
    if (set->n == 0)
        set = set_of(chooser, "all", item, BASIS_MEAN);
    return set;
}

struct stand_in_chooser *stand_ins_chooser(const struct model *model,
                                           const struct dataset *dataset)
{
    struct stand_in_chooser *chooser = NEW(struct stand_in_chooser, 1);
    chooser->dataset = dataset;
    rank_items(chooser, model);
    skill_items_make(&chooser->of_skill, dataset, false);
    chooser->shared = NEW(uint32_t, dataset->n_items);
    chooser->found = NEW(uint32_t, dataset->n_items);
    return chooser;
}

void stand_ins_chooser_free(struct stand_in_chooser *chooser)
{
    if (chooser == NULL)
        return;
    for (size_t k = 0; k < chooser->keys.names.n; k++)
        memory_free(chooser->sets[k].item);
    name_index_free(&chooser->keys);
    skill_items_free(&chooser->of_skill);
    memory_free(chooser->sets);
    memory_free(chooser->shared);
    memory_free(chooser->found);
    memory_free(chooser->rank);
    memory_free(chooser);
}

enum basis stand_ins_find(struct stand_in_chooser *chooser, const struct new_item *item,
                          uint32_t stand_ins[N_STAND_INS])
{
    const struct candidates *set = find_set(chooser, item);
    const size_t turn = (size_t)(XXH3_64bits(item->name, item->n_name) % N_STAND_INS);
    for (size_t pass = 0; pass < N_STAND_INS; pass++) {
        const size_t place = (pass + turn) % N_STAND_INS;
        stand_ins[pass] = set->item[(2 * place + 1) * set->n / (2 * N_STAND_INS)];
    }
    return set->basis;
}

void stand_ins_choose(struct stand_ins *stand_ins, const struct model *model,
                      struct shard *shard)
{
    const struct unseen_items *unseen = &shard->dataset->unseen;
    const size_t n = unseen->items.n;
    *stand_ins = (struct stand_ins){.n_items = shard->dataset->n_items};
    if (n == 0)
        return;
    struct stand_in_chooser *chooser = stand_ins_chooser(model, shard->dataset);
    stand_ins->n_passes = N_STAND_INS;
    stand_ins->item = NEW(uint32_t, n * N_STAND_INS);
    stand_ins->basis = NEW(enum basis, n);
    for (size_t u = 0; u < n; u++) {
        const char *name = names_get(&unseen->items, u);
        const struct new_item item = {.name = name,
                                      .n_name = strlen(name),
                                      .skills = unseen->skill + unseen->first[u],
                                      .n_skills =
                                          (size_t)(unseen->first[u + 1] - unseen->first[u]),
                                      .group = unseen->group[u]};
        stand_ins->basis[u] = stand_ins_find(chooser, &item, stand_ins->item + u * N_STAND_INS);
    }
    stand_ins_chooser_free(chooser);
    stand_ins->asked = NEW_SCRATCH(uint32_t, shard->n_attempts);
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        stand_ins->asked[t] = shard->item[t];
        stand_ins->n[stand_ins_basis(stand_ins, t)]++;
    }
    stand_ins_apply(stand_ins, 0, shard);
}

void stand_ins_apply(const struct stand_ins *stand_ins, size_t pass, struct shard *shard)
{
    for (uint64_t t = 0; stand_ins->asked != NULL && t < shard->n_attempts; t++)
        if (stand_ins->asked[t] >= stand_ins->n_items)
            shard->item[t] =
                stand_ins
                    ->item[(stand_ins->asked[t] - stand_ins->n_items) * stand_ins->n_passes +
                           pass];
}

void stand_ins_free(struct stand_ins *stand_ins)
{
    memory_free(stand_ins->item);
    memory_free(stand_ins->basis);
    memory_free(stand_ins->asked);
    *stand_ins = (struct stand_ins){0};
}

enum basis stand_ins_basis(const struct stand_ins *stand_ins, uint64_t t)
{
    return stand_ins->asked == NULL || stand_ins->asked[t] < stand_ins->n_items
               ? BASIS_ITEM
               : stand_ins->basis[stand_ins->asked[t] - stand_ins->n_items];
}

uint32_t stand_ins_asked(const struct stand_ins *stand_ins, const struct shard *shard,
                         uint64_t t)
{
    return stand_ins->asked != NULL ? stand_ins->asked[t] : shard->item[t];
}

size_t stand_ins_skills(const struct stand_ins *stand_ins, const struct shard *shard,
                        uint64_t t, const uint32_t **skills)
{
    const struct dataset *dataset = shard->dataset;
    const uint32_t item = stand_ins_asked(stand_ins, shard, t);
    const bool seen = item < dataset->n_items;
    const uint64_t *first =
        seen ? dataset->item_first + item : dataset->unseen.first + (item - dataset->n_items);
    *skills = (seen ? dataset->item_skills : dataset->unseen.skill) + first[0];
    return (size_t)(first[1] - first[0]);
}
