/* The data set file (HDF5, format version 2):
 *
 *     /                    attributes: format, version, withheld, has_time, source (a note for
 *                          people), digest
 *     /students/first      uint64 [students + 1]   student s: attempts first[s] .. first[s+1]
 *     /students/names      names, see below
 *     /students/target     double [students]       optional: the target of a student (passed,
 *                                                  a score); NaN: unknown
 *     /attempts/item       uint16 or uint32        item of each attempt
 *     /attempts/mark       uint8                   outcome, split, shown, step: see dataset.h
 *     /attempts/time       int64                   in the source's unit; only if has_time
 *     /attempts/covariate  double                  optional: [attempts x covariates]; for a
 *                                                  factor the number of the level; NaN: none
 *     /covariates/names    names                   of the covariates
 *     /covariates/K/names  names                   of the levels, if covariate K is a factor
 *     /items/names         names
 *     /items/group         int32 [items]           -1: none
 *     /items/skill_first   uint64 [items + 1]      item i: skills first[i] .. first[i+1]
 *     /items/skills        uint32
 *     /skills/names        names
 *     /groups/names        names
 *     /digests/...         uint64                  of pieces: see dataset_digest.c
 *     /origin/...                                  rows and files of the source: see origin.c
 *     /truth/...           double                  true parameters of a simulated class: see
 *                                                  truth.c
 *
 * Names are an array of bytes, each name ended by a NUL byte, and an array of their offsets
 * (names_first). Students are in a random order chosen at import, their attempts in time order.
 * So a contiguous range of students is a random sample, and one hyperslab of each array.
 *
 * A file is not trusted: lengths, offsets, numbers of items and skills, and digests are checked
 * before they are used. Version 1 is read too; it has no digests of pieces. */
#include "data/dataset.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "data/dataset_internal.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status check_head(const struct dataset *head)
{
    for (size_t s = 0; s < head->n_students; s++)
        if (head->first[s + 1] < head->first[s])
            return fail(BAD_DATA,
                        "/students/first decreases at student %zu: the file is damaged or was "
                        "changed; import it again",
                        s);
    if (head->first[0] != 0 || head->first[head->n_students] != head->n_attempts)
        return fail(BAD_DATA, "/students/first does not match the number of attempts: the file "
                              "is damaged or was changed; import it again");
    for (size_t s = 0; head->target != NULL && s < head->n_students; s++)
        if (fabs(head->target[s]) > DATASET_MOST)
            return fail(BAD_DATA,
                        "the target %g of student %zu is larger than %g; import it again",
                        head->target[s], s, DATASET_MOST);
    for (size_t i = 0; i < head->n_items; i++) {
        if (head->item_first[0] != 0 || head->item_first[i + 1] < head->item_first[i])
            return fail(BAD_DATA,
                        "/items/skill_first is wrong at item %zu: the file is damaged or was "
                        "changed; import it again",
                        i);
        if (head->item_group[i] < -1 || head->item_group[i] >= (int64_t)head->n_groups)
            return fail(BAD_DATA,
                        "item %zu is in a group that does not exist: the file is damaged or "
                        "was changed; import it again",
                        i);
    }
    for (uint64_t j = 0; j < head->item_first[head->n_items]; j++)
        if (head->item_skills[j] >= head->n_skills)
            return fail(BAD_DATA, "an item has a skill that does not exist: the file is "
                                  "damaged or was changed; import it again");
    return OK;
}

static enum status expect_length(hid_t file, const char *name, uint64_t n, uint64_t width)
{
    uint64_t n_stored = 0;
    TRY(h5_length(file, name, &n_stored));
    if (width > 0 ? n_stored / width == n && n_stored % width == 0 : n_stored == 0)
        return OK;
    return fail(BAD_DATA,
                "the array %s has %llu numbers, which does not match the other arrays: the "
                "file is damaged or was changed; import it again",
                name, (unsigned long long)n_stored);
}

