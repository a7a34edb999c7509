/* From a file with lists and ranges to trials.
 *
 *     grid     every combination of the values, the first key changing slowest; a range needs
 *              its number of points: log(1e-4, 1e-2, 5)
 *     random   `trials` points, uniform over lists and ranges (for log: over logarithms)
 *     halton   the same, but evenly spaced: coordinate d of trial n is the radical inverse of n
 *              in base p(d), the d-th prime, shifted by a random number u(d) modulo 1:
 *
 *                  n = sum_i a_i p^i,   x = sum_i a_i p^(-i-1) + u,   x - floor(x)
 *
 * A trial's id is a digest of all its settings except the number of epochs, so it does not
 * depend on the other trials, nor on how far successive halving takes it. The settings of all
 * trials are resolved here, before anything is written: the sweep refuses what any trial would
 * refuse. */
#include "sweep/sweep.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_TRIALS = 1000000 };
static const char *const designs[] = {"grid", "random", "halton", NULL};

#define AT(field) offsetof(struct sweep_options, field)
const struct option sweep_table[] = {
    {"design", OPTION_CHOICE, AT(design), "grid", 0, 0, designs,
     "grid: every combination; random: independent random points; halton: evenly spaced random "
     "points"},
    {"trials", OPTION_INTEGER, AT(trials), "0", 0, MOST_TRIALS, NULL,
     "number of trials, for random and halton"},
    {"seed", OPTION_INTEGER, AT(seed), "1", 0, 9e18, NULL, "seed of the random points"},
    {"ranks", OPTION_INTEGER, AT(ranks), "1", 1, 1e6, NULL, "ranks per trial"},
    {"rungs", OPTION_INTEGER, AT(rungs), "1", 1, 20, NULL,
     "number of rungs of successive halving: all trials are trained briefly; the best "
     "continue; 1: no halving"},
    {"factor", OPTION_NUMBER, AT(factor), "3", 1.1, 100, NULL,
     "at each rung, divide the number of trials and multiply the epochs by this factor"},
};
const size_t n_sweep_table = COUNT(sweep_table);

/* ---- values */

static char *trimmed(const char *start, const char *end)
{
    while (start < end && *start == ' ')
        start++;
    while (start < end && end[-1] == ' ')
        end--;
    return memory_text("%.*s", (int)(end - start), start);
}

/* Splits the text at commas outside brackets and parentheses. */
static size_t cut(const char *text, size_t n, char ***parts)
{
    size_t n_parts = 0, capacity = 0;
    int depth = 0;
    *parts = NULL;
    for (const char *start = text, *at = text; n > 0 && at <= text + n; at++) {
        if (at < text + n && strchr("([{", *at))
            depth++;
        if (at < text + n && strchr(")]}", *at))
            depth--;
        if (at == text + n || (*at == ',' && depth == 0)) {
            GROW(*parts, n_parts, capacity);
            (*parts)[n_parts++] = trimmed(start, at);
            start = at + 1;
        }
    }
    return n_parts;
}

static void free_parts(char **parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memory_free(parts[i]);
    memory_free(parts);
}

static bool to_number(const char *text, double *number)
{
    char *end = NULL;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number);
}

static char *number_text(double value, bool is_whole)
{
    return is_whole ? memory_text("%.0f", rint(value)) : memory_text("%.6g", value);
}

/* The value of a range at u in [0, 1]. */
static double range_at(const struct sweep_dimension *d, double u)
{
    return d->is_log ? exp(log(d->low) + u * (log(d->high) - log(d->low)))
                     : d->low + u * (d->high - d->low);
}

