/* cohort evaluate with several runs: their scores on the same attempts, and which differences
 * are real (paired.c). Runs are opened one after the other; all must hold out the attempts of
 * the first. The baselines take part like runs. They are those of one run, which does not depend
 * on the order of the runs (is_preferred). */
#include "base/cell_text.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/evaluate_internal.h"
#include "runs/paired.h"
#include "runs/refit.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is compared: a run, or a baseline (no checkpoint). */
struct contestant {
    char *name, *checkpoint, *kind;
    int64_t epoch;
    char digest[33];
    bool is_refit;
};

/* The baselines that take part, and the run whose training attempts they count. */
struct baselines {
    struct prediction *list[N_BASELINES]; /* NULL: no run's training data are there */
    size_t n, run;
    bool own_data;
    int64_t n_answers; /* that were counted */
};

struct comparison {
    const struct evaluate_values *values;
    struct baselines baselines;
    bool other_data; /* a run was trained on other data than those scored */
    struct paired paired;
    size_t n, n_runs;
    struct contestant *contestants; /* runs in the order given, then baselines */
    char *data, *held_out;          /* those of the first run */
    char data_digest[33];
};

static enum status check_options(const struct evaluate_values *values)
{
    const char *option = values->groups        ? "--groups"
                         : values->calibration ? "--calibration"
                         : values->likelihood  ? "--likelihood"
                                               : NULL;
    return option == NULL
               ? OK
               : fail(BAD_USER, "%s is for one run; omit it, or evaluate the runs one by one",
                      option);
}

/* A run after the first must hold out the same attempts. */
static enum status check_attempts(const struct comparison *comparison,
                                  const struct inference *inference)
{
    const char *path = inference->checkpoint.path, *first = comparison->contestants[0].name;
    if (strcmp(inference->dataset.digest, comparison->data_digest) != 0)
        return fail(BAD_USER,
                    "%s was trained on %s (digest %s), but %s on %s (digest %s); name one data "
                    "set to score both on with --data",
                    path, inference->dataset.path, inference->dataset.digest, first,
                    comparison->data, comparison->data_digest);
    char *held_out = inference_held_out(inference);
    const bool same = strcmp(held_out, comparison->held_out) == 0;
    memory_free(held_out);
    if (!same && comparison->values->split != EVALUATE_ALL)
        return fail(BAD_USER,
                    "%s and %s hold out different attempts (train.folds, train.fold or, with "
                    "folds, train.seed differ); compare runs of the same fold",
                    path, first);
    return OK;
}

static struct contestant *add_contestant(struct comparison *comparison, const char *name)
{
    struct contestant *contestant = &comparison->contestants[comparison->n++];
    contestant->name = memory_text("%s", name);
    return contestant;
}

static void free_baselines(struct baselines *baselines)
{
    for (int b = 0; b < N_BASELINES; b++)
        memory_free(baselines->list[b]);
    *baselines = (struct baselines){0};
}

/* Whether the last run's baselines are better founded than those so far: a run that was trained
 * on the data that are scored comes first, then the one with more training answers, then the
 * smaller digest of the checkpoint. */
static bool is_preferred(const struct comparison *comparison, bool own_data, int64_t n_answers)
{
    const struct baselines *so_far = &comparison->baselines;
    const struct contestant *contestants = comparison->contestants;
    if (so_far->list[0] == NULL || own_data != so_far->own_data)
        return so_far->list[0] == NULL || own_data;
    if (n_answers != so_far->n_answers)
        return n_answers > so_far->n_answers;
    return strcmp(contestants[comparison->n - 1].digest, contestants[so_far->run].digest) < 0;
}

/* Collective: the baselines of the last run, the items' means in its training attempts and the
 * running means, if they are preferred. They join after all runs. */
static void choose_baselines(struct comparison *comparison, const struct inference *inference,
                             const struct predictions *predictions)
{
    struct item_counts counts;
    if (!inference_counts(inference, &counts))
        return;
    int64_t n_answers = 0;
    for (size_t i = 0; i < counts.n_items; i++)
        n_answers += counts.right[i] + counts.wrong[i];
    if (is_preferred(comparison, inference->own_data, n_answers)) {
        struct baselines *baselines = &comparison->baselines;
        free_baselines(baselines);
        *baselines = (struct baselines){.n = predictions->n,
                                        .run = comparison->n - 1,
                                        .own_data = inference->own_data,
                                        .n_answers = n_answers};
        for (int b = 0; b < N_BASELINES; b++)
            baselines->list[b] = baseline_predict((enum baseline)b, inference->model,
                                                  &inference->shard, &counts, predictions);
    }
    memory_free(counts.right);
}