/* The numbers of students and attempts, which all arrays must match. */
static enum status read_lengths(hid_t file, struct dataset *head)
{
    uint64_t n_first = 0, n_bytes = 0, end = 0;
    TRY(h5_length(file, "/students/first", &n_first));
    if (n_first == 0)
        return fail(BAD_DATA, "the array /students/first is damaged");
    head->n_students = n_first - 1;
    TRY(h5_length(file, "/attempts/item", &head->n_attempts));
    TRY(expect_length(file, "/attempts/mark", head->n_attempts, 1));
    if (head->has_time)
        TRY(expect_length(file, "/attempts/time", head->n_attempts, 1));
    if (h5_exists(file, "/attempts/covariate")) {
        TRY(covariates_read(file, &head->covariates));
        TRY(expect_length(file, "/attempts/covariate", head->n_attempts,
                          head->covariates.names.n));
    }
    TRY(h5_length(file, "/students/names", &n_bytes));
    TRY(expect_length(file, "/students/names_first", n_first, 1));
    TRY(h5_read_range(file, "/students/names_first", H5T_NATIVE_UINT64, n_first - 1, 1, &end,
                      NULL));
    return end == n_bytes ? OK : fail(BAD_DATA, "the names in /students are damaged");
}

static enum status read_tables(hid_t file, struct dataset *head)
{
    uint64_t n_skills = 0;
    TRY(h5_length(file, "/items/skills", &n_skills));
    head->first = NEW(uint64_t, head->n_students + 1);
    head->item_first = NEW(uint64_t, head->n_items + 1);
    head->item_skills = NEW(uint32_t, n_skills);
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
    if (head->item_first[head->n_items] != n_skills)
        return fail(BAD_DATA, "the array /items/skills is damaged");
    return h5_read(file, "/items/skills", H5T_NATIVE_UINT32, n_skills, head->item_skills);
}

static enum status read_head(hid_t file, struct dataset *head)
{
    char *format = h5_text(file, "format");
    const bool ours = format != NULL && strcmp(format, dataset_format) == 0;
    enum status status = OK;
    if (!ours)
        status =
            fail(BAD_DATA,
                 "this is not a cohort data set%s%.40s; create one with `cohort import` or "
                 "`cohort simulate`",
                 format != NULL ? " but holds a " : "", format != NULL ? format : "");
    memory_free(format);
    TRY(status);
    int64_t version = 0, withheld = 0, has_time = 0;
    TRY(h5_integer(file, "version", &version));
    if (version < 1 || version > DATASET_VERSION)
        return fail(BAD_DATA,
                    "the file has format version %lld, but this program reads versions 1 to "
                    "%d; import the data again",
                    (long long)version, DATASET_VERSION);
    TRY(h5_integer(file, "withheld", &withheld));
    TRY(h5_integer(file, "has_time", &has_time));
    head->withheld = withheld != 0;
    head->has_time = has_time != 0;
    head->source = h5_text(file, "source");
    char *digest = h5_text(file, "digest");
    snprintf(head->digest, sizeof head->digest, "%s", digest ? digest : "");
    memory_free(digest);
    TRY(names_read(file, "/items", &head->items));
    TRY(names_read(file, "/skills", &head->skills));
    TRY(names_read(file, "/groups", &head->groups));
    head->n_items = head->items.n;
    head->n_skills = head->skills.n;
    head->n_groups = head->groups.n;
    TRY(read_lengths(file, head));
    TRY(read_tables(file, head));
    TRY(check_head(head));
    return dataset_digest_check(file, head, version, head->comm->rank == 0);
}

/* Opening a pipe would wait for a writer. */
static enum status check_file(const char *path)
{
    struct stat info;
    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        return fail(errno == ENOENT ? BAD_USER : BAD_IO, "cannot open the data set %s: %s",
                    path, strerror(errno));
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) /* HDF5 rejects directories */
        return fail(BAD_USER,
                    "%s: this is a device or a pipe; expected the plain file of a data set",
                    path);
    return OK;
}

/* Text, or text that is compressed. */
static bool looks_like_answers(const char *path)
{
    char bytes[256];
    const size_t n = file_peek(path, bytes, sizeof bytes), length = strlen(path);
    if (n > 1 && bytes[0] == '\x1f' && bytes[1] == '\x8b')
        return length > 3 && strcmp(path + length - 3, ".gz") == 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] < ' ' && strchr("\t\r\n", bytes[i]) == NULL)
            return false;
    const bool is_settings = length > 4 && strcmp(path + length - 4, ".ini") == 0;
    return n > 0 && memchr(bytes, '\0', n) == NULL && !is_settings;
}

