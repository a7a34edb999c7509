/* tests: a small set of settings of every type. */
#ifndef COHORT_SAMPLE_OPTIONS_H
#define COHORT_SAMPLE_OPTIONS_H

#include "base/config.h"

struct model {
    int64_t hidden;
    double rate;
    bool persistent;
    int visible;
};

struct data {
    const char *file, *note;
};

struct run {
    const char *directory;
    int64_t seed;
};

/* All of them together, as in `cohort train`. */
struct settings {
    struct model model;
    struct data data;
    struct run run;
};

static const char *const visible_kinds[] = {"bernoulli", "softmax", "gaussian", NULL};

static const struct option model_options[] = {
    {.key = "hidden",
     .type = OPTION_INTEGER,
     .offset = offsetof(struct model, hidden),
     .standard = "15",
     .least = 1,
     .most = 4096,
     .help = "hidden units"},
    {.key = "rate",
     .type = OPTION_NUMBER,
     .offset = offsetof(struct model, rate),
     .standard = "0.001",
     .least = 0,
     .most = 10,
     .help = "how far a step goes"},
    {.key = "persistent",
     .type = OPTION_SWITCH,
     .offset = offsetof(struct model, persistent),
     .standard = "no",
     .help = "keep the chains"},
    {.key = "visible",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct model, visible),
     .standard = "softmax",
     .choices = visible_kinds,
     .help = "kind of the visible units"},
};
static const struct option data_options[] = {
    {.key = "file",
     .type = OPTION_TEXT,
     .offset = offsetof(struct data, file),
     .help = "the data set"},
    {.key = "note",
     .type = OPTION_TEXT,
     .offset = offsetof(struct data, note),
     .standard = "",
     .help = "for people"},
};
static const struct option run_options[] = {
    {.key = "directory",
     .type = OPTION_TEXT,
     .offset = offsetof(struct run, directory),
     .standard = "runs/one",
     .help = "where it goes"},
    {.key = "seed",
     .type = OPTION_INTEGER,
     .offset = offsetof(struct run, seed),
     .standard = "1",
     .least = -9.3e18,
     .most = 9.3e18,
     .help = "of all random numbers"},
};
enum { N_GROUPS = 3 };

static inline void groups_fill(struct option_group groups[N_GROUPS], struct settings *settings)
{
    groups[0] =
        (struct option_group){"model", model_options, COUNT(model_options), &settings->model};
    groups[1] =
        (struct option_group){"data", data_options, COUNT(data_options), &settings->data};
    groups[2] = (struct option_group){"run", run_options, COUNT(run_options), &settings->run};
}

static inline enum status resolve(const struct config *config, struct settings *settings)
{
    struct option_group groups[N_GROUPS];
    groups_fill(groups, settings);
    return config_resolve(config, groups, N_GROUPS);
}

#endif
