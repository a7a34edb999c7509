/* The sections about how predictions compare with what happened: calibration, chances of right
 * and of wrong answers, and how predictions depend on what is known about the student. Several
 * runs are drawn as panels with the same axes and one caption for all. */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include <math.h>

/* A picture of one run; with the same axes for all runs of the page. */
typedef void draw_function(FILE *out, const struct report *report, const struct report_run *run,
                           const char *title);

/* Draws the runs that have such a picture; ends before the caption. */
static void draw_runs(FILE *out, const struct report *report, const char *title,
                      bool (*has)(const struct report_run *run), draw_function *draw)
{
    if (report->n == 1) {
        html_figure(out, title);
        draw(out, report, &report->runs[0], title);
        return;
    }
    html_panels(out, title);
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        if (!has(run))
            continue;
        char *own = memory_text("%s (%s)", title, run->label);
        html_panel(out, run->label);
        draw(out, report, run, own);
        html_panel_end(out);
        memory_free(own);
    }
    html_panels_end(out);
}

static size_t count(const struct report *report, bool (*has)(const struct report_run *run))
{
    size_t n = 0;
    for (size_t r = 0; r < report->n; r++)
        n += has(&report->runs[r]);
    return n;
}

static bool has_answers(const struct report_run *run)
{
    return run->task == TASK_TRACE;
}

static bool has_chances(const struct report_run *run)
{
    return !report_is_number(run);
}

static bool has_numbers(const struct report_run *run)
{
    return report_is_number(run) && run->n_finals > 0;
}

static void draw_calibration(FILE *out, const struct report *report,
                             const struct report_run *run, const char *title)
{
    static const double ends[] = {0, 1};
    double x[N_CALIBRATION_BINS], y[N_CALIBRATION_BINS], weight[N_CALIBRATION_BINS],
        low[N_CALIBRATION_BINS], high[N_CALIBRATION_BINS];
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++) {
        x[b] = run->bins[b].n > 0 ? run->bins[b].probability : NAN;
        y[b] = run->bins[b].correct;
        weight[b] = (double)run->bins[b].n;
        report_wilson(y[b], run->bins[b].n, &low[b], &high[b]);
    }
    const bool alone = report->n == 1;
    const struct plot_series series[] = {
        {.name = alone ? "perfect calibration" : NULL,
         .style = PLOT_GUIDE,
         .n = 2,
         .x = ends,
         .y = ends},
        {.name = alone ? "the model" : NULL,
         .style = PLOT_POINTS,
         .n = N_CALIBRATION_BINS,
         .x = x,
         .y = y,
         .low = low,
         .high = high,
         .weight = weight},
    };
    plot_draw(out,
              &(struct plot){.title = title,
                             .x = {.label = "predicted chance", .high = 1, .percent = true},
                             .y = {.label = run->task == TASK_TRACE ? "observed right answers"
                                                                    : "observed targets of 1",
                                   .high = 1,
                                   .percent = true},
                             .series = series,
                             .n_series = COUNT(series)});
}

/* Answers of one outcome in a bin, as a share of all answers: both histograms together make 1,
 * so a bar that is twice as high stands for twice as many answers. */
static double share(const struct report_run *run, int outcome, size_t b)
{
    int64_t n = 0;
    for (size_t k = 0; k < REPORT_BINS; k++)
        n += run->chances[0][k] + run->chances[1][k];
    return n > 0 ? (double)run->chances[outcome][b] / (double)n : 0;
}

static double highest_share(const struct report *report)
{
    double most = 0, low = 0;
    for (size_t r = 0; r < report->n; r++)
        for (size_t b = 0; b < REPORT_BINS && has_chances(&report->runs[r]); b++)
            most =
                fmax(most, fmax(share(&report->runs[r], 0, b), share(&report->runs[r], 1, b)));
    plot_round(&low, &most);
    return most;
}