static enum status add_run(struct comparison *comparison, const struct inference *inference,
                           const char *name)
{
    if (model_task(inference->model) != TASK_TRACE)
        return fail(BAD_USER,
                    "%s: this model predicts one target per student, and runs are compared on "
                    "single answers; evaluate it alone",
                    inference->checkpoint.path);
    const bool is_first = comparison->n == 0;
    if (is_first) {
        comparison->data = memory_text("%s", inference->dataset.path);
        comparison->held_out = inference_held_out(inference);
        memcpy(comparison->data_digest, inference->dataset.digest,
               sizeof comparison->data_digest);
    } else
        TRY(check_attempts(comparison, inference));
    struct contestant *contestant = add_contestant(comparison, name);
    contestant->checkpoint = memory_text("%s", inference->checkpoint.path);
    contestant->kind = memory_text("%s", inference->model->kind->name);
    contestant->epoch = inference->checkpoint.progress.epoch;
    memcpy(contestant->digest, inference->checkpoint.digest, sizeof contestant->digest);
    contestant->is_refit = inference->own_data && refit_digest(inference->config) != NULL;
    struct predictions predictions;
    TRY(evaluate_predict(inference, comparison->values, &predictions));
    enum status status = paired_add(&comparison->paired, predictions.list, predictions.n);
    if (status == OK)
        choose_baselines(comparison, inference, &predictions);
    comparison->other_data |= !inference->own_data;
    scoring_free(&predictions);
    return status;
}

static enum status add_all(struct comparison *comparison, const char *const *paths, size_t n)
{
    static const char *const names[N_BASELINES] = {"item mean", "running mean"};
    enum status status = OK;
    for (size_t r = 0; status == OK && r < n; r++) {
        struct inference inference;
        log_live("run %zu of %zu: %s", r + 1, n, paths[r]);
        status = (comparison->values->strict ? inference_open : inference_open_any)(
            &inference, paths[r], comparison->values->data, comparison->paired.comm);
        if (status == OK)
            status = add_run(comparison, &inference, paths[r]);
        inference_close(&inference);
    }
    comparison->n_runs = comparison->n;
    const struct baselines *baselines = &comparison->baselines;
    for (int b = 0; status == OK && b < N_BASELINES && baselines->list[b] != NULL; b++) {
        add_contestant(comparison, names[b]);
        status = paired_add(&comparison->paired, baselines->list[b], baselines->n);
    }
    return status;
}

static bool has_intervals(const struct comparison *comparison)
{
    return metrics_has_interval(comparison->paired.entries[0].score.n_students);
}

static json_t *entry_json(const struct comparison *comparison, size_t c)
{
    const struct paired_entry *entry = &comparison->paired.entries[c];
    json_t *object = evaluate_score_json(&entry->score);
    json_object_set_new(object, "interval",
                        evaluate_interval_json(&entry->score, &entry->low, &entry->high));
    return object;
}

static json_t *run_json(const struct comparison *comparison, size_t c)
{
    const struct contestant *run = &comparison->contestants[c];
    json_t *object = json_object();
    json_object_set_new(object, "run", command_json_text(run->name));
    json_object_set_new(object, "checkpoint", command_json_text(run->checkpoint));
    json_object_set_new(object, "model", json_string(run->kind));
    json_object_set_new(object, "epoch", json_integer(run->epoch));
    json_object_set_new(object, "digest", json_string(run->digest));
    json_object_set_new(object, "refit", json_boolean(run->is_refit));
    json_t *scores = entry_json(comparison, c);
    json_object_update(object, scores);
    json_decref(scores);
    return object;
}

static json_t *pair_json(const struct comparison *comparison, size_t a, size_t b)
{
    json_t *object = json_object();
    json_object_set_new(object, "a", command_json_text(comparison->contestants[a].name));
    json_object_set_new(object, "b", command_json_text(comparison->contestants[b].name));
    for (int m = 0; m < N_METRICS; m++) {
        const struct paired_difference d =
            paired_difference(&comparison->paired, a, b, (enum metric)m);
        json_t *difference = json_object();
        json_object_set_new(difference, "difference", command_json_number(d.value));
        json_object_set_new(difference, "low", command_json_number(d.low));
        json_object_set_new(difference, "high", command_json_number(d.high));
        json_object_set_new(difference, "better",
                            d.better == 0 ? json_null()
                                          : json_string(d.better < 0 ? "a" : "b"));
        json_object_set_new(object, metrics_names[m], difference);
    }
    return object;
}

