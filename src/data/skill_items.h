/* The items of each skill. */
#ifndef COHORT_SKILL_ITEMS_H
#define COHORT_SKILL_ITEMS_H

#include "data/dataset.h"

struct skill_items {
    size_t n;        /* skills */
    uint64_t *first; /* n + 1 */
    uint32_t *item;  /* items of skill k, ascending: item[first[k] .. first[k+1]] */
};

/* by_item: every item is a skill of its own. */
void skill_items_make(struct skill_items *list, const struct dataset *dataset, bool by_item);
void skill_items_free(struct skill_items *list);

#endif
