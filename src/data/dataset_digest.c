/* Checks that a data set is unchanged since it was written. Attempts, and students with their
 * names, are split into pieces of 64 Ki, and each piece has a digest (XXH3, 128 bits):
 *
 *     /digests/attempts   uint64 [2 x pieces]   of items, marks, times and covariates
 *     /digests/students   uint64 [2 x pieces]   of names and their offsets
 *
 *     digest (attribute) = XXH3(all piece digests, all other arrays, their attributes)
 *
 * A rank checks the pieces it reads, at memory speed; every rank checks `digest` when it opens
 * the file. So no single part can change unnoticed, and two data sets with the same digest are
 * the same. Digests cover numbers as they are in memory, not chunks, integer widths or paths.
 *
 * Models see neither the rows of the source (origin.c) nor the truth (truth.c). Those have
 * digests of their own, which are checked when they are read. No digest covers the attribute
 * `source`, a note for people, and what other programs add to the file, which nobody reads.
 *
 * Files of version 1 have one digest of everything in sequence, so one rank reads the entire
 * file when it is opened. It does not cover the attribute `withheld`, which must therefore agree
 * with the marks: held-out outcomes are shown to later attempts unless they are withheld. Where
 * nothing is held out, either value means the same. */
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset_internal.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

XXH3_state_t *dataset_digest_begin(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        fail_abort(BAD_IO, "out of memory for a digest");
    XXH3_128bits_reset(state);
    return state;
}

static void end(XXH3_state_t *state, uint64_t digest[2])
{
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    digest[0] = hash.high64;
    digest[1] = hash.low64;
}

void dataset_digest_end(XXH3_state_t *state, char text[33])
{
    uint64_t digest[2];
    end(state, digest);
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
}

static void add_length(XXH3_state_t *state, uint64_t n_bytes)
{
    XXH3_128bits_update(state, &n_bytes, sizeof n_bytes);
}

static void add_array(XXH3_state_t *state, const void *values, size_t n_bytes)
{
    add_length(state, n_bytes); /* so that arrays cannot run into each other */
    if (n_bytes > 0)
        XXH3_128bits_update(state, values, n_bytes);
}

static void add_names(XXH3_state_t *state, const struct names *names)
{
    add_array(state, names->bytes, names_size(names));
    add_array(state, names->first, names->n > 0 ? (names->n + 1) * sizeof *names->first : 0);
}

static void add_items(XXH3_state_t *state, const struct dataset *head)
{
    const size_t n = head->n_items;
    add_array(state, head->item_first, (n + 1) * sizeof *head->item_first);
    add_array(state, head->item_skills, head->item_first[n] * sizeof *head->item_skills);
    add_array(state, head->item_group, n * sizeof *head->item_group);
}

static void of_all(const struct dataset *head, char digest[33])
{
    XXH3_state_t *state = dataset_digest_begin();
    const uint64_t facts[] = {DATASET_VERSION,     DATASET_PIECE,    head->withheld,
                              head->has_time,      head->n_students, head->n_attempts,
                              head->target != NULL};
    add_array(state, facts, sizeof facts);
    add_array(state, head->first, (head->n_students + 1) * sizeof *head->first);
    if (head->target != NULL)
        add_array(state, head->target, head->n_students * sizeof *head->target);
    add_items(state, head);
    add_names(state, &head->items);
    add_names(state, &head->skills);
    add_names(state, &head->groups);
    add_names(state, &head->covariates.names);
    for (size_t k = 0; k < head->covariates.names.n; k++)
        add_names(state, &head->covariates.levels[k]);
    add_array(state, head->attempt_digests,
              2 * dataset_n_pieces(head->n_attempts) * sizeof(uint64_t));
    add_array(state, head->student_digests,
              2 * dataset_n_pieces(head->n_students) * sizeof(uint64_t));
    dataset_digest_end(state, digest);
}

static void of_rows(const struct dataset *head, const struct dataset_rows *rows,
                    uint64_t digest[2])
{
    const size_t n = rows->n, n_covariates = head->covariates.names.n;
    XXH3_state_t *state = dataset_digest_begin();
    add_array(state, rows->item, n * sizeof *rows->item);
    add_array(state, rows->mark, n * sizeof *rows->mark);
    if (head->has_time)
        add_array(state, rows->time, n * sizeof *rows->time);
    add_array(state, rows->covariate, n * n_covariates * sizeof *rows->covariate);
    end(state, digest);
}

