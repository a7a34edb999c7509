/* Going on with a trained model on new data: the data set gets the items of both.
 *
 *     model   a b c          numbers 0 1 2, as in its parameters
 *     file    c d a          d is new: number 3
 *     here    a b c d        b has no attempts in the file, but keeps its number
 *
 * The model's items, skills and groups come first and keep their numbers, so the rows of its
 * parameters stay where they are and new rows follow them. Without skills in the model, new
 * items have none either: one item with skills among many without would be another model.
 *
 * A model that is fitted to the new data alone has the items of the file, with their numbers
 * (dataset_complete). Only what the file does not tell of an item, its skills or its group, is
 * the model's. Skills and groups are then numbered in the model's order, new ones last: a file
 * without skills gets the numbers of the same file with them. */
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/name_index.h"
#include <string.h>

static uint32_t add(struct name_index *index, const struct names *names, size_t i)
{
    return name_index_add(index, names_get(names, i), strlen(names_get(names, i)));
}

enum status dataset_extend(struct dataset *dataset, const struct item_table *known)
{
    const struct item_table own = dataset_items(dataset);
    const size_t n_known = known->items->n, n_most = n_known + own.items->n;
    if (known->first == NULL)
        return fail(BAD_USER,
                    "%s: the model was stored by an earlier version of cohort, "
                    "without the skills of its items; train it again",
                    dataset->path);
    struct name_index items = {0}, skills = {0}, groups = {0};
    name_index_add_all(&items, known->items);
    name_index_add_all(&skills, known->skills);
    name_index_add_all(&groups, known->groups);
    uint64_t *first = NEW(uint64_t, n_most + 1), n_skills = known->first[n_known];
    uint32_t *skill = NEW(uint32_t, n_skills + own.first[own.items->n]);
    int32_t *group = NEW(int32_t, n_most);
    memcpy(first, known->first, (n_known + 1) * sizeof *first);
    memcpy(group, known->group, n_known * sizeof *group);
    if (n_skills > 0)
        memcpy(skill, known->skill, n_skills * sizeof *skill);
    for (size_t i = 0; i < own.items->n; i++) {
        const size_t n_before = items.names.n, k = add(&items, own.items, i);
        if (k < n_before)
            continue;
        for (uint64_t j = own.first[i]; known->skills->n > 0 && j < own.first[i + 1]; j++)
            skill[n_skills++] = add(&skills, own.skills, own.skill[j]);
        first[k + 1] = n_skills;
        group[k] =
            own.group[i] < 0 ? -1 : (int32_t)add(&groups, own.groups, (size_t)own.group[i]);
    }
    const struct item_table all = {.items = &items.names,
                                   .skills = &skills.names,
                                   .groups = &groups.names,
                                   .first = first,
                                   .skill = skill,
                                   .group = group};
    const enum status status = dataset_renumber(dataset, &all, &(struct covariates){0});
    name_index_free(&items);
    name_index_free(&skills);
    name_index_free(&groups);
    memory_free(first);
    memory_free(skill);
    memory_free(group);
    return status;
}

/* Names of the model and of the file, numbered together: the model's first, if `used`. */
static void number_both(struct name_index *index, const struct names *known, const bool *used,
                        const struct names *own)
{
    struct name_index of_file = {0};
    name_index_add_all(&of_file, own);
    for (size_t k = 0; k < known->n; k++) {
        const char *name = names_get(known, k);
        if (used[k] || name_index_find(&of_file, name, strlen(name)) != INDEX_NONE)
            add(index, known, k);
    }
    name_index_add_all(index, own);
    name_index_free(&of_file);
}

/* What an item of the file gets from the model. */
struct gaps {
    uint32_t *from; /* the item's number in the model, or INDEX_NONE */
    bool *skills, *group;
    bool *uses_skill, *uses_group; /* of the model */
    bool any;
};

