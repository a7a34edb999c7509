/* Going on with a trained model on new data: the data set gets the items of both.
 *
 *     model   a b c          numbers 0 1 2, as in its parameters
 *     file    c d a          d is new: number 3
 *     here    a b c d        b has no attempts in the file, but keeps its number
 *
 * The model's items, skills and groups come first and keep their numbers, so the rows of its
 * parameters stay where they are and new rows follow them. */
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
        for (uint64_t j = own.first[i]; j < own.first[i + 1]; j++)
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