static void print_json(const struct comparison *comparison)
{
    json_t *object = json_object(), *runs = json_array(), *pairs = json_array();
    json_object_set_new(object, "data", command_json_text(comparison->data));
    json_object_set_new(object, "data_digest", json_string(comparison->data_digest));
    json_object_set_new(object, "split",
                        json_string(evaluate_splits[comparison->values->split]));
    json_object_set_new(object, "skip_first", json_boolean(comparison->values->skip_first));
    json_object_set_new(object, "level", json_real(0.95));
    json_object_set_new(object, "bootstrap_samples",
                        json_integer((json_int_t)comparison->paired.n_replicates));
    for (size_t c = 0; c < comparison->n_runs; c++)
        json_array_append_new(runs, run_json(comparison, c));
    json_object_set_new(object, "runs", runs);
    const bool has_baselines = comparison->n > comparison->n_runs;
    for (int b = 0; b < N_BASELINES; b++)
        json_object_set_new(object, b == BASELINE_ITEMS ? "item_mean" : "running_mean",
                            has_baselines
                                ? entry_json(comparison, comparison->n_runs + (size_t)b)
                                : json_null());
    json_object_set_new(
        object, "baselines_of",
        has_baselines
            ? command_json_text(comparison->contestants[comparison->baselines.run].name)
            : json_null());
    for (size_t a = 0; a < comparison->n_runs; a++)
        for (size_t b = a + 1; b < comparison->n; b++)
            json_array_append_new(pairs, pair_json(comparison, a, b));
    json_object_set_new(object, "pairs", pairs);
    command_json_print(object);
}

static int label_width(const struct comparison *comparison)
{
    size_t width = 12;
    for (size_t c = 0; c < comparison->n; c++)
        width = size_max(width, cell_text_width(comparison->contestants[c].name));
    return (int)width;
}

static void print_scores(const struct comparison *comparison, const size_t *order, int width)
{
    const bool with_ends = comparison->values->replicates > 0 && has_intervals(comparison);
    printf("%-*s  %-8s  %5s", width, "", "model", "epoch");
    evaluate_print_titles(false);
    for (size_t k = 0; k < comparison->n; k++) {
        const struct contestant *one = &comparison->contestants[order[k]];
        const struct paired_entry *entry = &comparison->paired.entries[order[k]];
        cell_text_left(one->name, (size_t)width, 0);
        if (one->kind != NULL)
            printf("  %-8s  %5" PRId64, one->kind, one->epoch);
        else
            printf("  %-8s  %5s", "", "");
        evaluate_print_numbers(&entry->score, false);
        for (int end = 0; with_ends && end < 2; end++) {
            printf("%*s  %-8s  %5s", width, end == 0 ? "2.5 %" : "97.5 %", "", "");
            evaluate_print_numbers(end == 0 ? &entry->low : &entry->high, false);
        }
    }
}

static void print_difference(const struct comparison *comparison, size_t a, size_t b,
                             enum metric metric)
{
    const struct paired_difference d = paired_difference(&comparison->paired, a, b, metric);
    const int digits = metric == METRIC_AUC ? 4 : 5;
    if (isnan(d.value))
        printf("  %9s  %-22s", "-", "");
    else if (isnan(d.low))
        printf("  %+9.*f  %-22s", digits, d.value, "");
    else
        printf("  %+9.*f  %+9.*f to %+9.*f", digits, d.value, digits, d.low, digits, d.high);
}

static void print_differences(const struct comparison *comparison, const size_t *order,
                              int width)
{
    const char *best = comparison->contestants[order[0]].name;
    if (has_intervals(comparison))
        printf(
            "\ndifferences from %s, with 95 %% intervals (bootstrap samples of the students: "
            "%zu)\n\n%-*s  %9s  %-22s  %9s  %s\n",
            best, comparison->paired.n_replicates, width, "", "log-loss", "     interval",
            "AUC", "     interval");
    else
        printf("\ndifferences from %s\n\n%-*s  %9s  %-22s  %9s\n", best, width, "", "log-loss",
               "", "AUC");
    for (size_t k = 1; k < comparison->n; k++) {
        cell_text_left(comparison->contestants[order[k]].name, (size_t)width, 0);
        print_difference(comparison, order[k], order[0], METRIC_LOG_LOSS);
        print_difference(comparison, order[k], order[0], METRIC_AUC);
        putchar('\n');
    }
}

