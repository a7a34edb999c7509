/* A run as others see it: which checkpoint it offers, its settings, whether it is being trained,
 * and whether a directory may become a run or continue one. Directories of several runs are told
 * from that of one by what is in them:
 *
 *     fold-1             a cross-validation
 *     sweep.ini          a sweep
 *     kinds/sweep.ini    `cohort auto` */
#include "runs/run_find.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "base/nearest_path.h"
#include "base/shell_quote.h"
#include "runs/run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool run_is_auto(const char *directory)
{
    return file_is_in(directory, "kinds/sweep.ini");
}

/* Refuses directories of several runs. */
static enum status check_single(const char *directory)
{
    if (file_is_in(directory, "fold-1"))
        return fail(BAD_USER,
                    "%s: this is a cross-validation, with one run per fold; name one of them, "
                    "such as %s/fold-1",
                    directory, directory);
    if (file_is_in(directory, "sweep.ini")) {
        char *best = shell_quote_text("%s/best.ini", directory);
        const enum status status =
            fail(BAD_USER,
                 "%s: this is a sweep, with one run per trial; name one of those in "
                 "%s/trials, or train the best with `cohort train %s`",
                 directory, directory, best);
        memory_free(best);
        return status;
    }
    if (run_is_auto(directory) && file_is_in(directory, "best"))
        return fail(BAD_USER,
                    "%s: this is the directory of `cohort auto`; its best model is %s/best",
                    directory, directory);
    if (run_is_auto(directory))
        return fail(BAD_USER,
                    "%s: this is the directory of `cohort auto`, which has not finished; run "
                    "it again to continue",
                    directory);
    return OK;
}

enum status run_check_place(const char *directory)
{
    if (file_is_in(directory, "sweep.ini")) {
        char *best = shell_quote_text("%s/best.ini", directory);
        const enum status status =
            fail(BAD_USER,
                 "%s: this is a sweep; continue it with `cohort sweep`, or train its "
                 "best trial with `cohort train %s run=ANOTHER`",
                 directory, best);
        memory_free(best);
        return status;
    }
    if (run_is_auto(directory))
        return fail(
            BAD_USER,
            "%s: this is the directory of `cohort auto`; continue it with `cohort auto`, "
            "or choose another directory",
            directory);
    return OK;
}

char *run_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const int n = file_is_directory(path) ? (int)strlen(path) : slash ? (int)(slash - path) : 0;
    return n > 0 ? memory_text("%.*s/%s", n, path, name) : memory_text("%s", name);
}

char *run_setting(const char *path, const char *section, const char *key)
{
    char *file = run_beside(path, "config.ini");
    struct config *config = config_create();
    char *setting = NULL;
    if (file_exists(file) && config_read(config, file) == OK) {
        const char *value = config_get(config, section, key);
        setting = value != NULL && value[0] != '\0' ? memory_text("%s", value) : NULL;
    }
    fail_clear();
    config_destroy(config);
    memory_free(file);
    return setting;
}

bool run_is_running(const char *directory)
{
    char *lock = memory_text("%s/lock", directory);
    const bool held = file_lock_is_held(lock);
    memory_free(lock);
    return held;
}

char *run_state(const char *path)
{
    if (!file_is_in(path, "log.jsonl") || file_is_in(path, "result.json"))
        return NULL;
    return memory_text("is not finished%s", run_is_running(path)
                                                ? ": it is being trained now"
                                                : "; repeat the command that started it to "
                                                  "continue it");
}

static enum status not_saved(const char *path)
{
    char *minutes = run_setting(path, "run", "save_minutes");
    const enum status status =
        fail(BAD_USER,
             "%s: this run is being trained and has no checkpoint yet; it saves one every %s "
             "minutes (run.save_minutes) and at the end: try again then",
             path, minutes != NULL ? minutes : "few");
    memory_free(minutes);
    return status;
}

