/* Ranks read ranges of students: attempts, checked piece by piece against the digests before any
 * byte is used, and names.
 *
 *     pieces         |         |         |         |
 *     this rank           [-----------------)
 *                    read, then the part copied
 *
 * A piece that two ranks share is read entirely by both. */
#include "base/fail.h"
#include "base/h5.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/dataset_internal.h"
#include "data/name_index.h"
#include "data/origin.h"
#include "data/truth.h"
#include <math.h>
#include <string.h>

static void make_room(struct shard *shard)
{
    const struct dataset *dataset = shard->dataset;
    shard->item = NEW_SCRATCH(uint32_t, shard->n_attempts);
    shard->mark = NEW_SCRATCH(uint8_t, shard->n_attempts);
    shard->time = dataset->has_time ? NEW_SCRATCH(int64_t, shard->n_attempts) : NULL;
    shard->covariate = NEW_SCRATCH(double, shard->n_attempts * dataset->covariates.names.n);
}

/* Attempts first .. first + n_attempts; collective where `comm` is not NULL. */
static enum status read_attempts(hid_t file, uint64_t first, struct shard *shard,
                                 const struct comm *comm)
{
    const uint64_t n = shard->n_attempts, n_covariates = shard->dataset->covariates.names.n;
    TRY(h5_read_range(file, "/attempts/item", H5T_NATIVE_UINT32, first, n, shard->item, comm));
    TRY(h5_read_range(file, "/attempts/mark", H5T_NATIVE_UINT8, first, n, shard->mark, comm));
    if (shard->time != NULL)
        TRY(h5_read_range(file, "/attempts/time", H5T_NATIVE_INT64, first, n, shard->time,
                          comm));
    if (n_covariates > 0)
        TRY(h5_read_range(file, "/attempts/covariate", H5T_NATIVE_DOUBLE, first * n_covariates,
                          n * n_covariates, shard->covariate, comm));
    return OK;
}

static struct dataset_rows rows_from(const struct shard *shard, size_t t, size_t n)
{
    return (struct dataset_rows){.n = n,
                                 .item = shard->item + t,
                                 .mark = shard->mark + t,
                                 .time = shard->time != NULL ? shard->time + t : NULL,
                                 .covariate =
                                     shard->covariate + t * shard->dataset->covariates.names.n};
}

/* A piece that lies partly in the range is read entirely, checked, and the part is copied: only
 * checked bytes are used. */
static enum status check_partial(hid_t file, size_t p, uint64_t start, uint64_t end,
                                 uint64_t first, struct shard *shard)
{
    struct shard whole = {.dataset = shard->dataset, .n_attempts = end - start};
    make_room(&whole);
    const struct dataset_rows rows = rows_from(&whole, 0, whole.n_attempts);
    enum status status = read_attempts(file, start, &whole, NULL);
    if (status == OK)
        status = dataset_digest_rows(shard->dataset, p, &rows);
    if (status == OK) {
        const uint64_t from = size_max(first, start);
        const size_t n = size_min(end, first + shard->n_attempts) - from;
        const size_t here = from - first, there = from - start;
        const size_t width = shard->dataset->covariates.names.n;
        memcpy(shard->item + here, whole.item + there, n * sizeof *shard->item);
        memcpy(shard->mark + here, whole.mark + there, n * sizeof *shard->mark);
        if (shard->time != NULL)
            memcpy(shard->time + here, whole.time + there, n * sizeof *shard->time);
        memcpy(shard->covariate + here * width, whole.covariate + there * width,
               n * width * sizeof *shard->covariate);
    }
    shard_free(&whole);
    return status;
}

static enum status check_digests(hid_t file, uint64_t first, struct shard *shard)
{
    const uint64_t n = shard->n_attempts, n_all = shard->dataset->n_attempts;
    if (n == 0 || shard->dataset->attempt_digests == NULL)
        return OK;
    for (size_t p = first / DATASET_PIECE; p <= (first + n - 1) / DATASET_PIECE; p++) {
        const uint64_t start = (uint64_t)p * DATASET_PIECE;
        const uint64_t end = size_min(start + DATASET_PIECE, n_all);
        if (start < first || end > first + n) {
            TRY(check_partial(file, p, start, end, first, shard));
        } else {
            const struct dataset_rows rows = rows_from(shard, start - first, end - start);
            TRY(dataset_digest_rows(shard->dataset, p, &rows));
        }
    }
    return OK;
}

