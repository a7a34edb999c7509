/* The directory of a run as the trainer writes it: lock, checkpoints, log. The same command starts
 * a run, continues it and, when it is finished, does nothing. Files are replaced by rename, so
 * after a kill at any moment the run can continue. The lock belongs to the process that holds it,
 * and the kernel releases it however the process ends. */
#include "runs/run.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "runs/run_find.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *run_path(const struct run *run, const char *name)
{
    return memory_text("%s/%s", run->directory, name);
}

json_t *run_json(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    if (file_exists(path) && file_read(path, &text, &n) != OK)
        fail_clear();
    json_t *value = text != NULL ? json_loadb(text, n, 0, NULL) : NULL;
    memory_free(text);
    return value;
}

enum status run_taken(const char *directory)
{
    char *lock = memory_text("%s/lock", directory), *owner = NULL;
    size_t n = 0;
    const bool known = file_read(lock, &owner, &n) == OK && n > 0;
    const enum status status =
        fail(BAD_USER,
             "%s: another job is using this run (%.*s); two jobs cannot share a run directory: "
             "wait for it, stop it, or choose another run=",
             directory, known ? (int)strcspn(owner, "\n") : 7, known ? owner : "unknown");
    memory_free(owner);
    memory_free(lock);
    return status;
}

static enum status sign(const struct run *run, const char *lock)
{
    char owner[256] = "", host[128] = "";
    gethostname(host, sizeof host - 1);
    const int n = snprintf(owner, sizeof owner, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(run->lock, 0) != 0 || pwrite(run->lock, owner, (size_t)n, 0) != n)
        return fail(BAD_IO, "%s: cannot write: %s", lock, strerror(errno));
    return OK;
}

/* A job that ends releases its files one by one, which takes a moment. And a job restarted by
 * Slurm may start before the file system has noticed that its old node is gone. */
static enum status wait_for_lock(struct run *run, const char *lock)
{
    enum { MOMENT = 1, LEASE = 300 }; /* seconds */
    const char *restarts = getenv("SLURM_RESTART_COUNT");
    TRY(file_lock_take(lock, MOMENT, &run->lock));
    if (run->lock >= 0 || restarts == NULL || atoi(restarts) == 0)
        return OK;
    log_say("%s: the run is still locked by this job's previous start; waiting",
            run->directory);
    return file_lock_take(lock, LEASE, &run->lock);
}

static enum status take_lock(struct run *run)
{
    TRY(run_check_place(run->directory));
    TRY(file_make_directory(run->directory));
    char *path = run_path(run, "lock");
    enum status status = wait_for_lock(run, path);
    if (status == OK)
        status = run->lock >= 0 ? sign(run, path) : run_taken(run->directory);
    memory_free(path);
    return status;
}

enum status run_open(struct run *run, const char *directory, const struct comm *comm)
{
    *run = (struct run){.comm = comm, .directory = memory_text("%s", directory), .lock = -1};
    enum status status = comm_agree(comm, comm->rank == 0 ? take_lock(run) : OK);
    if (status != OK)
        run_close(run);
    return status;
}

void run_close(struct run *run)
{
    if (run->lock >= 0) {
        const int cleared =
            ftruncate(run->lock, 0); /* so that a finished run keeps its bytes */
        (void)cleared;
        close(run->lock);
    }
    memory_free(run->directory);
    *run = (struct run){.lock = -1};
}

/* Otherwise the next save would keep it as previous.h5 and replace the intact one. */
static enum status set_aside(const struct run *run)
{
    char *last = run_path(run, "last.h5"), *aside = run_path(run, "last.h5.damaged");
    enum status status = OK;
    if (rename(last, aside) != 0)
        status = fail(BAD_IO, "%s: cannot rename to %s: %s", last, aside, strerror(errno));
    memory_free(last);
    memory_free(aside);
    return status;
}

enum status run_resume(const struct run *run, struct checkpoint *checkpoint, bool *found)
{
    static const char *const candidates[] = {"last.h5", "previous.h5"};
    int n_damaged = 0;
    *found = false;
    for (size_t c = 0; c < COUNT(candidates) && !*found; c++) {
        char *path = run_path(run, candidates[c]);
        int64_t there = run->comm->rank == 0 && file_exists(path);
        comm_max_i64(run->comm, &there, 1);
        const enum status status = there ? checkpoint_open(checkpoint, path, run->comm) : OK;
        memory_free(path);
        *found = there && status == OK;
        if (status == BAD_DATA) {
            log_warn("%s", fail_sentence());
            fail_clear();
            n_damaged++;
        } else if (status != OK) {
            return status;
        }
    }
    if (n_damaged == 0)
        return OK;
    if (!*found)
        return fail(
            BAD_DATA,
            "%s: no checkpoint of this run can be read; remove the directory to start again",
            run->directory);
    log_warn("continuing from %s; the damaged one is kept as last.h5.damaged",
             checkpoint->path);
    const enum status status =
        comm_agree(run->comm, run->comm->rank == 0 ? set_aside(run) : OK);
    if (status != OK)
        checkpoint_close(checkpoint);
    return status;
}

/* Rank 0: the epoch of a checkpoint, -1 if it does not exist or is damaged. */
static int64_t epoch_in(const char *path)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct checkpoint checkpoint;
    if (checkpoint_open(&checkpoint, path, &self) != OK) {
        fail_clear();
        return -1;
    }
    const int64_t epoch = checkpoint.progress.epoch;
    checkpoint_close(&checkpoint);
    return epoch;
}

/* best.h5 is written before last.h5, so after a kill in between it is ahead of last.h5. The
 * continued run may never reach that epoch again, if it is to end sooner or uses another
 * schedule. */
