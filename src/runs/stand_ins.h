/* Trained items that take the place of items which the model was not trained on. */
#ifndef COHORT_STAND_INS_H
#define COHORT_STAND_INS_H

#include "base/base.h"
#include "data/dataset.h"
#include "learn/model.h"

/* What an attempt is predicted from: its own item, or trained items that share its skills, its
 * group, or nothing. */
enum basis { BASIS_ITEM, BASIS_SKILL, BASIS_GROUP, BASIS_MEAN, N_BASES };
extern const char *const stand_ins_bases[N_BASES + 1];

/* The data are predicted once with each of an item's stand-ins. */
enum { N_STAND_INS = 8 };

/* An item that the model was not trained on. */
struct new_item {
    const char *name;
    size_t n_name;
    const uint32_t *skills; /* that the model knows */
    size_t n_skills;
    int32_t group; /* of the data set; -1: none */
};

/* Chooses stand-ins among the items of a data set. */
struct stand_in_chooser;
struct stand_in_chooser *stand_ins_chooser(const struct model *model,
                                           const struct dataset *dataset);
void stand_ins_chooser_free(struct stand_in_chooser *chooser);
/* Depends on the model, the data set's items and `item` alone. */
enum basis stand_ins_find(struct stand_in_chooser *chooser, const struct new_item *item,
                          uint32_t stand_ins[N_STAND_INS]);

struct stand_ins {
    size_t n_items;    /* that the model was trained on; unseen items have numbers from it on */
    size_t n_passes;   /* N_STAND_INS; 0: the data have no unseen items */
    uint32_t *item;    /* unseen items x n_passes: the trained item in each pass */
    enum basis *basis; /* of each unseen item */
    uint32_t *asked;   /* the items of the shard's attempts, unseen ones included */
    int64_t n[N_BASES]; /* attempts of this rank */
};

/* Chooses stand-ins for the unseen items of the shard's data set, and puts those of the first
 * pass into the shard. Not collective; the same choice on every rank. */
void stand_ins_choose(struct stand_ins *stand_ins, const struct model *model,
                      struct shard *shard);

/* Puts the stand-ins of a pass into the shard, to which no view may be attached. */
void stand_ins_apply(const struct stand_ins *stand_ins, size_t pass, struct shard *shard);
void stand_ins_free(struct stand_ins *stand_ins);

/* The basis of attempt t of the shard, and its item: from n_items on, an unseen one. */
enum basis stand_ins_basis(const struct stand_ins *stand_ins, uint64_t t);
uint32_t stand_ins_asked(const struct stand_ins *stand_ins, const struct shard *shard,
                         uint64_t t);

/* The skills of the item of attempt t itself, not of one that stands in for it; returns how
 * many. Skills that the model does not know are left out. */
size_t stand_ins_skills(const struct stand_ins *stand_ins, const struct shard *shard,
                        uint64_t t, const uint32_t **skills);

#endif
