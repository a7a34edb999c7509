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
#include "base/memory.h"
#include "data/dataset.h"
#include "runs/original_run.h"
#include <string.h>

char *refit_text(const struct refit *refit)
{
    return memory_text("\n[refit]\nepochs = %lld\ndigest = %s\n", (long long)refit->epochs,
                       refit->digest);
}

const char *refit_digest(const struct config *config)
{
    return config_get(config, "refit", "digest");
}

static enum status check_fresh(const struct original_run *original)
{
    if (refit_digest(original->config) != NULL)
        return fail(BAD_USER,
                    "train.refit = %s: this is already a refit, trained on its validation "
                    "attempts too; name the original run instead",
                    original->directory);
    if (config_get(original->config, "update", "digest") != NULL)
        return fail(BAD_USER,
                    "train.refit = %s: this is an update, and a refit starts from scratch; "
                    "refit the run that was updated, then update the refit",
                    original->directory);
    return OK;
}

/* Reports the first line in which two configurations of the same model kind differ. */
static enum status compare(const struct original_run *original, const char *own,
                           const char *given)
{
    const char *section = "";
    size_t n_section = 0;
    while (*own != '\0' && *given != '\0') {
        const size_t a = strcspn(own, "\n"), b = strcspn(given, "\n");
        if (a != b || memcmp(own, given, a) != 0)
            return fail(BAD_USER,
                        "%.*s.%.*s: a refit keeps all settings, and %s was trained with "
                        "'%.*s'; omit it, or train a run with it and refit that",
                        (int)n_section, section, (int)b, given, original->directory, (int)a,
                        own);
        if (own[0] == '[') {
            section = own + 1;
            n_section = strcspn(section, "]");
        }
        own += a + (own[a] == '\n');
        given += b + (given[b] == '\n');
    }
    return OK;
}

/* The user's other settings must agree with the run's. */
static enum status check_given(const struct original_run *original, const struct settings *own,
                               const struct config *given)
{
    const char *kind = config_get(given, "model", "kind");
    if (kind != NULL && strcmp(kind, own->model->kind->name) != 0)
        return fail(BAD_USER,
                    "model.kind = %s, but %s was trained with %s, and a refit keeps all "
                    "settings; omit it",
                    kind, original->directory, own->model->kind->name);
    struct settings both;
    enum status status = original_run_settings(original, given, true, &both);
    if (status == OK) {
        char *a = config_text(own->groups, N_SETTINGS_GROUPS, settings_places);
        char *b = config_text(both.groups, N_SETTINGS_GROUPS, settings_places);
        status = compare(original, a, b);
        memory_free(a);
        memory_free(b);
    }
    settings_destroy(&both);
    return status;
}

/* Collective: only the same data set has the run's validation attempts. */
static enum status check_data(const struct comm *comm, const struct original_run *original,
                              const struct settings *settings)
{
    struct dataset dataset = {0};
    enum status status = dataset_open(&dataset, settings->data.file, comm);
    if (status == OK && strcmp(dataset.digest, original->checkpoint.data_digest) != 0)
        status = fail(BAD_USER,
                      "%s was trained on a data set with digest %s, but %s has digest %s; a "
                      "refit needs the same data: give its location with data=",
                      original->directory, original->checkpoint.data_digest, dataset.path,
                      dataset.digest);
    dataset_close(&dataset);
    return status;
}

static enum status check(const struct comm *comm, const struct original_run *original,
                         const struct settings *settings, const struct config *given)
{
    TRY(check_given(original, settings, given));
    TRY(comm_agree(comm, comm->rank == 0 ? original_run_check_place(original, settings) : OK));
    return check_data(comm, original, settings);
}

/* Marks the settings as a refit. */
static enum status take_over(const struct original_run *original, struct settings *settings)
{
    TRY(original_run_set_name(original, settings->config));
    settings->train.refit = config_get(settings->config, "train", "refit");
    settings->refit.epochs = original->checkpoint.progress.best_epoch;
    memcpy(settings->refit.digest, original->checkpoint.digest, sizeof settings->refit.digest);
    return OK;
}

enum status refit_settings(const struct comm *comm, struct settings *settings,
                           struct config *config)
{
    *settings = (struct settings){0};
    struct original_run original;
    enum status status =
        original_run_open(&original, comm, "train.refit", config_get(config, "train", "refit"));
    if (status == OK)
        status = check_fresh(&original);
    if (status == OK)
        status = original_run_settings(&original, config, false, settings);
    if (status == OK)
        status = check(comm, &original, settings, config);
    if (status == OK)
        status = take_over(&original, settings);
    original_run_close(&original);
    config_destroy(config);
    return status;
}
