/* The table from items to skills, turned around by counting. */
#include "data/skill_items.h"
#include "base/memory.h"

void skill_items_make(struct skill_items *list, const struct dataset *dataset, bool by_item)
{
    const size_t n_items = dataset->n_items;
    const uint64_t *first = dataset->item_first;
    list->n = by_item ? n_items : dataset->n_skills;
    list->first = NEW(uint64_t, list->n + 1);
    list->item = NEW(uint32_t, by_item ? n_items : first[n_items]);
    for (uint32_t i = 0; by_item && i < n_items; i++) {
        list->first[i + 1] = i + 1;
        list->item[i] = i;
    }
    if (by_item)
        return;
    for (uint64_t j = 0; j < first[n_items]; j++)
        list->first[dataset->item_skills[j] + 1]++;
    for (size_t k = 0; k < list->n; k++)
        list->first[k + 1] += list->first[k];
    uint64_t *place = NEW(uint64_t, list->n);
    for (uint32_t i = 0; i < n_items; i++)
        for (uint64_t j = first[i]; j < first[i + 1]; j++) {
            const uint32_t k = dataset->item_skills[j];
            list->item[list->first[k] + place[k]++] = i;
        }
    memory_free(place);
}

void skill_items_free(struct skill_items *list)
{
    memory_free(list->first);
    memory_free(list->item);
    *list = (struct skill_items){0};
}
