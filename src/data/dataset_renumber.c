/* A trained model knows items, skills, groups and levels of factors by number. Another data set
 * numbers them differently, so it is renumbered by name before its attempts are read.
 *
 * The model's skills and groups of items take precedence over those of the file. A file may
 * have none, or none for an item. If it disagrees with the model, that is recorded
 * (other_skills, other_groups) for a note, or for an error where that is asked for
 * (src/runs/checkpoint.c). Groups that are unknown to the model, or different, stay those of
 * the file: scores are shown by group.
 *
 * Items that are unknown to the model have no number in it. Where they are allowed, they are
 * numbered behind the model's items, with those of their skills that the model knows and with
 * their groups; src/runs/stand_ins.c says what becomes of them. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/name_index.h"
#include <string.h>

struct item_table dataset_items(const struct dataset *dataset)
{
    return (struct item_table){.items = &dataset->items,
                               .skills = &dataset->skills,
                               .groups = &dataset->groups,
                               .first = dataset->item_first,
                               .skill = dataset->item_skills,
                               .group = dataset->item_group};
}

/* item_map[0] is the number of items in the file, item_map[1 + i] the new number of item i of
 * the file. NULL if no number changes. */
static enum status map_items(struct dataset *dataset, const struct names *items)
{
    if (names_equal(&dataset->items, items))
        return OK;
    struct name_index index = {0};
    name_index_add_all(&index, items);
    const size_t n = dataset->n_items;
    enum status status = OK;
    dataset->item_map = NEW(uint32_t, n + 1);
    dataset->item_map[0] = (uint32_t)n;
    for (size_t i = 0; status == OK && i < n; i++) {
        const char *name = names_get(&dataset->items, i);
        dataset->item_map[1 + i] = name_index_find(&index, name, strlen(name));
        if (dataset->item_map[1 + i] != INDEX_NONE)
            continue;
        if (dataset->unseen.allowed) {
            dataset->item_map[1 + i] = (uint32_t)(items->n + dataset->unseen.items.n);
            names_add(&dataset->unseen.items, name, strlen(name));
        } else {
            status = fail(BAD_USER,
                          "%s: item '%s' was never seen in training (items in the model: "
                          "%zu); remove its attempts, or train on data that has them",
                          dataset->path, name, items->n);
        }
    }
    name_index_free(&index);
    return status;
}

static size_t item_here(const struct dataset *dataset, size_t i)
{
    return dataset->item_map != NULL ? dataset->item_map[1 + i] : i;
}

/* Fills in the skills of unseen items and the names of their groups. */
static void describe_unseen(struct dataset *dataset, const struct item_table *known)
{
    struct unseen_items *unseen = &dataset->unseen;
    struct name_index index = {0};
    name_index_add_all(&index, known->skills);
    unseen->first = NEW(uint64_t, unseen->items.n + 1);
    unseen->skill = NEW(uint32_t, dataset->item_first[dataset->n_items]);
    unseen->group = NEW(int32_t, unseen->items.n);
    for (size_t s = 0; s < dataset->skills.n; s++) {
        const char *name = names_get(&dataset->skills, s);
        unseen->n_skills += name_index_find(&index, name, strlen(name)) == INDEX_NONE;
    }
    size_t n = 0, u = 0;
    for (size_t i = 0; i < dataset->n_items; i++) {
        if (item_here(dataset, i) < known->items->n)
            continue;
        for (uint64_t j = dataset->item_first[i]; j < dataset->item_first[i + 1]; j++) {
            const char *name = names_get(&dataset->skills, dataset->item_skills[j]);
            const uint32_t k = name_index_find(&index, name, strlen(name));
            if (k != INDEX_NONE)
                unseen->skill[n++] = k;
        }
        unseen->first[++u] = n;
        const char *name = dataset->item_group[i] < 0
                               ? ""
                               : names_get(&dataset->groups, (size_t)dataset->item_group[i]);
        names_add(&unseen->group_names, name, strlen(name));
    }
    name_index_free(&index);
}

