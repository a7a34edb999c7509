/* The section of scores: a table of all runs and their baselines, and what the numbers mean. Runs
 * that can be compared are in the order of their scores, with the baselines among them. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>
#include <string.h>

static const char *baseline_words(const struct report_run *run)
{
    return run->task == TASK_TRACE ? "item mean" : "mean of the training targets";
}

void report_cell(FILE *out, int digits, double value, double low, double high)
{
    if (!isfinite(value)) {
        fputs("<td></td>", out);
        return;
    }
    fprintf(out, "<td>%.*f", digits, value);
    if (isfinite(low) && isfinite(high))
        fprintf(out, "<small>%.3f – %.3f</small>", low, high);
    fputs("</td>", out);
}

static void metric_cells(FILE *out, const struct score *score, const struct score *low,
                         const struct score *high)
{
    for (size_t k = 0; k < N_METRICS; k++) {
        const enum metric m = report_metric_shown[k];
        /* No interval: the noise of resampling increases the calibration error. */
        const bool has_interval = low != NULL && low->n > 0 && m != METRIC_CALIBRATION_ERROR;
        report_cell(out, report_metric_digits(m), report_metric_value(score, m),
                    has_interval ? report_metric_value(low, m) : NAN,
                    has_interval ? report_metric_value(high, m) : NAN);
    }
}

/* ---- one run, or runs that cannot be compared: each with its baselines */

static void score_row(FILE *out, const char *name, const struct score *score,
                      const struct score *low, const struct score *high)
{
    html_row(out, name);
    metric_cells(out, score, low, high);
    html_count(out, score->n);
    html_count(out, score->n_students);
    html_row_end(out);
}

static void score_rows(FILE *out, const char *name, const struct report_run *run,
                       const struct report_rated *rated)
{
    char *rest = memory_text("%s, excluding first attempts", name);
    score_row(out, name, &rated->all, &rated->low, &rated->high);
    if (run->task == TASK_TRACE)
        score_row(out, rest, &rated->rest, NULL, NULL);
    memory_free(rest);
}

static void number_row(FILE *out, const char *name, const struct score *score)
{
    html_row(out, name);
    html_number(out, 4, score->r2);
    fprintf(out, "<td>%s</td>", html_short(score->rmse).text);
    html_number(out, 5, score->log_loss);
    html_count(out, score->n);
    fprintf(out, "<td>%s</td>", html_short(score->correct).text);
    html_row_end(out);
}

static void rows_of(FILE *out, const struct report_run *run, const char *name,
                    bool with_baselines)
{
    const bool numbers = report_is_number(run);
    if (numbers)
        number_row(out, name, &run->model.all);
    else
        score_rows(out, name, run, &run->model);
    if (!run->has_item_mean || !with_baselines)
        return;
    if (numbers)
        number_row(out, baseline_words(run), &run->item_mean.all);
    else
        score_rows(out, baseline_words(run), run, &run->item_mean);
    if (run->running_mean.n > 0)
        score_row(out, "running mean", &run->running_mean, NULL, NULL);
}

static void show_each(FILE *out, const struct report *report, bool numbers)
{
    static const char *const heads[] = {"",         "AUC",  "log-loss",          "CBD",
                                        "accuracy", "RMSE", "calibration error", "answers",
                                        "students"};
    static const char *const number_heads[] = {"",         "R²",       "RMSE",
                                               "log-loss", "students", "mean target"};
    bool begun = false;
    for (size_t r = 0; r < report->n_all; r++) {
        const struct report_run *run = &report->runs[r];
        if (report_is_number(run) != numbers)
            continue;
        if (!begun)
            html_table_begin(out, numbers ? number_heads : heads,
                             numbers ? COUNT(number_heads) : COUNT(heads));
        begun = true;
        rows_of(out, run, report->n_all > 1 ? run->label : run->kind->name,
                !report->comparable || r + 1 == report->n_all);
    }
    if (begun)
        html_table_end(out);
}

/* ---- runs that can be compared, best first */

struct line {
    const struct report_run *run; /* NULL: a baseline */
    const char *name;
    const struct score *all, *rest;
    size_t entry;
};

static void line_row(FILE *out, const struct report *report, const struct line *line)
{
    const struct paired_entry *entry =
        line->entry != SIZE_MAX ? &report->pairs.paired.entries[line->entry] : NULL;
    fprintf(out, "<tr%s><th scope=\"row\"%s>", line->run == NULL ? " class=\"base\"" : "",
            html_has_long_word(line->name) ? " class=\"any\"" : "");
    html_cut(out, line->name, 60);
    if (line->run != NULL &&
        (line->run->is_refit ||
         (!line->run->is_choice && strcmp(line->name, line->run->kind->name) != 0)))
        fprintf(out, " <small>%s%s</small>", line->run->kind->name,
                line->run->is_refit ? ", refitted" : "");
    fputs("</th>", out);
    metric_cells(out, line->all, entry != NULL ? &entry->low : NULL,
                 entry != NULL ? &entry->high : NULL);
    if (report->runs[0].task == TASK_TRACE) {
        html_number(out, 4, line->rest != NULL ? line->rest->auc : NAN);
        html_number(out, 5, line->rest != NULL ? line->rest->log_loss : NAN);
    }
    html_row_end(out);
}