/* Checks covariates, and maps levels to their current numbers. */
static enum status check_levels(uint64_t first, const struct shard *shard)
{
    const struct dataset *dataset = shard->dataset;
    const size_t n_covariates = dataset->covariates.names.n;
    for (size_t k = 0; k < n_covariates; k++) {
        const uint32_t *map = dataset->level_map != NULL ? dataset->level_map[k] : NULL;
        const size_t n = map != NULL ? map[0] : covariates_n_levels(&dataset->covariates, k);
        for (uint64_t t = 0; n == 0 && t < shard->n_attempts; t++)
            if (fabs(shard->covariate[t * n_covariates + k]) > DATASET_MOST)
                return fail(BAD_DATA,
                            "attempt %llu has %g in column %s; expected a number from -1e30 to "
                            "1e30; import it in another unit",
                            (unsigned long long)(first + t),
                            shard->covariate[t * n_covariates + k],
                            names_get(&dataset->covariates.names, k));
        for (uint64_t t = 0; n > 0 && t < shard->n_attempts; t++) {
            double *level = &shard->covariate[t * n_covariates + k];
            if (isnan(*level))
                continue;
            if (!(*level >= 0 && *level < (double)n) || *level != floor(*level))
                return fail(BAD_DATA, "attempt %llu is damaged: level %g of %s",
                            (unsigned long long)(first + t), *level,
                            names_get(&dataset->covariates.names, k));
            if (map != NULL)
                *level = map[1 + (size_t)*level] == INDEX_NONE ? (double)NAN
                                                               : map[1 + (size_t)*level];
        }
    }
    return OK;
}

static enum status check_attempts(uint64_t first, const struct shard *shard)
{
    const uint64_t n = shard->n_attempts;
    const uint32_t *map = shard->dataset->item_map;
    for (uint64_t t = 0; map != NULL && t < n; t++)
        shard->item[t] = shard->item[t] < map[0] ? map[1 + shard->item[t]] : UINT32_MAX;
    for (uint64_t t = 0; t < n; t++)
        if (shard->item[t] >= shard->dataset->n_items + shard->dataset->unseen.items.n ||
            mark_outcome(shard->mark[t]) > UNKNOWN || mark_split(shard->mark[t]) >= N_SPLITS ||
            shard->mark[t] >= MARK_OWN)
            return fail(BAD_DATA, "attempt %llu is damaged: item %u, mark %u",
                        (unsigned long long)(first + t), shard->item[t], shard->mark[t]);
    return check_levels(first, shard);
}

enum status dataset_read(const struct dataset *dataset, size_t first_student, size_t n_students,
                         struct shard *shard)
{
    const struct comm *comm = dataset->comm;
    const uint64_t first = dataset->first[first_student];
    *shard = (struct shard){.dataset = dataset,
                            .first_student = first_student,
                            .n_students = n_students,
                            .n_attempts = dataset->first[first_student + n_students] - first};
    shard->first = NEW(uint64_t, n_students + 1);
    for (size_t s = 0; s <= n_students; s++)
        shard->first[s] = dataset->first[first_student + s] - first;
    make_room(shard);
    hid_t file = -1;
    enum status status =
        comm_agree(comm, dataset_open_with(dataset, &file, comm->mpi, comm->size));
    if (status == OK)
        status = read_attempts(file, first, shard, comm);
    if (status == OK)
        status = comm_agree(comm, check_digests(file, first, shard));
    if (status == OK)
        status = comm_agree(comm, check_attempts(first, shard));
    if (file >= 0)
        h5_let_go(file);
    if (status != OK) {
        shard_free(shard);
        return fail_context(status, "%s", dataset->path);
    }
    return OK;
}

void shard_free(struct shard *shard)
{
    memory_free(shard->first);
    memory_free(shard->item);
    memory_free(shard->mark);
    memory_free(shard->time);
    memory_free(shard->covariate);
    *shard = (struct shard){0};
}

