/* Which runs a page is about. A path that names several runs stands for them:
 *
 *     DIR/fold-1 ... fold-k           a cross-validation
 *     DIR/sweep.ini                   a sweep, which has a page of its own (report_sweep.c)
 *     DIR/kinds/sweep.ini, models     `cohort auto`: DIR/best, which it chose, and the other
 *                                     DIR/models/KIND; before it has chosen, the sweep DIR/kinds
 *
 * Rank 0 looks, since a directory may change meanwhile, and tells the others. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/report_internal.h"
#include "runs/run_find.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum report_whole whole_of(const char *path)
{
    if (!file_is_directory(path) || file_is_in(path, "config.ini"))
        return WHOLE_RUNS;
    return file_is_in(path, "fold-1")            ? WHOLE_FOLDS
           : file_is_in(path, "sweep.ini")       ? WHOLE_SWEEP
           : file_is_in(path, "kinds/sweep.ini") ? WHOLE_AUTO
                                                 : WHOLE_RUNS;
}

static void add_path(struct report_sources *sources, const char *path)
{
    names_add(&sources->paths, path, strlen(path));
}

static bool has_checkpoint(const char *path)
{
    char *checkpoint = NULL;
    const bool has = run_find(path, &checkpoint) == OK;
    fail_clear();
    memory_free(checkpoint);
    return has;
}

/* Folds that have not begun to be trained are skipped. */
static enum status add_folds(struct report_sources *sources, const char *path)
{
    enum { MOST_FOLDS = 10000 };
    char *fold = memory_text("%s/fold-1", path);
    char *folds = run_setting(fold, "train", "folds");
    sources->n_folds = folds != NULL ? strtoll(folds, NULL, 10) : 0;
    memory_free(folds);
    memory_free(fold);
    for (int64_t f = 1; f <= MOST_FOLDS && (f <= sources->n_folds || f == 1); f++) {
        fold = memory_text("%s/fold-%lld", path, (long long)f);
        if (has_checkpoint(fold))
            add_path(sources, fold);
        memory_free(fold);
    }
    return sources->paths.n > 0
               ? OK
               : fail(BAD_USER,
                      "%s: no fold of this cross-validation has a checkpoint yet; wait for the "
                      "first epoch, or train it",
                      path);
}

static int is_model(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The choice may be a link to one of the models. */
static bool is_same(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Updates of auto's models may be beside them. */
static bool is_update(const char *path)
{
    char *original = run_setting(path, "train", "update");
    const bool is = original != NULL;
    memory_free(original);
    return is;
}

static void add_models(struct report_sources *sources, const char *directory, const char *best)
{
    struct dirent **list = NULL;
    const int n = scandir(directory, &list, is_model, compare);
    for (int i = 0; i < n; i++) {
        char *model = memory_text("%s/%s", directory, list[i]->d_name);
        if (has_checkpoint(model) && !is_same(model, best) && !is_update(model))
            add_path(sources, model);
        memory_free(model);
        free(list[i]);
    }
    free(list);
}

static void add_auto(struct report_sources *sources, const char *path)
{
    char *models = memory_text("%s/models", path), *best = memory_text("%s/best", path),
         *kinds = memory_text("%s/kinds", path);
    if (has_checkpoint(best)) {
        add_path(sources, best);
        add_models(sources, models, best);
    } else {
        sources->whole = WHOLE_SWEEP;
        add_path(sources, kinds);
    }
    memory_free(kinds);
    memory_free(models);
    memory_free(best);
}

static enum status look(struct report_sources *sources, const char *const *paths, size_t n)
{
    static const char *const words[] = {"", "a cross-validation",
                                        "the directory of `cohort auto`", "a sweep"};
    for (size_t p = 0; p < n && n > 1; p++) {
        const enum report_whole whole = whole_of(paths[p]);
        if (whole != WHOLE_RUNS)
            return fail(BAD_USER,
                        "%s: this is %s, which has a page of its own; give it alone, or name "
                        "runs in it",
                        paths[p], words[whole]);
    }
    sources->whole = n == 1 ? whole_of(paths[0]) : WHOLE_RUNS;
    if (sources->whole == WHOLE_FOLDS)
        return add_folds(sources, paths[0]);
    if (sources->whole == WHOLE_AUTO) {
        add_auto(sources, paths[0]);
        return OK;
    }
    for (size_t p = 0; p < n; p++)
        add_path(sources, paths[p]);
    return OK;
}

enum status report_sources_find(struct report_sources *sources, const struct comm *comm,
                                const char *const *paths, size_t n)
{
    *sources = (struct report_sources){0};
    TRY(comm_agree(comm, comm->rank == 0 ? look(sources, paths, n) : OK));
    int64_t facts[] = {sources->whole, sources->n_folds, (int64_t)sources->paths.n};
    comm_broadcast(comm, facts, sizeof facts, 0);
    sources->whole = (enum report_whole)facts[0];
    sources->n_folds = facts[1];
    for (int64_t p = 0; p < facts[2]; p++) {
        char *path = comm_share_text(
            comm,
            comm->rank == 0 ? memory_text("%s", names_get(&sources->paths, (size_t)p)) : NULL);
        if (comm->rank != 0)
            add_path(sources, path);
        memory_free(path);
    }
    return OK;
}
