/* Shared by builder.c and builder_finish.c only. */
#ifndef COHORT_BUILDER_INTERNAL_H
#define COHORT_BUILDER_INTERNAL_H

#include "data/builder.h"
#include "data/name_index.h"

enum { N_PILES = 256, N_WAITING = 64 };

/* A row in a block: all fields, or those up to the time or the mark. Packed, since rows of many
 * piles are written in turn and each should touch one cache line. */
struct __attribute__((packed)) packed_row {
    uint32_t student, item;
    uint8_t mark, variant;
    uint32_t row; /* of the source */
    int64_t time;
    uint64_t place; /* of its covariates */
};

struct block {
    struct block *next;
    size_t n_bytes; /* of rows; not set in the last block of a pile */
    char rows[];
};

struct pile {
    char *next, *end; /* of the free room in the last block; every row needs them */
    struct block *first, *last;
    size_t n_rows;
};

struct item {
    int32_t group;  /* -1: none */
    bool regrouped; /* another row has another group */
    uint32_t title; /* INDEX_NONE: its name is its title */
};

/* A row whose student has not been looked up yet. */
struct waiting_row {
    char name[40];
    uint32_t length, item, row;
    int64_t time;
    uint64_t place;
    uint8_t mark, variant;
};

struct builder {
    struct builder_plan plan;
    struct name_index students, items, skills, groups, item_titles, skill_titles;
    uint64_t *keys;        /* by student: the final order */
    uint8_t *pile_of;      /* by student: the first byte of its key, small enough for a cache */
    struct item *item;     /* by item */
    uint32_t *skill_title; /* by skill */
    size_t key_capacity, pile_capacity, item_capacity, skill_capacity;
    struct pile piles[N_PILES];
    double *covariates; /* of all rows, in order of arrival */
    size_t n_covariates, covariate_capacity;
    size_t row_size; /* bytes per row in a block */
    uint64_t n_rows, n_regrouped, n_retitled;
    uint32_t row;       /* of the source, for the next attempts */
    bool row_overflows; /* a row had a larger number */
    uint8_t variant;    /* of the next attempts */
    bool has_variants;  /* some attempt had another than 0 */
    bool forgets_times;
    struct names renamed; /* by student: with plan.rename, the name to store */
    struct waiting_row waiting[N_WAITING];
    size_t n_waiting;
    uint64_t *pairs; /* hash set of item << 32 | skill, plus 1; 0: free */
    size_t n_pairs, n_pair_slots;
};

/* The names of students to store. */
const struct names *builder_student_names(const struct builder *builder);

/* Looks up the students of waiting rows and adds the rows. */
void builder_flush(struct builder *builder);

/* Frees the blocks of a pile. */
void builder_free_pile(struct pile *pile);

#endif
