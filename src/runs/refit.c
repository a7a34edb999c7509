/* A refit. Settings and the number of epochs are chosen on the validation attempts; afterwards
 * the model can learn from these too. `train.refit = RUN` trains the model of a finished run
 * again, from scratch, on its training and validation attempts together (data/resplit.c):
 *
 *     settings   those stored in the run's checkpoint and no others, because a setting that was
 *                not tried on the validation attempts has not been chosen on them
 *     epochs     those up to the best epoch, if the run kept its best; otherwise until it
 *                converges, or train.epochs. Learning-rate schedules still span the run's
 *                train.epochs and stop where the best epoch stopped. Epochs count, not steps:
 *                if whole students were held out for validation, an epoch now has more students
 *                and more steps.
 *
 * A refit is not validated, and nothing stops it early. Its checkpoint identifies the original
 * run's checkpoint by digest, in a section [refit] of its configuration, so that it does not
 * depend on the location of runs; config.ini names the directory. inference.c applies the
 * refit's split to the data, and `cohort blend` finds the original run, whose predictions of
 * the validation attempts are fair. */
#include "runs/refit.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "runs/checkpoint.h"
#include "runs/run.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The original run. */
struct origin {
    char *directory, *data; /* data: the path of its data set; NULL: unknown */
    struct checkpoint checkpoint;
    struct config *config; /* the checkpoint's */
};

char *refit_text(const struct refit *refit)
{
    return memory_text("\n[refit]\nepochs = %lld\ndigest = %s\n", (long long)refit->epochs,
                       refit->digest);
}

const char *refit_digest(const struct config *config)
{
    return config_get(config, "refit", "digest");
}