static void draw_chances(FILE *out, const struct report *report, const struct report_run *run,
                         const char *title)
{
    double x[REPORT_BINS], y[2][REPORT_BINS];
    for (size_t b = 0; b < REPORT_BINS; b++) {
        x[b] = ((double)b + 0.5) / REPORT_BINS;
        for (int k = 0; k < 2; k++)
            y[k][b] = share(run, k, b);
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
    plot_draw(out, &(struct plot){
                       .title = title,
                       .x = {.label = "predicted chance", .high = 1, .percent = true},
                       .y = {.label = trace ? "share of all answers" : "share of all students",
                             .high = highest_share(report),
                             .percent = true},
                       .series = series,
                       .n_series = COUNT(series)});
}

static void draw_numbers(FILE *out, const struct report *report, const struct report_run *run,
                         const char *title)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t r = 0; r < report->n; r++)
        for (size_t i = 0; i < report->runs[r].n_finals && has_numbers(&report->runs[r]); i++) {
            const struct report_run *one = &report->runs[r];
            low = fmin(low, fmin(one->final_target[i], one->final_mean[i]));
            high = fmax(high, fmax(one->final_target[i], one->final_mean[i]));
        }
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
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = "predicted", .low = low, .high = high},
                                  .y = {.label = "observed", .low = low, .high = high},
                                  .series = series,
                                  .n_series = COUNT(series)});
}

static void show_numbers(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    draw_runs(out, report, "Targets: predicted against observed", has_numbers, draw_numbers);
    if (report->n == 1 && (int64_t)run->n_finals < run->model.all.n)
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
    const bool trace = report->runs[0].task == TASK_TRACE;
    html_say(out, "h2", "Predictions against what happened");
    html_figures(out);
    if (count(report, has_chances) > 0) {
        draw_runs(out, report, "Calibration: predicted against observed", has_chances,
                  draw_calibration);
        html_caption(out,
                     "Each dot groups %s with similar chances; a larger dot stands for more of "
                     "them. A good model has its dots on the dashed line. Above the line its "
                     "chances are too low, below it too high. Bars are 95 %% intervals of the "
                     "observed share, as if all %s were independent.",
                     trace ? "answers" : "students", trace ? "answers" : "students");
        draw_runs(out, report,
                  trace ? "Predicted chances of right and of wrong answers"
                        : "Predicted chances for targets of 1 and of 0",
                  has_chances, draw_chances);
        html_caption(out,
                     "The further apart the two groups are, the better the model distinguishes "
                     "them. Bars of all groups together make 100 %%.");
    }
    if (count(report, has_numbers) > 0)
        show_numbers(out, report);
    html_figures_end(out);
}

/* AUC by the number of earlier answers; groups of fewer than FEWEST answers have no score. */
enum { FEWEST = 30 };

static bool is_enough(const struct report_run *run, size_t b)
{
    return run->seen[b].model.n >= FEWEST && isfinite(run->seen[b].model.auc);
}

/* The groups that any run has, and the axis for all: it includes 0.5, which is a coin. */
static bool seen_range(const struct report *report, size_t *first, size_t *last,
                       struct plot_axis *axis)
{
    double low = 0.5, high = 0.5;
    *first = REPORT_BUCKETS;
    *last = 0;
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        for (size_t b = 0; b < REPORT_BUCKETS && has_answers(run); b++) {
            const struct report_part *part = &run->seen[b];
            if (!is_enough(run, b))
                continue;
            *first = size_min(*first, b);
            *last = size_max(*last, b);
            low = fmin(low, fmin(part->model.auc, part->low.auc)); /* fmin skips NaN */
            high = fmax(high, fmax(part->model.auc, part->high.auc));
            if (run->has_item_mean) {
                low = fmin(low, part->item_mean.auc);
                high = fmax(high, part->item_mean.auc);
            }
        }
    }
    plot_round(&low, &high);
    axis->low = low;
    axis->high = high;
    return *first <= *last;
}

