/* cohort evaluate with one run: its scores, and those of the baselines (baseline.h) on the same
 * attempts. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/evaluate_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void rate(const struct evaluate_report *report, const struct prediction *list, size_t n,
                 struct evaluate_row *rated)
{
    const struct comm *comm = report->inference->comm;
    metrics_score(comm, list, n, &rated->score);
    if (report->values->replicates > 0)
        metrics_interval(comm, list, n, (int)report->values->replicates,
                         (uint64_t)report->values->seed, &rated->low, &rated->high);
}

static void rate_twice(const struct evaluate_report *report, const struct prediction *list,
                       size_t n, struct evaluate_twice *rated)
{
    size_t n_rest = 0;
    struct prediction *rest = scoring_rest(list, n, &n_rest);
    rate(report, list, n, &rated->all);
    rate(report, rest, n_rest, &rated->rest);
    memory_free(rest);
}

/* Collective. Without the data that the model was trained on there are no baselines. */
static void rate_baselines(struct evaluate_report *report,
                           const struct predictions *predictions)
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

static void rate_groups(struct evaluate_report *report, const struct predictions *predictions)
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
    report->groups = NEW(struct evaluate_row, n);
    for (size_t g = 0; g < n; g++)
        rate(report, sorted + first[g], first[g + 1] - first[g], &report->groups[g]);
    memory_free(next);
    memory_free(sorted);
    memory_free(first);
}

/* Collective: there must be something to score. */
static enum status check_attempts(const struct inference *inference,
                                  const struct evaluate_values *values)
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
    if (values->split == EVALUATE_ALL || n[values->split] > 0)
        return OK;
    char list[160] = "", *end = list;
    for (int s = 0; s < N_SPLITS; s++)
        if (n[s] > 0)
            end += sprintf(end, "%s%" PRId64 " for %s", end > list ? ", " : "", n[s],
                           evaluate_splits[s]);
    return fail(BAD_USER,
                "%s: no attempt with a known outcome is for %s; there are %s: choose with "
                "--split",
                inference->dataset.path, evaluate_splits[values->split], list);
}

enum status evaluate_predict(const struct inference *inference,
                             const struct evaluate_values *values,
                             struct predictions *predictions)
{
    const unsigned set = evaluate_set(values);
    TRY(inference_check_splits(inference, set));
    TRY(check_attempts(inference, values));
    if (inference->own_data && (set >> TRAIN & 1) != 0)
        log_say("note: %s was trained on %s of these attempts, so its scores are too good; "
                "--split test has attempts that it has not seen",
                inference->checkpoint.path, values->split == TRAIN ? "all" : "most");
    TRY(inference_predict(inference, set, predictions));
    scoring_keep(predictions, &inference->shard, values->skip_first);
    return OK;
}

enum status evaluate_run(const struct inference *inference,
                         const struct evaluate_values *values)
{
    if (values->likelihood && inference->model->kind->sequence.likelihood == NULL)
        return fail(BAD_USER,
                    "%s: %s models have no joint likelihood (rtrbm and vae do); omit "
                    "--likelihood",
                    inference->checkpoint.path, inference->model->kind->name);
    struct predictions predictions;
    TRY(evaluate_predict(inference, values, &predictions));
    struct evaluate_report report = {.inference = inference, .values = values};
    for (size_t i = 0; i < predictions.n; i++)
        report.n_by_basis[stand_ins_basis(&inference->stand_ins, predictions.place[i])]++;
    comm_sum_i64(inference->comm, report.n_by_basis, N_BASES);
    rate_twice(&report, predictions.list, predictions.n, &report.model);
    rate_baselines(&report, &predictions);
    if (values->replicates > 0)
        metrics_say_few(report.model.all.score.n_students);
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
                           &inference->shard, evaluate_set(values), &plan, &report.likelihood);
    if (!log_muted())
        evaluate_print(&report);
    double baselines[N_BASELINES];
    for (int b = 0; b < N_BASELINES; b++)
        baselines[b] = report.baselines[b].all.score.log_loss;
    if (report.has_baselines && !values->json)
        baseline_say(evaluate_splits[values->split], report.model.all.score.log_loss,
                     baselines);
    memory_free(report.groups);
    return OK;
}