static enum status parse_range(struct sweep_dimension *d, char **parts, size_t n,
                               const char *value, enum sweep_design design)
{
    double points = 0;
    if (n < 2 || n > 3 || !to_number(parts[0], &d->low) || !to_number(parts[1], &d->high) ||
        (n == 3 && (!to_number(parts[2], &points) || points < 2 || points > 1e4 ||
                    points != rint(points))))
        return fail(BAD_USER,
                    "%s.%s = %s: expected two numbers and, for a grid, the number of points, "
                    "as in log(1e-4, 1e-2, 5)",
                    d->section, d->key, value);
    if (!(d->low < d->high))
        return fail(BAD_USER, "%s.%s = %s: the range is empty; give the lower end first",
                    d->section, d->key, value);
    if (d->is_log && d->low <= 0)
        return fail(BAD_USER,
                    "%s.%s = %s: log(...) needs numbers above 0; use uniform(...) instead",
                    d->section, d->key, value);
    if (design != SWEEP_GRID)
        return OK;
    if (n < 3)
        return fail(BAD_USER,
                    "%s.%s = %s: a grid needs the number of points, as in %.*s, 5); or set "
                    "sweep.design = random or halton",
                    d->section, d->key, value, (int)strlen(value) - 1, value);
    d->n_values = (size_t)points;
    d->values = NEW(char *, d->n_values);
    for (size_t v = 0; v < d->n_values; v++)
        d->values[v] =
            number_text(range_at(d, (double)v / (double)(d->n_values - 1)), d->is_whole);
    return OK;
}

/* *is_one: whether the value is a list or a range. */
static enum status parse_dimension(struct sweep_dimension *d, const char *value,
                                   enum sweep_design design, bool *is_one)
{
    const size_t n = strlen(value);
    const bool list = value[0] == '{', uniform = strncmp(value, "uniform(", 8) == 0;
    d->is_log = strncmp(value, "log(", 4) == 0;
    *is_one = list || uniform || d->is_log;
    if (!*is_one)
        return OK;
    if (value[n - 1] != (list ? '}' : ')'))
        return fail(BAD_USER, "%s.%s = %s: the closing %s is missing", d->section, d->key,
                    value, list ? "brace" : "parenthesis");
    char **parts = NULL;
    const size_t head = list ? 1 : uniform ? 8 : 4;
    const size_t n_parts = cut(value + head, n - head - 1, &parts);
    enum status status = OK;
    if (!list) {
        status = parse_range(d, parts, n_parts, value, design);
        free_parts(parts, n_parts);
        return status;
    }
    d->values = parts;
    d->n_values = n_parts;
    for (size_t v = 0; v < n_parts && status == OK; v++)
        if (parts[v][0] == '\0')
            status = fail(BAD_USER, "%s.%s = %s: the list has an empty element", d->section,
                          d->key, value);
    return n_parts == 0
               ? fail(BAD_USER, "%s.%s = %s: the list is empty", d->section, d->key, value)
               : status;
}

/* ---- trials */

/* The settings of a trial: the common ones, its values, its number of epochs and its
 * directory. */
static enum status resolve(const struct sweep *sweep, char *const *values, int64_t epochs,
                           const char *directory, const struct data_shape *shape,
                           struct settings *settings)
{
    struct config *config = config_create();
    enum status status = OK;
    for (size_t e = 0; status == OK && e < config_count(sweep->config); e++) {
        struct config_entry entry;
        if (!config_setting(sweep->config, e, &entry) || strcmp(entry.section, "sweep") == 0)
            continue;
        for (size_t d = 0; d < sweep->n_dimensions; d++)
            if (strcmp(sweep->dimensions[d].section, entry.section) == 0 &&
                strcmp(sweep->dimensions[d].key, entry.key) == 0)
                entry.value = values[d];
        char *line = memory_text("%s.%s=%s", entry.section, entry.key, entry.value);
        status = config_set(config, line, entry.origin);
        memory_free(line);
    }
    char *line = memory_text("run.directory=%s", directory);
    if (status == OK)
        status = config_set(config, line, "sweep");
    memory_free(line);
    line = memory_text("train.epochs = %lld\n", (long long)epochs);
    if (status == OK && epochs > 0) /* a suggestion ranks below what is set */
        status = config_is_given(config, "train", "epochs")
                     ? config_set(config, line, "sweep")
                     : config_suggest(config, line, "sweep");
    memory_free(line);
    if (status != OK) {
        config_destroy(config);
        *settings = (struct settings){0};
        return status;
    }
    return settings_create(settings, config, shape);
}

static const struct data_shape *shape_of(const struct sweep *sweep)
{
    return sweep->has_shape ? &sweep->shape : NULL;
}