void dataset_show_groups(struct dataset *dataset, bool files)
{
    struct unseen_items *unseen = &dataset->unseen;
    if (files && unseen->file_group != NULL) {
        names_free(&dataset->groups);
        memory_free(dataset->item_group);
        dataset->groups = unseen->file_groups;
        dataset->item_group = unseen->file_group;
        unseen->file_groups = (struct names){0};
        unseen->file_group = NULL;
    }
    struct name_index index = {0};
    name_index_add_all(&index, &dataset->groups);
    for (size_t u = 0; u < unseen->items.n; u++) {
        const char *name = names_get(&unseen->group_names, u);
        const size_t n = strlen(name);
        if (n > 0 && name_index_find(&index, name, n) == INDEX_NONE) {
            name_index_add(&index, name, n);
            names_add(&dataset->groups, name, n);
        }
        unseen->group[u] = n > 0 ? (int32_t)name_index_find(&index, name, n) : -1;
    }
    dataset->n_groups = dataset->groups.n;
    name_index_free(&index);
}

/* The names of an item's skills, the first few of them; caller frees. */
static char *list_skills(const struct item_table *items, size_t i)
{
    enum { MOST = 4 };
    const uint64_t n = items->first[i + 1] - items->first[i];
    char *list = memory_text("%s", n == 0 ? "none" : "");
    for (uint64_t j = 0; j < n && j <= MOST; j++) {
        const char *name = names_get(items->skills, items->skill[items->first[i] + j]);
        if (j < MOST)
            memory_append(&list, "%s'%s'", j > 0 ? ", " : "", name);
        else
            memory_append(&list, " and %llu more", (unsigned long long)(n - MOST));
    }
    return list;
}

/* " (items that differ: 3)" if there are several. */
static void others_text(size_t n, char text[64])
{
    text[0] = '\0';
    if (n > 1)
        snprintf(text, 64, " (items that differ: %zu)", n);
}

static char *skills_sentence(const struct dataset *dataset, const struct item_table *own,
                             size_t i, const struct item_table *known, size_t n_others)
{
    char *here = list_skills(own, i), *there = list_skills(known, item_here(dataset, i));
    char others[64];
    others_text(n_others, others);
    char *sentence = memory_text("%s: item '%s' has skills %s, but %s in the model's training "
                                 "data%s; import the data with the same skills, or with "
                                 "--skills none to use the model's",
                                 dataset->path, names_get(own->items, i), here, there, others);
    memory_free(here);
    memory_free(there);
    return sentence;
}

/* Compares the skills of each item with those in the model. */
static void compare_skills(struct dataset *dataset, const struct item_table *known)
{
    const struct item_table own = dataset_items(dataset);
    struct name_index index = {0};
    name_index_add_all(&index, known->skills);
    uint32_t *number_of = NEW(uint32_t, own.skills->n); /* of the file's skills in the model */
    for (size_t s = 0; s < own.skills->n; s++)
        number_of[s] =
            name_index_find(&index, names_get(own.skills, s), strlen(names_get(own.skills, s)));
    size_t *last = NEW(size_t, known->skills->n); /* 1 + the last item that had the skill */
    size_t n_others = 0, other = 0;               /* the first */
    for (size_t i = 0; i < own.items->n; i++) {
        const size_t k = item_here(dataset, i);
        if (k >= known->items->n)
            continue;
        const uint64_t n = own.first[i + 1] - own.first[i];
        bool same = n == known->first[k + 1] - known->first[k];
        for (uint64_t j = own.first[i]; same && j < own.first[i + 1]; j++) {
            same = number_of[own.skill[j]] != INDEX_NONE;
            if (same)
                last[number_of[own.skill[j]]] = i + 1;
        }
        for (uint64_t j = known->first[k]; same && j < known->first[k + 1]; j++)
            same = last[known->skill[j]] == i + 1;
        if (n > 0 && !same && n_others++ == 0)
            other = i;
    }
    if (n_others > 0)
        dataset->other_skills = skills_sentence(dataset, &own, other, known, n_others);
    memory_free(number_of);
    memory_free(last);
    name_index_free(&index);
}

