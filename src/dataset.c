/* The data set file (HDF5, format version 1):
 *
 *     /                  attributes: format, version, withheld, has_time, source, digest
 *     /students/first    uint64 [students + 1]   attempts of student s: first[s] .. first[s+1]
 *     /students/names    names, see below
 *     /students/target   double [students]       optional: what is to be predicted for a whole
 *                                                student (passed, a score); NaN: unknown
 *     /attempts/item     uint16 or uint32        item of each attempt
 *     /attempts/mark     uint8                   outcome, split, shown, step: see dataset.h
 *     /attempts/time     int64                   in the source's unit; only if has_time
 *     /attempts/covariate double                 optional: numbers of every attempt, attempt by
 *                        attempt; /covariates/names; of a factor, numbers of its levels,
 *                        /covariates/K/names; NaN: none
 *     /items/names, /items/group (int32, -1: none), /items/skill_first, /items/skills
 *     /skills/names, /groups/names
 *     /truth/...         double                  what a simulated class was made from
 *
 * Names are an array of bytes, each name closed by a NUL byte, beside their offsets
 * (names_first). Students come in a random order chosen at import, their attempts in time
 * order. So a contiguous range of students is a random sample, and one hyperslab of each array.
 * The digest is XXH3 (128 bits) of the arrays in a fixed order and of nothing else: not of
 * chunking, integer widths or the path. */
#include "dataset.h"
#include "fail.h"
#include "h5.h"
#include "index.h"
#include "memory.h"
#include "store.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static const char format_name[] = "cohort data set";
enum { FORMAT_VERSION = 1 };

static void digest_array(XXH3_state_t *state, const void *values, size_t n_bytes)
{
    const uint64_t length = n_bytes; /* so that no two different contents run together alike */
    XXH3_128bits_update(state, &length, sizeof length);
    if (n_bytes > 0)
        XXH3_128bits_update(state, values, n_bytes);
}

