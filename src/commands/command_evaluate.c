/* cohort evaluate: how well a model predicts, compared with baselines (baseline.h). */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "learn/metrics.h"
#include "runs/baseline.h"
#include "runs/inference.h"
#include "runs/likelihood.h"
#include "runs/scoring.h"
#include "runs/targets.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

struct values {
    const char *data;
    int split;
    bool skip_first, groups, calibration, likelihood, json;
    int64_t replicates, seed, n_chains, n_temperatures, most_temperatures, most_bits;
};

static const char *const splits[] = {"train", "valid", "test", "all", NULL};
enum { SPLIT_ALL = N_SPLITS };

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "score this data set instead of the one the run was trained on; items are matched by "
      "name"},
     0,
     "DATA.h5"},
    {{"split", OPTION_CHOICE, AT(split), "test", 0, 0, splits, "which attempts to score"},
     0,
     NULL},
    {{"skip-first", OPTION_SWITCH, AT(skip_first), "no", 0, 0, NULL,
      "exclude first attempts from all scores"},
     0,
     NULL},
    {{"groups", OPTION_SWITCH, AT(groups), "no", 0, 0, NULL,
      "also score each group of items separately"},
     0,
     NULL},
    {{"calibration", OPTION_SWITCH, AT(calibration), "no", 0, 0, NULL,
      "also compare predicted probability and observed share correct, in 15 bins"},
     0,
     NULL},
    {{"confidence", OPTION_INTEGER, AT(replicates), "0", 0, 1e6, NULL,
      "add 95 % intervals from this many bootstrap samples of the students; 1000 is usually "
      "enough"},
     0,
     NULL},
    {{"seed", OPTION_INTEGER, AT(seed), "1", 0, 9e15, NULL,
      "seed for the bootstrap and for the sampling of --likelihood"},
     0,
     NULL},
    {{"likelihood", OPTION_SWITCH, AT(likelihood), "no", 0, 0, NULL,
      "also compute the joint log-likelihood of the answers (rtrbm: per step; vae: per "
      "student)"},
     0,
     NULL},
    {{"enumerate", OPTION_INTEGER, AT(most_bits), "12", 0, 30, NULL,
      "likelihood of an rtrbm: compute the exact sum for steps with at most this many visible "
      "or hidden units"},
     0,
     NULL},
    {{"chains", OPTION_INTEGER, AT(n_chains), "16", 2, 1e5, NULL,
      "likelihood of an rtrbm: annealed importance sampling chains for each larger step"},
     0,
     NULL},
    {{"temperatures", OPTION_INTEGER, AT(n_temperatures), "200", 1, 1e6, NULL,
      "likelihood of an rtrbm: initial number of temperatures per chain, doubled until the "
      "estimate is stable"},
     0,
     NULL},
    {{"most-temperatures", OPTION_INTEGER, AT(most_temperatures), "6400", 1, 1e6, NULL,
      "likelihood of an rtrbm: maximum number of temperatures per chain"},
     0,
     NULL},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
};

/* A row of the table. */
struct rated {
    struct score score, low, high; /* low and high: with --confidence */
};

/* Of all attempts, and excluding first attempts. */
struct rated_twice {
    struct rated all, rest;
};

struct report {
    const struct inference *inference;
    const struct values *values;
    struct rated_twice model, baselines[N_BASELINES];
    bool has_baselines;
    struct rated
        *groups; /* n_groups + 1, the first for items in no group; NULL: not asked for */
    struct calibration_bin bins[N_CALIBRATION_BINS];
    struct likelihood_result likelihood;
};

static void rate(const struct report *report, const struct prediction *list, size_t n,
                 struct rated *rated)
{
    const struct comm *comm = report->inference->comm;
    metrics_score(comm, list, n, &rated->score);
    if (report->values->replicates > 0)
        metrics_interval(comm, list, n, (int)report->values->replicates,
                         (uint64_t)report->values->seed, &rated->low, &rated->high);
}