static void compare_groups(struct dataset *dataset, const struct item_table *known)
{
    char *sentence = NULL, others[64];
    size_t n_others = 0;
    for (size_t i = 0; i < dataset->n_items; i++) {
        if (dataset->item_group[i] < 0 || item_here(dataset, i) >= known->items->n)
            continue;
        const int32_t group = known->group[item_here(dataset, i)];
        const char *here = names_get(&dataset->groups, (size_t)dataset->item_group[i]);
        const char *there = group >= 0 ? names_get(known->groups, (size_t)group) : NULL;
        if ((there == NULL || strcmp(here, there) != 0) && n_others++ == 0)
            sentence = memory_text(
                "%s: item '%s' is in group '%s', but in %s%s%s in the model's training data",
                dataset->path, names_get(&dataset->items, i), here, there ? "'" : "",
                there ? there : "none", there ? "'" : "");
    }
    others_text(n_others, others);
    if (n_others > 0)
        dataset->other_groups = memory_text("%s%s; import the data with the same groups, or "
                                            "with --group none to use the model's",
                                            sentence, others);
    memory_free(sentence);
}

/* Uses the model's items and skills and, unless the file has others, its groups. Where unseen
 * items are allowed, the file's groups are kept aside. */
static void adopt(struct dataset *dataset, const struct item_table *known)
{
    const size_t n = known->items->n, n_skills = known->first[n];
    const bool differs = dataset->other_groups != NULL || known->groups->n == 0;
    const bool aside = differs && dataset->unseen.allowed && known->groups->n > 0;
    const bool keeps_groups = differs && !aside;
    int32_t *group = NEW(int32_t, n);
    memset(group, 0xff, n * sizeof *group); /* -1: in no group */
    for (size_t i = 0; differs && i < dataset->n_items; i++)
        if (item_here(dataset, i) < n)
            group[item_here(dataset, i)] = dataset->item_group[i];
    if (aside) {
        names_copy(&dataset->unseen.file_groups, &dataset->groups);
        dataset->unseen.file_group = group;
        group = NEW(int32_t, n);
    }
    if (!keeps_groups) {
        memcpy(group, known->group, n * sizeof *group);
        names_free(&dataset->groups);
        names_copy(&dataset->groups, known->groups);
        dataset->n_groups = known->groups->n;
    }
    memory_free(dataset->item_group);
    memory_free(dataset->item_first);
    memory_free(dataset->item_skills);
    names_free(&dataset->items);
    names_free(&dataset->skills);
    dataset->item_group = group;
    dataset->item_first = NEW(uint64_t, n + 1);
    dataset->item_skills = NEW(uint32_t, n_skills);
    memcpy(dataset->item_first, known->first, (n + 1) * sizeof *known->first);
    if (n_skills > 0)
        memcpy(dataset->item_skills, known->skill, n_skills * sizeof *known->skill);
    names_copy(&dataset->items, known->items);
    names_copy(&dataset->skills, known->skills);
    dataset->n_items = n;
    dataset->n_skills = known->skills->n;
}

/* The tables of items, in the new order. */
static void reorder_items(struct dataset *dataset, const struct names *items)
{
    const size_t n_old = dataset->n_items, n = items->n;
    uint64_t *first = NEW(uint64_t, n + 1);
    uint32_t *skills = NEW(uint32_t, dataset->item_first[n_old]);
    int32_t *group = NEW(int32_t, n);
    memset(group, 0xff, n * sizeof *group); /* -1: in no group */
    for (size_t i = 0; i < n_old; i++)
        if (dataset->item_map[1 + i] < n)
            first[dataset->item_map[1 + i] + 1] =
                dataset->item_first[i + 1] - dataset->item_first[i];
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    struct names names = {0};
    names_copy(&names, items);
    for (size_t i = 0; i < n_old; i++) {
        const uint32_t to = dataset->item_map[1 + i];
        if (to >= n)
            continue;
        group[to] = dataset->item_group[i];
        for (uint64_t j = dataset->item_first[i]; j < dataset->item_first[i + 1]; j++)
            skills[first[to] + j - dataset->item_first[i]] = dataset->item_skills[j];
    }
    memory_free(dataset->item_first);
    memory_free(dataset->item_skills);
    memory_free(dataset->item_group);
    names_free(&dataset->items);
    dataset->n_items = n;
    dataset->item_first = first;
    dataset->item_skills = skills;
    dataset->item_group = group;
    dataset->items = names;
}

