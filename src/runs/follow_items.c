/* A line may name an item that the model was not trained on. The items that stand in for it are
 * those that `predict` would choose (stand_ins.c): by its name, its skills and its group, which
 * lines tell in the fields `skills` and `group`. Items of the data set that are new to the model
 * are there from the start. */
#include "runs/follow_items.h"
#include "base/memory.h"
#include "data_tools/csv_cell.h"
#include <string.h>
#include <xxhash.h>

static struct follow_unseen *add_unseen(struct follow_items *items, const char *name, size_t n)
{
    const uint32_t u = name_index_add(&items->unseen_names, name, n);
    GROW(items->unseen, u, items->unseen_room);
    items->unseen[u] = (struct follow_unseen){0};
    return &items->unseen[u];
}

void follow_items_make(struct follow_items *items, const struct inference *inference)
{
    const struct dataset *dataset = &inference->dataset;
    const struct stand_ins *stand_ins = &inference->stand_ins;
    *items = (struct follow_items){.inference = inference};
    name_index_add_all(&items->items, &dataset->items);
    name_index_add_all(&items->skills, &dataset->skills);
    name_index_add_all(&items->groups, &dataset->groups);
    for (size_t u = 0; u < dataset->unseen.items.n; u++) {
        const char *name = names_get(&dataset->unseen.items, u);
        struct follow_unseen *unseen = add_unseen(items, name, strlen(name));
        memcpy(unseen->stand_ins, stand_ins->item + u * N_STAND_INS, sizeof unseen->stand_ins);
        unseen->basis = stand_ins->basis[u];
    }
}

void follow_items_free(struct follow_items *items)
{
    struct name_index *const indices[] = {&items->items, &items->skills, &items->groups,
                                          &items->unseen_names};
    for (size_t k = 0; k < COUNT(indices); k++)
        name_index_free(indices[k]);
    memory_free(items->unseen);
    stand_ins_chooser_free(items->chooser);
    *items = (struct follow_items){0};
}

/* Chooses the stand-ins of a new item. */
static void choose(struct follow_items *items, struct span name, struct span skills,
                   struct span group, struct follow_unseen *unseen)
{
    struct csv_cell_list list = csv_cell_list(skills, "auto");
    struct span piece;
    size_t n = 0;
    uint32_t *known = NEW_SCRATCH(uint32_t, skills.n + 1); /* a skill has at least one byte */
    while (skills.start != NULL && csv_cell_list_next(&list, &piece)) {
        const uint32_t k = name_index_find(&items->skills, piece.start, piece.n);
        bool adds = k != INDEX_NONE;
        for (size_t j = 0; j < n; j++)
            adds &= known[j] != k;
        if (adds)
            known[n++] = k;
    }
    const uint32_t g = group.start != NULL
                           ? name_index_find(&items->groups, group.start, group.n)
                           : INDEX_NONE;
    const struct new_item item = {.name = name.start,
                                  .n_name = name.n,
                                  .skills = known,
                                  .n_skills = n,
                                  .group = g != INDEX_NONE ? (int32_t)g : -1};
    if (items->chooser == NULL)
        items->chooser = stand_ins_chooser(items->inference->model, &items->inference->dataset);
    unseen->basis = stand_ins_find(items->chooser, &item, unseen->stand_ins);
    memory_free(known);
}

bool follow_items_is_full(const struct follow_items *items, struct span name)
{
    return items->unseen_names.names.n >= FOLLOW_MOST_UNSEEN &&
           name_index_find(&items->unseen_names, name.start, name.n) == INDEX_NONE;
}

uint32_t follow_items_unseen(struct follow_items *items, struct span name, struct span skills,
                             struct span group)
{
    uint64_t described = 0;
    if (skills.start != NULL || group.start != NULL)
        described =
            XXH3_64bits_withSeed(skills.start != NULL ? skills.start : "", skills.n,
                                 XXH3_64bits(group.start != NULL ? group.start : "", group.n)) |
            1;
    uint32_t u = name_index_find(&items->unseen_names, name.start, name.n);
    const bool is_new = u == INDEX_NONE;
    if (is_new) {
        u = (uint32_t)items->unseen_names.names.n;
        add_unseen(items, name.start, name.n);
    }
    struct follow_unseen *unseen = &items->unseen[u];
    if (is_new || (described != 0 && described != unseen->described)) {
        choose(items, name, skills, group, unseen);
        unseen->described = described;
    }
    return (uint32_t)items->inference->dataset.n_items + u;
}

void follow_items_passes(const struct follow_items *items, uint32_t item,
                         uint32_t asks_at[N_STAND_INS])
{
    const size_t n_items = items->inference->dataset.n_items;
    for (size_t pass = 0; pass < N_STAND_INS; pass++)
        asks_at[pass] = item < n_items ? item : items->unseen[item - n_items].stand_ins[pass];
}