/* Reads the names of students in entire pieces; offsets stay relative to the file. */
static enum status read_pieces(hid_t file, const struct dataset *dataset, size_t first,
                               struct names *names)
{
    TRY(h5_read_range(file, "/students/names_first", H5T_NATIVE_UINT64, first, names->n + 1,
                      names->first, NULL));
    uint64_t n_all = 0;
    const uint64_t start = names->first[0], end = names->first[names->n];
    TRY(h5_length(file, "/students/names", &n_all));
    if (start > end || end > n_all)
        return fail(BAD_DATA, "the names in /students are damaged");
    names->bytes = NEW(char, end - start + 1);
    TRY(h5_read_range(file, "/students/names", H5T_NATIVE_UINT8, start, end - start,
                      names->bytes, NULL));
    if (!names_are_sound(names->bytes, names->first, names->n, end - start))
        return fail(BAD_DATA, "the names in /students are damaged");
    for (size_t s = 0; s < names->n; s += DATASET_PIECE)
        TRY(dataset_digest_names(dataset, (first + s) / DATASET_PIECE, names->first + s,
                                 size_min(DATASET_PIECE, names->n - s),
                                 names->bytes + names->first[s] - start));
    return OK;
}

enum status dataset_read_names(const struct dataset *dataset, size_t first, size_t n,
                               struct names *names)
{
    const size_t start = first / DATASET_PIECE * DATASET_PIECE;
    const size_t end =
        n == 0 ? start
               : size_min(dataset_n_pieces(first + n) * DATASET_PIECE, dataset->n_students);
    *names = (struct names){0};
    struct names pieces = {.n = end - start, .first = NEW(uint64_t, end - start + 1)};
    hid_t file = -1;
    enum status status = dataset_open_with(dataset, &file, MPI_COMM_SELF, 1);
    if (status == OK && n > 0)
        status = read_pieces(file, dataset, start, &pieces);
    if (file >= 0)
        h5_let_go(file);
    if (status == OK && n > 0) {
        const uint64_t *offsets = pieces.first + (first - start);
        const uint64_t n_bytes = offsets[n] - offsets[0];
        names->n = n;
        names->first = NEW(uint64_t, n + 1);
        names->bytes = NEW(char, n_bytes);
        memcpy(names->bytes, pieces.bytes + offsets[0] - pieces.first[0], n_bytes);
        for (size_t i = 0; i <= n; i++)
            names->first[i] = offsets[i] - offsets[0];
    }
    names_free(&pieces);
    return status;
}

size_t dataset_cut(const struct dataset *dataset, size_t w, size_t n_workers)
{
    /* The first student at or after fraction w / n_workers of the attempts. */
    const uint64_t wanted = size_cut(dataset->n_attempts, w, n_workers);
    if (w == n_workers)
        return dataset->n_students;
    size_t low = 0, high = dataset->n_students;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (dataset->first[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum status verify_truth(const struct dataset *dataset, const char **note)
{
    hid_t file = -1;
    bool known = true;
    TRY(dataset_open_again(dataset, &file));
    const enum status status = truth_check(file, &known);
    h5_let_go(file);
    if (!known && note != NULL)
        *note = "without a digest of /truth, which cannot be checked";
    return status;
}

/* Reading checks all digests. */
enum status dataset_verify(const char *path, const char **note)
{
    if (note != NULL)
        *note = NULL;
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct dataset dataset;
    struct shard shard = {0};
    struct names students = {0};
    TRY(dataset_open(&dataset, path, &self));
    struct origin origin = {0};
    enum status status = dataset_read(&dataset, 0, dataset.n_students, &shard);
    if (status == OK)
        status = origin_read(&shard, &origin);
    origin_free(&origin);
    shard_free(&shard);
    if (status == OK) {
        status = dataset_read_names(&dataset, 0, dataset.n_students, &students);
        if (status == OK)
            status = verify_truth(&dataset, note);
        if (status != OK)
            status = fail_context(status, "%s", path);
    }
    names_free(&students);
    dataset_close(&dataset);
    return status;
}
