/* The sections about how good a model is: its scores compared with a baseline, its calibration,
 * and how predictions depend on what is known about the student. */
#include "base/memory.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/report_internal.h"
#include <math.h>
#include <string.h>

/* Targets are numbers, neither right nor wrong. */
static bool is_number(const struct report_run *run)
{
    return run->task == TASK_SCORE || run->task == TASK_DENSITY;
}

static const char *baseline_words(const struct report_run *run)
{
    return run->task == TASK_TRACE ? "item mean" : "mean of the training targets";
}

static void score_cell(FILE *out, int digits, double value, double low, double high)
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

/* Columns in the order in which they are explained. */
static const enum metric shown_metrics[N_METRICS] = {METRIC_AUC,  METRIC_LOG_LOSS,
                                                     METRIC_CBD,  METRIC_ACCURACY,
                                                     METRIC_RMSE, METRIC_CALIBRATION_ERROR};
static const int digits_of[N_METRICS] = {5, 5, 4, 4, 4, 4};

static void score_row(FILE *out, const char *name, const struct score *score,
                      const struct score *low, const struct score *high)
{
    struct score all = *score, from = *score, to = *score;
    if (low != NULL) {
        from = *low;
        to = *high;
    }
    html_row(out, name);
    html_count(out, score->n);
    html_count(out, score->n_students);
    for (size_t k = 0; k < N_METRICS; k++) {
        const enum metric m = shown_metrics[k];
        /* No interval: the noise of resampling increases the calibration error. */
        const bool has_interval = low != NULL && m != METRIC_CALIBRATION_ERROR;
        score_cell(out, digits_of[m], *metrics_value(&all, m),
                   has_interval ? *metrics_value(&from, m) : NAN,
                   has_interval ? *metrics_value(&to, m) : NAN);
    }
    html_row_end(out);
}

static void score_rows(FILE *out, const char *name, const struct report_run *run,
                       const struct report_rated *rated, bool interval)
{
    char *rest = memory_text("%s, excluding first attempts", name);
    score_row(out, name, &rated->all, interval ? &rated->low : NULL, &rated->high);
    if (run->task == TASK_TRACE)
        score_row(out, rest, &rated->rest, NULL, NULL);
    memory_free(rest);
}

static void number_row(FILE *out, const char *name, const struct score *score)
{
    html_row(out, name);
    html_count(out, score->n);
    fprintf(out, "<td>%s</td>", html_short(score->correct).text);
    html_number(out, 4, score->r2);
    fprintf(out, "<td>%s</td>", html_short(score->rmse).text);
    html_number(out, 5, score->log_loss);
    html_row_end(out);
}

/* A baseline that the next run has too is shown once. */
static bool next_has_same_baseline(const struct report *report, size_t r)
{
    return report->comparable && r + 1 < report->n && report->runs[r].own_data &&
           report->runs[r + 1].own_data && !report->runs[r].is_refit &&
           !report->runs[r + 1].is_refit;
}

static void show_table(FILE *out, const struct report *report, bool numbers)
{
    static const char *const heads[] = {"",         "answers",  "students",
                                        "AUC",      "log-loss", "CBD",
                                        "accuracy", "RMSE",     "calibration error"};
    static const char *const number_heads[] = {"",   "students", "mean target",
                                               "R²", "RMSE",     "log-loss"};
    bool begun = false;
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        if (is_number(run) != numbers)
            continue;
        if (!begun && numbers)
            html_table_begin(out, number_heads, COUNT(number_heads));
        else if (!begun)
            html_table_begin(out, heads, COUNT(heads));
        begun = true;
        const char *name = report->n > 1 ? run->label : run->kind->name;
        if (numbers)
            number_row(out, name, &run->model.all);
        else
            score_rows(out, name, run, &run->model, true);
        if (!run->has_item_mean || next_has_same_baseline(report, r))
            continue;
        if (numbers)
            number_row(out, baseline_words(run), &run->item_mean.all);
        else
            score_rows(out, baseline_words(run), run, &run->item_mean, false);
    }
    if (begun)
        html_table_end(out);
}

static void explain(FILE *out, bool answers, bool chances, bool numbers)
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
        html_say(out, "dt", "excluding first attempts");
        html_say(out, "dd",
                 "At a student's first attempt, a model knows only the item. These rows score "
                 "all other attempts.");
    }
    fputs("</dl></details>\n", out);
}