static void rate_twice(const struct report *report, const struct prediction *list, size_t n,
                       struct rated_twice *rated)
{
    struct prediction *rest = NEW_SCRATCH(struct prediction, n);
    size_t n_rest = 0;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_first)
            rest[n_rest++] = list[i];
    rate(report, list, n, &rated->all);
    rate(report, rest, n_rest, &rated->rest);
    memory_free(rest);
}

/* Collective. Without the data that the model was trained on there are no baselines. */
static void rate_baselines(struct report *report, const struct predictions *predictions)
{
    const struct inference *inference = report->inference;
    struct item_counts counts;
    report->has_baselines = inference_counts(inference, &counts);
    if (!report->has_baselines)
        return;
    for (int b = 0; b < N_BASELINES; b++) {
        struct prediction *list = baseline_predict((enum baseline)b, inference->model,
                                                   &inference->shard, &counts, predictions);
        rate_twice(report, list, predictions->n, &report->baselines[b]);
        memory_free(list);
    }
    memory_free(counts.right);
}

static void rate_groups(struct report *report, const struct predictions *predictions)
{
    const size_t n = report->inference->dataset.n_groups + 1;
    size_t *first = NEW(size_t, n + 1);
    for (size_t p = 0; p < predictions->n; p++)
        first[predictions->list[p].group + 2]++;
    for (size_t g = 0; g < n; g++)
        first[g + 1] += first[g];
    struct prediction *sorted = NEW_SCRATCH(struct prediction, predictions->n);
    size_t *next = NEW_SCRATCH(size_t, n);
    memcpy(next, first, n * sizeof *next);
    for (size_t p = 0; p < predictions->n; p++)
        sorted[next[predictions->list[p].group + 1]++] = predictions->list[p];
    report->groups = NEW(struct rated, n);
    for (size_t g = 0; g < n; g++)
        rate(report, sorted + first[g], first[g + 1] - first[g], &report->groups[g]);
    memory_free(next);
    memory_free(sorted);
    memory_free(first);
}

static const char *group_name(const struct report *report, size_t g)
{
    return g == 0 ? NULL : names_get(&report->inference->dataset.groups, g - 1);
}

/* Collective: there must be something to score. */
static enum status check_attempts(const struct inference *inference,
                                  const struct values *values)
{
    int64_t n[N_SPLITS] = {0};
    for (uint64_t t = 0; t < inference->shard.n_attempts; t++)
        if (mark_outcome(inference->shard.mark[t]) != UNKNOWN)
            n[mark_split(inference->shard.mark[t])]++;
    comm_sum_i64(inference->comm, n, N_SPLITS);
    if (n[TRAIN] + n[VALID] + n[TEST] == 0)
        return fail(BAD_USER,
                    "%s: no attempt has a known outcome, so there is nothing to score",
                    inference->dataset.path);
    if (values->split == SPLIT_ALL || n[values->split] > 0)
        return OK;
    char list[160] = "", *end = list;
    for (int s = 0; s < N_SPLITS; s++)
        if (n[s] > 0)
            end +=
                sprintf(end, "%s%" PRId64 " for %s", end > list ? ", " : "", n[s], splits[s]);
    return fail(BAD_USER,
                "%s: no attempt with a known outcome is for %s; there are %s: choose with "
                "--split",
                inference->dataset.path, splits[values->split], list);
}

static json_t *whole_score_json(const struct score *score)
{
    json_t *object = score_json(score);
    json_object_set_new(object, "students", json_integer(score->n_students));
    json_object_set_new(object, "correct", command_json_number(score->correct));
    return object;
}

static json_t *rated_json(const struct report *report, const struct rated *rated)
{
    json_t *object = whole_score_json(&rated->score);
    if (report->values->replicates > 0) {
        json_t *interval = json_object();
        json_object_set_new(interval, "level", json_real(0.95));
        json_object_set_new(interval, "resamplings", json_integer(report->values->replicates));
        json_object_set_new(interval, "low", whole_score_json(&rated->low));
        json_object_set_new(interval, "high", whole_score_json(&rated->high));
        json_object_set_new(object, "interval", interval);
    }
    return object;
}

