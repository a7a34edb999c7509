/* A run that may be training now, as far as its files tell. The watcher only reads: training
 * replaces its files by rename and appends whole records to log.jsonl, so whatever is opened is
 * intact, or is read again. Whether a job is training is the kernel's knowledge:
 *
 *     lock held                          training
 *     lock free, result.json             finished
 *     lock free, lock file empty         stopped, and the job ended by itself
 *     lock free, lock file names a job   stopped, and the job was killed
 *
 * The lock is looked at first: a job that writes result.json releases it afterwards. Asking who
 * holds a lock takes no lock. Time comes from log.jsonl, whose records have the seconds of
 * training so far; what is left is the pace of the last epochs times the epochs left. */
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_watch_internal.h"
#include "runs/elapsed.h"
#include "runs/run.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TRIES = 3,             /* to read a checkpoint that is being replaced */
    MOST_BYTES = 64 << 20, /* of a checkpoint that is read */
    PACE_EPOCHS = 10,      /* that tell the pace */
    MOST_POINTS = 400,     /* of a curve */
    LAST_EPOCHS = 8        /* in the table */
};
static const char *const names[WATCH_FILES] = {"config.ini", "log.jsonl", "last.h5",
                                               "result.json", "elapsed.json"};
enum { CONFIG, LOG, LAST, RESULT, ELAPSED };

struct watch_stamp report_watch_stamp_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return (struct watch_stamp){0};
    return (struct watch_stamp){.device = (uint64_t)info.st_dev,
                                .inode = (uint64_t)info.st_ino,
                                .size = (uint64_t)info.st_size,
                                .seconds = (int64_t)info.st_mtim.tv_sec,
                                .nanoseconds = (int64_t)info.st_mtim.tv_nsec};
}

static bool is_there(const struct watch_run *run, int file)
{
    return run->files[file].inode != 0;
}

/* ---- reading */

static void read_settings(struct watch_run *run, const struct config *config)
{
    const char *kind = config_get(config, "model", "kind");
    const char *patience = config_get(config, "train", "patience");
    const char *data = config_get(config, "data", "file");
    const char *task = config_get(config, "model", "task");
    run->kind = kind != NULL ? model_find(kind) : NULL;
    run->is_final = task != NULL && strcmp(task, "final") == 0;
    run->epochs = report_epochs(config);
    run->monitor = report_monitor(config);
    run->may_end_early = (patience != NULL && strtoll(patience, NULL, 10) > 0) ||
                         (run->kind != NULL && run->kind->fit.learn != NULL);
    if (data != NULL && data[0] != '\0') {
        memory_free(run->data);
        run->data = report_shown(data, 1);
    }
}

static void read_config(struct watch_run *run)
{
    char *path = memory_text("%s/%s", run->directory, names[CONFIG]);
    struct config *config = config_create();
    if (config_read(config, path) == OK)
        read_settings(run, config);
    fail_clear();
    config_destroy(config);
    memory_free(path);
}

/* A refit's number of epochs is only in its checkpoint. */
static void read_saved(struct watch_run *run, const struct checkpoint *checkpoint)
{
    struct config *config = config_create();
    run->has_saved = true;
    run->saved = checkpoint->progress;
    if (config_read_text(config, checkpoint->config, checkpoint->path) == OK)
        read_settings(run, config);
    fail_clear();
    config_destroy(config);
}

/* A checkpoint that is replaced while it is read is read again; the reason of the last failure is
 * kept for the page. */
static void read_checkpoint(struct watch_run *run)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    char *path = memory_text("%s/%s", run->directory, names[LAST]);
    memory_free(run->trouble);
    run->trouble = NULL;
    for (int tries = 0; tries < TRIES; tries++) {
        struct checkpoint checkpoint;
        if (checkpoint_open(&checkpoint, path, &self) == OK) {
            read_saved(run, &checkpoint);
            checkpoint_close(&checkpoint);
            memory_free(run->trouble);
            run->trouble = NULL;
            break;
        }
        memory_free(run->trouble);
        run->trouble = memory_text("%s", fail_sentence());
        fail_clear();
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    memory_free(path);
}