static void id_of(const struct settings *settings, char id[17])
{
    char *text = config_text(settings->groups, N_SETTINGS_GROUPS, settings_places);
    char *line = strstr(text, "\nepochs = ");
    if (line != NULL) /* not part of the trial's identity */
        memset(line + 1, ' ', strcspn(line + 1, "\n"));
    snprintf(id, 17, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
    memory_free(text);
}

static double radical_inverse(size_t n, size_t base)
{
    double inverse = 0, place = 1.0 / (double)base;
    for (; n > 0; n /= base, place /= (double)base)
        inverse += (double)(n % base) * place;
    return inverse;
}

/* Coordinate d of trial n, in [0, 1). */
static double coordinate(const struct sweep *sweep, size_t n, size_t d)
{
    static const size_t primes[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29, 31,
                                    37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79};
    const struct rng rng = {.seed = (uint64_t)sweep->options.seed,
                            .purpose = RNG_SWEEP,
                            .who = (uint32_t)(sweep->options.design == SWEEP_RANDOM ? n : 0)};
    const double random = rng_uniform(&rng, (uint32_t)d);
    if (sweep->options.design == SWEEP_RANDOM || d >= COUNT(primes))
        return random;
    const double turned = radical_inverse(n + 1, primes[d]) + random;
    return turned - floor(turned);
}

static char *value_of(const struct sweep *sweep, size_t n, size_t d, size_t grid_place)
{
    const struct sweep_dimension *dimension = &sweep->dimensions[d];
    if (sweep->options.design == SWEEP_GRID)
        return memory_text("%s", dimension->values[grid_place]);
    const double u = coordinate(sweep, n, d);
    if (dimension->n_values > 0)
        return memory_text("%s", dimension->values[(size_t)(u * (double)dimension->n_values)]);
    return number_text(range_at(dimension, u), dimension->is_whole);
}

static void trial_free(const struct sweep *sweep, struct sweep_trial *trial)
{
    free_parts(trial->values, trial->values == NULL ? 0 : sweep->n_dimensions);
}

/* Sorts equal ids together, the earliest first. */
static int by_id(const void *a, const void *b)
{
    const struct sweep_trial *const *x = a, *const *y = b;
    const int order = strcmp((*x)->id, (*y)->id);
    return order != 0 ? order : *x < *y ? -1 : *x > *y;
}

/* Removes trials with the id of an earlier one. */
static void leave_out_twins(struct sweep *sweep)
{
    const size_t n = sweep->n_trials;
    struct sweep_trial **sorted = NEW(struct sweep_trial *, n);
    bool *is_twin = NEW(bool, n);
    for (size_t t = 0; t < n; t++)
        sorted[t] = &sweep->trials[t];
    qsort(sorted, n, sizeof(struct sweep_trial *), by_id);
    for (size_t t = 1; t < n; t++)
        is_twin[sorted[t] - sweep->trials] = strcmp(sorted[t - 1]->id, sorted[t]->id) == 0;
    size_t kept = 0;
    for (size_t t = 0; t < n; t++)
        if (is_twin[t])
            trial_free(sweep, &sweep->trials[t]);
        else
            sweep->trials[kept++] = sweep->trials[t];
    memory_free(sorted);
    memory_free(is_twin);
    sweep->n_twins = n - kept;
    sweep->n_trials = kept;
}

static enum status make_trials(struct sweep *sweep)
{
    double n = sweep->options.design == SWEEP_GRID ? 1 : (double)sweep->options.trials;
    for (size_t d = 0; sweep->options.design == SWEEP_GRID && d < sweep->n_dimensions; d++)
        n *= (double)sweep->dimensions[d].n_values;
    if (n < 1)
        return fail(BAD_USER, "sweep.trials = 0: a %s design needs the number of trials",
                    designs[sweep->options.design]);
    if (n > MOST_TRIALS)
        return fail(BAD_USER, "the grid has %.0f points; expected at most %d", n, MOST_TRIALS);
    sweep->trials = NEW(struct sweep_trial, (size_t)n);
    for (size_t t = 0; t < (size_t)n; t++) {
        struct sweep_trial *trial = &sweep->trials[sweep->n_trials++];
        trial->values = NEW(char *, sweep->n_dimensions);
        size_t rest = t;
        for (size_t d = sweep->n_dimensions; d-- > 0;) {
            const size_t size = size_max(1, sweep->dimensions[d].n_values);
            trial->values[d] = value_of(sweep, t, d, rest % size);
            rest /= size;
        }
        struct settings settings;
        enum status status =
            resolve(sweep, trial->values, 0, sweep->directory, NULL, &settings);
        if (status == OK)
            id_of(&settings, trial->id);
        settings_destroy(&settings);
        TRY(status);
    }
    leave_out_twins(sweep);
    return OK;
}

/* ---- the file */

/* Whether a key takes integers; unknown keys are found later. */
static bool takes_whole(const struct settings *settings, const struct sweep_dimension *d)
{
    for (size_t g = 0; g < N_SETTINGS_GROUPS; g++)
        for (size_t o = 0; o < settings->groups[g].n_options; o++)
            if (strcmp(settings->groups[g].section, d->section) == 0 &&
                strcmp(settings->groups[g].options[o].key, d->key) == 0)
                return settings->groups[g].options[o].type == OPTION_INTEGER;
    return false;
}

/* Finds the settings that are lists or ranges. */
static enum status find_dimensions(struct sweep *sweep)
{
    size_t capacity = 0;
    for (size_t e = 0; e < config_count(sweep->config); e++) {
        struct config_entry entry;
        if (!config_setting(sweep->config, e, &entry) || strcmp(entry.section, "sweep") == 0)
            continue;
        struct sweep_dimension d = {.section = memory_text("%s", entry.section),
                                    .key = memory_text("%s", entry.key)};
        bool is_one = false;
        GROW(sweep->dimensions, sweep->n_dimensions, capacity);
        enum status status =
            parse_dimension(&d, entry.value, (enum sweep_design)sweep->options.design, &is_one);
        sweep->dimensions[sweep->n_dimensions++] = d; /* freed in any case */
        TRY(status);
        if (is_one)
            continue;
        sweep->n_dimensions--;
        memory_free(d.section);
        memory_free(d.key);
    }
    if (sweep->n_dimensions == 0)
        return fail(BAD_USER, "the sweep has no list or range; give some settings as {a, b, "
                              "c}, uniform(low, high) or log(low, high)");
    return OK;
}

/* Resolves the settings with the first value of every list, to learn what is requested and the
 * type of each dimension. */
static enum status look(struct sweep *sweep)
{
    char **first = NEW(char *, sweep->n_dimensions);
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        const struct sweep_dimension *dimension = &sweep->dimensions[d];
        first[d] = dimension->n_values > 0 ? memory_text("%s", dimension->values[0])
                                           : number_text(ceil(dimension->low), true);
        if (dimension->n_values == 0 && ceil(dimension->low) > dimension->high) {
            memory_free(first[d]);
            first[d] = number_text(dimension->low, false);
        }
    }
    const char *wish = config_get(sweep->config, "run", "directory");
    struct settings settings;
    enum status status =
        wish == NULL || wish[0] == '\0'
            ? fail(BAD_USER, "run= is not set; expected a directory for the sweep")
            : resolve(sweep, first, 0, wish, shape_of(sweep), &settings);
    free_parts(first, sweep->n_dimensions);
    if (wish == NULL || wish[0] == '\0')
        return status;
    if (status == OK) {
        sweep->directory = memory_text("%s", wish);
        sweep->epochs =
            sweep->options.rungs > 1 || config_get(sweep->config, "train", "epochs") != NULL
                ? settings.train.epochs
                : 0;
        sweep->folds = settings.train.folds > 0 && settings.train.fold == 0;
        sweep->metric = settings_metric(&settings);
        if (sweep->metric < 0)
            status = fail(BAD_USER, "train.monitor = likelihood: a sweep compares trials by "
                                    "scores of answers; use log_loss or another of these");
        for (size_t d = 0; d < sweep->n_dimensions; d++)
            sweep->dimensions[d].is_whole = takes_whole(&settings, &sweep->dimensions[d]);
    }
    settings_destroy(&settings);
    return status;
}