/* The line goes before those with a worse score. */
static void put(struct line *lines, size_t *n, struct line line, int metric)
{
    const double sign = metrics_up(metric) ? -1 : 1,
                 value = sign * report_metric_value(line.all, metric);
    size_t place = (*n)++;
    for (; place > 0 && value < sign * report_metric_value(lines[place - 1].all, metric);
         place--)
        lines[place] = lines[place - 1];
    lines[place] = line;
}

static void show_ranking(FILE *out, const struct report *report)
{
    static const char *const heads[] = {"",
                                        "AUC",
                                        "log-loss",
                                        "CBD",
                                        "accuracy",
                                        "RMSE",
                                        "calibration error",
                                        "AUC excluding first attempts",
                                        "log-loss excluding first attempts"};
    const struct report_run *first = &report->runs[0];
    struct line *lines = NEW(struct line, report->n_all + N_BASELINES);
    size_t n = 0;
    for (size_t r = 0; r < report->n_all; r++)
        put(lines, &n,
            (struct line){&report->runs[r], report->runs[r].label, &report->runs[r].model.all,
                          &report->runs[r].model.rest, report->runs[r].entry},
            report->metric);
    if (first->has_item_mean)
        put(lines, &n,
            (struct line){NULL, baseline_words(first), &first->item_mean.all,
                          &first->item_mean.rest, report->pairs.baseline[BASELINE_ITEMS]},
            report->metric);
    if (first->running_mean.n > 0)
        put(lines, &n,
            (struct line){NULL, "running mean", &first->running_mean, NULL,
                          report->pairs.baseline[BASELINE_AVERAGE]},
            report->metric);
    html_table_begin(out, heads, first->task == TASK_TRACE ? COUNT(heads) : COUNT(heads) - 2);
    for (size_t k = 0; k < n; k++)
        line_row(out, report, &lines[k]);
    html_table_end(out);
    html_say(out, "p class=\"note\"",
             "Sorted by %s, best first, on the same %s %s from %s students.",
             report_metric_words(report->metric), html_whole(first->model.all.n).text,
             report_split_words(first, 2), html_whole(first->model.all.n_students).text);
    memory_free(lines);
}

void report_show_meanings(FILE *out, bool answers, bool chances, bool numbers)
{
    static const char *const meanings[][2] = {
        {"AUC", "Take one right and one wrong answer at random: how often the model gave the "
                "right one the higher chance. 0.5 is no better than tossing a coin, 1 is "
                "perfect."},
        {"log-loss",
         "How much the answers surprised the model, in nats per answer: minus the "
         "logarithm of the chance it gave to what happened. Lower is better; always "
         "predicting 50 % scores 0.693."},
        {"CBD", "Capped binomial deviance: like log-loss, but with logarithms to base 10 and "
                "chances limited to 1 to 99 %, so that no single answer counts too much. Lower "
                "is better."},
        {"accuracy", "The share of answers predicted correctly, if a chance of 50 % or more "
                     "predicts a right answer. Higher is better."},
        {"RMSE", "Root of the mean squared difference between the chance and the outcome (0 or "
                 "1). Lower is better."},
        {"calibration error",
         "How far, on average, predicted chances are from the observed shares of right "
         "answers: "
         "0.02 means that of answers predicted at 70 %, 68 or 72 % were right. Lower is "
         "better."},
    };
    fputs("<details open><summary>What these numbers mean</summary>\n<dl>\n", out);
    for (size_t k = 0; chances && k < COUNT(meanings); k++) {
        html_say(out, "dt", "%s", meanings[k][0]);
        html_say(out, "dd", "%s", meanings[k][1]);
    }
    if (numbers) {
        html_say(out, "dt", "R²");
        html_say(out, "dd",
                 "The share of the variance of the targets that the predictions explain: 1 is "
                 "perfect, 0 is no better than their mean.");
        html_say(out, "dt", "RMSE");
        html_say(out, "dd",
                 "Root of the mean squared difference between prediction and target, in the "
                 "units of the targets. Lower is better.");
    }
    if (answers) {
        html_say(out, "dt", "item mean");
        html_say(
            out, "dd",
            "The best guess without knowing the student: the item's share of right answers "
            "in training. A model has learned something about students only if it does "
            "better.");
        html_say(out, "dt", "running mean");
        html_say(out, "dd",
                 "A rule that needs no training: the student's share of right answers to the "
                 "skill so far, where older answers count less, starting from the item mean.");
        html_say(out, "dt", "excluding first attempts");
        html_say(out, "dd",
                 "At a student's first attempt, a model knows only the item. These rows score "
                 "all other attempts.");
    }
    fputs("</dl></details>\n", out);
}

void report_show_scores(FILE *out, const struct report *report)
{
    bool answers = false, chances = false, numbers = false;
    for (size_t r = 0; r < report->n_all; r++) {
        answers |= report->runs[r].task == TASK_TRACE;
        numbers |= report_is_number(&report->runs[r]);
        chances |= !report_is_number(&report->runs[r]);
    }
    html_say(out, "h2",
             report->n_all > 1 ? "Scores: how well the models predict"
                               : "Scores: how well the model predicts");
    if (report->n_all > 1 && report->comparable && chances) {
        show_ranking(out, report);
    } else {
        show_each(out, report, false);
        show_each(out, report, true);
    }
    if (chances)
        html_say(out, "p class=\"note\"",
                 "Small numbers are 95 %% intervals, from %d bootstrap samples of the "
                 "students.",
                 REPORT_RESAMPLINGS);
    if (report->n_all > 1 && report->comparable && chances)
        report_show_differences(out, report);
    report_show_meanings(out, answers, chances, numbers);
}
