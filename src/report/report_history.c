/* The course of training from the log of a run: loss and validation score by epoch. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/report_internal.h"
#include "runs/run.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_NUMBERS = 3, N_ARRAYS = N_NUMBERS + N_METRICS };

static double **array_of(struct report_history *history, int k)
{
    double **const arrays[N_NUMBERS] = {&history->epoch, &history->loss, &history->likelihood};
    return k < N_NUMBERS ? arrays[k] : &history->valid[k - N_NUMBERS];
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add(struct report_history *history, size_t *capacity, const json_t *record)
{
    const json_t *valid = json_object_get(record, "valid");
    if (history->n == *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 64;
        for (int k = 0; k < N_ARRAYS; k++)
            *array_of(history, k) =
                memory_resize(*array_of(history, k), *capacity, sizeof(double));
    }
    const size_t r = history->n++;
    history->epoch[r] = number(record, "epoch");
    history->loss[r] = number(record, "loss");
    history->likelihood[r] = number(record, "likelihood");
    for (int m = 0; m < N_METRICS; m++)
        history->valid[m][r] = number(valid, metrics_names[m]);
}

void report_history_read(struct report_history *history, const char *path)
{
    char *file = run_beside(path, "log.jsonl"), *text = NULL;
    size_t n = 0, capacity = 0;
    if (file_exists(file) && file_read(file, &text, &n) == OK)
        for (const char *line = text; *line != '\0';) {
            const size_t length = strcspn(line, "\n");
            json_t *record = json_loadb(line, length, 0, NULL);
            if (json_is_object(record))
                add(history, &capacity, record);
            json_decref(record);
            line += length + (line[length] == '\n');
        }
    fail_clear();
    memory_free(text);
    memory_free(file);
}

void report_history_free(struct report_history *history)
{
    for (int k = 0; k < N_ARRAYS; k++)
        memory_free(*array_of(history, k));
    *history = (struct report_history){0};
}

/* Of a long history, an even selection of epochs is drawn. */
enum { MOST_EPOCHS = 400 };
struct curve {
    size_t n;
    double x[MOST_EPOCHS], y[MOST_EPOCHS];
};

/* The epochs that have a value. */
static void curve_take(struct curve *curve, const struct report_history *history,
                       const double *values)
{
    size_t *with = NEW_SCRATCH(size_t, history->n), n = 0;
    for (size_t r = 0; r < history->n; r++)
        if (isfinite(values[r]))
            with[n++] = r;
    curve->n = size_min(n, MOST_EPOCHS);
    for (size_t i = 0; i < curve->n; i++) {
        const size_t last = n > 0 ? n - 1 : 0;
        const size_t r = with[curve->n > 1 ? i * last / (curve->n - 1) : last];
        curve->x[i] = history->epoch[r];
        curve->y[i] = values[r];
    }
    memory_free(with);
}

static const char *score_words(int metric)
{
    static const char *const words[N_METRICS] = {"CBD",      "log-loss", "AUC",
                                                 "accuracy", "RMSE",     "calibration error"};
    return metric < 0 ? "log-likelihood per step" : words[metric];
}

/* The monitored score, which decides on the best epoch; log-loss if none is monitored. */
static const double *watched(const struct report_run *run)
{
    return run->monitor < 0 ? run->history.likelihood : run->history.valid[run->monitor];
}

static void draw(FILE *out, const struct report_run *run, const char *title, const char *what,
                 const struct curve *curve, size_t colour)
{
    char best[64];
    snprintf(best, sizeof best, "best: epoch %lld", (long long)run->progress.best_epoch);
    const struct plot_series series = {.style = curve->n > 1 ? PLOT_LINE : PLOT_POINTS,
                                       .colour = colour,
                                       .n = curve->n,
                                       .x = curve->x,
                                       .y = curve->y};
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = "epoch", .whole = true},
                                  .y = {.label = what},
                                  .series = &series,
                                  .n_series = 1,
                                  .mark = (double)run->progress.best_epoch,
                                  .mark_name = run->progress.best_epoch > 0 ? best : NULL});
}