/* The AUC of all runs with intervals, and their baseline. */
static void draw_comparison(FILE *out, const struct report *report)
{
    const char *names[REPORT_MOST_RUNS + 1];
    double place[REPORT_MOST_RUNS + 1], auc[REPORT_MOST_RUNS + 1], low[REPORT_MOST_RUNS + 1],
        high[REPORT_MOST_RUNS + 1];
    size_t n = 0;
    for (size_t r = 0; r < report->n; r++, n++) {
        names[n] = report->runs[r].label;
        place[n] = (double)n;
        auc[n] = report->runs[r].model.all.auc;
        low[n] = report->runs[r].model.low.auc;
        high[n] = report->runs[r].model.high.auc;
    }
    if (report->runs[0].has_item_mean) {
        const struct report_rated *mean = &report->runs[0].item_mean;
        names[n] = baseline_words(&report->runs[0]);
        place[n] = (double)n;
        auc[n] = mean->all.auc;
        low[n] = report->runs[0].task == TASK_TRACE ? mean->low.auc : NAN;
        high[n] = report->runs[0].task == TASK_TRACE ? mean->high.auc : NAN;
        n++;
    }
    const struct plot_series points = {
        .style = PLOT_POINTS, .n = n, .x = auc, .y = place, .low = low, .high = high};
    html_figures(out);
    html_figure(out, "AUC of all runs with 95 % intervals");
    plot_draw(out, &(struct plot){.title = "AUC of all runs with 95 % intervals",
                                  .x = {.label = "AUC"},
                                  .y = {.names = names, .n_names = n},
                                  .series = &points,
                                  .n_series = 1});
    html_caption(
        out, "Further right is better. Bars are 95 %% intervals over the choice of students. "
             "All runs are scored on the same answers, so differences between them are more "
             "certain than the bars suggest.");
    html_figures_end(out);
}

void report_show_scores(FILE *out, const struct report *report)
{
    bool answers = false, chances = false, numbers = false;
    for (size_t r = 0; r < report->n; r++) {
        answers |= report->runs[r].task == TASK_TRACE;
        numbers |= is_number(&report->runs[r]);
        chances |= !is_number(&report->runs[r]);
    }
    html_say(out, "h2",
             report->n > 1 ? "Scores: how well the models predict"
                           : "Scores: how well the model predicts");
    show_table(out, report, false);
    show_table(out, report, true);
    if (chances)
        html_say(
            out, "p class=\"note\"",
            "Small numbers are 95 %% intervals, from %d bootstrap samples of the students.",
            REPORT_RESAMPLINGS);
    if (report->n > 1 && report->comparable && chances)
        draw_comparison(out, report);
    explain(out, answers, chances, numbers);
}

static void draw_calibration(FILE *out, const struct report_run *run, const char *title,
                             size_t colour)
{
    static const double ends[] = {0, 1};
    double x[N_CALIBRATION_BINS], y[N_CALIBRATION_BINS], weight[N_CALIBRATION_BINS];
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++) {
        x[b] = run->bins[b].n > 0 ? run->bins[b].probability : NAN;
        y[b] = run->bins[b].correct;
        weight[b] = (double)run->bins[b].n;
    }
    const struct plot_series series[] = {
        {.name = "perfect calibration", .style = PLOT_GUIDE, .n = 2, .x = ends, .y = ends},
        {.name = "the model",
         .style = PLOT_POINTS,
         .colour = colour,
         .n = N_CALIBRATION_BINS,
         .x = x,
         .y = y,
         .weight = weight},
    };
    html_figure(out, title);
    plot_draw(out,
              &(struct plot){.title = "Observed shares against predicted chances",
                             .x = {.label = "predicted chance", .high = 1, .percent = true},
                             .y = {.label = run->task == TASK_TRACE ? "observed right answers"
                                                                    : "observed targets of 1",
                                   .high = 1,
                                   .percent = true},
                             .series = series,
                             .n_series = COUNT(series)});
    html_caption(out,
                 "Each dot groups %s with similar chances; a larger dot stands for more of "
                 "them. A good model has its dots on the line. Above the line its chances are "
                 "too low, below it too high.",
                 run->task == TASK_TRACE ? "answers" : "students");
}