/* For one contestant: those below it that are worse for certain, or those that may not be. */
static bool print_list(const struct comparison *comparison, const size_t *order, size_t k,
                       const char *words, bool want_real)
{
    bool any = false;
    for (size_t below = k + 1; below < comparison->n; below++) {
        const struct paired_difference d =
            paired_difference(&comparison->paired, order[k], order[below], METRIC_LOG_LOSS);
        if ((d.better != 0) != want_real)
            continue;
        printf("%s%s", any ? ", " : words, comparison->contestants[order[below]].name);
        any = true;
    }
    return any;
}

static void print_words(const struct comparison *comparison, const size_t *order)
{
    printf("\nin log-loss, where a difference is real if its interval excludes 0:\n");
    for (size_t k = 0; k + 1 < comparison->n; k++) {
        printf("  %s", comparison->contestants[order[k]].name);
        const bool any = print_list(comparison, order, k, " is better than ", true);
        print_list(comparison, order, k,
                   any ? "; no real difference from " : " has no real difference from ", false);
        putchar('\n');
    }
}

static void print_table(const struct comparison *comparison)
{
    const struct score *first = &comparison->paired.entries[0].score;
    size_t *order = paired_ranking(&comparison->paired, METRIC_LOG_LOSS);
    const int width = label_width(comparison);
    printf("%zu runs on %s%s attempts of %s%s (attempts: %" PRId64 ", students: %" PRId64
           ", correct: %.4f)\n\n",
           comparison->n_runs, comparison->values->split == EVALUATE_ALL ? "" : "the ",
           evaluate_splits[comparison->values->split], comparison->data,
           comparison->values->skip_first ? ", excluding first attempts" : "", first->n,
           first->n_students, first->correct);
    print_scores(comparison, order, width);
    if (comparison->other_data && comparison->n > comparison->n_runs)
        printf("\nitem mean and running mean: from the training attempts of %s\n",
               comparison->contestants[comparison->baselines.run].name);
    print_differences(comparison, order, width);
    if (has_intervals(comparison))
        print_words(comparison, order);
    memory_free(order);
}

/* A refit has learned more than a run that was not refitted. */
static void warn_of_refits(const struct comparison *comparison)
{
    size_t n_refits = 0, refit = 0, other = 0;
    for (size_t c = 0; c < comparison->n_runs; c++) {
        n_refits += comparison->contestants[c].is_refit;
        *(comparison->contestants[c].is_refit ? &refit : &other) = c;
    }
    if (n_refits > 0 && n_refits < comparison->n_runs)
        log_warn("%s is a refit and has learned the validation attempts too, unlike %s",
                 comparison->contestants[refit].name, comparison->contestants[other].name);
}

static void free_all(struct comparison *comparison)
{
    for (size_t c = 0; c < comparison->n; c++) {
        memory_free(comparison->contestants[c].name);
        memory_free(comparison->contestants[c].checkpoint);
        memory_free(comparison->contestants[c].kind);
    }
    memory_free(comparison->contestants);
    memory_free(comparison->data);
    memory_free(comparison->held_out);
    free_baselines(&comparison->baselines);
    paired_free(&comparison->paired);
}

enum status evaluate_compare(const struct comm *comm, const char *const *paths, size_t n,
                             const struct evaluate_values *values)
{
    TRY(check_options(values));
    struct comparison comparison = {.values = values,
                                    .contestants = NEW(struct contestant, n + N_BASELINES)};
    const size_t n_replicates = values->replicates > 0 ? (size_t)values->replicates : 1000;
    paired_start(&comparison.paired, comm, n_replicates, (uint64_t)values->seed);
    enum status status = add_all(&comparison, paths, n);
    if (status == OK)
        metrics_say_few(comparison.paired.entries[0].score.n_students);
    if (status == OK && !log_muted()) {
        if (values->json)
            print_json(&comparison);
        else
            print_table(&comparison);
    }
    if (status == OK)
        warn_of_refits(&comparison);
    free_all(&comparison);
    return status;
}