static void show_one(FILE *out, const struct report_run *run)
{
    struct curve *curve = NEW(struct curve, 1);
    html_figures(out);
    curve_take(curve, &run->history, run->history.loss);
    if (curve->n > 0) {
        html_figure(out, "Training loss by epoch");
        draw(out, run, "Training loss by epoch", "loss", curve, 0);
        html_caption(out, "What training reduces: %s. A good curve falls and then levels off.",
                     run->kind->loss);
    }
    curve_take(curve, &run->history, watched(run));
    if (curve->n > 0) {
        const bool up = run->monitor < 0 || metrics_up(run->monitor);
        html_figure(out, "Validation score by epoch");
        draw(out, run, "Validation score by epoch", score_words(run->monitor), curve, 1);
        html_caption(out,
                     "The score on answers held out for validation; %s is better. If it gets "
                     "worse while the training loss still falls, the model is memorizing its "
                     "training students.",
                     up ? "higher" : "lower");
    }
    html_figures_end(out);
    memory_free(curve);
}

/* The validation scores of all runs in one plot: log-loss, or RMSE if targets are numbers. */
static void show_several(FILE *out, const struct report *report)
{
    struct curve *curves = NEW(struct curve, report->n);
    struct plot_series series[REPORT_MOST_RUNS];
    size_t n = 0;
    double most = 0, least = INFINITY;
    const enum model_task task = report->runs[0].task;
    const enum metric metric =
        task == TASK_SCORE || task == TASK_DENSITY ? METRIC_RMSE : METRIC_LOG_LOSS;
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        curve_take(&curves[r], &run->history, run->history.valid[metric]);
        if (curves[r].n == 0)
            continue;
        most = fmax(most, curves[r].x[curves[r].n - 1]);
        least = fmin(least, curves[r].x[curves[r].n - 1]);
        series[n++] = (struct plot_series){.name = run->label,
                                           .style = curves[r].n > 1 ? PLOT_LINE : PLOT_POINTS,
                                           .colour = r,
                                           .n = curves[r].n,
                                           .x = curves[r].x,
                                           .y = curves[r].y};
    }
    if (n > 0) {
        html_figures(out);
        html_figure(out, "Validation score by epoch");
        plot_draw(out,
                  &(struct plot){
                      .title = "Validation scores of all runs by epoch",
                      .x = {.label = "epoch", .whole = true, .logarithmic = most > 5 * least},
                      .y = {.label = score_words((int)metric)},
                      .series = series,
                      .n_series = n});
        html_caption(out,
                     "Lower is better. An epoch is one pass over the training students. Its "
                     "cost differs between models, so a longer curve need not mean a longer "
                     "training time.%s",
                     n < report->n ? " Runs without a curve were not validated during training."
                                   : "");
        html_figures_end(out);
    } else {
        html_say(out, "p", "None of these runs was validated during training.");
    }
    memory_free(curves);
}

static void say(FILE *out, const struct report_run *run)
{
    const struct progress *progress = &run->progress;
    fputs("<p>", out);
    if (run->history.n == 0) {
        if (run->kind->made_by != NULL)
            fprintf(out, "This model was not trained in epochs; <code>%s</code> made it.",
                    run->kind->made_by);
        else
            fprintf(out,
                    "There is no log next to this checkpoint, so the course of training is not "
                    "known. This is the model after epoch %lld.",
                    (long long)progress->epoch);
    } else {
        const double last = run->history.epoch[run->history.n - 1];
        fprintf(out, "Training ran for %s epoch%s.", html_short(last).text,
                last == 1 ? "" : "s");
        if (progress->best_epoch > 0)
            fprintf(out, " Epoch %lld was best by %s%s", (long long)progress->best_epoch,
                    run->monitor < 0 ? "" : "validation ", score_words(run->monitor));
        if (progress->best_epoch > 0 && progress->best_epoch == progress->epoch)
            fprintf(out, "; this report shows its model");
        else
            fprintf(out, "%s report shows the model after epoch %lld",
                    progress->best_epoch > 0 ? "; this" : " This", (long long)progress->epoch);
        fputs(".", out);
    }
    fputs("</p>\n", out);
}

void report_show_history(FILE *out, const struct report *report)
{
    html_say(out, "h2",
             report->n > 1 ? "Training: validation scores by epoch"
                           : "Training: loss and validation score by epoch");
    if (report->n > 1) {
        show_several(out, report);
        return;
    }
    say(out, &report->runs[0]);
    if (report->runs[0].history.n > 0)
        show_one(out, &report->runs[0]);
}
