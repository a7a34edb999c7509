/* Maps names to numbers 0, 1, 2, ... in the order of first appearance. */
#ifndef COHORT_NAME_INDEX_H
#define COHORT_NAME_INDEX_H

#include "base/base.h"
#include "data/dataset.h"

#define INDEX_NONE UINT32_MAX

/* Begins as all zeros. */
struct name_index {
    struct names names;
    struct index_slot *slots; /* hash table */
    size_t n_slots;           /* a power of two */
    size_t n_converted;       /* names that were not UTF-8 */
    size_t n_united;          /* of these, names that also occur as UTF-8 */
    uint8_t *spellings;       /* of each name beyond ASCII: see name_index.c */
    size_t n_spellings;
};

/* The number of a name, new or known. Names that are not UTF-8 are read as Latin-1. */
uint32_t name_index_add(struct name_index *index, const char *name, size_t length);

/* Adds all of them, in order. */
void name_index_add_all(struct name_index *index, const struct names *names);

/* The number of a known name, or INDEX_NONE. */
uint32_t name_index_find(const struct name_index *index, const char *name, size_t length);

/* The name as an index stores it, in UTF-8. Caller frees. */
char *name_index_utf8(const char *name, size_t length);

/* Prefetches what a look-up of the name will need. */
void name_index_prefetch(const struct name_index *index, const char *name, size_t length);

void name_index_free(struct name_index *index);

/* Sorts numbers[0..names->n) in natural order of the names: "item 9" before "item 10". */
void name_index_sort(const struct names *names, uint32_t *numbers);

#endif
