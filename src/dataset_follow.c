/* A trained model knows items, skills and levels of factors by number. Another data set numbers
 * them otherwise, so it is renumbered by name before its attempts are read. */
#include "dataset.h"
#include "fail.h"
#include "index.h"
#include "memory.h"
#include <string.h>

static void number(struct index *index, const struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        index_add(index, names_get(names, i), strlen(names_get(names, i)));
}

/* item_map[0] is the number of items in the file, item_map[1 + i] what item i of the file is
 * here. */
static enum status map_items(struct dataset *dataset, const struct index *index)
{
    const size_t n = dataset->n_items;
    dataset->item_map = NEW(uint32_t, n + 1);
    dataset->item_map[0] = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *name = names_get(&dataset->items, i);
        dataset->item_map[1 + i] = index_find(index, name, strlen(name));
        if (dataset->item_map[1 + i] == INDEX_NONE)
            return fail(BAD_USER,
                        "%s: item '%s' was never seen in training: the model knows %zu "
                        "items and this is none of them; leave its attempts out, or train "
                        "on data that has them",
                        dataset->path, name, index->names.n);
    }
    return OK;
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
        first[dataset->item_map[1 + i] + 1] =
            dataset->item_first[i + 1] - dataset->item_first[i];
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    struct names names = {0};
    names_copy(&names, items);
    for (size_t i = 0; i < n_old; i++) {
        const uint32_t to = dataset->item_map[1 + i];
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

static enum status follow_items(struct dataset *dataset, const struct names *items)
{
    if (names_equal(&dataset->items, items))
        return OK;
    struct index index = {0};
    number(&index, items);
    enum status status = map_items(dataset, &index);
    if (status == OK)
        reorder_items(dataset, items);
    index_free(&index);
    return status;
}

static void follow_skills(struct dataset *dataset, const struct names *skills)
{
    if (names_equal(&dataset->skills, skills))
        return;
    struct index index = {0};
    number(&index, skills);
    uint64_t n = 0;
    for (size_t i = 0; i < dataset->n_items; i++) {
        const uint64_t start = dataset->item_first[i], end = dataset->item_first[i + 1];
        dataset->item_first[i] = n; /* never beyond start: what is left out closes up */
        for (uint64_t j = start; j < end; j++) {
            const char *name = names_get(&dataset->skills, dataset->item_skills[j]);
            const uint32_t k = index_find(&index, name, strlen(name));
            if (k != INDEX_NONE)
                dataset->item_skills[n++] = k;
        }
    }
    dataset->item_first[dataset->n_items] = n;
    index_free(&index);
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
    struct index index = {0};
    number(&index, levels);
    uint32_t *map = NEW(uint32_t, own->n + 1);
    map[0] = (uint32_t)own->n;
    for (size_t l = 0; l < own->n; l++)
        map[1 + l] = index_find(&index, names_get(own, l), strlen(names_get(own, l)));
    index_free(&index);
    if (dataset->level_map == NULL)
        dataset->level_map = NEW(uint32_t *, dataset->covariates.names.n);
    dataset->level_map[k] = map;
    names_free(own);
    names_copy(own, levels);
}

enum status dataset_follow(struct dataset *dataset, const struct names *items,
                           const struct names *skills, const struct covariates *covariates)
{
    TRY(follow_items(dataset, items));
    follow_skills(dataset, skills);
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t own =
            covariates_find(&dataset->covariates, names_get(&covariates->names, k));
        if (own != COVARIATES_NONE)
            follow_levels(dataset, own, &covariates->levels[k]);
    }
    return OK;
}
