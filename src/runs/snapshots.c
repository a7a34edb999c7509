/* Snapshots show how a model came to be. After each epoch that run.snapshots lists, the
 * checkpoint is also written to a file that no later epoch replaces:
 *
 *     run.snapshots = 0 1 3 10 40      RUN/snapshots/epoch-0.h5, epoch-1.h5, ...
 *
 * Epoch 0 is the model before its first step. A snapshot is written before last.h5 reaches its
 * epoch. After a kill in between, the epoch is trained again and gives the same bytes. A run that
 * continues from an earlier epoch first removes the snapshots of later ones, since other settings
 * may now lead elsewhere. Only what is a checkpoint of this run is removed or replaced, and only
 * in a directory of the run, not behind a link. What is computed does not depend on the setting,
 * so it is one of the places that checkpoints do not store. */
#include "runs/snapshots.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/continuation.h"
#include "runs/run_find.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DIGITS = 10 };

/* Reads the next epoch of a list, after spaces; -1: none, or no number. */
static int64_t next_epoch(const char **text)
{
    const char *p = *text + strspn(*text, " ");
    const size_t n = strspn(p, "0123456789");
    if (n == 0 || n > MOST_DIGITS || (p[n] != ' ' && p[n] != '\0'))
        return -1;
    *text = p + n;
    return strtoll(p, NULL, 10);
}

enum status snapshots_check(const char *text)
{
    const char *p = text;
    int64_t last = -1;
    while (p[strspn(p, " ")] != '\0') {
        const int64_t epoch = next_epoch(&p);
        if (epoch <= last)
            return fail(BAD_USER,
                        "run.snapshots = %s: expected epochs in increasing order with spaces "
                        "between them, for example 0 1 3 10 40",
                        text);
        last = epoch;
    }
    return OK;
}

bool snapshots_wants(const char *text, int64_t epoch)
{
    int64_t wanted = 0;
    while (wanted >= 0 && wanted <= epoch) {
        wanted = next_epoch(&text);
        if (wanted == epoch)
            return true;
    }
    return false;
}

char *snapshots_path(const char *path, int64_t epoch)
{
    char *directory = run_beside(path, "snapshots");
    char *file = memory_text("%s/epoch-%lld.h5", directory, (long long)epoch);
    memory_free(directory);
    return file;
}

static enum status write_file(const struct run *run, int64_t epoch, const char *bytes,
                              size_t n_bytes)
{
    char *directory = run_path(run, "snapshots");
    char *path = snapshots_path(run->directory, epoch);
    enum status status = file_make_directory(directory);
    if (status == OK)
        status = atomic_file_write(path, bytes, n_bytes);
    memory_free(directory);
    memory_free(path);
    return status;
}

enum status snapshots_write(const struct run *run, int64_t epoch, const char *bytes,
                            size_t n_bytes)
{
    return comm_agree(run->comm,
                      run->comm->rank == 0 ? write_file(run, epoch, bytes, n_bytes) : OK);
}

/* The epoch in the name of a snapshot, as snapshots_path writes it; -1: some other file. */
static int64_t epoch_of(const char *name)
{
    static const char begin[] = "epoch-";
    if (strncmp(name, begin, strlen(begin)) != 0)
        return -1;
    name += strlen(begin);
    const size_t n = strspn(name, "0123456789");
    if (n == 0 || n > MOST_DIGITS || strcmp(name + n, ".h5") != 0 || (name[0] == '0' && n > 1))
        return -1;
    return strtoll(name, NULL, 10);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t snapshots_list(const char *path, int64_t **epochs)
{
    char *name = run_beside(path, "snapshots");
    DIR *directory = opendir(name);
    int64_t *list = NULL;
    size_t n = 0, capacity = 0;
    memory_free(name);
    for (const struct dirent *entry;
         directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (epoch_of(entry->d_name) < 0)
            continue;
        GROW(list, n, capacity);
        list[n++] = epoch_of(entry->d_name);
    }
    if (directory != NULL)
        closedir(directory);
    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    *epochs = list;
    return n;
}

/* A link could lead to files of others. */
static enum status check_directory(const struct run *run)
{
    char *directory = run_path(run, "snapshots");
    struct stat info;
    enum status status = OK;
    if (lstat(directory, &info) == 0 && S_ISLNK(info.st_mode))
        status = fail(BAD_USER,
                      "%s: this is a link, and snapshots are kept in the run itself; replace "
                      "it with the directory that it leads to, or remove it",
                      directory);
    memory_free(directory);
    return status;
}

/* Whether a file is what this run wrote after an epoch. A run that starts anew has replaced the
 * one that was in the directory before, so that every checkpoint of the epoch counts. */
static bool is_own(const char *path, int64_t epoch, const struct snapshots_owner *owner)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct checkpoint snapshot;
    bool own = false;
    if (checkpoint_open(&snapshot, path, &self) == OK) {
        own = snapshot.progress.epoch == epoch &&
              (owner->progress->all_steps == 0 ||
               (strcmp(snapshot.data_digest, owner->data_digest) == 0 &&
                continuation_check(&snapshot, owner->config, owner->settings->groups,
                                   N_SETTINGS_GROUPS) == OK));
        checkpoint_close(&snapshot);
    }
    fail_clear();
    return own;
}

static enum status clear(const char *path, int64_t epoch, const struct snapshots_owner *owner)
{
    if (is_own(path, epoch, owner))
        return unlink(path) == 0 || errno == ENOENT
                   ? OK
                   : fail(BAD_IO, "%s: cannot remove: %s", path, strerror(errno));
    if (snapshots_wants(owner->settings->run.snapshots, epoch))
        return fail(BAD_USER,
                    "%s: this is not a snapshot of this run, and run.snapshots = %s would "
                    "replace it; move it elsewhere",
                    path, owner->settings->run.snapshots);
    return OK;
}

/* Removes those of epochs after `last`. */
static enum status cut(const struct run *run, int64_t last, const struct snapshots_owner *owner)
{
    int64_t *epochs = NULL;
    const size_t n = snapshots_list(run->directory, &epochs);
    enum status status = OK;
    for (size_t i = 0; i < n && status == OK; i++) {
        char *path = snapshots_path(run->directory, epochs[i]);
        if (epochs[i] > last)
            status = clear(path, epochs[i], owner);
        memory_free(path);
    }
    memory_free(epochs);
    return status;
}

/* Notes the epochs up to `last` that have no snapshot. */
static void say_missed(const struct run *run, const char *text, int64_t last)
{
    char *list = memory_text("%s", "");
    size_t n = 0;
    for (int64_t epoch; (epoch = next_epoch(&text)) >= 0 && epoch <= last;) {
        char *path = snapshots_path(run->directory, epoch);
        if (!file_exists(path)) {
            char *longer = memory_text("%s%s%lld", list, n++ > 0 ? " " : "", (long long)epoch);
            memory_free(list);
            list = longer;
        }
        memory_free(path);
    }
    if (n > 0)
        log_say("note: run.snapshots: epoch%s %s %s trained before, so %s no snapshot%s",
                n == 1 ? "" : "s", list, n == 1 ? "was" : "were",
                n == 1 ? "it gets" : "they get", n == 1 ? "" : "s");
    memory_free(list);
}

enum status snapshots_prepare(const struct run *run, const struct snapshots_owner *owner)
{
    const struct progress *progress = owner->progress;
    const int64_t last = progress->all_steps > 0 ? progress->epoch : -1;
    TRY(check_directory(run));
    say_missed(run, owner->settings->run.snapshots, last);
    return cut(run, last, owner);
}
