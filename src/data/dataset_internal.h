/* What dataset.c, dataset_digest.c and dataset_write.c share. */
#ifndef COHORT_DATASET_INTERNAL_H
#define COHORT_DATASET_INTERNAL_H

#include "base/h5.h"
#include "data/dataset.h"

/* Version 1 had no digests of pieces; see dataset_digest.c. */
enum { DATASET_VERSION = 2, DATASET_PIECE = 1 << 16 };
extern const char dataset_format[];

static inline size_t dataset_n_pieces(uint64_t n)
{
    return (size_t)((n + DATASET_PIECE - 1) / DATASET_PIECE);
}

/* Attempts one after the other, wherever they are. */
struct dataset_rows {
    size_t n;
    const uint32_t *item;
    const uint8_t *mark;
    const int64_t *time;
    const double *covariate;
};

/* Fills in the digests of a content that is to be written: of its pieces, and of all. */
void dataset_digest_make(struct dataset_content *content);
void dataset_digest_free(struct dataset *head);
CHECKED enum status dataset_digest_write(hid_t file, const struct dataset *head);

/* Reads the digests of pieces and compares them and what the head holds with the digest of all.
 * An old file is read to its end by whoever is `first`, one rank for all. */
CHECKED enum status dataset_digest_check(hid_t file, struct dataset *head, int64_t version,
                                         bool first);

/* Whether piece p is what was written: its attempts; or its students' names, with their offsets
 * as in the file. Of an old file they are, since it was read to its end. */
CHECKED enum status dataset_digest_rows(const struct dataset *head, size_t p,
                                        const struct dataset_rows *rows);
CHECKED enum status dataset_digest_names(const struct dataset *head, size_t p,
                                         const uint64_t *first, size_t n, const char *bytes);

#endif