static void draw_chances(FILE *out, const struct report_run *run, const char *title)
{
    double x[REPORT_BINS], y[2][REPORT_BINS];
    int64_t n[2] = {0, 0};
    for (size_t b = 0; b < REPORT_BINS; b++)
        for (int k = 0; k < 2; k++)
            n[k] += run->chances[k][b];
    for (size_t b = 0; b < REPORT_BINS; b++) {
        x[b] = ((double)b + 0.5) / REPORT_BINS;
        for (int k = 0; k < 2; k++)
            y[k][b] = n[k] > 0 ? (double)run->chances[k][b] / (double)n[k] : 0;
    }
    const bool trace = run->task == TASK_TRACE;
    const struct plot_series series[] = {
        {.name = trace ? "wrong answers" : "targets of 0",
         .style = PLOT_BARS,
         .colour = 1,
         .n = REPORT_BINS,
         .x = x,
         .y = y[0]},
        {.name = trace ? "right answers" : "targets of 1",
         .style = PLOT_BARS,
         .colour = 0,
         .n = REPORT_BINS,
         .x = x,
         .y = y[1]},
    };
    html_figure(out, title);
    plot_draw(out,
              &(struct plot){.title = title,
                             .x = {.label = "predicted chance", .high = 1, .percent = true},
                             .y = {.label = trace ? "share of answers" : "share of students",
                                   .percent = true},
                             .series = series,
                             .n_series = COUNT(series)});
    html_caption(out,
                 "The further apart the two groups are, the better the model distinguishes "
                 "them.");
}

/* Targets that are numbers: predicted and observed. */
static void draw_numbers(FILE *out, const struct report_run *run, const char *title)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < run->n_finals; i++) {
        low = fmin(low, fmin(run->final_target[i], run->final_mean[i]));
        high = fmax(high, fmax(run->final_target[i], run->final_mean[i]));
    }
    if (run->n_finals == 0)
        return;
    plot_round(&low, &high);
    const double ends[] = {low, high};
    const struct plot_series series[] = {
        {.name = "perfect prediction", .style = PLOT_GUIDE, .n = 2, .x = ends, .y = ends},
        {.name = "a student",
         .style = PLOT_POINTS,
         .n = run->n_finals,
         .x = run->final_mean,
         .y = run->final_target},
    };
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = "Observed targets of students against predictions",
                                  .x = {.label = "predicted", .low = low, .high = high},
                                  .y = {.label = "observed", .low = low, .high = high},
                                  .series = series,
                                  .n_series = COUNT(series)});
    if ((int64_t)run->n_finals < run->model.all.n)
        html_caption(
            out,
            "Each dot is a student (an even selection, %s of %s). A good model has its "
            "dots close to the line.",
            html_whole((int64_t)run->n_finals).text, html_whole(run->model.all.n).text);
    else
        html_caption(out,
                     "Each dot is a student. A good model has its dots close to the line.");
}

void report_show_chances(FILE *out, const struct report *report)
{
    html_say(out, "h2", "Predictions against what happened");
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        char *titles[2];
        const char *const words[2] = {
            is_number(run) ? "Targets: predicted against observed"
                           : "Calibration: predicted against observed",
            run->task == TASK_TRACE ? "Predicted chances of right and of wrong answers"
                                    : "Predicted chances for targets of 1 and of 0"};
        for (int k = 0; k < 2; k++)
            titles[k] = report->n > 1 ? memory_text("%s (%s)", words[k], run->label)
                                      : memory_text("%s", words[k]);
        html_figures(out);
        if (is_number(run)) {
            draw_numbers(out, run, titles[0]);
        } else {
            draw_calibration(out, run, titles[0], r);
            draw_chances(out, run, titles[1]);
        }
        html_figures_end(out);
        memory_free(titles[0]);
        memory_free(titles[1]);
    }
}

/* AUC by the number of earlier answers; groups of fewer than FEWEST answers have no score. */
enum { FEWEST = 30 };

