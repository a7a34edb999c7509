/* The sections about how good a model is: its scores beside a baseline, whether its chances can
 * be taken at their word, and how they depend on what is known of the student. */
#include "base/memory.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/report_internal.h"
#include <math.h>
#include <string.h>

/* Of students' numbers: neither right nor wrong. */
static bool is_number(const struct report_run *run)
{
    return run->task == TASK_SCORE || run->task == TASK_DENSITY;
}

static const char *baseline_words(const struct report_run *run)
{
    return run->task == TASK_TRACE ? "mean of each item" : "mean of the training targets";
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
        /* Resampling adds to a calibration error what noise it adds, so that an interval would
         * mislead. */
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
    char *rest = memory_text("%s, without first answers", name);
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

/* Runs whose baselines differ show them all. */
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
        {"log-loss", "The surprise at the answers that came, in nats: minus the logarithm of "
                     "the chance that was given to what happened. Lower is better; always "
                     "saying one half costs 0.693."},
        {"CBD", "Capped binomial deviance: the same with logarithms to base 10 and chances "
                "kept within 1 and 99 %, so that no single answer counts too much. Lower is "
                "better."},
        {"accuracy", "The share of answers on the side of one half that the model was on."},
        {"RMSE", "Root of the mean squared distance between the chance and the outcome (0 or "
                 "1). Lower is better."},
        {"calibration error", "How far, on average, chances are from the shares of right "
                              "answers that came: 0.02 means that “70 %” was 68 or 72 %."},
    };
    fputs("<details open><summary>What these numbers mean</summary>\n<dl>\n", out);
    for (size_t k = 0; chances && k < COUNT(meanings); k++) {
        html_say(out, "dt", "%s", meanings[k][0]);
        html_say(out, "dd", "%s", meanings[k][1]);
    }
    if (numbers) {
        html_say(out, "dt", "R²");
        html_say(out, "dd",
                 "The share of the variance of the targets that the predictions "
                 "explain: 1 is perfect, 0 no better than their mean.");
        html_say(out, "dt", "RMSE");
        html_say(out, "dd",
                 "Root of the mean squared distance between prediction and target, in "
                 "the targets' own units.");
    }
    if (answers) {
        html_say(out, "dt", "mean of each item");
        html_say(out, "dd",
                 "What one would say without knowing the student: an item's share of right "
                 "answers in training. A model has learned something of students only where "
                 "it does better.");
        html_say(out, "dt", "without first answers");
        html_say(out, "dd", "Of a student's first answer a model can only know the item.");
    }
    fputs("</dl></details>\n", out);
}

/* All runs' AUC with intervals, beside their baseline. */
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
    html_figure(out, "AUC of all runs");
    plot_draw(out, &(struct plot){.title = "AUC of all runs with 95 % intervals",
                                  .x = {.label = "AUC"},
                                  .y = {.names = names, .n_names = n},
                                  .series = &points,
                                  .n_series = 1});
    html_caption(out,
                 "Bars are 95 %% intervals over the choice of students. All runs are scored "
                 "on the same answers, so differences between them are surer than the bars "
                 "look.");
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
    html_say(out, "h2", report->n > 1 ? "How good they are" : "How good it is");
    show_table(out, report, false);
    show_table(out, report, true);
    if (chances)
        html_say(out, "p class=\"note\"",
                 "Small numbers: 95 %% intervals, from %d resamplings of the students.",
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
        {.name = "said and happened alike", .style = PLOT_GUIDE, .n = 2, .x = ends, .y = ends},
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
              &(struct plot){
                  .title = "Shares of right answers beside predicted chances",
                  .x = {.label = "predicted chance", .high = 1, .percent = true},
                  .y = {.label = run->task == TASK_TRACE ? "right answers" : "targets of 1",
                        .high = 1,
                        .percent = true},
                  .series = series,
                  .n_series = COUNT(series)});
    html_caption(out,
                 "%s with like chances together; the area of a dot goes with their number. "
                 "Above the line more were right than the model said, below it fewer.",
                 run->task == TASK_TRACE ? "Answers" : "Students");
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
              &(struct plot){.title = "Predicted chances of right and of wrong answers",
                             .x = {.label = "predicted chance", .high = 1, .percent = true},
                             .y = {.label = "share of them", .percent = true},
                             .series = series,
                             .n_series = COUNT(series)});
    html_caption(out,
                 "The further the two are apart, the better the model tells them from each "
                 "other.");
}

/* Students' numbers: predicted and true. */
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
        {.name = "said and happened alike", .style = PLOT_GUIDE, .n = 2, .x = ends, .y = ends},
        {.name = "a student",
         .style = PLOT_POINTS,
         .n = run->n_finals,
         .x = run->final_mean,
         .y = run->final_target},
    };
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = "Targets of students beside what was predicted",
                                  .x = {.label = "predicted", .low = low, .high = high},
                                  .y = {.label = "target", .low = low, .high = high},
                                  .series = series,
                                  .n_series = COUNT(series)});
    if ((int64_t)run->n_finals < run->model.all.n)
        html_caption(out, "A dot is a student: %s of the %s, evenly chosen.",
                     html_whole((int64_t)run->n_finals).text,
                     html_whole(run->model.all.n).text);
    else
        html_caption(out, "A dot is a student.");
}

void report_show_chances(FILE *out, const struct report *report)
{
    html_say(out, "h2", report->n > 1 ? "Can their word be taken?" : "Can its word be taken?");
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        char *titles[2];
        static const char *const words[2] = {"Said and happened", "Told apart"};
        for (int k = 0; k < 2; k++)
            titles[k] = report->n > 1 ? memory_text("%s: %s", run->label, words[k])
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

/* AUC by the number of answers seen before; too few answers are no score. */
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
    html_figure(out, "The more it has seen");
    plot_draw(out, &(struct plot){.title = "AUC by the number of answers seen before",
                                  .x = {.label = "answers of the student seen before",
                                        .names = report_bucket_names + begin,
                                        .n_names = last + 1 - begin},
                                  .y = {.label = "AUC"},
                                  .series = series,
                                  .n_series = n});
    html_caption(out,
                 "A model that learns about a student gets better with every answer it has "
                 "seen. Places with fewer than %d answers are left out.%s",
                 FEWEST, report->n > 1 ? "" : " Bars: 95 % intervals.");
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
        series[n++] =
            (struct plot_series){.name = report->n > 1 ? run->label : "the model says",
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
    series[n++] = (struct plot_series){.name = "answers that came",
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
    html_figure(out, "What it makes of the answers so far");
    plot_draw(
        out,
        &(struct plot){
            .title = "Right answers by the student's share of right answers "
                     "so far",
            .x = {.label = "right answers of the student so far", .high = 1, .percent = true},
            .y = {.label = "next answer right", .high = 1, .percent = true},
            .series = series,
            .n_series = n});
    html_caption(out,
                 "Students who answered well before answer well again: a good model follows "
                 "the dots, the mean of each item cannot. Students of at least %d answers.",
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
             report->n > 1 ? "What they learn about a student"
                           : "What it learns about a student");
    html_figures(out);
    draw_seen(out, report);
    draw_tenths(out, report);
    html_figures_end(out);
}