enum status run_find(const char *path, char **checkpoint)
{
    static const char *const names[] = {"best.h5", "last.h5", "previous.h5"};
    struct stat info;
    *checkpoint = NULL;
    if (stat(path, &info) != 0) {
        const int error = errno;
        char *hint = nearest_path_hint(path);
        const enum status status =
            fail(BAD_USER, "%s: %s; expected a run directory or a checkpoint file%s", path,
                 strerror(error), hint);
        memory_free(hint);
        return status;
    }
    if (!S_ISDIR(info.st_mode)) {
        *checkpoint = memory_text("%s", path);
        return OK;
    }
    TRY(check_single(path));
    for (size_t n = 0; n < COUNT(names) && *checkpoint == NULL; n++)
        if (file_is_in(path, names[n]))
            *checkpoint = memory_text("%s/%s", path, names[n]);
    if (*checkpoint != NULL)
        return OK;
    if (run_is_running(path))
        return not_saved(path);
    if (access(path, R_OK | X_OK) != 0)
        return fail(BAD_USER, "%s: %s; a run is read from its directory", path,
                    strerror(errno));
    char *run = shell_quote_text("run=%s", path);
    const enum status status =
        fail(BAD_USER,
             "%s: no checkpoint in this directory; train a model with `cohort train ... %s`",
             path, run);
    memory_free(run);
    return status;
}

/* Rank 0: config.ini of a run with a checkpoint; NULL: there is none. */
static char *known_settings(const char *directory)
{
    char *last = memory_text("%s/last.h5", directory);
    char *previous = memory_text("%s/previous.h5", directory);
    char *path = memory_text("%s/config.ini", directory), *text = NULL;
    size_t n = 0;
    if ((file_exists(last) || file_exists(previous)) && file_exists(path) &&
        file_read(path, &text, &n) != OK)
        fail_clear();
    memory_free(last);
    memory_free(previous);
    memory_free(path);
    return text;
}

/* Rank 0: where the settings are: in the directory or, of a cross-validation, in its first fold;
 * NULL: nowhere. */
static char *settings_home(const char *directory)
{
    char *const places[] = {memory_text("%s", directory), memory_text("%s/fold-1", directory)};
    char *home = NULL;
    for (size_t p = 0; p < COUNT(places); p++) {
        char *text = home == NULL ? known_settings(places[p]) : NULL;
        if (text != NULL)
            home = memory_text("%s", places[p]);
        memory_free(text);
        memory_free(places[p]);
    }
    return home;
}

