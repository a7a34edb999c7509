/* The settings of a run: the tables of [data], [model], [optimizer], [train] and [run]. */
#include "runs/settings.h"
#include "base/fail.h"
#include "base/memory.h"
#include "learn/metrics.h"
#include "runs/defaults.h"
#include "runs/snapshots.h"
#include <string.h>

#define AT(struct_name, field) offsetof(struct struct_name, field)

static const char *const monitors[] = {"cbd",  "log_loss",   "auc", "accuracy",
                                       "rmse", "likelihood", NULL};

static const struct option data_table[] = {
    {"file", OPTION_TEXT, AT(data_options, file), NULL, 0, 0, NULL,
     "the data set, as written by `cohort import` or `cohort simulate`"},
};

static const struct option train_table[] = {
    {"epochs", OPTION_INTEGER, AT(train_options, epochs), "20", 0, 1e9, NULL,
     "number of passes over the training students"},
    {"batch", OPTION_INTEGER, AT(train_options, batch), "1000", 1, 1e9, NULL,
     "approximate number of students per mini-batch"},
    {"block", OPTION_INTEGER, AT(train_options, block), "10", 1, 1e9, NULL,
     "students per block; a mini-batch is split into batch / block blocks, which the ranks "
     "share, so at most that many ranks can be used"},
    {"seed", OPTION_INTEGER, AT(train_options, seed), "1", 0, 9e18, NULL,
     "seed of all random numbers of the run"},
    {"patience", OPTION_INTEGER, AT(train_options, patience), "0", 0, 1e9, NULL,
     "stop after this many epochs without a better validation score; 0: never"},
    {"monitor", OPTION_CHOICE, AT(train_options, monitor), "log_loss", 0, 0, monitors,
     "validation score that selects the best epoch; likelihood: the joint log-likelihood that "
     "`cohort evaluate --likelihood` computes (rtrbm and vae)"},
    {"valid_every", OPTION_INTEGER, AT(train_options, valid_every), "1", 1, 1e9, NULL,
     "number of epochs between validations"},
    {"chains", OPTION_INTEGER, AT(train_options, chains), "4", 2, 1e5, NULL,
     "with monitor = likelihood: annealed importance sampling chains for each step that is too "
     "large for an exact sum"},
    {"temperatures", OPTION_INTEGER, AT(train_options, temperatures), "60", 1, 1e6, NULL,
     "with monitor = likelihood: initial number of temperatures per chain, doubled until the "
     "estimate is stable"},
    {"most_temperatures", OPTION_INTEGER, AT(train_options, most_temperatures), "960", 1, 1e6,
     NULL, "with monitor = likelihood: maximum number of temperatures per chain"},
    {"folds", OPTION_INTEGER, AT(train_options, folds), "0", 0, 1000, NULL,
     "number of cross-validation folds; 0: train once on the data set's own split"},
    {"fold", OPTION_INTEGER, AT(train_options, fold), "0", 0, 1000, NULL,
     "train only this fold; 0: all folds"},
    {"refit", OPTION_TEXT, AT(train_options, refit), "", 0, 0, NULL,
     "finished run to train again on its training and validation attempts together, with its "
     "settings and up to its best epoch; short: refit="},
    {"update", OPTION_TEXT, AT(train_options, update), "", 0, 0, NULL,
     "finished run to train further, on new data; short: update="},
};

static const struct option run_table[] = {
    {"directory", OPTION_TEXT, AT(run_options, directory), NULL, 0, 0, NULL,
     "run directory for checkpoints, log and result; the same command continues a run there"},
    {"save_minutes", OPTION_NUMBER, AT(run_options, save_minutes), "0.5", 0, 1e9, NULL,
     "minutes between checkpoints; one is also written at the end and on a signal"},
    {"snapshots", OPTION_TEXT, AT(run_options, snapshots), "", 0, 0, NULL,
     "epochs after which a copy of the checkpoint is kept in RUN/snapshots, for example 0 1 3 "
     "10 "
     "40; 0: before the first step. `cohort report` draws the hidden units of these epochs"},
};

enum { GROUP_DATA, GROUP_NAMES, GROUP_MODEL, GROUP_OPTIMIZER, GROUP_TRAIN, GROUP_RUN };

const char *const settings_places[] = {"data", "run", "train.refit", "train.update", NULL};

const char *settings_monitor(const struct settings *settings)
{
    return monitors[settings->train.monitor];
}

int settings_metric(const struct settings *settings)
{
    for (int metric = 0; metric < N_METRICS; metric++)
        if (strcmp(metrics_names[metric], settings_monitor(settings)) == 0)
            return metric;
    return -1;
}