static enum status check_keys(const struct sweep *sweep)
{
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        const struct sweep_dimension *dimension = &sweep->dimensions[d];
        if (strcmp(dimension->section, "data") == 0 || strcmp(dimension->section, "run") == 0)
            return fail(BAD_USER,
                        "%s.%s cannot differ between trials, because their scores must be "
                        "comparable; use one sweep per value",
                        dimension->section, dimension->key);
        if (sweep->options.rungs > 1 && strcmp(dimension->section, "train") == 0 &&
            strcmp(dimension->key, "epochs") == 0)
            return fail(BAD_USER, "train.epochs cannot differ between trials, because "
                                  "successive halving (sweep.rungs) sets it");
        if (strcmp(dimension->section, "train") == 0 &&
            (strcmp(dimension->key, "folds") == 0 || strcmp(dimension->key, "fold") == 0 ||
             strcmp(dimension->key, "monitor") == 0))
            return fail(BAD_USER,
                        "train.%s cannot differ between trials, because their scores must be "
                        "comparable",
                        dimension->key);
    }
    return OK;
}

/* Recomputes grid points once they are known to be integers. */
static void round_grid(struct sweep *sweep)
{
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        struct sweep_dimension *dimension = &sweep->dimensions[d];
        if (!dimension->is_whole || dimension->low >= dimension->high)
            continue;
        for (size_t v = 0; v < dimension->n_values; v++) {
            memory_free(dimension->values[v]);
            dimension->values[v] = number_text(
                range_at(dimension, (double)v / (double)(dimension->n_values - 1)), true);
        }
    }
}