/* Seconds per epoch from the last records that have the time so far. */
static void read_pace(struct watch_run *run)
{
    char *path = memory_text("%s/%s", run->directory, names[LOG]), *text = NULL;
    size_t n = 0, n_lines = 0;
    double first_time = 0, first_epoch = 0, time = NAN, epoch = 0;
    if (!file_exists(path) || file_read(path, &text, &n) != OK)
        fail_clear();
    size_t from = n;
    while (from > 0 && n_lines <= PACE_EPOCHS + 1)
        n_lines += text[--from] == '\n';
    for (const char *line = n > 0 ? text + from + (from > 0) : ""; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        json_t *record = json_loadb(line, length, 0, NULL);
        const json_t *elapsed = json_object_get(record, "elapsed");
        if (json_is_number(elapsed)) {
            if (isnan(time) && from > 0) {
                first_time = json_number_value(elapsed);
                first_epoch = json_number_value(json_object_get(record, "epoch"));
            }
            time = json_number_value(elapsed);
            epoch = json_number_value(json_object_get(record, "epoch"));
        }
        json_decref(record);
        line += length + (line[length] == '\n');
    }
    run->pace = epoch > first_epoch ? (time - first_time) / (epoch - first_epoch) : NAN;
    memory_free(text);
    memory_free(path);
}

static void read_log(struct watch_run *run)
{
    report_history_free(&run->history);
    report_history_read(&run->history, run->directory);
    const struct run where = {.directory = run->directory, .lock = -1};
    run->elapsed = elapsed_before(&where);
    read_pace(run);
}

static enum watch_state state_of(const struct watch_run *run, bool is_held)
{
    if (is_held)
        return WATCH_RUNNING;
    if (is_there(run, RESULT))
        return WATCH_FINISHED;
    if (!is_there(run, CONFIG) && !is_there(run, LAST))
        return WATCH_ABSENT;
    return WATCH_STOPPED;
}

bool report_watch_run_look(struct watch_run *run, bool wants_checkpoint)
{
    char *lock = memory_text("%s/lock", run->directory), byte = '\0';
    const struct watch_run before = *run;
    const bool is_held = file_lock_is_held(lock);
    for (size_t f = 0; f < WATCH_FILES; f++) {
        char *path = memory_text("%s/%s", run->directory, names[f]);
        run->files[f] = report_watch_stamp_of(path);
        memory_free(path);
        if (run->files[f].seconds > run->changed)
            run->changed = run->files[f].seconds;
    }
    run->state = state_of(run, is_held);
    run->was_killed = run->state == WATCH_STOPPED && file_peek(lock, &byte, 1) > 0;
    memory_free(lock);
    bool changed[WATCH_FILES], any = false;
    for (size_t f = 0; f < WATCH_FILES; f++) {
        changed[f] = memcmp(&run->files[f], &before.files[f], sizeof run->files[f]) != 0;
        any |= changed[f];
    }
    if (changed[CONFIG] && is_there(run, CONFIG))
        read_config(run);
    if (changed[LAST] && wants_checkpoint && is_there(run, LAST) &&
        run->files[LAST].size <= MOST_BYTES)
        read_checkpoint(run);
    if (changed[LOG] || changed[ELAPSED])
        read_log(run);
    /* A blend has no epochs: it is there or not. */
    if (run->state == WATCH_STOPPED && run->kind != NULL && run->kind->made_by != NULL &&
        is_there(run, LAST))
        run->state = WATCH_FINISHED;
    return any || run->state != before.state || run->was_killed != before.was_killed;
}

void report_watch_run_free(struct watch_run *run)
{
    memory_free(run->directory);
    memory_free(run->data);
    memory_free(run->trouble);
    report_history_free(&run->history);
    *run = (struct watch_run){0};
}

/* ---- numbers */

int64_t report_watch_run_epoch(const struct watch_run *run)
{
    const size_t n = run->history.n;
    const double logged = n > 0 ? run->history.epoch[n - 1] : 0;
    return isfinite(logged) && logged > 0 && logged < 1e15 ? (int64_t)logged : 0;
}

static const double *scores_of(const struct watch_run *run)
{
    return run->monitor < 0 ? run->history.likelihood : run->history.valid[run->monitor];
}

double report_watch_run_last(const struct watch_run *run)
{
    const double *score = scores_of(run);
    double last = NAN;
    for (size_t r = 0; r < run->history.n; r++)
        last = isfinite(score[r]) ? score[r] : last;
    return last;
}

double report_watch_run_best(const struct watch_run *run, double *epoch)
{
    const double *score = scores_of(run);
    const bool up = run->monitor < 0 || metrics_up(run->monitor);
    double best = NAN;
    for (size_t r = 0; r < run->history.n; r++)
        if (isfinite(score[r]) && (isnan(best) || (up ? score[r] > best : score[r] < best))) {
            best = score[r];
            *epoch = run->history.epoch[r];
        }
    return best;
}

