/* A model that is trained further knows the students it was trained on. If the new data hold
 * such a student out for validation or test, the scores there are too good. Students are compared
 * by name: those without training attempts in the new data and with some in the old. (Of students
 * with training attempts in both, the new data hold out later attempts at most.) Rank 0 reads
 * both files piece by piece. */
#include "runs/overlap.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "runs/run.h"
#include <string.h>

enum { PIECE = 4096 }; /* students */

/* Calls `visit` for every student that has training attempts (`trains`) or has none. */
static enum status visit_students(const struct dataset *dataset, bool trains,
                                  void (*visit)(void *, const char *), void *target)
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
            bool found = false;
            for (uint64_t t = shard.first[s]; !found && t < shard.first[s + 1]; t++)
                found = mark_trains(shard.mark[t]);
            if (found == trains)
                visit(target, names_get(&names, s));
        }
        names_free(&names);
        shard_free(&shard);
    }
    return status;
}

struct count {
    struct name_index trained;
    int64_t n;
};

static void learn_name(void *target, const char *name)
{
    name_index_add(&((struct count *)target)->trained, name, strlen(name));
}

static void count_name(void *target, const char *name)
{
    struct count *count = target;
    count->n += name_index_find(&count->trained, name, strlen(name)) != INDEX_NONE;
}

/* Rank 0: the number of such students; 0 if the old data are gone. */
static enum status count_overlap(const char *run, const char *digest, const char *path,
                                 int64_t *n)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    char *old_path = run_setting(run, "data", "file");
    struct dataset old = {0}, new = {0};
    struct count count = {0};
    if (old_path == NULL || !file_exists(old_path)) {
        memory_free(old_path);
        return OK;
    }
    enum status status = dataset_open(&old, old_path, &self);
    if (status == OK && strcmp(old.digest, digest) == 0) {
        status = visit_students(&old, true, learn_name, &count);
        if (status == OK)
            status = dataset_open(&new, path, &self);
        if (status == OK)
            status = visit_students(&new, false, count_name, &count);
        dataset_close(&new);
    }
    dataset_close(&old);
    memory_free(old_path);
    name_index_free(&count.trained);
    *n = count.n;
    return status;
}

enum status overlap_warn(const struct comm *comm, const char *run, const char *digest,
                         const struct dataset *dataset)
{
    int64_t n = 0;
    TRY(comm_agree(comm, comm->rank == 0 ? count_overlap(run, digest, dataset->path, &n) : OK));
    if (n > 0)
        log_warn(
            "%s holds out %lld student%s that %s was trained on, so scores on them are too "
            "good; hold out new students, or later attempts (--split by-last, by-time)",
            dataset->path, (long long)n, n == 1 ? "" : "s", run);
    return OK;
}
