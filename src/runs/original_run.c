/* A refit and an update start from a finished run: its checkpoint has the settings, without
 * locations, and the model; config.ini has the location of its data. Its own sections [refit] and
 * [update], which say where it came from, are not settings. */
#include "runs/original_run.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "runs/run_find.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Rank 0: checks the directory before its checkpoints are read. */
static enum status check_directory(const struct original_run *run)
{
    struct stat info;
    if (stat(run->directory, &info) != 0)
        return fail(BAD_USER, "%s = %s: %s; expected the directory of a finished run", run->key,
                    run->directory, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return fail(BAD_USER,
                    "%s = %s: not a directory; expected the directory of a finished run",
                    run->key, run->directory);
    char *file = NULL;
    const enum status status = run_find(run->directory, &file);
    memory_free(file);
    return status == OK ? OK : fail_context(status, "%s", run->key);
}

/* Collective: whether the run is finished. */
static enum status check_finished(const struct original_run *run, const struct comm *comm)
{
    char *last = memory_text("%s/last.h5", run->directory);
    struct checkpoint checkpoint;
    enum status status = OK;
    int64_t there = comm->rank == 0 && file_exists(last);
    comm_max_i64(comm, &there, 1);
    if (!there)
        status = fail(BAD_USER,
                      "%s = %s: this run has no last.h5, so it is not finished; "
                      "repeat the command that started it to continue it",
                      run->key, run->directory);
    else if ((status = checkpoint_open(&checkpoint, last, comm)) == OK) {
        if (!checkpoint.progress.finished)
            status =
                fail(BAD_USER,
                     "%s = %s: this run is not finished (epochs so far: %lld), so its best "
                     "epoch is not known; repeat the command that started it to continue it",
                     run->key, run->directory, (long long)checkpoint.progress.epoch);
        checkpoint_close(&checkpoint);
    }
    memory_free(last);
    return status;
}

static enum status check_kind(const struct original_run *run)
{
    const struct model_kind *kind = NULL;
    TRY(model_choose(run->config, &kind));
    const char *what = strchr(run->key, '.') + 1;
    if (kind->made_by != NULL)
        return fail(BAD_USER,
                    "%s = %s: this is a %s, which is built from other runs; %s those, then %s "
                    "the results",
                    run->key, run->directory, kind->name, what, kind->name);
    return OK;
}

enum status original_run_open(struct original_run *run, const struct comm *comm,
                              const char *key, const char *directory)
{
    *run = (struct original_run){.key = key,
                                 .directory = memory_text("%s", directory),
                                 .checkpoint = {.file = -1},
                                 .config = config_create()};
    TRY(comm_agree(comm, comm->rank == 0 ? check_directory(run) : OK));
    TRY(check_finished(run, comm));
    char *file = NULL;
    TRY(comm_agree(comm, comm->rank == 0 ? run_find(directory, &file) : OK));
    file = comm_share_text(comm, file);
    run->data =
        comm_share_text(comm, comm->rank == 0 ? run_setting(directory, "data", "file") : NULL);
    enum status status = checkpoint_open(&run->checkpoint, file, comm);
    memory_free(file);
    TRY(status);
    TRY(config_read_text(run->config, run->checkpoint.config, run->checkpoint.path));
    return check_kind(run);
}

void original_run_close(struct original_run *run)
{
    config_destroy(run->config);
    checkpoint_close(&run->checkpoint);
    memory_free(run->directory);
    memory_free(run->data);
}

/* The checkpoint's settings up to the sections that are none; caller frees. */
static char *own_settings(const struct checkpoint *checkpoint)
{
    static const char *const ends[] = {"\n[refit]", "\n[update]"};
    size_t n = strlen(checkpoint->config);
    for (size_t e = 0; e < COUNT(ends); e++) {
        const char *end = strstr(checkpoint->config, ends[e]);
        if (end != NULL)
            n = size_min(n, (size_t)(end + 1 - checkpoint->config));
    }
    return memory_text("%.*s", (int)n, checkpoint->config);
}

static bool is_place(const struct config_entry *entry)
{
    return strcmp(entry->section, "data") == 0 || strcmp(entry->section, "run") == 0;
}

/* Whether the entry is the setting that names the original run. */
static bool names_original(const struct original_run *run, const struct config_entry *entry)
{
    return strcmp(entry->section, "train") == 0 &&
           strcmp(entry->key, strchr(run->key, '.') + 1) == 0;
}

enum status original_run_settings(const struct original_run *run, const struct config *given,
                                  bool all, struct settings *settings)
{
    struct config *config = config_create();
    /* Read from the text: run->config also holds what the preset suggested, which would count
     * as set explicitly and win. */
    char *text = own_settings(&run->checkpoint);
    enum status status = config_read_text(config, text, run->checkpoint.path);
    memory_free(text);
    if (status == OK && run->data != NULL) {
        char *line = memory_text("data.file=%s", run->data);
        status = config_set(config, line, run->directory);
        memory_free(line);
    }
    for (size_t e = 0; status == OK && e < config_count(given); e++) {
        struct config_entry entry; /* what is given wins over what run_recall suggested */
        if (!config_setting(given, e, &entry) || names_original(run, &entry) ||
            !(all || is_place(&entry)))
            continue;
        char *line = memory_text("%s.%s=%s", entry.section, entry.key, entry.value);
        status = config_set(config, line, entry.origin);
        memory_free(line);
    }
    if (status == OK)
        return settings_create(settings, config, NULL);
    config_destroy(config);
    *settings = (struct settings){0};
    return status;
}

enum status original_run_check_place(const struct original_run *run,
                                     const struct settings *settings)
{
    const char *what = strchr(run->key, '.') + 1;
    if (file_is_same(run->directory, settings->run.directory))
        return fail(BAD_USER,
                    "run= and %s= both name %s, so the %s would overwrite the run; choose "
                    "another run=",
                    what, run->directory, what);
    return OK;
}

enum status original_run_set_name(const struct original_run *run, struct config *config)
{
    char *line = memory_text("%s=%s", run->key, run->directory);
    const enum status status = config_set(config, line, run->directory);
    memory_free(line);
    return status;
}