const char *report_watch_score_words(int monitor)
{
    static const char *const words[N_METRICS] = {
        "validation CBD",      "validation log-loss", "validation AUC",
        "validation accuracy", "validation RMSE",     "validation calibration error"};
    return monitor < 0 ? "log-likelihood per step" : words[monitor];
}

static double seconds_left(const struct watch_run *run)
{
    const int64_t epochs = run->epochs - report_watch_run_epoch(run);
    return run->state == WATCH_RUNNING && epochs > 0 ? run->pace * (double)epochs : NAN;
}

/* ---- printing */

static void print_position(FILE *out, const struct watch_run *run)
{
    const int64_t epoch = report_watch_run_epoch(run);
    const char *at_most = run->may_end_early ? "at most " : "";
    if (run->state == WATCH_RUNNING && run->epochs > 0)
        fprintf(out, "epoch %s of %s%s",
                html_whole(epoch < run->epochs ? epoch + 1 : epoch).text, at_most,
                html_whole(run->epochs).text);
    else if (run->state == WATCH_RUNNING)
        fprintf(out, "epoch %s", html_whole(epoch + 1).text);
    else if (run->epochs > 0)
        fprintf(out, "after epoch %s of %s%s", html_whole(epoch).text, at_most,
                html_whole(run->epochs).text);
    else
        fprintf(out, "after epoch %s", html_whole(epoch).text);
}

void report_watch_run_lead(FILE *out, const struct watch_run *run)
{
    static const char *const begins[] = {"Waiting", "Training ", "Training stopped ",
                                         "Training is finished "};
    char time[64];
    fprintf(out, "<p><b>%s", begins[run->state]);
    if (run->state != WATCH_ABSENT)
        print_position(out, run);
    fputs(".</b>", out);
    if (run->state == WATCH_ABSENT)
        fputs(" No job has begun to train here yet.", out);
    else if (run->state == WATCH_STOPPED)
        fprintf(out, " %s %s",
                run->was_killed
                    ? "The job was killed or its machine failed: it ended without saving."
                    : "The job ended by itself, after a signal or an error that it printed.",
                is_there(run, LAST)
                    ? "The same command continues the run where it was saved last."
                    : "Nothing was saved yet: the same command starts again.");
    else if (run->history.n == 0 && run->state == WATCH_RUNNING)
        fputs(" The first scores appear after the first epoch.", out);
    fputs("</p>\n", out);
    if (run->state != WATCH_ABSENT && run->epochs > 0)
        fprintf(out,
                "<progress max=\"%lld\" value=\"%lld\" aria-label=\"epochs trained\">"
                "</progress>\n",
                (long long)run->epochs, (long long)report_watch_run_epoch(run));
    if (run->has_saved && run->state != WATCH_FINISHED) {
        fprintf(out, "<p>Saved after epoch %s", html_whole(run->saved.epoch).text);
        if (run->saved.step > 0)
            fprintf(out, " and %s step%s of the next one", html_whole(run->saved.step).text,
                    run->saved.step == 1 ? "" : "s");
        fputs(".</p>\n", out);
    }
    if (isfinite(seconds_left(run))) {
        terminal_duration(seconds_left(run), time, sizeof time);
        fprintf(out, "<p>%s%s of training left, at the pace of the last epochs.</p>\n",
                run->may_end_early ? "At most " : "About ", time);
    }
    if (run->trouble != NULL)
        html_say(out, "p", "The newest checkpoint cannot be read: %s", run->trouble);
}

static void print_figure(FILE *out, const char *value, const char *words)
{
    fprintf(out, "<li><b>%s</b><span>%s</span></li>\n", value, words);
}

static void print_figures(FILE *out, const struct watch_run *run)
{
    char text[64];
    double epoch = 0;
    const double last = report_watch_run_last(run), best = report_watch_run_best(run, &epoch);
    fputs("<ul class=\"numbers\">\n", out);
    print_figure(out, html_whole(report_watch_run_epoch(run)).text, "epochs trained");
    if (isfinite(last)) {
        char *words = memory_text("best %s, epoch %s", report_watch_score_words(run->monitor),
                                  html_short(epoch).text);
        snprintf(text, sizeof text, "%.5f", last);
        print_figure(out, text, report_watch_score_words(run->monitor));
        snprintf(text, sizeof text, "%.5f", best);
        print_figure(out, text, words);
        memory_free(words);
    }
    if (run->elapsed > 0) {
        terminal_duration(run->elapsed, text, sizeof text);
        print_figure(out, text, "time of training");
    }
    if (isfinite(run->pace)) {
        if (run->pace < 1)
            snprintf(text, sizeof text, "%.0f ms", 1000 * run->pace);
        else
            terminal_duration(run->pace, text, sizeof text);
        print_figure(out, text, "per epoch");
    }
    fputs("</ul>\n", out);
}

