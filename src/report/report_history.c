/* The course of training from the log of a run: loss and validation score by epoch. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include "runs/run_find.h"
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

/* Replaces a text by that of the record; whether it is another. */
static bool replaced(char **text, const json_t *record, const char *key)
{
    const char *now = json_string_value(json_object_get(record, key));
    const bool is_other = (*text != NULL || now != NULL) &&
                          (*text == NULL || now == NULL || strcmp(*text, now) != 0);
    memory_free(*text);
    *text = now != NULL ? memory_text("%s", now) : NULL;
    return is_other;
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
    const bool is_other = replaced(&history->blas, record, "blas");
    history->has_others |= (replaced(&history->grid, record, "grid") || is_other) && r > 0;
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
    memory_free(history->blas);
    memory_free(history->grid);
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

void report_history_say_loss(FILE *out, const struct model_kind *kind, bool is_final,
                             const char *more)
{
    static const char final[] = "; with task=final, ";
    const char *other = strstr(kind->loss, final);
    const int n = other != NULL ? (int)(other - kind->loss) : (int)strlen(kind->loss);
    if (is_final && other != NULL)
        html_caption(out,
                     "What training reduces: %s. A good curve falls and then levels off.%s",
                     other + strlen(final), more);
    else
        html_caption(out,
                     "What training reduces: %.*s. A good curve falls and then levels off.%s",
                     n, kind->loss, more);
}

static void draw_loss(FILE *out, const struct report_run *run, const struct curve *curve)
{
    char best[64];
    snprintf(best, sizeof best, "best: epoch %lld", (long long)run->progress.best_epoch);
    const struct plot_series series = {.style = curve->n > 1 ? PLOT_LINE : PLOT_POINTS,
                                       .n = curve->n,
                                       .x = curve->x,
                                       .y = curve->y};
    html_figure(out, "Training loss by epoch");
    plot_draw(out, &(struct plot){.title = "Training loss by epoch",
                                  .x = {.label = "epoch", .whole = true},
                                  .y = {.label = "loss"},
                                  .series = &series,
                                  .n_series = 1,
                                  .mark = (double)run->progress.best_epoch,
                                  .mark_name = run->progress.best_epoch > 0 ? best : NULL});
    report_history_say_loss(out, run->kind, run->task != TASK_TRACE,
                            " The axis does not begin at 0.");
}

/* Curves of all runs, the baselines as horizontal lines over the whole width, and an axis for all
 * of them. */
struct course {
    size_t n_curves, n_series;
    struct curve *curves;
    struct plot_series series[REPORT_MOST_RUNS + N_BASELINES];
    double ends[2], level[N_BASELINES][2];
    struct plot_axis x, y;
    size_t n_outside;
    bool chances; /* scores of what is right or wrong: those have an AUC */
};

static void course_baselines(struct course *course, int metric, const struct score *valid)
{
    static const char *const names[N_BASELINES] = {"item mean", "running mean"};
    for (int b = 0; b < N_BASELINES && valid != NULL && metric >= 0; b++) {
        const double value = report_metric_value(&valid[b], metric);
        if (valid[b].n == 0 || !isfinite(value))
            continue;
        course->level[b][0] = course->level[b][1] = value;
        course->series[course->n_series++] = (struct plot_series){.name = names[b],
                                                                  .style = PLOT_GUIDE,
                                                                  .colour = (size_t)b,
                                                                  .n = 2,
                                                                  .x = course->ends,
                                                                  .y = course->level[b]};
    }
}

/* A baseline on the edge of the plot could not be told from the axis. */
static void course_clear(struct course *course, const struct plot_series *baseline)
{
    struct plot_axis *y = &course->y;
    struct plot_ticks ticks;
    const double level = baseline->y[0], slack = 0.03 * (y->high - y->low);
    plot_ticks_between(&ticks, y->low, y->high, 7);
    if (level >= y->low && level - y->low < slack)
        y->low -= ticks.step;
    if (level <= y->high && y->high - level < slack)
        y->high += ticks.step;
    plot_round(&y->low, &y->high);
}

static void course_scale(struct course *course, int metric)
{
    size_t n = 0;
    double *values = NEW_SCRATCH(double, course->n_series *MOST_EPOCHS);
    for (size_t s = 0; s < course->n_series; s++)
        for (size_t i = 0; i < course->series[s].n; i++)
            values[n++] = course->series[s].y[i];
    course->y.label = report_metric_words(metric);
    course->n_outside = report_metric_axis(&course->y, metric, course->chances, values, n);
    for (size_t s = 0; s < course->n_series; s++)
        if (course->series[s].style == PLOT_GUIDE)
            course_clear(course, &course->series[s]);
    memory_free(values);
}

static void course_take(struct course *course, const struct report_curve *runs, size_t n,
                        int metric, const struct score *valid)
{
    *course = (struct course){.curves = NEW(struct curve, n)};
    double most = 1, shortest = INFINITY, first = INFINITY;
    for (size_t r = 0; r < n && course->n_series < REPORT_MOST_RUNS; r++) {
        struct curve *curve = &course->curves[r];
        const struct report_history *history = runs[r].history;
        if (history->n > 0)
            curve_take(curve, history,
                       metric < 0 ? history->likelihood : history->valid[metric]);
        if (curve->n == 0)
            continue;
        for (size_t e = 0; e < history->n; e++)
            course->chances |= isfinite(history->valid[METRIC_AUC][e]);
        most = fmax(most, curve->x[curve->n - 1]);
        shortest = fmin(shortest, curve->x[curve->n - 1]);
        first = fmin(first, curve->x[0]);
        course->n_curves++;
        course->series[course->n_series++] =
            (struct plot_series){.name = runs[r].name,
                                 .style = curve->n > 1 ? PLOT_LINE : PLOT_POINTS,
                                 .colour = r,
                                 .n = curve->n,
                                 .x = curve->x,
                                 .y = curve->y};
    }
    const bool logarithmic = first > 0 && most > 5 * shortest;
    course->ends[0] = logarithmic ? first : 0;
    course->ends[1] = most;
    if (!logarithmic)
        plot_round(&course->ends[0], &course->ends[1]);
    course->x = (struct plot_axis){.label = "epoch",
                                   .low = course->ends[0],
                                   .high = course->ends[1],
                                   .whole = true,
                                   .logarithmic = logarithmic};
    course_baselines(course, metric, valid);
    course_scale(course, metric);
}

const char report_memorizing[] = "If the score gets worse while the training loss still falls, "
                                 "the model is memorizing its training students.";

static void course_caption(FILE *out, const struct course *course, int metric, size_t n)
{
    const bool up = metric < 0 || metrics_up(metric);
    char outside[120] = "";
    if (course->n_outside > 0)
        snprintf(outside, sizeof outside,
                 " Open triangles at the edge are worse than a coin, which has %.*f.",
                 report_metric_digits(metric), report_metric_coin(metric));
    if (n > 1)
        html_caption(out,
                     "%s is better, on answers held out for validation. Horizontal lines are "
                     "rules that need no training; a useful model passes them. An epoch is one "
                     "pass over the training students, whose cost differs between models.%s%s",
                     up ? "Higher" : "Lower",
                     course->n_curves < n
                         ? " Runs without a curve were not validated during training."
                         : "",
                     outside);
    else
        html_caption(out,
                     "The score on answers held out for validation; %s is better. Horizontal "
                     "lines are rules that need no training; a useful model passes them. %s%s",
                     up ? "higher" : "lower", report_memorizing, outside);
}

static void draw_course(FILE *out, const struct course *course, const char *title, double mark,
                        const char *mark_name)
{
    plot_draw(out, &(struct plot){.title = title,
                                  .x = course->x,
                                  .y = course->y,
                                  .series = course->series,
                                  .n_series = course->n_series,
                                  .beyond = course->n_outside > 0 ? report_beyond : NULL,
                                  .mark = mark,
                                  .mark_name = mark_name});
}

bool report_history_is_validated(const struct report_history *history, int metric)
{
    const double *values = metric < 0 ? history->likelihood : history->valid[metric];
    bool any = false;
    for (size_t r = 0; r < history->n; r++)
        any |= isfinite(values[r]);
    return any;
}

void report_history_draw(FILE *out, const struct report_curve *runs, size_t n, int metric,
                         const struct score *valid)
{
    struct course *course = NEW(struct course, 1);
    char *title = memory_text("Validation %s by epoch", report_metric_words(metric));
    course_take(course, runs, n, metric, valid);
    html_figures(out);
    html_figure(out, title);
    draw_course(out, course, title, 0, NULL);
    course_caption(out, course, metric, n);
    html_figures_end(out);
    memory_free(title);
    memory_free(course->curves);
    memory_free(course);
}

/* The metric asked for; else the monitored one. */
static int metric_of(const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    return report->plan->metric > 0 && !report_is_number(run) ? report->metric : run->monitor;
}

static void show_one(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    const struct report_curve runs[] = {{NULL, &run->history}};
    const int metric = metric_of(report);
    struct course *course = NEW(struct course, 1);
    struct curve *curve = NEW(struct curve, 1);
    char best[64];
    html_figures(out);
    curve_take(curve, &run->history, run->history.loss);
    if (curve->n > 0)
        draw_loss(out, run, curve);
    course_take(course, runs, 1, metric, run->valid);
    if (course->n_curves > 0) {
        snprintf(best, sizeof best, "best: epoch %lld", (long long)run->progress.best_epoch);
        html_figure(out, "Validation score by epoch");
        draw_course(out, course, "Validation score by epoch", (double)run->progress.best_epoch,
                    run->progress.best_epoch > 0 ? best : NULL);
        course_caption(out, course, metric, 1);
    }
    html_figures_end(out);
    memory_free(curve);
    memory_free(course->curves);
    memory_free(course);
}

static void show_several(FILE *out, const struct report *report)
{
    struct report_curve runs[REPORT_MOST_RUNS];
    bool any = false;
    for (size_t r = 0; r < report->n; r++) {
        runs[r] = (struct report_curve){report->runs[r].label, &report->runs[r].history};
        any |= report_history_is_validated(runs[r].history, report->metric);
    }
    if (!any)
        return;
    html_say(out, "h2", "Training: validation scores by epoch");
    report_history_draw(out, runs, report->n, report->metric,
                        report->comparable ? report->runs[0].valid : NULL);
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
                    run->monitor < 0 ? "" : "validation ", report_metric_words(run->monitor));
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
    const struct report_run *run = &report->runs[0];
    if (report->n > 1) {
        show_several(out, report);
        return;
    }
    if (run->kind->made_by != NULL)
        html_say(out, "h2", "How this %s was made", run->kind->name);
    else
        html_say(out, "h2", "Training%s",
                 run->history.n == 0 ? ""
                 : report_history_is_validated(&run->history, metric_of(report))
                     ? ": loss and validation score by epoch"
                     : ": loss by epoch");
    say(out, run);
    if (run->history.n > 0)
        show_one(out, report);
}