void settings_help_groups(struct option_group groups[4])
{
    groups[0] = (struct option_group){"data", data_table, COUNT(data_table), NULL};
    groups[1] = (struct option_group){"optimizer", optimizer_table, n_optimizer_table, NULL};
    groups[2] = (struct option_group){"train", train_table, COUNT(train_table), NULL};
    groups[3] = (struct option_group){"run", run_table, COUNT(run_table), NULL};
}

static enum status check(const struct settings *settings)
{
    const struct train_options *train = &settings->train;
    if (settings->data.file[0] == '\0')
        return fail(BAD_USER, "data= is empty; expected the file of a data set");
    if (settings->run.directory[0] == '\0')
        return fail(BAD_USER, "run= is empty; expected a directory for checkpoints and log");
    TRY(snapshots_check(settings->run.snapshots));
    if (settings_metric(settings) < 0 && settings->model->kind->sequence.likelihood == NULL)
        return fail(BAD_USER,
                    "train.monitor = likelihood, but %s models have no joint likelihood (rtrbm "
                    "and vae do); use another score",
                    settings->model->kind->name);
    if (train->refit[0] != '\0')
        return fail(BAD_USER,
                    "train.refit = %s: a refit has no validation scores to compare trials or "
                    "folds by; use it with `cohort train` or `cohort submit` only",
                    train->refit);
    if (train->update[0] != '\0')
        return fail(
            BAD_USER,
            "train.update = %s: an update continues one run; use it with `cohort update`, "
            "`cohort train` or `cohort submit` only",
            train->update);
    if (train->block > train->batch)
        return fail(BAD_USER,
                    "train.block = %lld is larger than train.batch = %lld; a block is part of "
                    "a mini-batch: use a smaller block or a larger batch",
                    (long long)train->block, (long long)train->batch);
    if (train->folds == 1 || train->folds == 2)
        return fail(BAD_USER,
                    "train.folds = %lld: expected at least 3 (one fold for test, one for "
                    "validation, the rest for training), or 0 for no cross-validation",
                    (long long)train->folds);
    if (train->fold > train->folds)
        return fail(BAD_USER,
                    "train.fold = %lld, but train.folds = %lld; expected train.fold from 0 "
                    "(all folds) to train.folds",
                    (long long)train->fold, (long long)train->folds);
    return OK;
}

/* Earlier versions had no optimizer.gradient: learning rates were for sums. The config.ini of a
 * run of theirs is complete except for it. */
static enum status convert(struct config *config)
{
    static const char *const written[] = {"rate", "floor", "drop_every", "warm_up"};
    for (size_t w = 0; w < COUNT(written); w++)
        if (config_get(config, "optimizer", written[w]) == NULL)
            return OK;
    return config_suggest(config, "optimizer.gradient = sum\n",
                          "settings of an earlier version");
}

enum status settings_create(struct settings *settings, struct config *config,
                            const struct data_shape *shape)
{
    *settings = (struct settings){.config = config};
    const struct model_kind *kind = NULL;
    TRY(model_choose(config, &kind));
    if (kind->made_by != NULL)
        return fail(BAD_USER, "model.kind = %s: this model is not trained but built by `%s`",
                    kind->name, kind->made_by);
    if (kind->defaults != NULL)
        TRY(config_suggest(config, kind->defaults, "defaults of the kind"));
    TRY(convert(config));
    if (shape != NULL)
        TRY(defaults_suggest(config, shape, NULL));
    if (kind->setup.prepare != NULL)
        TRY(kind->setup.prepare(config));
    settings->model = model_create(kind);
    struct option_group *groups = settings->groups;
    groups[GROUP_DATA] =
        (struct option_group){"data", data_table, COUNT(data_table), &settings->data};
    groups[GROUP_NAMES] = (struct option_group){"model", model_name_options,
                                                COUNT(model_name_options), &settings->names};
    groups[GROUP_MODEL] = (struct option_group){"model", kind->options, kind->n_options,
                                                settings->model->options};
    groups[GROUP_OPTIMIZER] = (struct option_group){"optimizer", optimizer_table,
                                                    n_optimizer_table, &settings->optimizer};
    groups[GROUP_TRAIN] =
        (struct option_group){"train", train_table, COUNT(train_table), &settings->train};
    groups[GROUP_RUN] =
        (struct option_group){"run", run_table, COUNT(run_table), &settings->run};
    TRY(model_check_keys(config, kind));
    TRY(config_resolve(config, groups, N_SETTINGS_GROUPS));
    return check(settings);
}

void settings_destroy(struct settings *settings)
{
    model_destroy(settings->model);
    config_destroy(settings->config);
    memory_free(settings->update.file);
    memory_free(settings->update.data);
    *settings = (struct settings){0};
}