static void follow_skills(struct dataset *dataset, const struct names *skills)
{
    if (names_equal(&dataset->skills, skills))
        return;
    struct name_index index = {0};
    name_index_add_all(&index, skills);
    uint64_t n = 0;
    for (size_t i = 0; i < dataset->n_items; i++) {
        const uint64_t start = dataset->item_first[i], end = dataset->item_first[i + 1];
        dataset->item_first[i] = n; /* never beyond start: skipped skills close up */
        for (uint64_t j = start; j < end; j++) {
            const char *name = names_get(&dataset->skills, dataset->item_skills[j]);
            const uint32_t k = name_index_find(&index, name, strlen(name));
            if (k != INDEX_NONE)
                dataset->item_skills[n++] = k;
        }
    }
    dataset->item_first[dataset->n_items] = n;
    name_index_free(&index);
    names_free(&dataset->skills);
    names_copy(&dataset->skills, skills);
    dataset->n_skills = skills->n;
}

/* level_map[k] is like item_map. */
static void follow_levels(struct dataset *dataset, size_t k, const struct names *levels)
{
    struct names *own = &dataset->covariates.levels[k];
    if (own->n == 0 || levels->n == 0 || names_equal(own, levels))
        return;
    struct name_index index = {0};
    name_index_add_all(&index, levels);
    uint32_t *map = NEW(uint32_t, own->n + 1);
    map[0] = (uint32_t)own->n;
    for (size_t l = 0; l < own->n; l++)
        map[1 + l] = name_index_find(&index, names_get(own, l), strlen(names_get(own, l)));
    name_index_free(&index);
    if (dataset->level_map == NULL)
        dataset->level_map = NEW(uint32_t *, dataset->covariates.names.n);
    dataset->level_map[k] = map;
    names_free(own);
    names_copy(own, levels);
}

/* Checkpoints of format version 1 have names only: items keep those skills of the file that the
 * model knows. */
static void follow_names(struct dataset *dataset, const struct item_table *known)
{
    if (known->skills->n > 0 && dataset->item_first[dataset->n_items] == 0)
        dataset->other_skills = memory_text(
            "%s: its items have no skills, and an earlier version of cohort stored the model "
            "without them; import the data with --skills, or train the model again",
            dataset->path);
    if (dataset->item_map != NULL)
        reorder_items(dataset, known->items);
    follow_skills(dataset, known->skills);
}

void dataset_say_others(const struct dataset *dataset, bool skills, bool groups,
                        const char *which)
{
    const char *const others[] = {skills ? dataset->other_skills : NULL,
                                  groups ? dataset->other_groups : NULL};
    for (size_t k = 0; k < COUNT(others); k++)
        if (others[k] != NULL) /* without its advice, which comes last */
            log_say("note: %.*s; %s", (int)(strrchr(others[k], ';') - others[k]), others[k],
                    which);
}

enum status dataset_renumber(struct dataset *dataset, const struct item_table *items,
                             const struct covariates *covariates)
{
    TRY(map_items(dataset, items->items));
    if (dataset->unseen.items.n > 0)
        describe_unseen(dataset, items);
    if (items->first == NULL) {
        follow_names(dataset, items);
    } else {
        if (items->skills->n > 0)
            compare_skills(dataset, items);
        if (items->groups->n > 0)
            compare_groups(dataset, items);
        adopt(dataset, items);
    }
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t own =
            covariates_find(&dataset->covariates, names_get(&covariates->names, k));
        if (own != COVARIATES_NONE)
            follow_levels(dataset, own, &covariates->levels[k]);
    }
    return OK;
}