/* Rank 0: checks the directory before its checkpoints are read. */
static enum status check_directory(const char *directory)
{
    struct stat info;
    if (stat(directory, &info) != 0)
        return fail(BAD_USER, "train.refit = %s: %s; expected the directory of a finished run",
                    directory, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return fail(
            BAD_USER,
            "train.refit = %s: not a directory; expected the directory of a finished run",
            directory);
    char *file = NULL;
    const enum status status = run_find(directory, &file);
    memory_free(file);
    return status == OK ? OK : fail_context(status, "train.refit");
}

/* Collective: whether the run is finished. */
static enum status check_finished(const struct comm *comm, const char *directory)
{
    char *last = memory_text("%s/last.h5", directory);
    struct checkpoint checkpoint;
    enum status status = OK;
    int64_t there = comm->rank == 0 && file_exists(last);
    comm_max_i64(comm, &there, 1);
    if (!there)
        status = fail(BAD_USER,
                      "train.refit = %s: this run has no last.h5, so it is not finished; "
                      "repeat the command that started it to continue it",
                      directory);
    else if ((status = checkpoint_open(&checkpoint, last, comm)) == OK) {
        if (!checkpoint.progress.finished)
            status = fail(
                BAD_USER,
                "train.refit = %s: this run is not finished (epochs so far: %lld), so its best "
                "epoch is not known; repeat the command that started it to continue it",
                directory, (long long)checkpoint.progress.epoch);
        checkpoint_close(&checkpoint);
    }
    memory_free(last);
    return status;
}

static enum status check_kind(const struct origin *origin)
{
    const struct model_kind *kind = NULL;
    TRY(model_choose(origin->config, &kind));
    if (kind->made_by != NULL)
        return fail(BAD_USER,
                    "train.refit = %s: this is a %s, which is built from other runs; refit "
                    "those, then %s the refits",
                    origin->directory, kind->name, kind->name);
    if (refit_digest(origin->config) != NULL)
        return fail(BAD_USER,
                    "train.refit = %s: this is already a refit, trained on its validation "
                    "attempts too; name the original run instead",
                    origin->directory);
    return OK;
}

/* Collective. */
static enum status open_origin(struct origin *origin, const struct comm *comm,
                               const char *directory)
{
    *origin = (struct origin){.directory = memory_text("%s", directory),
                              .checkpoint = {.file = -1},
                              .config = config_create()};
    TRY(comm_agree(comm, comm->rank == 0 ? check_directory(directory) : OK));
    TRY(check_finished(comm, directory));
    char *file = NULL;
    TRY(comm_agree(comm, comm->rank == 0 ? run_find(directory, &file) : OK));
    file = comm_share_text(comm, file);
    origin->data =
        comm_share_text(comm, comm->rank == 0 ? run_setting(directory, "data", "file") : NULL);
    enum status status = checkpoint_open(&origin->checkpoint, file, comm);
    memory_free(file);
    TRY(status);
    TRY(config_read_text(origin->config, origin->checkpoint.config, origin->checkpoint.path));
    return check_kind(origin);
}

static void close_origin(struct origin *origin)
{
    config_destroy(origin->config);
    checkpoint_close(&origin->checkpoint);
    memory_free(origin->directory);
    memory_free(origin->data);
}

static bool is_place(const struct config_entry *entry)
{
    return strcmp(entry->section, "data") == 0 || strcmp(entry->section, "run") == 0;
}

/* The settings of the run, with the user's locations or, if `all`, all of the user's
 * settings. */
static enum status combine(const struct origin *origin, const struct config *said, bool all,
                           struct settings *settings)
{
    struct config *config = config_create();
    /* Read from the text: origin->config also holds what the preset suggested, which would
     * count as set explicitly and win. */
    enum status status =
        config_read_text(config, origin->checkpoint.config, origin->checkpoint.path);
    if (status == OK && origin->data != NULL) {
        char *line = memory_text("data.file=%s", origin->data);
        status = config_set(config, line, origin->directory);
        memory_free(line);
    }
    for (size_t e = 0; status == OK && e < config_count(said); e++) {
        const struct config_entry entry = config_entry(said, e);
        const bool names_origin =
            strcmp(entry.section, "train") == 0 && strcmp(entry.key, "refit") == 0;
        if (names_origin || !(all || is_place(&entry)))
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

/* Reports the first line in which two configurations of the same model kind differ. */
static enum status compare(const struct origin *origin, const char *own, const char *said)
{
    const char *section = "";
    size_t n_section = 0;
    while (*own != '\0' && *said != '\0') {
        const size_t a = strcspn(own, "\n"), b = strcspn(said, "\n");
        if (a != b || memcmp(own, said, a) != 0)
            return fail(BAD_USER,
                        "%.*s.%.*s: a refit keeps all settings, and %s was trained with "
                        "'%.*s'; omit it, or train a run with it and refit that",
                        (int)n_section, section, (int)b, said, origin->directory, (int)a, own);
        if (own[0] == '[') {
            section = own + 1;
            n_section = strcspn(section, "]");
        }
        own += a + (own[a] == '\n');
        said += b + (said[b] == '\n');
    }
    return OK;
}

/* The user's other settings must agree with the run's. */
static enum status check_said(const struct origin *origin, const struct settings *own,
                              const struct config *said)
{
    const char *kind = config_get(said, "model", "kind");
    if (kind != NULL && strcmp(kind, own->model->kind->name) != 0)
        return fail(BAD_USER,
                    "model.kind = %s, but %s was trained with %s, and a refit keeps all "
                    "settings; omit it",
                    kind, origin->directory, own->model->kind->name);
    struct settings both;
    enum status status = combine(origin, said, true, &both);
    if (status == OK) {
        char *a = config_text(own->groups, N_SETTINGS_GROUPS, settings_places);
        char *b = config_text(both.groups, N_SETTINGS_GROUPS, settings_places);
        status = compare(origin, a, b);
        memory_free(a);
        memory_free(b);
    }
    settings_destroy(&both);
    return status;
}

/* Rank 0: the refit must not overwrite its original run. */
static enum status check_places(const struct origin *origin, const struct settings *settings)
{
    struct stat from, to;
    if (stat(origin->directory, &from) == 0 && stat(settings->run.directory, &to) == 0 &&
        from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return fail(BAD_USER,
                    "run= and refit= both name %s, so the refit would overwrite the run; "
                    "choose another run=",
                    origin->directory);
    return OK;
}

/* Collective: only the same data set has the run's validation attempts. */
static enum status check_data(const struct comm *comm, const struct origin *origin,
                              const struct settings *settings)
{
    struct dataset dataset = {0};
    enum status status = dataset_open(&dataset, settings->data.file, comm);
    if (status == OK && strcmp(dataset.digest, origin->checkpoint.data_digest) != 0)
        status = fail(BAD_USER,
                      "%s was trained on a data set with digest %s, but %s has digest %s; a "
                      "refit needs the same data: give its location with data=",
                      origin->directory, origin->checkpoint.data_digest, dataset.path,
                      dataset.digest);
    dataset_close(&dataset);
    return status;
}

static enum status check(const struct comm *comm, const struct origin *origin,
                         const struct settings *settings, const struct config *said)
{
    TRY(check_said(origin, settings, said));
    TRY(comm_agree(comm, comm->rank == 0 ? check_places(origin, settings) : OK));
    return check_data(comm, origin, settings);
}

/* Marks the settings as a refit. */
static enum status take_over(const struct origin *origin, struct settings *settings)
{
    char *line = memory_text("train.refit=%s", origin->directory);
    enum status status = config_set(settings->config, line, origin->directory);
    memory_free(line);
    TRY(status);
    settings->train.refit = config_get(settings->config, "train", "refit");
    settings->refit.epochs = origin->checkpoint.progress.best_epoch;
    memcpy(settings->refit.digest, origin->checkpoint.digest, sizeof settings->refit.digest);
    return OK;
}

/* Collective: settings of a run that is not a refit. A continued one has them all. */
static enum status create(const struct comm *comm, struct settings *settings,
                          struct config *config)
{
    const char *file = config_get(config, "data", "file");
    struct data_shape shape;
    *settings = (struct settings){.config = config};
    const bool complete = config_get(config, "optimizer", "warm_up") != NULL &&
                          config_get(config, "train", "valid_every") != NULL;
    int64_t there = comm->rank == 0 && file != NULL && file_exists(file);
    comm_max_i64(comm, &there, 1);
    if (!there || complete) /* data that are not there yet: a job may be submitted before */
        return settings_create(settings, config, NULL);
    TRY(data_shape_read(&shape, file, comm));
    return settings_create(settings, config, &shape);
}

enum status refit_settings(const struct comm *comm, struct settings *settings,
                           struct config *config)
{
    const char *directory = config_get(config, "train", "refit");
    if (directory == NULL || directory[0] == '\0')
        return create(comm, settings, config);
    *settings = (struct settings){0};
    struct origin origin;
    enum status status = open_origin(&origin, comm, directory);
    if (status == OK)
        status = combine(&origin, config, false, settings);
    if (status == OK)
        status = check(comm, &origin, settings, config);
    if (status == OK)
        status = take_over(&origin, settings);
    close_origin(&origin);
    config_destroy(config);
    return status;
}
