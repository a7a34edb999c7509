/* The output of cohort evaluate with one run: a table, or JSON. */
#include "base/cell_text.h"
#include "commands/commands.h"
#include "commands/evaluate_internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *group_name(const struct evaluate_report *report, size_t g)
{
    return g == 0 ? NULL : names_get(&report->inference->dataset.groups, g - 1);
}

json_t *evaluate_score_json(const struct score *score)
{
    json_t *object = score_json(score);
    json_object_set_new(object, "students", json_integer(score->n_students));
    json_object_set_new(object, "correct", command_json_number(score->correct));
    return object;
}

json_t *evaluate_interval_json(const struct score *score, const struct score *low,
                               const struct score *high)
{
    if (!metrics_has_interval(score->n_students))
        return json_null();
    json_t *interval = json_object();
    json_object_set_new(interval, "low", evaluate_score_json(low));
    json_object_set_new(interval, "high", evaluate_score_json(high));
    return interval;
}

static json_t *rated_json(const struct evaluate_report *report,
                          const struct evaluate_row *rated)
{
    json_t *object = evaluate_score_json(&rated->score);
    if (report->values->replicates == 0)
        return object;
    json_t *interval = evaluate_interval_json(&rated->score, &rated->low, &rated->high);
    json_object_set_new(object, "interval", interval);
    if (json_is_object(interval)) {
        json_object_set_new(interval, "level", json_real(0.95));
        json_object_set_new(interval, "bootstrap_samples",
                            json_integer(report->values->replicates));
    }
    return object;
}

static json_t *rated_twice_json(const struct evaluate_report *report,
                                const struct evaluate_twice *rated)
{
    json_t *object = rated_json(report, &rated->all);
    json_object_set_new(object, "skip_first", rated_json(report, &rated->rest));
    return object;
}

static json_t *groups_json(const struct evaluate_report *report)
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

static json_t *calibration_json(const struct evaluate_report *report)
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

static void print_json(const struct evaluate_report *report)
{
    const struct inference *inference = report->inference;
    json_t *object = json_object();
    json_object_set_new(object, "checkpoint", command_json_text(inference->checkpoint.path));
    json_object_set_new(object, "model", json_string(inference->model->kind->name));
    json_object_set_new(object, "epoch", json_integer(inference->checkpoint.progress.epoch));
    json_object_set_new(object, "digest", json_string(inference->checkpoint.digest));
    json_object_set_new(object, "data", command_json_text(inference->dataset.path));
    json_object_set_new(object, "data_digest", json_string(inference->dataset.digest));
    json_object_set_new(object, "split", json_string(evaluate_splits[report->values->split]));
    json_t *scores = rated_twice_json(report, &report->model);
    json_object_update(object, scores);
    json_decref(scores);
    if (inference->stand_ins.n_passes > 0) {
        json_t *bases = json_object();
        for (int b = 0; b < N_BASES; b++)
            json_object_set_new(bases, stand_ins_bases[b], json_integer(report->n_by_basis[b]));
        json_object_set_new(object, "basis", bases);
    }
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

void evaluate_print_titles(bool with_correct)
{
    static const char *const titles[N_METRICS] = {"CBD",      "log-loss", "AUC",
                                                  "accuracy", "RMSE",     "cal. err."};
    if (with_correct)
        printf("  %9s", "correct");
    for (int m = 0; m < N_METRICS; m++)
        printf("  %9s", titles[m]);
    putchar('\n');
}

void evaluate_print_numbers(const struct score *score, bool with_correct)
{
    static const int digits[N_METRICS] = {5, 5, 4, 4, 4, 4};
    struct score copy = *score;
    for (int m = with_correct ? -1 : 0; m < N_METRICS; m++) {
        const double value = m < 0 ? score->correct : *metrics_value(&copy, m);
        if (isnan(value))
            printf("  %9s", "-");
        else
            printf("  %9.*f", m < 0 ? 4 : digits[m], value);
    }
    putchar('\n');
}

static void print_row(const struct evaluate_report *report, const char *label,
                      const struct evaluate_row *rated)
{
    cell_text_left(label, LABEL, LABEL);
    printf("  %10" PRId64 "  %8" PRId64, rated->score.n, rated->score.n_students);
    evaluate_print_numbers(&rated->score, true);
    if (report->values->replicates > 0 && metrics_has_interval(rated->score.n_students))
        for (int end = 0; end < 2; end++) {
            printf("%*s  %10s  %8s", LABEL, end == 0 ? "2.5 %" : "97.5 %", "", "");
            evaluate_print_numbers(end == 0 ? &rated->low : &rated->high, true);
        }
}

static void print_rows(const struct evaluate_report *report, const char *name,
                       const struct evaluate_twice *rated)
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

static void print_table(const struct evaluate_report *report)
{
    const struct inference *inference = report->inference;
    printf("%s: %s after epoch %" PRId64 ", on %s%s attempts of %s\n\n",
           inference->checkpoint.path, inference->model->kind->name,
           inference->checkpoint.progress.epoch,
           report->values->split == EVALUATE_ALL ? "" : "the ",
           evaluate_splits[report->values->split], inference->dataset.path);
    printf("%-*s  %10s  %8s", LABEL, "", "attempts", "students");
    evaluate_print_titles(true);
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

void evaluate_print(const struct evaluate_report *report)
{
    if (report->values->json)
        print_json(report);
    else
        print_table(report);
}