static void find_gaps(const struct item_table *own, const struct item_table *known,
                      struct gaps *gaps)
{
    const size_t n = own->items->n;
    struct name_index items = {0};
    name_index_add_all(&items, known->items);
    *gaps = (struct gaps){.from = NEW(uint32_t, n),
                          .skills = NEW(bool, n),
                          .group = NEW(bool, n),
                          .uses_skill = NEW(bool, known->skills->n),
                          .uses_group = NEW(bool, known->groups->n)};
    for (size_t i = 0; i < n; i++) {
        const char *name = names_get(own->items, i);
        const uint32_t k = gaps->from[i] = name_index_find(&items, name, strlen(name));
        if (k == INDEX_NONE)
            continue;
        gaps->skills[i] =
            own->first[i] == own->first[i + 1] && known->first[k] < known->first[k + 1];
        gaps->group[i] = own->group[i] < 0 && known->group[k] >= 0;
        gaps->any |= gaps->skills[i] || gaps->group[i];
        for (uint64_t j = known->first[k]; gaps->skills[i] && j < known->first[k + 1]; j++)
            gaps->uses_skill[known->skill[j]] = true;
        if (gaps->group[i])
            gaps->uses_group[known->group[k]] = true;
    }
    name_index_free(&items);
}

static void free_gaps(struct gaps *gaps)
{
    memory_free(gaps->from);
    memory_free(gaps->skills);
    memory_free(gaps->group);
    memory_free(gaps->uses_skill);
    memory_free(gaps->uses_group);
}

static enum status fill(struct dataset *dataset, const struct item_table *known,
                        const struct gaps *gaps)
{
    const struct item_table own = dataset_items(dataset);
    const size_t n = own.items->n;
    struct name_index skills = {0}, groups = {0};
    number_both(&skills, known->skills, gaps->uses_skill, own.skills);
    number_both(&groups, known->groups, gaps->uses_group, own.groups);
    size_t n_skills = 0;
    for (size_t i = 0; i < n; i++) {
        const struct item_table *table = gaps->skills[i] ? known : &own;
        const size_t k = gaps->skills[i] ? gaps->from[i] : i;
        n_skills += table->first[k + 1] - table->first[k];
    }
    struct names items = {0};
    names_copy(&items, own.items);
    uint64_t *first = NEW(uint64_t, n + 1);
    uint32_t *skill = NEW(uint32_t, n_skills);
    int32_t *group = NEW(int32_t, n);
    for (size_t i = 0; i < n; i++) {
        const struct item_table *table = gaps->skills[i] ? known : &own;
        const size_t k = gaps->skills[i] ? gaps->from[i] : i;
        first[i + 1] = first[i];
        for (uint64_t j = table->first[k]; j < table->first[k + 1]; j++)
            skill[first[i + 1]++] = add(&skills, table->skills, table->skill[j]);
        table = gaps->group[i] ? known : &own;
        const int32_t g = table->group[gaps->group[i] ? gaps->from[i] : i];
        group[i] = g < 0 ? -1 : (int32_t)add(&groups, table->groups, (size_t)g);
    }
    const struct item_table all = {.items = &items,
                                   .skills = &skills.names,
                                   .groups = &groups.names,
                                   .first = first,
                                   .skill = skill,
                                   .group = group};
    const enum status status = dataset_renumber(dataset, &all, &(struct covariates){0});
    names_free(&items);
    name_index_free(&skills);
    name_index_free(&groups);
    memory_free(first);
    memory_free(skill);
    memory_free(group);
    return status;
}

enum status dataset_complete(struct dataset *dataset, const struct item_table *known)
{
    if (known->first == NULL)
        return OK;
    const struct item_table own = dataset_items(dataset);
    struct gaps gaps;
    find_gaps(&own, known, &gaps);
    const enum status status = gaps.any ? fill(dataset, known, &gaps) : OK;
    free_gaps(&gaps);
    return status;
}