static void draw_seen(FILE *out, const struct report *report, const struct report_run *run,
                      const char *title)
{
    double place[REPORT_BUCKETS], auc[REPORT_BUCKETS], low[REPORT_BUCKETS],
        high[REPORT_BUCKETS], mean[REPORT_BUCKETS];
    size_t first = 0, last = 0;
    struct plot_axis axis = {.label = "AUC"};
    seen_range(report, &first, &last, &axis);
    const size_t n = last + 1 - first;
    for (size_t k = 0; k < n; k++) {
        const struct report_part *part = &run->seen[first + k];
        const bool enough = is_enough(run, first + k);
        place[k] = (double)k;
        auc[k] = enough ? part->model.auc : NAN;
        low[k] = part->low.auc;
        high[k] = part->high.auc;
        mean[k] = enough ? part->item_mean.auc : NAN;
    }
    const struct plot_series series[] = {{.name = report->n > 1 ? NULL : "the model",
                                          .style = PLOT_LINE,
                                          .n = n,
                                          .x = place,
                                          .y = auc,
                                          .low = low,
                                          .high = high},
                                         {.name = report->n > 1 ? NULL : "item mean",
                                          .style = PLOT_GUIDE,
                                          .n = n,
                                          .x = place,
                                          .y = mean}};
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = "earlier answers of the student",
                                        .names = report_bucket_names + first,
                                        .n_names = n},
                                  .y = axis,
                                  .series = series,
                                  .n_series = run->has_item_mean ? 2 : 1});
}

static void draw_tenths(FILE *out, const struct report *report, const struct report_run *run,
                        const char *title)
{
    (void)report;
    double place[REPORT_TENTHS], observed[REPORT_TENTHS], mean[REPORT_TENTHS],
        model[REPORT_TENTHS], low[REPORT_TENTHS], high[REPORT_TENTHS];
    for (size_t k = 0; k < REPORT_TENTHS; k++) {
        const bool enough = run->tenths[k].n >= FEWEST;
        place[k] = ((double)k + 0.5) / REPORT_TENTHS;
        model[k] = enough ? run->tenths[k].model : NAN;
        observed[k] = enough ? run->tenths[k].correct : NAN;
        mean[k] = enough ? run->tenths[k].item_mean : NAN;
        report_wilson(run->tenths[k].correct, run->tenths[k].n, &low[k], &high[k]);
    }
    const struct plot_series series[] = {
        {.name = "the model", .style = PLOT_LINE, .n = REPORT_TENTHS, .x = place, .y = model},
        {.name = "observed",
         .style = PLOT_POINTS,
         .colour = 1,
         .n = REPORT_TENTHS,
         .x = place,
         .y = observed,
         .low = low,
         .high = high},
        {.name = "item mean", .style = PLOT_GUIDE, .n = REPORT_TENTHS, .x = place, .y = mean}};
    plot_draw(
        out,
        &(struct plot){
            .title = title,
            .x = {.label = "right answers of the student so far", .high = 1, .percent = true},
            .y = {.label = "next answer right", .high = 1, .percent = true},
            .series = series,
            .n_series = run->has_item_mean ? 3 : 2});
}

void report_show_students(FILE *out, const struct report *report)
{
    size_t first = 0, last = 0;
    struct plot_axis axis = {0};
    if (count(report, has_answers) == 0)
        return;
    html_say(out, "h2",
             report->n > 1 ? "What the models learn about a student"
                           : "What the model learns about a student");
    html_figures(out);
    if (seen_range(report, &first, &last, &axis)) {
        draw_runs(out, report, "AUC by number of earlier answers", has_answers, draw_seen);
        html_caption(
            out,
            "A model that learns about a student gets better with every answer it "
            "sees: a good line rises. The dashed line is the item mean. Bars are 95 %% "
            "intervals; points with fewer than %d answers are skipped.",
            FEWEST);
    }
    draw_runs(out, report, "Next answer by the student's answers so far", has_answers,
              draw_tenths);
    html_caption(out,
                 "Students who answered well so far tend to answer well again. A good model, "
                 "the solid line, follows the observed shares; the item mean, the dashed line, "
                 "cannot. Bars are 95 %% intervals. Only students with at least %d earlier "
                 "answers are counted.",
                 REPORT_SEEN);
    html_figures_end(out);
}
