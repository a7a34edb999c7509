/* cohort verify: checks that files are as they were written. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "runs/inference.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct verdicts {
    int n, n_damaged, n_absent;
};

static enum status verify_checkpoint(const char *path)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct inference inference;
    enum status status = inference_open_model(&inference, path, &self);
    inference_close(&inference);
    return status;
}

static void note(struct verdicts *files, const char *path, const char *what, enum status status)
{
    files->n++;
    files->n_damaged += status != OK && status != BAD_USER;
    files->n_absent += status == BAD_USER;
    const char *sentence = fail_sentence();
    const bool has_path = strncmp(sentence, path, strlen(path)) == 0;
    if (status == OK)
        printf("%s: ok, %s\n", path, what);
    else
        printf("%s%s%s\n", has_path ? "" : path, has_path ? "" : ": ", sentence);
    fail_clear();
}

static void verify_dataset(struct verdicts *files, const char *path)
{
    const char *unchecked = NULL;
    const enum status status = dataset_verify(path, &unchecked);
    char *what = memory_text("a data set%s%s", unchecked != NULL ? ", " : "",
                             unchecked ? unchecked : "");
    note(files, path, what, status);
    memory_free(what);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void verify_path(struct verdicts *files, const char *path, bool is_fold);

static bool is_snapshots(const char *path)
{
    return file_ends_in(path, "/snapshots");
}

/* All HDF5 files, folds and snapshots in a directory, in the order of their names. A fold has no
 * folds and a directory of snapshots has only files, whatever links it contains. */
static void verify_run(struct verdicts *files, const char *path, bool is_fold)
{
    char **names = NULL;
    size_t n = 0, capacity = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        note(files, path, "", fail(BAD_IO, "%s: cannot be read: %s", path, strerror(errno)));
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        const bool is_h5 = length > 3 && strcmp(entry->d_name + length - 3, ".h5") == 0;
        const bool is_more = strcmp(entry->d_name, "snapshots") == 0 && !is_snapshots(path);
        if (!is_h5 && !is_more && (is_fold || strncmp(entry->d_name, "fold-", 5) != 0))
            continue;
        GROW(names, n, capacity);
        names[n++] = memory_text("%s/%s", path, entry->d_name);
    }
    closedir(directory);
    if (n > 0)
        qsort(names, n, sizeof *names, compare);
    else
        printf("%s: no checkpoint yet\n", path);
    for (size_t i = 0; i < n; i++) {
        if (is_snapshots(names[i]))
            verify_run(files, names[i], true);
        else
            verify_path(files, names[i], true);
        memory_free(names[i]);
    }
    memory_free(names);
}

/* One of the names that checkpoints have in a run. */
static bool is_of_run(const char *path)
{
    static const char *const names[] = {"last.h5", "best.h5", "previous.h5",
                                        "previous_best.h5"};
    const char *slash = strrchr(path, '/');
    for (size_t n = 0; n < COUNT(names); n++)
        if (slash != NULL && strcmp(slash + 1, names[n]) == 0)
            return true;
    return false;
}

/* All runs in a directory of runs, in the order of their names. */
static void verify_runs(struct verdicts *files, const char *path, const char *folder)
{
    char *whole = memory_text("%s/%s", path, folder);
    struct dirent **entries = NULL;
    const int n = scandir(whole, &entries, NULL, alphasort);
    for (int e = 0; e < n; e++) {
        char *run = memory_text("%s/%s", whole, entries[e]->d_name);
        if (entries[e]->d_name[0] != '.' && file_is_directory(run))
            verify_path(files, run, false);
        memory_free(run);
        free(entries[e]);
    }
    free(entries);
    memory_free(whole);
}

/* The directory of `cohort auto` or of a sweep has its runs in folders. */
static bool verify_many(struct verdicts *files, const char *path)
{
    const bool is_sweep = file_is_in(path, "sweep.ini");
    if (!is_sweep && !(file_is_in(path, "leaderboard.csv") && file_is_in(path, "models")))
        return false;
    verify_runs(files, path, is_sweep ? "trials" : "models");
    char *best = memory_text("%s/best", path);
    if (file_is_directory(best))
        verify_path(files, best, false);
    memory_free(best);
    return true;
}

static void verify_path(struct verdicts *files, const char *path, bool is_fold)
{
    enum path_kind kind = PATH_RUN;
    if (!is_fold && verify_many(files, path))
        return;
    enum status status = inference_recognize(path, &kind);
    if (status != OK)
        note(files, path, "", status);
    else if (kind == PATH_RUN)
        verify_run(files, path, is_fold);
    else if (kind == PATH_DATA_SET && is_fold && is_of_run(path))
        note(files, path, "",
             fail(BAD_DATA,
                  "%s: this is a data set; expected a checkpoint of the run; remove it or move "
                  "it elsewhere",
                  path));
    else if (kind == PATH_CHECKPOINT)
        note(files, path, "a checkpoint", verify_checkpoint(path));
    else
        verify_dataset(files, path);
}

static enum status verify(const char *const *paths, int n_paths)
{
    struct verdicts files = {0};
    for (int p = 0; p < n_paths; p++)
        verify_path(&files, paths[p], false);
    fflush(stdout);
    if (files.n_damaged > 0)
        return fail(BAD_DATA, "verify: %d of %d files %s damaged or not a cohort file",
                    files.n_damaged, files.n, files.n_damaged == 1 ? "is" : "are");
    if (files.n_absent > 0)
        return fail(BAD_USER, "verify: %d of %d files %s missing or cannot be used",
                    files.n_absent, files.n, files.n_absent == 1 ? "is" : "are");
    return OK;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_verify, argc, argv, NULL, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_verify);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? verify(words, n_words) : OK);
    memory_free(words);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .usage = "verify PATH...",
    .summary = "Check that data sets, checkpoints and runs are intact",
    .details = "Read each file completely and compare it with the digests stored in it. For a "
               "run, check all its checkpoints; for a cross-validation, those of all folds. "
               "Print one line per file.",
    .examples = "Check a data set and all runs:\n\n"
                "  cohort verify class.h5 runs/*",
    .exit_status = "3 if a file is damaged, 1 if one is missing, 0 if all are intact.",
    .see_also = "cohort-inspect(1), cohort-files(5)",
    .run = run,
};
