/* Shared by dataset.c, dataset_read.c, dataset_digest.c, dataset_write.c, origin.c and
 * truth.c. */
#ifndef COHORT_DATASET_INTERNAL_H
#define COHORT_DATASET_INTERNAL_H

#include "base/h5.h"
#include "data/dataset.h"
#include <xxhash.h>

/* Version 1 has no digests of pieces; see dataset_digest.c. */
enum { DATASET_VERSION = 2, DATASET_PIECE = 1 << 16 };
extern const char dataset_format[];

static inline size_t dataset_n_pieces(uint64_t n)
{
    return (size_t)((n + DATASET_PIECE - 1) / DATASET_PIECE);
}

/* Opens the file of a data set again, on these ranks or on this rank alone, and checks that it is
 * still the same. */
CHECKED enum status dataset_open_with(const struct dataset *dataset, hid_t *file, MPI_Comm comm,
                                      int n_ranks);
CHECKED enum status dataset_open_again(const struct dataset *dataset, hid_t *file);

/* Writes content->origin, if there is one; see origin.c. */
CHECKED enum status origin_write(hid_t file, const struct dataset_content *content);

/* Writes content->truths, if there are any; see truth.c. */
CHECKED enum status truth_write(hid_t file, const struct dataset_content *content);

/* A view of consecutive attempts. */
struct dataset_rows {
    size_t n;
    const uint32_t *item;
    const uint8_t *mark;
    const int64_t *time;
    const double *covariate;
};

/* A digest of what is added between the two, as text; frees the state. */
XXH3_state_t *dataset_digest_begin(void);
void dataset_digest_end(XXH3_state_t *state, char text[33]);

/* Computes the digests of a content before it is written: of its pieces, and of all. */
void dataset_digest_make(struct dataset_content *content);
void dataset_digest_free(struct dataset *head);
CHECKED enum status dataset_digest_write(hid_t file, const struct dataset *head);

/* Reads the digests of pieces and compares them and the head with the digest of all. A file of
 * version 1 is read entirely, by the one rank that passes `first`. */
CHECKED enum status dataset_digest_check(hid_t file, struct dataset *head, int64_t version,
                                         bool first);

/* Checks piece p: its attempts, or its students' names with their offsets in the file. Always
 * OK for a file of version 1, which was checked when it was opened. */
CHECKED enum status dataset_digest_rows(const struct dataset *head, size_t p,
                                        const struct dataset_rows *rows);
CHECKED enum status dataset_digest_names(const struct dataset *head, size_t p,
                                         const uint64_t *first, size_t n, const char *bytes);

#endif