static json_t *rated_twice_json(const struct report *report, const struct rated_twice *rated)
{
    json_t *object = rated_json(report, &rated->all);
    json_object_set_new(object, "skip_first", rated_json(report, &rated->rest));
    return object;
}

static json_t *groups_json(const struct report *report)
{
    json_t *array = json_array();
    for (size_t g = 0; g <= report->inference->dataset.n_groups; g++) {
        if (report->groups[g].score.n == 0)
            continue;
        const char *name = group_name(report, g);
        json_t *object = json_object();
        json_object_set_new(object, "group", name ? command_json_text(name) : json_null());
        json_t *scores = rated_json(report, &report->groups[g]);
        json_object_update(object, scores);
        json_decref(scores);
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *calibration_json(const struct report *report)
{
    json_t *array = json_array();
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++) {
        const struct calibration_bin *bin = &report->bins[b];
        json_t *object = json_object();
        json_object_set_new(object, "n", json_integer(bin->n));
        json_object_set_new(object, "probability", command_json_number(bin->probability));
        json_object_set_new(object, "correct", command_json_number(bin->correct));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *likelihood_json(const struct likelihood_result *likelihood)
{
    json_t *object = json_object();
    json_object_set_new(object, "steps", json_integer(likelihood->n_steps));
    json_object_set_new(object, "sampled_steps", json_integer(likelihood->n_sampled));
    json_object_set_new(object, "students", json_integer(likelihood->n_students));
    json_object_set_new(object, "mean", command_json_number(likelihood->mean));
    json_object_set_new(object, "impossible_steps", json_integer(likelihood->n_impossible));
    json_object_set_new(object, "temperatures", json_integer(likelihood->n_temperatures));
    json_object_set_new(object, "settled", json_boolean(likelihood->settled));
    json_object_set_new(object, "bias", command_json_number(likelihood->bias));
    json_object_set_new(object, "standard_error",
                        command_json_number(likelihood->standard_error));
    json_object_set_new(object, "spread_error", command_json_number(likelihood->spread_error));
    return object;
}

static void print_json(const struct report *report)
{
    const struct inference *inference = report->inference;
    json_t *object = json_object();
    json_object_set_new(object, "checkpoint", command_json_text(inference->checkpoint.path));
    json_object_set_new(object, "model", json_string(inference->model->kind->name));
    json_object_set_new(object, "epoch", json_integer(inference->checkpoint.progress.epoch));
    json_object_set_new(object, "digest", json_string(inference->checkpoint.digest));
    json_object_set_new(object, "data", command_json_text(inference->dataset.path));
    json_object_set_new(object, "data_digest", json_string(inference->dataset.digest));
    json_object_set_new(object, "split", json_string(splits[report->values->split]));
    json_t *scores = rated_twice_json(report, &report->model);
    json_object_update(object, scores);
    json_decref(scores);
    for (int b = 0; b < N_BASELINES; b++)
        json_object_set_new(object, b == BASELINE_ITEMS ? "item_mean" : "running_mean",
                            report->has_baselines
                                ? rated_twice_json(report, &report->baselines[b])
                                : json_null());
    if (report->groups != NULL)
        json_object_set_new(object, "groups", groups_json(report));
    if (report->values->calibration)
        json_object_set_new(object, "calibration", calibration_json(report));
    if (report->values->likelihood)
        json_object_set_new(object, "likelihood", likelihood_json(&report->likelihood));
    command_json_print(object);
}

enum { LABEL = 38 };

static void print_numbers(const struct score *score)
{
    static const int digits[N_METRICS] = {5, 5, 4, 4, 4, 4};
    struct score copy = *score;
    for (int m = -1; m < N_METRICS; m++) {
        const double value = m < 0 ? score->correct : *metrics_value(&copy, m);
        if (isnan(value))
            printf("  %9s", "-");
        else
            printf("  %9.*f", m < 0 ? 4 : digits[m], value);
    }
    putchar('\n');
}

static void print_row(const struct report *report, const char *label, const struct rated *rated)
{
    printf("%-*.*s  %10" PRId64 "  %8" PRId64, LABEL, LABEL, label, rated->score.n,
           rated->score.n_students);
    print_numbers(&rated->score);
    if (report->values->replicates > 0)
        for (int end = 0; end < 2; end++) {
            printf("%*s  %10s  %8s", LABEL, end == 0 ? "2.5 %" : "97.5 %", "", "");
            print_numbers(end == 0 ? &rated->low : &rated->high);
        }
}

static void print_rows(const struct report *report, const char *name,
                       const struct rated_twice *rated)
{
    char label[64];
    if (!report->values->skip_first) {
        snprintf(label, sizeof label, "%s, all", name);
        print_row(report, label, &rated->all);
    }
    snprintf(label, sizeof label, "%s, excluding first attempts", name);
    print_row(report, label, &rated->rest);
}

static void print_likelihood(const struct likelihood_result *likelihood)
{
    printf("\nlog-likelihood: %.4f nats per step (steps: %" PRId64 ", students: %" PRId64 ")\n",
           likelihood->mean, likelihood->n_steps, likelihood->n_students);
    printf("standard error: %.4f from the choice of students", likelihood->spread_error);
    if (likelihood->n_sampled > 0)
        printf(", %.4f from sampling (steps sampled: %" PRId64 ")", likelihood->standard_error,
               likelihood->n_sampled);
    printf("\n");
    if (likelihood->n_temperatures > 0)
        printf("annealed at %" PRId64
               " temperatures: the mean is too high by about %.4f, which the error from "
               "sampling includes\n",
               likelihood->n_temperatures, likelihood->bias);
    if (!likelihood->settled || likelihood->n_impossible > 0)
        printf("unreliable: %s; steps with a probability above 1: %" PRId64 "; raise "
               "--most-temperatures or --chains\n",
               likelihood->settled ? "the mean has settled" : "the mean has not settled",
               likelihood->n_impossible);
}

static void print_table(const struct report *report)
{
    static const char *const columns[] = {"correct",  "CBD",  "log-loss", "AUC",
                                          "accuracy", "RMSE", "cal. err."};
    const struct inference *inference = report->inference;
    printf("%s: %s after epoch %" PRId64 ", on the %s attempts of %s\n\n",
           inference->checkpoint.path, inference->model->kind->name,
           inference->checkpoint.progress.epoch, splits[report->values->split],
           inference->dataset.path);
    printf("%-*s  %10s  %8s", LABEL, "", "attempts", "students");
    for (size_t c = 0; c < COUNT(columns); c++)
        printf("  %9s", columns[c]);
    putchar('\n');
    print_rows(report, inference->model->kind->name, &report->model);
    for (int b = 0; report->has_baselines && b < N_BASELINES; b++)
        print_rows(report, b == BASELINE_ITEMS ? "item mean" : "running mean",
                   &report->baselines[b]);
    if (report->groups != NULL && inference->dataset.n_groups == 0)
        printf("\nThe items of this data set have no groups.\n");
    else if (report->groups != NULL)
        printf("\n%s by group of items%s\n", inference->model->kind->name,
               report->values->skip_first ? ", excluding first attempts" : "");
    for (size_t g = 0; report->groups != NULL && inference->dataset.n_groups > 0 &&
                       g <= inference->dataset.n_groups;
         g++)
        if (report->groups[g].score.n > 0)
            print_row(report, g == 0 ? "(no group)" : group_name(report, g),
                      &report->groups[g]);
    if (report->values->likelihood)
        print_likelihood(&report->likelihood);
    if (!report->values->calibration)
        return;
    printf("\n%-15s  %10s  %16s  %13s\n", "probability", "attempts", "mean probability",
           "share correct");
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++) {
        const struct calibration_bin *bin = &report->bins[b];
        printf("%.3f to %.3f  %11" PRId64, (double)b / N_CALIBRATION_BINS,
               (double)(b + 1) / N_CALIBRATION_BINS, bin->n);
        if (bin->n > 0)
            printf("  %16.4f  %13.4f", bin->probability, bin->correct);
        putchar('\n');
    }
}

static void print_finals(const struct inference *inference, const struct values *values,
                         const struct score *score, const struct score *baseline)
{
    if (values->json) {
        json_t *object = whole_score_json(score);
        json_object_set_new(object, "checkpoint",
                            command_json_text(inference->checkpoint.path));
        json_object_set_new(object, "model", json_string(inference->model->kind->name));
        json_object_set_new(object, "epoch",
                            json_integer(inference->checkpoint.progress.epoch));
        json_object_set_new(object, "data", command_json_text(inference->dataset.path));
        json_object_set_new(object, "split", json_string(splits[values->split]));
        json_object_set_new(object, "mean_target", whole_score_json(baseline));
        command_json_print(object);
        return;
    }
    printf("%s: %s after epoch %" PRId64 ", on the %s students of %s\n\n",
           inference->checkpoint.path, inference->model->kind->name,
           inference->checkpoint.progress.epoch, splits[values->split],
           inference->dataset.path);
    const bool chance = model_task(inference->model) == TASK_CHANCE;
    printf("%-*s  %8s  %11s  %9s  %9s  %9s\n", LABEL, "", "students", "mean target", "log-loss",
           "RMSE", chance ? "AUC" : "R2");
    for (int k = 0; k < 2; k++) {
        const struct score *row = k == 0 ? score : baseline;
        printf("%-*s  %8" PRId64 "  %11.5g  %9.5f  %9.5g  %9.4f", LABEL,
               k == 0 ? inference->model->kind->name : "mean of training targets", row->n,
               row->correct, row->log_loss, row->rmse, chance ? row->auc : row->r2);
        if (chance)
            printf("  accuracy %.4f", row->accuracy);
        putchar('\n');
    }
}

/* A model of one target per student, compared with the mean of the training targets. */
static enum status evaluate_finals(const struct inference *inference,
                                   const struct values *values, unsigned set)
{
    if (values->groups || values->calibration || values->skip_first || values->replicates > 0)
        return fail(BAD_USER,
                    "this model predicts one target per student; --groups, --calibration, "
                    "--skip-first and --confidence apply to answers only");
    struct target_prediction *targets = NULL;
    size_t n = 0;
    struct score score, baseline;
    TRY(comm_agree(inference->comm, targets_predict(inference->model, inference->work,
                                                    &inference->shard, set, &targets, &n)));
    targets_score(inference->comm, inference->model, targets, n, &score);
    const struct baseline_target target = baseline_target(inference);
    for (size_t i = 0; i < n; i++) {
        targets[i].mean = target.mean;
        targets[i].variance = target.variance;
    }
    targets_score(inference->comm, inference->model, targets, n, &baseline);
    memory_free(targets);
    if (score.n == 0)
        return fail(BAD_USER, "%s: no student in split %s has a target",
                    inference->dataset.path, splits[values->split]);
    if (!log_muted())
        print_finals(inference, values, &score, &baseline);
    return OK;
}

static enum status evaluate(const struct inference *inference, const struct values *values)
{
    const unsigned set =
        values->split == SPLIT_ALL ? (1u << N_SPLITS) - 1 : 1u << values->split;
    TRY(inference_check_splits(inference, set));
    if (model_task(inference->model) != TASK_TRACE)
        return evaluate_finals(inference, values, set);
    TRY(check_attempts(inference, values));
    if (values->likelihood && inference->model->kind->sequence.likelihood == NULL)
        return fail(BAD_USER,
                    "%s: %s models have no joint likelihood (rtrbm and vae do); omit "
                    "--likelihood",
                    inference->checkpoint.path, inference->model->kind->name);
    struct predictions predictions;
    TRY(comm_agree(inference->comm, scoring_predict(inference->model, inference->work,
                                                    &inference->shard, set, &predictions)));
    scoring_keep(&predictions, &inference->shard, values->skip_first);
    struct report report = {.inference = inference, .values = values};
    rate_twice(&report, predictions.list, predictions.n, &report.model);
    rate_baselines(&report, &predictions);
    if (values->groups)
        rate_groups(&report, &predictions);
    if (values->calibration)
        metrics_calibration(inference->comm, predictions.list, predictions.n, report.bins);
    scoring_free(&predictions);
    const struct likelihood_plan plan = {.n_chains = values->n_chains,
                                         .n_temperatures = values->n_temperatures,
                                         .most_temperatures = values->most_temperatures,
                                         .most_bits = (int)values->most_bits,
                                         .seed = (uint64_t)values->seed};
    if (values->likelihood)
        likelihood_measure(inference->comm, inference->model, inference->work,
                           &inference->shard, set, &plan, &report.likelihood);
    if (!log_muted() && values->json)
        print_json(&report);
    else if (!log_muted())
        print_table(&report);
    double baselines[N_BASELINES];
    for (int b = 0; b < N_BASELINES; b++)
        baselines[b] = report.baselines[b].all.score.log_loss;
    if (report.has_baselines && !values->json)
        baseline_say(splits[values->split], report.model.all.score.log_loss, baselines);
    memory_free(report.groups);
    return OK;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_evaluate, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = command_usage(&command_evaluate);
    if (status == OK) {
        struct inference inference;
        status = inference_open(&inference, words[0], values.data, comm);
        if (status == OK)
            status = evaluate(&inference, &values);
        inference_close(&inference);
    }
    memory_free(words);
    return status;
}

const struct command command_evaluate = {
    .name = "evaluate",
    .usage = "evaluate RUN_OR_CHECKPOINT [--data DATA.h5] [--split SPLIT] [--json] ...",
    .summary = "Score a model's predictions on attempts it has not seen",
    .details =
        "Predict each attempt from the student's earlier attempts, and compare with the "
        "outcome. Outcomes of earlier attempts are used only if they are shown: known, and not "
        "withheld by `cohort import` (--withheld, --split by-last or by-attempt). For a run "
        "directory, the checkpoint of the best epoch is "
        "used (best.h5), or the last one where nothing was validated.\n\n"
        "Scores: capped binomial deviance (CBD: base 10, probabilities capped to [0.01, "
        "0.99]; 0.30103 is a coin flip), log-loss in nats, area under the ROC curve (AUC), "
        "accuracy at 0.5, root mean squared error (RMSE) and calibration error (mean distance "
        "between probability and share correct over 15 bins). Each is given for all attempts "
        "and excluding each student's first attempt, for which a model knows only the item. "
        "Two "
        "baselines follow. `item mean`: (correct + 1) / (all + 2) of each item's training "
        "answers. "
        "`running mean`: the student's earlier answers to the skill, as an untrained `average` "
        " model predicts. Prints a warning unless the model beats both.\n\n"
        "--likelihood adds the joint log-likelihood of the scored answers, in nats per step. "
        "For an rtrbm, a step is scored given the steps before it. The sum over its states "
        "is exact for steps with at most --enumerate visible or hidden units; for larger steps "
        "it is estimated by annealed importance sampling. For a vae, all scored answers of a "
        "student are one step, given the shown ones outside the split. The integral over "
        "abilities is computed on a grid for up to 3 dimensions, and by importance sampling "
        "for more. Other models have no joint likelihood.\n\n"
        "A model that predicts one target per student (dkt with model.task=final) is scored on "
        "the targets instead and compared with "
        "the mean of the training targets: log-loss (for scores: minus the log of the "
        "predicted density), RMSE, and AUC and accuracy (passing) or R2 (scores).\n\n"
        "All numbers are bit-identical for any number of ranks.",
    .examples = "Score the test attempts, with 95 % intervals:\n\n"
                "  cohort evaluate runs/rbm --confidence 1000\n\n"
                "Score students of another data set on 4 ranks, for a program:\n\n"
                "  mpirun -n 4 cohort evaluate runs/rbm --data new.h5 --split all --json",
    .see_also = "cohort-predict(1), cohort-report(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
