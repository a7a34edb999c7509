/* A model that is trained further knows the attempts and the students it was trained on. If the new
 * data hold some of them out for validation or test, the scores there are too good. Two things are
 * counted, by name:
 *
 *     attempts   that the new data hold out and the old data had for training, of students with
 *                training attempts in both: the data sets are split by different rules
 *     students   without training attempts in the new data and with some in the old
 *
 * An attempt is recognized by student, item and time. Without times, by the student's items and
 * outcomes up to it: the new log then begins with the old one. Rank 0 reads both files piece by
 * piece and keeps eight bytes per training attempt of the old data. */
#include "runs/overlap.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "runs/run_find.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PIECE = 4096 }; /* students */

struct overlap {
    struct name_index trained; /* students with training attempts in the old data */
    uint64_t *attempts;        /* the old data's training attempts, by hash, sorted */
    size_t n, room;
    bool by_time; /* both data sets have times */
    int64_t n_attempts, n_students;
};

/* One student of a data set. */
struct student {
    const char *name;
    const struct shard *shard;
    uint64_t first, end;
    bool trains;
};

/* Each attempt's hash depends on those before it, unless there are times. */
static uint64_t hash_attempt(const struct overlap *overlap, const struct student *student,
                             uint64_t t, uint64_t before)
{
    const struct shard *shard = student->shard;
    const char *item = names_get(&shard->dataset->items, shard->item[t]);
    const uint64_t seed =
        overlap->by_time ? XXH3_64bits(student->name, strlen(student->name)) : before;
    const uint64_t parts[] = {XXH3_64bits(item, strlen(item)),
                              overlap->by_time ? (uint64_t)shard->time[t]
                                               : (uint64_t)mark_outcome(shard->mark[t])};
    return XXH3_64bits_withSeed(parts, sizeof parts, seed);
}

typedef void visit_student(struct overlap *overlap, const struct student *student);
typedef void visit_attempt(struct overlap *overlap, uint8_t mark, uint64_t hash);

static void hash_attempts(struct overlap *overlap, const struct student *student,
                          visit_attempt *visit)
{
    uint64_t hash = XXH3_64bits(student->name, strlen(student->name));
    for (uint64_t t = student->first; t < student->end; t++) {
        hash = hash_attempt(overlap, student, t, hash);
        visit(overlap, student->shard->mark[t], hash);
    }
}

static enum status visit_students(struct overlap *overlap, const struct dataset *dataset,
                                  visit_student *visit)
{
    enum status status = OK;
    for (size_t first = 0; status == OK && first < dataset->n_students; first += PIECE) {
        const size_t n = size_min(PIECE, dataset->n_students - first);
        struct shard shard = {0};
        struct names names = {0};
        status = dataset_read(dataset, first, n, &shard);
        if (status == OK)
            status = dataset_read_names(dataset, first, n, &names);
        for (size_t s = 0; status == OK && s < n; s++) {
            struct student student = {.name = names_get(&names, s),
                                      .shard = &shard,
                                      .first = shard.first[s],
                                      .end = shard.first[s + 1]};
            for (uint64_t t = student.first; !student.trains && t < student.end; t++)
                student.trains = mark_trains(shard.mark[t]);
            visit(overlap, &student);
        }
        names_free(&names);
        shard_free(&shard);
    }
    return status;
}

static void learn_attempt(struct overlap *overlap, uint8_t mark, uint64_t hash)
{
    if (!mark_trains(mark))
        return;
    GROW(overlap->attempts, overlap->n, overlap->room);
    overlap->attempts[overlap->n++] = hash;
}

static void learn_student(struct overlap *overlap, const struct student *student)
{
    if (student->trains)
        name_index_add(&overlap->trained, student->name, strlen(student->name));
    hash_attempts(overlap, student, learn_attempt);
}

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void count_attempt(struct overlap *overlap, uint8_t mark, uint64_t hash)
{
    if (overlap->n > 0 && mark_split(mark) != TRAIN && mark_outcome(mark) != UNKNOWN)
        overlap->n_attempts +=
            bsearch(&hash, overlap->attempts, overlap->n, sizeof hash, by_hash) != NULL;
}

static void count_student(struct overlap *overlap, const struct student *student)
{
    if (name_index_find(&overlap->trained, student->name, strlen(student->name)) == INDEX_NONE)
        return;
    overlap->n_students += !student->trains;
    if (student->trains)
        hash_attempts(overlap, student, count_attempt);
}

/* Rank 0; nothing is counted if the old data are gone. */
static enum status count(struct overlap *overlap, const char *run, const char *digest,
                         const char *path)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    char *old_path = run_setting(run, "data", "file");
    struct dataset old = {0}, new = {0};
    if (old_path == NULL || !file_exists(old_path)) {
        memory_free(old_path);
        return OK;
    }
    enum status status = dataset_open(&old, old_path, &self);
    memory_free(old_path);
    if (status == OK && strcmp(old.digest, digest) == 0) {
        status = dataset_open(&new, path, &self);
        overlap->by_time = old.has_time && new.has_time;
        if (status == OK)
            status = visit_students(overlap, &old, learn_student);
        if (overlap->n > 0)
            qsort(overlap->attempts, overlap->n, sizeof *overlap->attempts, by_hash);
        if (status == OK)
            status = visit_students(overlap, &new, count_student);
        dataset_close(&new);
    }
    dataset_close(&old);
    name_index_free(&overlap->trained);
    memory_free(overlap->attempts);
    return status;
}

enum status overlap_warn(const struct comm *comm, const char *run, const char *digest,
                         const struct dataset *dataset)
{
    struct overlap overlap = {0};
    TRY(comm_agree(comm, comm->rank == 0 ? count(&overlap, run, digest, dataset->path) : OK));
    if (overlap.n_attempts > 0)
        log_warn(
            "%s holds out %lld attempt%s that %s was trained on, so its scores on them are "
            "too good; split all data sets of a run in the same way (for example --split "
            "by-last)",
            dataset->path, (long long)overlap.n_attempts, overlap.n_attempts == 1 ? "" : "s",
            run);
    if (overlap.n_students > 0)
        log_warn(
            "%s holds out %lld student%s that %s was trained on, so scores on them are too "
            "good; hold out new students, or later attempts (--split by-last, by-time)",
            dataset->path, (long long)overlap.n_students, overlap.n_students == 1 ? "" : "s",
            run);
    return OK;
}