/* What a file that HDF5 cannot open is. */
static const char *what_is(const char *path)
{
    char byte = 0;
    return file_is_directory(path) ? "this is a directory; expected the file of a data set"
           : file_is_plain(path) && file_peek(path, &byte, 1) == 0
               ? "this file is empty or cannot be read; expected a data set"
               : "this is not an HDF5 file, or it is damaged; expected a data set";
}

static enum status open_file(const char *path, hid_t *file)
{
    *file = h5_open(path, MPI_COMM_SELF, 1);
    if (*file < 0 && looks_like_answers(path)) {
        char *word = shell_quote_text("%s", path);
        const enum status status =
            fail(BAD_DATA,
                 "%s: this is not a data set but a file of text; import it first, as in "
                 "`cohort import csv %s -o DATA.h5`, and use DATA.h5",
                 path, word);
        memory_free(word);
        return status;
    }
    if (*file < 0)
        return fail(BAD_DATA, "%s: %s from `cohort import` or `cohort simulate`", path,
                    what_is(path));
    return OK;
}

/* Collective: opens a file by MPI-IO. Where MPI-IO cannot work, as without memory that processes
 * share, no rank has the file open afterwards, and each opens it alone. */
static void open_together(const struct dataset *dataset, hid_t *file, MPI_Comm comm,
                          int n_ranks)
{
    *file = h5_open(dataset->path, comm, n_ranks);
    int64_t n_failed = *file < 0;
    comm_sum_i64(dataset->comm, &n_failed, 1);
    if (n_failed > 0 && n_failed < n_ranks)
        fail_abort(BAD_IO,
                   "%s: MPI-IO opens this file on some ranks only; see `mpirun cohort doctor`",
                   dataset->path);
}

enum status dataset_open_with(const struct dataset *dataset, hid_t *file, MPI_Comm comm,
                              int n_ranks)
{
    *file = -1;
    if (n_ranks > 1)
        open_together(dataset, file, comm, n_ranks);
    if (*file < 0)
        TRY(open_file(dataset->path, file));
    char *digest = h5_text(*file, "digest");
    const bool same = strcmp(digest != NULL ? digest : "", dataset->digest) == 0;
    memory_free(digest);
    return same ? OK
                : fail(BAD_IO, "the file was replaced while cohort read it; run the same "
                               "command again");
}

enum status dataset_open_again(const struct dataset *dataset, hid_t *file)
{
    const enum status status = dataset_open_with(dataset, file, MPI_COMM_SELF, 1);
    if (status != OK && *file >= 0)
        h5_let_go(*file);
    return status;
}

enum status dataset_open(struct dataset *dataset, const char *path, const struct comm *comm)
{
    *dataset = (struct dataset){.path = memory_text("%s", path), .comm = comm};
    hid_t file = -1;
    enum status status = comm_agree(comm, check_file(path));
    if (status == OK) {
        status = open_file(path, &file);
        if (status == OK)
            status = read_head(file, dataset);
        if (status != OK && file >= 0)
            status = fail_context(status, "%s", path);
        if (file >= 0)
            h5_let_go(file);
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
    memory_free(dataset->other_skills);
    memory_free(dataset->other_groups);
    memory_free(dataset->target);
    names_free(&dataset->unseen.items);
    memory_free(dataset->unseen.first);
    memory_free(dataset->unseen.skill);
    memory_free(dataset->unseen.group);
    names_free(&dataset->unseen.group_names);
    names_free(&dataset->unseen.file_groups);
    memory_free(dataset->unseen.file_group);
    names_free(&dataset->items);
    names_free(&dataset->skills);
    names_free(&dataset->groups);
    for (size_t k = 0; dataset->level_map != NULL && k < dataset->covariates.names.n; k++)
        memory_free(dataset->level_map[k]);
    memory_free(dataset->level_map);
    dataset_digest_free(dataset);
    covariates_free(&dataset->covariates);
    *dataset = (struct dataset){0};
}