/* Of n names, with their offsets in the file. */
static void of_names(const uint64_t *first, size_t n, const char *bytes, uint64_t digest[2])
{
    XXH3_state_t *state = dataset_digest_begin();
    add_array(state, first, (n + 1) * sizeof *first);
    add_array(state, bytes, first[n] - first[0]);
    end(state, digest);
}

void dataset_digest_make(struct dataset_content *content)
{
    struct dataset *head = &content->head;
    const struct names *students = &content->students;
    const size_t n_covariates = head->covariates.names.n;
    dataset_digest_free(head);
    head->attempt_digests = NEW(uint64_t, 2 * dataset_n_pieces(head->n_attempts));
    head->student_digests = NEW(uint64_t, 2 * dataset_n_pieces(head->n_students));
    for (size_t p = 0; p < dataset_n_pieces(head->n_attempts); p++) {
        const size_t t = p * DATASET_PIECE;
        const struct dataset_rows rows = {
            .n = size_min(DATASET_PIECE, head->n_attempts - t),
            .item = content->item + t,
            .mark = content->mark + t,
            .time = head->has_time ? content->time + t : NULL,
            .covariate = n_covariates > 0 ? content->covariate + t * n_covariates : NULL};
        of_rows(head, &rows, head->attempt_digests + 2 * p);
    }
    for (size_t p = 0; p < dataset_n_pieces(head->n_students); p++) {
        const size_t s = p * DATASET_PIECE;
        of_names(students->first + s, size_min(DATASET_PIECE, head->n_students - s),
                 names_get(students, s), head->student_digests + 2 * p);
    }
    of_all(head, head->digest);
}

void dataset_digest_free(struct dataset *head)
{
    memory_free(head->attempt_digests);
    memory_free(head->student_digests);
    head->attempt_digests = head->student_digests = NULL;
}

enum status dataset_digest_write(hid_t file, const struct dataset *head)
{
    const uint64_t n_attempts = 2 * dataset_n_pieces(head->n_attempts),
                   n_students = 2 * dataset_n_pieces(head->n_students);
    TRY(h5_group(file, "/digests"));
    TRY(h5_write(file, "/digests/attempts", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_attempts,
                 head->attempt_digests));
    return h5_write(file, "/digests/students", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_students,
                    head->student_digests);
}

/* Adds an array of the file, block by block to save memory. */
static enum status add_stored(XXH3_state_t *state, hid_t file, const char *name, hid_t type)
{
    enum { BLOCK = 1 << 18 };
    const size_t size = H5Tget_size(type);
    uint64_t n = 0;
    TRY(h5_length(file, name, &n));
    add_length(state, n * size);
    char *block = memory_scratch(size_min(BLOCK, n), size);
    enum status status = OK;
    for (uint64_t first = 0; status == OK && first < n; first += BLOCK) {
        const size_t n_block = size_min(BLOCK, n - first);
        status = h5_read_range(file, name, type, first, n_block, block, NULL);
        if (status == OK)
            XXH3_128bits_update(state, block, n_block * size);
    }
    memory_free(block);
    return status;
}

static enum status add_old(XXH3_state_t *state, hid_t file, const struct dataset *head)
{
    add_array(state, head->first, (head->n_students + 1) * sizeof *head->first);
    TRY(add_stored(state, file, "/attempts/item", H5T_NATIVE_UINT32));
    TRY(add_stored(state, file, "/attempts/mark", H5T_NATIVE_UINT8));
    if (head->has_time)
        TRY(add_stored(state, file, "/attempts/time", H5T_NATIVE_INT64));
    add_items(state, head);
    TRY(add_stored(state, file, "/students/names", H5T_NATIVE_UINT8));
    const struct names *all[] = {&head->items, &head->skills, &head->groups};
    for (size_t a = 0; a < COUNT(all); a++)
        add_array(state, all[a]->bytes, names_size(all[a]));
    if (head->target != NULL)
        add_array(state, head->target, head->n_students * sizeof *head->target);
    const struct covariates *covariates = &head->covariates;
    if (covariates->names.n > 0) {
        TRY(add_stored(state, file, "/attempts/covariate", H5T_NATIVE_DOUBLE));
        add_array(state, covariates->names.bytes, names_size(&covariates->names));
    }
    for (size_t k = 0; k < covariates->names.n; k++)
        if (covariates->levels[k].n > 0)
            add_array(state, covariates->levels[k].bytes, names_size(&covariates->levels[k]));
    return OK;
}