static void digest_of(const struct dataset_content *content, char digest[33])
{
    const struct dataset *head = &content->head;
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        fail_abort(BAD_IO, "out of memory for a digest");
    XXH3_128bits_reset(state);
    digest_array(state, head->first, (head->n_students + 1) * sizeof *head->first);
    digest_array(state, content->item, head->n_attempts * sizeof *content->item);
    digest_array(state, content->mark, head->n_attempts * sizeof *content->mark);
    if (head->has_time)
        digest_array(state, content->time, head->n_attempts * sizeof *content->time);
    digest_array(state, head->item_first, (head->n_items + 1) * sizeof *head->item_first);
    digest_array(state, head->item_skills,
                 head->item_first[head->n_items] * sizeof *head->item_skills);
    digest_array(state, head->item_group, head->n_items * sizeof *head->item_group);
    const struct names *all[] = {&content->students, &head->items, &head->skills,
                                 &head->groups};
    for (size_t a = 0; a < COUNT(all); a++)
        digest_array(state, all[a]->bytes, names_size(all[a]));
    if (head->target != NULL)
        digest_array(state, head->target, head->n_students * sizeof *head->target);
    const struct covariates *covariates = &head->covariates;
    if (covariates->names.n > 0) {
        digest_array(state, content->covariate,
                     head->n_attempts * covariates->names.n * sizeof *content->covariate);
        digest_array(state, covariates->names.bytes, names_size(&covariates->names));
    }
    for (size_t k = 0; k < covariates->names.n; k++)
        if (covariates->levels[k].n > 0)
            digest_array(state, covariates->levels[k].bytes,
                         names_size(&covariates->levels[k]));
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    snprintf(digest, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static enum status write_content(hid_t file, const struct dataset_content *content)
{
    const struct dataset *head = &content->head;
    TRY(h5_write_text(file, "format", format_name));
    TRY(h5_write_integer(file, "version", FORMAT_VERSION));
    TRY(h5_write_integer(file, "withheld", head->withheld));
    TRY(h5_write_integer(file, "has_time", head->has_time));
    TRY(h5_write_text(file, "source", head->source ? head->source : ""));
    TRY(h5_write_text(file, "digest", head->digest));
    static const char *const groups[] = {"/students", "/attempts", "/items", "/skills",
                                         "/groups"};
    for (size_t g = 0; g < COUNT(groups); g++)
        TRY(h5_group(file, groups[g]));

    const uint64_t n_attempts = head->n_attempts, n_items = head->n_items;
    const uint64_t n_students = head->n_students;
    const uint64_t n_first = n_students + 1, n_item_first = n_items + 1;
    const uint64_t n_item_skills = head->item_first[n_items];
    hid_t narrow = n_items <= UINT16_MAX ? H5T_STD_U16LE : H5T_STD_U32LE;
    TRY(h5_write(file, "/students/first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_first,
                 head->first));
    if (head->target != NULL)
        TRY(h5_write(file, "/students/target", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1,
                     &n_students, head->target));
    TRY(h5_write(file, "/attempts/item", narrow, H5T_NATIVE_UINT32, 1, &n_attempts,
                 content->item));
    TRY(h5_write(file, "/attempts/mark", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n_attempts,
                 content->mark));
    if (head->has_time)
        TRY(h5_write(file, "/attempts/time", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n_attempts,
                     content->time));
    TRY(h5_write(file, "/items/skill_first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_item_first,
                 head->item_first));
    TRY(h5_write(file, "/items/skills", H5T_STD_U32LE, H5T_NATIVE_UINT32, 1, &n_item_skills,
                 head->item_skills));
    TRY(h5_write(file, "/items/group", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &n_items,
                 head->item_group));
    TRY(names_write(file, "/students", &content->students));
    TRY(names_write(file, "/items", &head->items));
    TRY(names_write(file, "/skills", &head->skills));
    TRY(names_write(file, "/groups", &head->groups));
    if (head->covariates.names.n > 0) {
        const uint64_t n = n_attempts * head->covariates.names.n;
        TRY(h5_write(file, "/attempts/covariate", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n,
                     content->covariate));
        TRY(covariates_write(file, &head->covariates));
    }
    if (content->n_truths > 0)
        TRY(h5_group(file, "/truth"));
    for (size_t i = 0; i < content->n_truths; i++) {
        const struct truth *truth = &content->truths[i];
        char name[128];
        snprintf(name, sizeof name, "/truth/%s", truth->name);
        TRY(h5_write(file, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, truth->rank, truth->shape,
                     truth->values));
    }
    return OK;
}

enum status dataset_write(struct dataset_content *content, const char *path)
{
    digest_of(content, content->head.digest);
    struct store_draft draft;
    TRY(store_begin(&draft, path));
    hid_t file = h5_create(draft.name);
    enum status status =
        file < 0 ? fail(BAD_IO, "the data set cannot be written there: %s", strerror(errno))
                 : write_content(file, content);
    if (status == OK)
        status = h5_close(file, path);
    else if (file >= 0)
        h5_give_up(file);
    if (status != OK) {
        store_abandon(&draft);
        return fail_context(status, "%s", path);
    }
    return store_commit(&draft, path);
}

static enum status check_head(const struct dataset *head)
{
    for (size_t s = 0; s < head->n_students; s++)
        if (head->first[s + 1] < head->first[s])
            return fail(BAD_DATA, "student %zu ends before it begins", s);
    if (head->first[0] != 0 || head->first[head->n_students] != head->n_attempts)
        return fail(BAD_DATA, "the students do not cover the attempts");
    for (size_t i = 0; i < head->n_items; i++) {
        if (head->item_first[i + 1] < head->item_first[i])
            return fail(BAD_DATA, "item %zu has its skills out of order", i);
        if (head->item_group[i] < -1 || head->item_group[i] >= (int64_t)head->n_groups)
            return fail(BAD_DATA, "item %zu is in a group that is not there", i);
    }
    for (uint64_t j = 0; j < head->item_first[head->n_items]; j++)
        if (head->item_skills[j] >= head->n_skills)
            return fail(BAD_DATA, "an item has a skill that is not there");
    return OK;
}

static enum status read_head(hid_t file, struct dataset *head)
{
    char *format = h5_text(file, "format");
    const bool ours = format != NULL && strcmp(format, format_name) == 0;
    memory_free(format);
    if (!ours)
        return fail(BAD_DATA, "this is not a cohort data set; make one with `cohort import` or "
                              "`cohort simulate`");
    int64_t version = 0, withheld = 0, has_time = 0;
    TRY(h5_integer(file, "version", &version));
    if (version != FORMAT_VERSION)
        return fail(BAD_DATA,
                    "the file has format version %lld, this program reads version %d; "
                    "import the data again",
                    (long long)version, FORMAT_VERSION);
    TRY(h5_integer(file, "withheld", &withheld));
    TRY(h5_integer(file, "has_time", &has_time));
    head->withheld = withheld != 0;
    head->has_time = has_time != 0;
    head->source = h5_text(file, "source");
    char *digest = h5_text(file, "digest");
    snprintf(head->digest, sizeof head->digest, "%s", digest ? digest : "");
    memory_free(digest);

    int rank = 0;
    uint64_t shape[4] = {0};
    TRY(h5_shape(file, "/students/first", &rank, shape));
    if (rank != 1 || shape[0] == 0)
        return fail(BAD_DATA, "the array /students/first is damaged");
    head->n_students = shape[0] - 1;
    TRY(h5_shape(file, "/attempts/item", &rank, shape));
    head->n_attempts = shape[0];
    TRY(names_read(file, "/items", &head->items));
    TRY(names_read(file, "/skills", &head->skills));
    TRY(names_read(file, "/groups", &head->groups));
    if (h5_exists(file, "/attempts/covariate")) {
        TRY(covariates_read(file, &head->covariates));
        uint64_t n_covariates[4] = {0};
        TRY(h5_shape(file, "/attempts/covariate", &rank, n_covariates));
        if (n_covariates[0] != head->n_attempts * head->covariates.names.n)
            return fail(BAD_DATA, "the array /attempts/covariate is damaged");
    }
    head->n_items = head->items.n;
    head->n_skills = head->skills.n;
    head->n_groups = head->groups.n;
    TRY(h5_shape(file, "/items/skills", &rank, shape));
    head->first = NEW(uint64_t, head->n_students + 1);
    head->item_first = NEW(uint64_t, head->n_items + 1);
    head->item_skills = NEW(uint32_t, shape[0]);
    head->item_group = NEW(int32_t, head->n_items);
    TRY(h5_read(file, "/students/first", H5T_NATIVE_UINT64, head->n_students + 1, head->first));
    if (h5_exists(file, "/students/target")) {
        head->target = NEW(double, head->n_students);
        TRY(h5_read(file, "/students/target", H5T_NATIVE_DOUBLE, head->n_students,
                    head->target));
    }
    TRY(h5_read(file, "/items/skill_first", H5T_NATIVE_UINT64, head->n_items + 1,
                head->item_first));
    TRY(h5_read(file, "/items/group", H5T_NATIVE_INT32, head->n_items, head->item_group));
    if (head->item_first[head->n_items] != shape[0])
        return fail(BAD_DATA, "the array /items/skills is damaged");
    TRY(h5_read(file, "/items/skills", H5T_NATIVE_UINT32, shape[0], head->item_skills));
    return check_head(head);
}

static enum status check_file(const char *path)
{
    if (access(path, R_OK) != 0)
        return fail(errno == ENOENT ? BAD_USER : BAD_IO, "%s: the data set cannot be read: %s",
                    path, strerror(errno));
    return OK;
}

static enum status open_file(const char *path, hid_t *file, MPI_Comm comm, int n_ranks)
{
    *file = h5_open(path, comm, n_ranks);
    if (*file < 0)
        return fail(BAD_DATA,
                    "%s: this is not an HDF5 file, or it is damaged; expected a data set "
                    "from `cohort import` or `cohort simulate`",
                    path);
    return OK;
}

/* The same file once more, if it is still the one that the head was read from. */
static enum status open_again(const struct dataset *dataset, hid_t *file, MPI_Comm comm,
                              int n_ranks)
{
    TRY(open_file(dataset->path, file, comm, n_ranks));
    char *digest = h5_text(*file, "digest");
    const bool same = strcmp(digest != NULL ? digest : "", dataset->digest) == 0;
    memory_free(digest);
    return same ? OK
                : fail(BAD_IO, "it was replaced while it was being read; run the same command "
                               "again");
}

enum status dataset_open(struct dataset *dataset, const char *path, const struct comm *comm)
{
    *dataset = (struct dataset){.path = memory_text("%s", path), .comm = comm};
    hid_t file = -1;
    enum status status = comm_agree(comm, check_file(path));
    if (status == OK) {
        status = open_file(path, &file, MPI_COMM_SELF, 1);
        if (status == OK)
            status = read_head(file, dataset);
        if (status != OK && file >= 0)
            status = fail_context(status, "%s", path);
        if (file >= 0)
            H5Fclose(file);
        status = comm_agree(comm, status);
    }
    if (status == OK)
        status = comm_agree_on(comm, dataset->digest, path);
    if (status != OK)
        dataset_close(dataset);
    return status;
}

void dataset_close(struct dataset *dataset)
{
    memory_free(dataset->path);
    memory_free(dataset->source);
    memory_free(dataset->first);
    memory_free(dataset->item_first);
    memory_free(dataset->item_skills);
    memory_free(dataset->item_group);
    memory_free(dataset->item_map);
    memory_free(dataset->target);
    names_free(&dataset->items);
    names_free(&dataset->skills);
    names_free(&dataset->groups);
    for (size_t k = 0; dataset->level_map != NULL && k < dataset->covariates.names.n; k++)
        memory_free(dataset->level_map[k]);
    memory_free(dataset->level_map);
    covariates_free(&dataset->covariates);
    *dataset = (struct dataset){0};
}

/* Collective. A damaged chunk fails on the rank that reads it, so all agree after each array.
 */
static enum status read_attempts(hid_t file, uint64_t first, struct shard *shard)
{
    const struct comm *comm = shard->dataset->comm;
    const bool together = comm->size > 1;
    const uint64_t n = shard->n_attempts;
    TRY(comm_agree(comm, h5_read_range(file, "/attempts/item", H5T_NATIVE_UINT32, first, n,
                                       shard->item, together)));
    TRY(comm_agree(comm, h5_read_range(file, "/attempts/mark", H5T_NATIVE_UINT8, first, n,
                                       shard->mark, together)));
    if (shard->time != NULL)
        TRY(comm_agree(comm, h5_read_range(file, "/attempts/time", H5T_NATIVE_INT64, first, n,
                                           shard->time, together)));
    const uint64_t n_covariates = shard->dataset->covariates.names.n;
    if (n_covariates > 0)
        TRY(comm_agree(comm, h5_read_range(file, "/attempts/covariate", H5T_NATIVE_DOUBLE,
                                           first * n_covariates, n * n_covariates,
                                           shard->covariate, together)));
    return OK;
}

/* Levels of attempts, numbered as the data set does now. */
static enum status check_levels(uint64_t first, const struct shard *shard)
{
    const struct dataset *dataset = shard->dataset;
    const size_t n_covariates = dataset->covariates.names.n;
    for (size_t k = 0; k < n_covariates; k++) {
        const uint32_t *map = dataset->level_map != NULL ? dataset->level_map[k] : NULL;
        const size_t n = map != NULL ? map[0] : covariates_n_levels(&dataset->covariates, k);
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
        if (shard->item[t] >= shard->dataset->n_items ||
            mark_outcome(shard->mark[t]) > UNKNOWN || mark_split(shard->mark[t]) >= N_SPLITS)
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
    shard->item = NEW_SCRATCH(uint32_t, shard->n_attempts);
    shard->mark = NEW_SCRATCH(uint8_t, shard->n_attempts);
    shard->time = dataset->has_time ? NEW_SCRATCH(int64_t, shard->n_attempts) : NULL;
    shard->covariate = NEW_SCRATCH(double, shard->n_attempts * dataset->covariates.names.n);
    hid_t file = -1;
    enum status status = comm_agree(comm, open_again(dataset, &file, comm->mpi, comm->size));
    if (status == OK)
        status = read_attempts(file, first, shard);
    if (status == OK)
        status = comm_agree(comm, check_attempts(first, shard));
    if (file >= 0)
        H5Fclose(file);
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

enum status dataset_read_names(const struct dataset *dataset, size_t first, size_t n,
                               struct names *names)
{
    *names = (struct names){.n = n, .first = NEW(uint64_t, n + 1)};
    hid_t file = -1;
    enum status status = open_again(dataset, &file, MPI_COMM_SELF, 1);
    if (status == OK)
        status = h5_read_range(file, "/students/names_first", H5T_NATIVE_UINT64, first, n + 1,
                               names->first, false);
    if (status == OK) {
        const uint64_t start = names->first[0], n_bytes = names->first[n] - start;
        for (size_t i = 0; i <= n; i++)
            names->first[i] -= start;
        names->bytes = NEW(char, n_bytes + 1);
        status = h5_read_range(file, "/students/names", H5T_NATIVE_UINT8, start, n_bytes,
                               names->bytes, false);
    }
    if (file >= 0)
        H5Fclose(file);
    if (status != OK)
        names_free(names);
    return status;
}

size_t dataset_cut(const struct dataset *dataset, size_t w, size_t n_workers)
{
    /* The first student at or behind the w-th part of the attempts. */
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

enum status dataset_verify(const char *path)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct dataset_content content = {0};
    TRY(dataset_open(&content.head, path, &self));
    struct shard shard = {0};
    enum status status = dataset_read(&content.head, 0, content.head.n_students, &shard);
    if (status == OK)
        status =
            dataset_read_names(&content.head, 0, content.head.n_students, &content.students);
    if (status == OK) {
        char digest[33];
        content.item = shard.item;
        content.mark = shard.mark;
        content.time = shard.time;
        content.covariate = shard.covariate;
        digest_of(&content, digest);
        if (strcmp(digest, content.head.digest) != 0)
            status = fail(BAD_DATA,
                          "%s: the content has digest %s but %s is stored: the file was "
                          "damaged or changed; import it again",
                          path, digest, content.head.digest);
    }
    names_free(&content.students);
    shard_free(&shard);
    dataset_close(&content.head);
    return status;
}
