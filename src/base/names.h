/* Lists of names, in memory and in HDF5 files. */
#ifndef COHORT_NAMES_H
#define COHORT_NAMES_H

#include "base/base.h"
#include "base/h5.h"

/* Names end to end, each ended by a NUL byte: name i is bytes + first[i]. */
struct names {
    size_t n;
    char *bytes;
    uint64_t *first; /* n + 1 */
};

static inline const char *names_get(const struct names *names, size_t i)
{
    return names->bytes + names->first[i];
}
static inline size_t names_size(const struct names *names) /* in bytes */
{
    return names->n == 0 ? 0 : names->first[names->n];
}
void names_add(struct names *names, const char *name, size_t length); /* into a zeroed struct */
void names_copy(struct names *names, const struct names *from);       /* likewise: appends */
void names_free(struct names *names);
bool names_equal(const struct names *a, const struct names *b);

/* Whether n names from a file, whose offsets may begin anywhere, fill their bytes exactly, each
 * ended by a NUL byte. */
bool names_are_sound(const char *bytes, const uint64_t *first, size_t n, uint64_t n_bytes);

/* GROUP/names (bytes) and GROUP/names_first (their offsets). Creates a missing group. */
CHECKED enum status names_write(hid_t file, const char *group, const struct names *names);
/* GROUP/names as strings that any reader of HDF5 knows. */
CHECKED enum status names_write_strings(hid_t file, const char *group,
                                        const struct names *names);
CHECKED enum status names_read(hid_t file, const char *group, struct names *names);

#endif