/* What sweep.ini stores: everything but the number of trials and of ranks. */
static char *stored_text(const struct sweep *sweep)
{
    const struct sweep_options *o = &sweep->options;
    char *text =
        memory_text("[sweep]\ndesign = %s\nseed = %lld\nrungs = %lld\nfactor = %g\n",
                    designs[o->design], (long long)o->seed, (long long)o->rungs, o->factor);
    for (size_t e = 0; e < config_count(sweep->config); e++) {
        struct config_entry entry;
        if (!config_setting(sweep->config, e, &entry) || strcmp(entry.section, "sweep") == 0 ||
            strcmp(entry.section, "run") == 0)
            continue;
        char *longer =
            memory_text("%s%s.%s = %s\n", text, entry.section, entry.key, entry.value);
        memory_free(text);
        text = longer;
    }
    return text;
}

/* A sweep can be looked at without its data. The names of trials therefore do not depend on
 * them. */
static void read_shape(struct sweep *sweep)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    const char *file = config_get(sweep->config, "data", "file");
    sweep->has_shape = file != NULL && data_shape_read(&sweep->shape, file, &self) == OK;
    fail_clear();
}

enum status sweep_create(struct sweep *sweep, struct config *config)
{
    *sweep = (struct sweep){.config = config};
    const struct option_group group = {"sweep", sweep_table, n_sweep_table, &sweep->options};
    TRY(config_resolve_only(config, &group));
    TRY(find_dimensions(sweep));
    TRY(check_keys(sweep));
    read_shape(sweep);
    TRY(look(sweep));
    round_grid(sweep);
    sweep->text = stored_text(sweep);
    return make_trials(sweep);
}

void sweep_destroy(struct sweep *sweep)
{
    for (size_t t = 0; t < sweep->n_trials; t++)
        trial_free(sweep, &sweep->trials[t]);
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        memory_free(sweep->dimensions[d].section);
        memory_free(sweep->dimensions[d].key);
        free_parts(sweep->dimensions[d].values, sweep->dimensions[d].n_values);
    }
    memory_free(sweep->trials);
    memory_free(sweep->dimensions);
    memory_free(sweep->directory);
    memory_free(sweep->text);
    config_destroy(sweep->config);
    *sweep = (struct sweep){0};
}

enum status sweep_settings(const struct sweep *sweep, size_t trial, int64_t epochs,
                           struct settings *settings)
{
    char *directory = sweep_path(sweep, trial, NULL);
    enum status status = resolve(sweep, sweep->trials[trial].values, epochs, directory,
                                 shape_of(sweep), settings);
    memory_free(directory);
    return status;
}

int64_t sweep_epochs(const struct sweep *sweep, int64_t rung)
{
    const double shrunk = (double)sweep->epochs *
                          pow(sweep->options.factor, (double)(rung - sweep->options.rungs));
    return rung == sweep->options.rungs || shrunk > (double)sweep->epochs
               ? sweep->epochs
               : (int64_t)fmax(1, rint(shrunk));
}

size_t sweep_width(const struct sweep *sweep, int64_t rung)
{
    const double width =
        floor((double)sweep->n_trials / pow(sweep->options.factor, (double)(rung - 1)) + 1e-9);
    return rung == 1 ? sweep->n_trials : (size_t)fmax(1, width);
}