static void draw_seen(FILE *out, const struct report *report)
{
    double place[REPORT_BUCKETS], auc[REPORT_MOST_RUNS + 1][REPORT_BUCKETS],
        low[REPORT_MOST_RUNS][REPORT_BUCKETS], high[REPORT_MOST_RUNS][REPORT_BUCKETS];
    struct plot_series series[REPORT_MOST_RUNS + 1];
    size_t n = 0, begin = REPORT_BUCKETS, last = 0;
    const struct report_run *first = NULL;
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        if (run->task != TASK_TRACE)
            continue;
        first = first != NULL ? first : run;
        for (size_t b = 0; b < REPORT_BUCKETS; b++) {
            const bool enough = run->seen[b].model.n >= FEWEST;
            auc[r][b] = enough ? run->seen[b].model.auc : NAN;
            low[r][b] = run->seen[b].low.auc;
            high[r][b] = run->seen[b].high.auc;
            begin = enough ? size_min(begin, b) : begin;
            last = enough ? size_max(last, b) : last;
        }
        series[n++] = (struct plot_series){.name = report->n > 1 ? run->label : "the model",
                                           .style = PLOT_LINE,
                                           .colour = r,
                                           .x = place,
                                           .y = auc[r],
                                           .low = report->n > 1 ? NULL : low[r],
                                           .high = high[r]};
    }
    double *mean = auc[REPORT_MOST_RUNS];
    for (size_t b = 0; b < REPORT_BUCKETS && first->has_item_mean; b++)
        mean[b] = first->seen[b].model.n >= FEWEST ? first->seen[b].item_mean.auc : NAN;
    if (first->has_item_mean)
        series[n++] = (struct plot_series){
            .name = baseline_words(first), .style = PLOT_GUIDE, .x = place, .y = mean};
    if (begin > last)
        return;
    for (size_t b = 0; b < REPORT_BUCKETS; b++)
        place[b] = (double)b - (double)begin;
    for (size_t s = 0; s < n; s++) {
        series[s].n = last + 1 - begin;
        series[s].x += begin;
        series[s].y += begin;
        if (series[s].low != NULL) {
            series[s].low += begin;
            series[s].high += begin;
        }
    }
    html_figure(out, "AUC by number of earlier answers");
    plot_draw(out, &(struct plot){.title = "AUC by number of earlier answers of the student",
                                  .x = {.label = "earlier answers of the student",
                                        .names = report_bucket_names + begin,
                                        .n_names = last + 1 - begin},
                                  .y = {.label = "AUC"},
                                  .series = series,
                                  .n_series = n});
    html_caption(out,
                 "A model that learns about a student gets better with every answer it sees: a "
                 "good line rises. Points with fewer than %d answers are skipped.%s",
                 FEWEST, report->n > 1 ? "" : " Bars are 95 % intervals.");
}

static void draw_tenths(FILE *out, const struct report *report)
{
    double place[REPORT_TENTHS], observed[REPORT_TENTHS], mean[REPORT_TENTHS],
        model[REPORT_MOST_RUNS][REPORT_TENTHS];
    struct plot_series series[REPORT_MOST_RUNS + 2];
    size_t n = 0;
    const struct report_run *first = NULL;
    for (size_t k = 0; k < REPORT_TENTHS; k++)
        place[k] = ((double)k + 0.5) / REPORT_TENTHS;
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        if (run->task != TASK_TRACE)
            continue;
        first = first != NULL ? first : run;
        for (size_t k = 0; k < REPORT_TENTHS; k++)
            model[r][k] = run->tenths[k].n >= FEWEST ? run->tenths[k].model : NAN;
        series[n++] = (struct plot_series){.name = report->n > 1 ? run->label : "the model",
                                           .style = PLOT_LINE,
                                           .colour = r,
                                           .n = REPORT_TENTHS,
                                           .x = place,
                                           .y = model[r]};
    }
    for (size_t k = 0; k < REPORT_TENTHS; k++) {
        const bool enough = first->tenths[k].n >= FEWEST;
        observed[k] = enough ? first->tenths[k].correct : NAN;
        mean[k] = enough ? first->tenths[k].item_mean : NAN;
    }
    series[n++] = (struct plot_series){.name = "observed",
                                       .style = PLOT_POINTS,
                                       .colour = 7,
                                       .n = REPORT_TENTHS,
                                       .x = place,
                                       .y = observed};
    if (first->has_item_mean)
        series[n++] = (struct plot_series){.name = baseline_words(first),
                                           .style = PLOT_GUIDE,
                                           .n = REPORT_TENTHS,
                                           .x = place,
                                           .y = mean};
    html_figure(out, "Next answer by the student's answers so far");
    plot_draw(
        out,
        &(struct plot){
            .title = "Share of right next answers by the student's share of right answers "
                     "so far",
            .x = {.label = "right answers of the student so far", .high = 1, .percent = true},
            .y = {.label = "next answer right", .high = 1, .percent = true},
            .series = series,
            .n_series = n});
    html_caption(out,
                 "Students who answered well so far tend to answer well again. A good model "
                 "follows the dots; the item mean cannot. Only students with at least %d "
                 "earlier answers are counted.",
                 REPORT_SEEN);
}

void report_show_students(FILE *out, const struct report *report)
{
    bool any = false, whole = report->n == 1 || report->comparable;
    for (size_t r = 0; r < report->n; r++)
        any |= report->runs[r].task == TASK_TRACE;
    if (!any || !whole)
        return;
    html_say(out, "h2",
             report->n > 1 ? "What the models learn about a student"
                           : "What the model learns about a student");
    html_figures(out);
    draw_seen(out, report);
    draw_tenths(out, report);
    html_figures_end(out);
}
