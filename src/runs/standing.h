/* Where the students of a data set stand: their chances at items and skills at any point. */
#ifndef COHORT_STANDING_H
#define COHORT_STANDING_H

#include "data/skill_items.h"
#include "learn/live.h"
#include "runs/inference.h"

/* One student at a time, or several side by side, each in a slot. Skills are those of the data
 * set or, if it has none, its items. */
struct standing {
    const struct inference *inference;
    struct live *live;
    bool by_item; /* the data set has no skills */
    struct skill_items skills;
    double *empty; /* covariates of an attempt that may come */
    real *p;
    size_t slot; /* the student that is asked about */
    size_t n_slots;
    struct standing_slot {
        size_t student;       /* of the shard */
        uint64_t next;        /* its first attempt that is not known */
        bool supposed;        /* it was told answers that were not given */
        uint32_t *n_attempts; /* at each skill */
    } * slots;
};

/* `inference` has data; its view is used by nothing else until standing_close. BAD_USER if the
 * model does not predict answers. */
CHECKED enum status standing_open(struct standing *standing, const struct inference *inference);
void standing_close(struct standing *standing);

/* Goes to student s of the shard after its attempts before attempt `end` of the shard. Going
 * forward costs the attempts passed; going back starts again. */
void standing_go(struct standing *standing, size_t s, uint64_t end);

/* Goes to n students (at most n_slots) after all their attempts, side by side, which is faster
 * for some kinds. Then the one in `slot` is asked about: 0 .. n - 1. */
void standing_gather(struct standing *standing, const uint32_t *students, size_t n);
void standing_pick(struct standing *standing, size_t slot);

/* Tells the student in the slot a right answer that was not given, at item `nth` of skill k,
 * counted from 0 and around. It is not counted as an attempt; standing_go and standing_gather
 * forget it. */
void standing_suppose(struct standing *standing, size_t k, size_t nth);

/* Attempts at skill k that are known. */
uint32_t standing_attempts(const struct standing *standing, size_t k);

/* Chances of a right answer at all items, if the next attempt begins a step and is made at the
 * time of the last one. */
void standing_items(struct standing *standing, real *p);
/* The mean over the items of skill k of p, which has a number for every item; NaN: none. */
double standing_mean(const struct standing *standing, const real *p, size_t k);
/* The chance that skill k is known, for kinds that have a notion of it; else the mean chance at
 * its items (NaN: it has none). */
double standing_mastery(struct standing *standing, size_t k);

#endif
