/* The items that lines name: those of the model, and new ones with their stand-ins. */
#ifndef COHORT_FOLLOW_ITEMS_H
#define COHORT_FOLLOW_ITEMS_H

#include "data/name_index.h"
#include "data_tools/text.h"
#include "runs/inference.h"

enum { FOLLOW_MOST_UNSEEN = 1000000 };

/* A new item; it keeps the skills and the group of the last line that had any. */
struct follow_unseen {
    uint32_t stand_ins[N_STAND_INS];
    enum basis basis;
    uint64_t described; /* hash of its skills and group; 0: it came without them */
};

struct follow_items {
    const struct inference *inference;
    struct name_index items, skills, groups, unseen_names;
    struct follow_unseen *unseen;
    size_t unseen_room;
    struct stand_in_chooser *chooser; /* from the first new item on */
};

void follow_items_make(struct follow_items *items, const struct inference *inference);
void follow_items_free(struct follow_items *items);

/* Whether an item that is not the model's is one too many. */
bool follow_items_is_full(const struct follow_items *items, struct span name);
/* The number of an item that is not the model's: n_items + u for items->unseen[u]. Spans that are
 * absent have start = NULL. */
uint32_t follow_items_unseen(struct follow_items *items, struct span name, struct span skills,
                             struct span group);

/* The items that are asked in the passes for one with this number, as it is described now. */
void follow_items_passes(const struct follow_items *items, uint32_t item,
                         uint32_t asks_at[N_STAND_INS]);

#endif