enum status run_settle_best(const struct run *run, const struct progress *progress)
{
    if (progress->best_epoch == 0) {
        TRY(run_remove(run, "best.h5"));
        return run_remove(run, "previous_best.h5");
    }
    char *best = run_path(run, "best.h5"), *previous = run_path(run, "previous_best.h5");
    enum status status = OK;
    if (epoch_in(best) != progress->best_epoch && epoch_in(previous) == progress->best_epoch &&
        rename(previous, best) != 0)
        status = fail(BAD_IO, "%s: cannot rename to %s: %s", previous, best, strerror(errno));
    memory_free(best);
    memory_free(previous);
    return status;
}

static enum status save(const struct run *run, const char *name, const char *kept,
                        const char *bytes, size_t n_bytes)
{
    char *path = run_path(run, name), *before = run_path(run, kept);
    enum status status = atomic_file_write_keeping(path, before, bytes, n_bytes);
    memory_free(path);
    memory_free(before);
    return status;
}

enum status run_save_best(const struct run *run, const char *bytes, size_t n_bytes)
{
    return save(run, "best.h5", "previous_best.h5", bytes, n_bytes);
}

enum status run_save_last(const struct run *run, const char *bytes, size_t n_bytes)
{
    return save(run, "last.h5", "previous.h5", bytes, n_bytes);
}

/* The epoch of a log line, 0 if it is not a record. */
static int64_t epoch_of(const char *line, size_t n)
{
    json_t *record = json_loadb(line, n, 0, NULL);
    const int64_t epoch = json_integer_value(json_object_get(record, "epoch"));
    json_decref(record);
    return epoch;
}

enum status run_log_cut(const struct run *run, int64_t last)
{
    char *path = run_path(run, "log.jsonl"), *text = NULL;
    size_t n_bytes = 0, keep = 0;
    enum status status = OK;
    if (file_exists(path)) {
        status = file_read(path, &text, &n_bytes);
        for (int64_t before = 0; status == OK && keep < n_bytes;) {
            const char *end = memchr(text + keep, '\n', n_bytes - keep);
            const int64_t epoch =
                end != NULL ? epoch_of(text + keep, (size_t)(end - text) - keep) : 0;
            if (epoch <= before || epoch > last)
                break;
            before = epoch;
            keep = (size_t)(end - text) + 1;
        }
        if (status == OK && keep < n_bytes)
            status = atomic_file_write(path, text, keep);
    }
    memory_free(text);
    memory_free(path);
    return status;
}

/* A string in the last record of log.jsonl; NULL if there is none. Caller frees. */
static enum status last_logged(const struct run *run, const char *key, char **value)
{
    char *path = run_path(run, "log.jsonl"), *text = NULL;
    size_t n_bytes = 0;
    *value = NULL;
    enum status status = file_exists(path) ? file_read(path, &text, &n_bytes) : OK;
    size_t start = n_bytes > 0 ? n_bytes - 1 : 0;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    json_t *record = text != NULL ? json_loadb(text + start, n_bytes - start, 0, NULL) : NULL;
    const char *found = json_string_value(json_object_get(record, key));
    if (found != NULL)
        *value = memory_text("%s", found);
    json_decref(record);
    memory_free(text);
    memory_free(path);
    return status;
}

/* Another grid than before follows from another number of ranks alone: a run keeps its
 * settings. */
static enum status compare_grid(const struct run *run, const char *grid)
{
    char *before = NULL;
    int n_rows = 0, n_columns = 0;
    TRY(last_logged(run, "grid", &before));
    if (before != NULL && strcmp(before, grid) != 0 &&
        sscanf(before, "%6dx%6d", &n_rows, &n_columns) == 2) {
        const int64_t n_ranks = (int64_t)n_rows * n_columns;
        log_warn(
            "this run was trained on a grid of %s ranks and continues on one of %s; "
            "results will agree to about 1e-9 or the last bit of a float; continue on %" PRId64
            " rank%s to keep the bits",
            before, grid, n_ranks, n_ranks == 1 ? "" : "s");
    }
    memory_free(before);
    return OK;
}

enum status run_compare_blas(const struct run *run, const char *grid)
{
    char *before = NULL;
    TRY(compare_grid(run, grid));
    TRY(last_logged(run, "blas", &before));
    if (before != NULL && strcmp(before, machine_blas_kernel()) != 0)
        log_warn("this run was trained with OpenBLAS kernels for %s and continues with those "
                 "for %s; results will agree to about 1e-9 or the last bit of a float; set "
                 "OPENBLAS_CORETYPE=%s to keep the bits",
                 before, machine_blas_kernel(), before);
    memory_free(before);
    return OK;
}

enum status run_log_add(const struct run *run, const char *record)
{
    char *path = run_path(run, "log.jsonl");
    enum status status = OK;
    const int plain =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    FILE *file = plain >= 0 ? fdopen(plain, "a") : NULL;
    const bool failed = file == NULL || fprintf(file, "%s\n", record) < 0;
    const int reason = errno;
    if ((file != NULL && fclose(file) != 0) || failed) {
        const int error = failed ? reason : errno;
        status = fail(BAD_IO, "%s: cannot append: %s%s", path, strerror(error),
                      file_is_in(run->directory, "last.h5") ? "; the last checkpoint is intact"
                                                            : "");
    }
    memory_free(path);
    return status;
}

enum status run_write(const struct run *run, const char *name, const char *text)
{
    char *path = run_path(run, name);
    enum status status = atomic_file_write(path, text, strlen(text));
    memory_free(path);
    return status;
}

enum status run_remove(const struct run *run, const char *name)
{
    char *path = run_path(run, name);
    enum status status = OK;
    if (unlink(path) != 0 && errno != ENOENT)
        status = fail(BAD_IO, "%s: cannot remove: %s", path, strerror(errno));
    memory_free(path);
    return status;
}
