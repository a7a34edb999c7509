/* All settings of a run. */
#ifndef COHORT_SETTINGS_H
#define COHORT_SETTINGS_H

#include "base/base.h"
#include "base/config.h"
#include "data/data_shape.h"
#include "learn/model.h"
#include "learn/optimizer.h"

struct data_options {
    const char *file;
};
struct train_options {
    int64_t epochs, batch, block, seed, patience, valid_every, folds, fold;
    int64_t chains, temperatures, most_temperatures;
    int monitor;
    const char *refit, *update;
};
struct run_options {
    const char *directory, *snapshots;
    double save_minutes;
};

/* What a refit (train.refit) takes from its original run; see refit.h. */
struct refit {
    char digest[33]; /* of the refitted checkpoint; "": not a refit */
    int64_t epochs;  /* to train; 0: train.epochs, or until it converges */
};

/* What an update (train.update) takes from its original run; see update.h. */
struct update {
    char digest[33]; /* of the original checkpoint; "": not an update */
    char *file;      /* its path */
    char *data;      /* digests of the data sets that it was trained on */
};

/* All settings of a run, and the groups of options they come from. */
enum { N_SETTINGS_GROUPS = 6 };
struct settings {
    struct config *config; /* owns the strings */
    struct model *model;   /* not declared yet */
    struct model_names names;
    struct data_options data;
    struct train_options train;
    struct optimizer_options optimizer;
    struct run_options run;
    struct refit refit;
    struct update update;
    struct option_group groups[N_SETTINGS_GROUPS];
};

/* Sections and keys of locations, which do not change what is computed; for config_text. */
extern const char *const settings_places[];

/* Takes ownership of `config`, chooses the model kind and fills all structs. Settings that
 * neither the user nor a preset gives follow from the shape of the data (defaults.h; NULL: they
 * have the defaults of the tables). run_settings.h also
 * knows refits and updates. */
CHECKED enum status settings_create(struct settings *settings, struct config *config,
                                    const struct data_shape *shape);
void settings_destroy(struct settings *settings);

/* The name of the score that train.monitor selects. */
const char *settings_monitor(const struct settings *settings);
/* The same as an index for metrics_value; -1: likelihood. */
int settings_metric(const struct settings *settings);

/* The tables of all sections except [model], for help. */
void settings_help_groups(struct option_group groups[4]);

#endif