static bool differs(const struct config *given, const struct config *known, const char *key)
{
    const char *a = config_get(given, "model", key), *b = config_get(known, "model", key);
    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static bool is_given(const char *value)
{
    return value != NULL && value[0] != '\0';
}

/* A refit takes its settings from its original run, which may have changed. */
static char *refit_settings_of(const struct config *given, const struct config *known)
{
    const char *origin = config_get(known, "train", "refit");
    const char *data = config_get(known, "data", "file");
    if (!is_given(origin) && !is_given(config_get(given, "train", "refit")))
        return NULL;
    return memory_text("[data]\nfile = %s\n[train]\nrefit = %s\n", data ? data : "",
                       origin ? origin : "");
}

enum status run_recall(const struct comm *comm, struct config *config)
{
    const char *directory = config_get(config, "run", "directory");
    if (directory == NULL || directory[0] == '\0')
        return OK;
    char *home = comm_share_text(comm, comm->rank == 0 ? settings_home(directory) : NULL);
    if (home == NULL)
        return OK;
    char *text = comm_share_text(comm, comm->rank == 0 ? known_settings(home) : NULL);
    char *path = memory_text("%s/config.ini", home);
    const bool is_fold = strcmp(home, directory) != 0;
    memory_free(home);
    if (text == NULL) { /* it vanished just now */
        memory_free(path);
        return OK;
    }
    struct config *known = config_create();
    enum status status = config_read_text(known, text, path);
    char *refit = status == OK ? refit_settings_of(config, known) : NULL;
    if (status == OK && !differs(config, known, "kind") && !differs(config, known, "preset")) {
        if (is_fold) /* the first suggestion counts: all folds, not the first */
            status = config_suggest(config, "[train]\nfold = 0\n", path);
        if (status == OK)
            status = config_suggest(config, refit != NULL ? refit : text, path);
    }
    memory_free(refit);
    config_destroy(known);
    memory_free(path);
    memory_free(text);
    return status;
}

static bool is_positive(const struct config *config, const char *key)
{
    const char *value = config_get(config, "train", key);
    return value != NULL && strtoll(value, NULL, 10) > 0;
}

/* No settings were recalled: refuses a directory with a checkpoint, because of its config.ini. */
static enum status check_settings(const char *directory)
{
    const char *const last = file_is_in(directory, "last.h5")       ? "last.h5"
                             : file_is_in(directory, "previous.h5") ? "previous.h5"
                                                                    : NULL;
    if (last == NULL)
        return OK;
    char *path = memory_text("%s/config.ini", directory), *text = NULL;
    size_t n = 0;
    char *reason = file_read(path, &text, &n) == OK
                       ? memory_text("%s does not set model.kind", path)
                       : memory_text("%s", fail_sentence());
    fail_clear();
    char *checkpoint = shell_quote_text("%s/%s", directory, last);
    const enum status status =
        fail(BAD_USER,
             "run=%s: %s, so the settings of %s/%s are unknown; restore config.ini, or set "
             "data= and all settings again (`cohort inspect %s` lists them)",
             directory, reason, directory, last, checkpoint);
    memory_free(checkpoint);
    memory_free(reason);
    memory_free(text);
    memory_free(path);
    return status;
}

/* There is neither a model to start with nor a checkpoint. */
static enum status nothing_to_continue(const char *directory)
{
    struct stat info;
    const int error = stat(directory, &info) != 0    ? errno
                      : !S_ISDIR(info.st_mode)       ? ENOTDIR
                      : access(directory, X_OK) != 0 ? errno
                                                     : 0;
    if (error != 0 && error != ENOENT)
        return fail(BAD_USER,
                    "run=%s: the run directory cannot be opened: %s; check the name and "
                    "the permissions",
                    directory, strerror(error));
    char *hint = error == 0 ? memory_text("%s", "") : nearest_path_hint(directory);
    const enum status status = fail(
        BAD_USER,
        "run=%s: %s, so there is no run to continue; check the name, or set model.kind= "
        "and data= to start a run there%s",
        directory, error == 0 ? "no checkpoint in this directory" : "no such directory", hint);
    memory_free(hint);
    return status;
}

enum status run_check(const struct config *config)
{
    const char *directory = config_get(config, "run", "directory");
    const bool has_folds = is_positive(config, "folds"), one_fold = is_positive(config, "fold");
    if (directory == NULL || directory[0] == '\0')
        return OK;
    if (file_is_in(directory, "fold-1") && one_fold) {
        char *fold =
            shell_quote_text("run=%s/fold-%s", directory, config_get(config, "train", "fold"));
        const enum status status =
            fail(BAD_USER,
                 "run=%s: this is a cross-validation; continue one of its folds with %s, "
                 "without train.fold=",
                 directory, fold);
        memory_free(fold);
        return status;
    }
    if (file_is_in(directory, "last.h5") && has_folds && !one_fold)
        return fail(BAD_USER,
                    "run=%s: this is a run, not a cross-validation; choose another directory "
                    "for train.folds=%s",
                    directory, config_get(config, "train", "folds"));
    if (file_is_in(directory, "fold-1") && !has_folds) {
        char *fold = shell_quote_text("run=%s/fold-1", directory);
        const enum status status =
            fail(BAD_USER,
                 "run=%s: this is a cross-validation; give all its settings again, with "
                 "train.folds=, to continue it, or continue one fold, as in %s",
                 directory, fold);
        memory_free(fold);
        return status;
    }
    TRY(run_check_place(directory));
    if (config_get(config, "model", "kind") != NULL ||
        config_get(config, "train", "refit") != NULL ||
        config_get(config, "train", "update") != NULL)
        return OK;
    TRY(check_settings(directory));
    if (config_get(config, "data", "file") != NULL)
        return OK; /* a run that begins, without a kind: model_choose refuses it */
    if (run_is_running(directory)) /* it has not saved yet */
        return run_taken(directory);
    return nothing_to_continue(directory);
}