/* The epochs that have a value; of many, an even selection. Returns how many. */
static size_t pick(const struct report_history *history, const double *values, double *x,
                   double *y)
{
    size_t n_all = 0, n = 0, seen = 0;
    for (size_t r = 0; r < history->n; r++)
        n_all += isfinite(values[r]);
    const size_t most = size_min(n_all, MOST_POINTS);
    for (size_t r = 0; r < history->n && n < most; r++) {
        if (!isfinite(values[r]))
            continue;
        if (seen++ != (most > 1 ? n * (n_all - 1) / (most - 1) : n_all - 1))
            continue;
        x[n] = history->epoch[r];
        y[n++] = values[r];
    }
    return n;
}

static void draw_loss(FILE *out, const struct watch_run *run)
{
    double *x = NEW(double, 2 * MOST_POINTS), *y = x + MOST_POINTS;
    const size_t n = pick(&run->history, run->history.loss, x, y);
    const struct plot_series series = {
        .style = n > 1 ? PLOT_LINE : PLOT_POINTS, .n = n, .x = x, .y = y};
    if (n > 0) {
        html_figure(out, "Training loss by epoch");
        plot_draw(out, &(struct plot){.title = "Training loss by epoch",
                                      .x = {.label = "epoch", .whole = true},
                                      .y = {.label = "loss"},
                                      .series = &series,
                                      .n_series = 1});
        if (run->kind != NULL)
            report_history_say_loss(out, run->kind, run->is_final, "");
        else
            html_caption(out, "What training reduces.");
    }
    memory_free(x);
}

void report_watch_curves(FILE *out, const struct watch_curve *curves, size_t n, int monitor)
{
    double *points = NEW(double, 2 * MOST_POINTS * n);
    struct plot_series *series = NEW(struct plot_series, n);
    size_t n_series = 0;
    for (size_t c = 0; c < n; c++) {
        double *x = points + 2 * MOST_POINTS * c, *y = x + MOST_POINTS;
        const size_t n_points = pick(&curves[c].run->history, scores_of(curves[c].run), x, y);
        if (n_points > 0)
            series[n_series++] =
                (struct plot_series){.name = n > 1 ? curves[c].name : NULL,
                                     .style = n_points > 1 ? PLOT_LINE : PLOT_POINTS,
                                     .colour = n > 1 ? c : 1,
                                     .n = n_points,
                                     .x = x,
                                     .y = y};
    }
    if (n_series > 0) {
        html_figure(out, "Validation score by epoch");
        plot_draw(out, &(struct plot){.title = "Validation score by epoch",
                                      .x = {.label = "epoch", .whole = true},
                                      .y = {.label = report_watch_score_words(monitor)},
                                      .series = series,
                                      .n_series = n_series});
        html_caption(
            out,
            "The score on answers held out for validation; %s is better. %s The report "
            "of the finished training adds the lines of rules that need no training.",
            monitor < 0 || metrics_up(monitor) ? "higher" : "lower", report_memorizing);
    }
    memory_free(series);
    memory_free(points);
}

static void print_last_epochs(FILE *out, const struct watch_run *run)
{
    static const char *const heads[] = {"epoch", "loss", "log-loss", "AUC"};
    const struct report_history *history = &run->history;
    html_say(out, "h2", "The last epochs");
    html_table_begin(out, heads, COUNT(heads));
    for (size_t k = 0; k < LAST_EPOCHS && k < history->n; k++) {
        const size_t r = history->n - 1 - k;
        html_row(out, html_short(history->epoch[r]).text);
        html_number(out, 4, history->loss[r]);
        html_number(out, 5, history->valid[METRIC_LOG_LOSS][r]);
        html_number(out, 4, history->valid[METRIC_AUC][r]);
        html_row_end(out);
    }
    html_table_end(out);
    html_say(out, "p class=\"note\"",
             "The newest epoch comes first. Log-loss and AUC are on the validation answers; "
             "epochs without validation have none.");
}

void report_watch_run_show(FILE *out, const struct watch_run *run)
{
    if (run->history.n == 0)
        return;
    print_figures(out, run);
    html_say(out, "h2", "Training: loss and validation score by epoch");
    html_figures(out);
    draw_loss(out, run);
    report_watch_curves(out, &(struct watch_curve){"", run}, 1, run->monitor);
    html_figures_end(out);
    print_last_epochs(out, run);
}