/* Whether the marks of held-out outcomes contradict `withheld`. */
static enum status check_withheld(hid_t file, const struct dataset *head)
{
    enum { BLOCK = 1 << 18 };
    uint8_t *mark = NEW_SCRATCH(uint8_t, size_min(BLOCK, head->n_attempts));
    uint64_t n_shown = 0, n_hidden = 0;
    enum status status = OK;
    for (uint64_t first = 0; status == OK && first < head->n_attempts; first += BLOCK) {
        const size_t n = size_min(BLOCK, head->n_attempts - first);
        status = h5_read_range(file, "/attempts/mark", H5T_NATIVE_UINT8, first, n, mark, NULL);
        for (size_t t = 0; status == OK && t < n; t++)
            if (mark_split(mark[t]) != TRAIN && mark_outcome(mark[t]) != UNKNOWN) {
                n_shown += mark_is_shown(mark[t]);
                n_hidden += !mark_is_shown(mark[t]);
            }
    }
    memory_free(mark);
    if (status == OK && n_shown + n_hidden > 0 && (head->withheld ? n_hidden : n_shown) == 0)
        status = fail(BAD_DATA, "the attribute withheld contradicts the marks of the attempts: "
                                "the file is damaged or was changed; import it again");
    return status;
}

static enum status of_old(hid_t file, const struct dataset *head, char digest[33])
{
    XXH3_state_t *state = dataset_digest_begin();
    enum status status = add_old(state, file, head);
    dataset_digest_end(state, digest);
    return status;
}

enum status dataset_digest_check(hid_t file, struct dataset *head, int64_t version, bool first)
{
    char digest[33] = "";
    if (version == 1) {
        if (!first)
            return OK;
        TRY(of_old(file, head, digest));
        TRY(check_withheld(file, head));
    } else {
        const size_t n_attempts = 2 * dataset_n_pieces(head->n_attempts),
                     n_students = 2 * dataset_n_pieces(head->n_students);
        head->attempt_digests = NEW(uint64_t, n_attempts);
        head->student_digests = NEW(uint64_t, n_students);
        TRY(h5_read(file, "/digests/attempts", H5T_NATIVE_UINT64, n_attempts,
                    head->attempt_digests));
        TRY(h5_read(file, "/digests/students", H5T_NATIVE_UINT64, n_students,
                    head->student_digests));
        of_all(head, digest);
    }
    return strcmp(digest, head->digest) == 0
               ? OK
               : fail(BAD_DATA,
                      "the content has digest %s, but %s is stored: the file is damaged or was "
                      "changed; import it again",
                      digest, head->digest[0] != '\0' ? head->digest : "none");
}

static enum status compare(const uint64_t found[2], const uint64_t *stored, const char *what,
                           size_t p, uint64_t n)
{
    const uint64_t first = (uint64_t)p * DATASET_PIECE;
    if (found[0] == stored[2 * p] && found[1] == stored[2 * p + 1])
        return OK;
    return fail(BAD_DATA,
                "%s %llu to %llu do not match their stored digest: the file is damaged or was "
                "changed; import it again",
                what, (unsigned long long)first, (unsigned long long)(first + n - 1));
}

enum status dataset_digest_rows(const struct dataset *head, size_t p,
                                const struct dataset_rows *rows)
{
    if (head->attempt_digests == NULL)
        return OK;
    uint64_t digest[2];
    of_rows(head, rows, digest);
    return compare(digest, head->attempt_digests, "attempts", p, rows->n);
}

enum status dataset_digest_names(const struct dataset *head, size_t p, const uint64_t *first,
                                 size_t n, const char *bytes)
{
    if (head->student_digests == NULL)
        return OK;
    uint64_t digest[2];
    of_names(first, n, bytes, digest);
    return compare(digest, head->student_digests, "names of students", p, n);
}
