/* A page that follows training: a loop of looks at the files of a run, or of many.
 *
 *     look ---> page in memory ---> differs from the last one? ---> atomic_file_write
 *       ^                                                               |
 *       '---- pause: `every` seconds, at least 20 times the look -------'
 *
 * Rank 0 looks, so a look costs at most a twentieth of its time; the other ranks sleep and ask
 * for news now and then, because waiting in MPI would keep their cores busy. The page depends on
 * the files alone, not on the clock, so a run without news is not written again. It reloads
 * itself until the watcher ends. There are four ends:
 *
 *     finished              the page becomes the report
 *     stopped for too long  the page says so
 *     never begun           likewise
 *     a signal (Ctrl-C)     the page stays as it is */
#include "report/report_watch.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "plot/html.h"
#include "report/report_watch_internal.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_A_SECOND = 5, SHARE = 20 };

/* Why the page is no longer written. */
enum end { END_NOT, END_FINISHED, END_STOPPED, END_ABSENT, END_SIGNAL };

struct watch {
    const char *directory;
    const struct report_plan *report;
    const struct report_watch_plan *plan;
    struct watch_run run;
    struct watch_group *group; /* NULL: a single run */
    enum watch_state state;
    enum end end;
    char *written; /* the last page */
    size_t n_written;
    double next, since; /* the next look; when the state began */
    int64_t n_looks;
};

/* ---- the page */

static void print_end(FILE *out, const struct watch *w, int64_t changed)
{
    static const char *const ends[] = {
        [END_FINISHED] = "This page is complete and is no longer updated.",
        [END_STOPPED] = "This page is no longer updated: training did not continue in time.",
        [END_ABSENT] = "This page is no longer updated: no training began in time.",
        [END_SIGNAL] =
            "This page is no longer updated: watching was stopped. Training may go on."};
    char text[64] = "", every[32] = "second";
    struct tm parts;
    const time_t when = (time_t)changed;
    if (ceil(w->plan->every) > 1)
        snprintf(every, sizeof every, "%.0f seconds", ceil(w->plan->every));
    fputs("<p class=\"note\">", out);
    if (changed > 0 && localtime_r(&when, &parts) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts) > 0)
        fprintf(out, "Last news: %s. ", text);
    if (w->end != END_NOT)
        fputs(ends[w->end], out);
    else
        fprintf(out, "This page reloads itself every %s until training has ended%s.", every,
                w->state == WATCH_STOPPED ? ", and shows when it continues" : "");
    fputs("</p>\n", out);
}

static void print_page(FILE *out, const struct watch *w)
{
    char *shown = report_shown(w->directory, 1);
    char *title = w->report->title[0] != '\0' ? memory_text("%s", w->report->title)
                                              : memory_text("Training: %s", shown);
    if (w->end == END_NOT)
        html_begin_live(out, title, (int64_t)ceil(w->plan->every));
    else
        html_begin(out, title);
    html_say(out, "h1 dir=\"auto\"", "%s", title);
    fputs("<p class=\"under\">", out);
    html_name(out, shown);
    if (w->group == NULL && w->run.kind != NULL)
        fprintf(out, ": %s", w->run.kind->name);
    if (w->group == NULL && w->run.data != NULL) {
        fputs(", on ", out);
        html_name(out, w->run.data);
    }
    fprintf(out, "</p>\n<div class=\"lead%s\">\n", w->state == WATCH_STOPPED ? " warn" : "");
    if (w->group != NULL)
        report_watch_group_lead(out, w->group);
    else
        report_watch_run_lead(out, &w->run);
    fputs("</div>\n", out);
    if (w->group != NULL)
        report_watch_group_show(out, w->group, w->report->n_rows);
    else
        report_watch_run_show(out, &w->run);
    print_end(out, w, w->group != NULL ? report_watch_group_changed(w->group) : w->run.changed);
    html_end(out);
    memory_free(title);
    memory_free(shown);
}

/* Writes the page unless it is the one written last. */
static enum status write_page(struct watch *w)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&text, &n);
    print_page(out, w);
    fclose(out);
    enum status status = OK;
    if (w->written == NULL || n != w->n_written || memcmp(text, w->written, n) != 0)
        status = atomic_file_write(w->report->output, text, n);
    free(w->written);
    w->written = text;
    w->n_written = n;
    return status;
}

/* ---- looking */

static bool is_empty(const char *directory)
{
    DIR *list = opendir(directory);
    bool empty = true;
    for (const struct dirent *one; list != NULL && empty && (one = readdir(list)) != NULL;)
        empty = one->d_name[0] == '.';
    if (list != NULL)
        closedir(list);
    return empty;
}

/* Refuses what cannot become a run; a directory that does not exist yet may. */
static enum status check_directory(const char *directory)
{
    static const char *const files[] = {"lock",      "config.ini", "last.h5", "best.h5",
                                        "slurm.job", "slurm.log",  "trials"};
    if (!file_exists(directory))
        return OK;
    if (!file_is_directory(directory))
        return fail(BAD_USER,
                    "%s: this is a file; --watch expects the directory of a run or a sweep",
                    directory);
    bool is_known = report_watch_kind(directory) != WATCH_SINGLE || is_empty(directory);
    for (size_t f = 0; f < COUNT(files) && !is_known; f++)
        is_known = file_is_in(directory, files[f]);
    return is_known ? OK
                    : fail(BAD_USER,
                           "%s: this directory belongs to no run or sweep: it has no "
                           "config.ini, lock or sweep.ini; name the run= of the training",
                           directory);
}

static void say_state(const struct watch *w)
{
    static const char *const words[] = {[WATCH_ABSENT] = "waiting for training to begin",
                                        [WATCH_RUNNING] = "training",
                                        [WATCH_STOPPED] = "stopped; waiting for it to continue",
                                        [WATCH_FINISHED] = "finished"};
    log_say("%s: %s", w->directory, words[w->state]);
}

/* The state at a look; END_NOT unless it has lasted too long. */
static void settle(struct watch *w, enum watch_state state)
{
    const double now = log_clock();
    if (state != w->state || w->n_looks == 0) {
        w->state = state;
        w->since = now;
        say_state(w);
    }
    w->n_looks++;
    if (state == WATCH_FINISHED)
        w->end = END_FINISHED;
    else if (state != WATCH_RUNNING && now - w->since >= fmax(w->plan->wait, w->plan->every))
        w->end = state == WATCH_STOPPED ? END_STOPPED : END_ABSENT;
}

static enum status look(struct watch *w)
{
    const double started = log_clock();
    TRY(check_directory(w->directory));
    const enum watch_kind kind = report_watch_kind(w->directory);
    if (w->group == NULL && kind != WATCH_SINGLE)
        w->group = report_watch_group_create(w->directory, kind);
    bool has_news = true;
    if (w->group != NULL)
        TRY(report_watch_group_look(w->group));
    else
        has_news = report_watch_run_look(&w->run, true);
    settle(w, w->group != NULL ? report_watch_group_state(w->group) : w->run.state);
    if (has_news || w->written == NULL || w->end != END_NOT)
        TRY(write_page(w));
    const double now = log_clock();
    w->next = now + fmax(w->plan->every, SHARE * (now - started));
    return OK;
}

/* Collective: one moment of all ranks. */
static enum status tick(struct watch *w, const struct comm *comm)
{
    int64_t is_stopped = signals_came();
    comm_max_i64(comm, &is_stopped, 1);
    enum status status = OK;
    if (comm->rank == 0 && is_stopped) {
        w->end = END_SIGNAL;
        status = w->written != NULL ? write_page(w) : OK;
    } else if (comm->rank == 0 && log_clock() >= w->next) {
        status = look(w);
    }
    comm_broadcast(comm, &w->end, sizeof w->end, 0);
    TRY(comm_agree(comm, status));
    if (w->end == END_NOT)
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / TICKS_A_SECOND}, NULL);
    return OK;
}

/* Collective: the end of the watcher in words, and the report of a finished run. */
static enum status finish(struct watch *w, const struct comm *comm)
{
    switch (w->end) {
    case END_FINISHED:
        return report_write(comm, &w->directory, 1, w->report);
    case END_SIGNAL:
        return fail(STOPPED,
                    "stopped watching %s; %s no longer reloads itself; training is not "
                    "affected",
                    w->directory, w->report->output);
    case END_STOPPED:
        return fail(STOPPED,
                    "%s: training stopped and did not continue within %g s; continue it with "
                    "the same command and watch it again, or raise --wait",
                    w->directory, w->plan->wait);
    default:
        return fail(BAD_USER,
                    "%s: no training began here within %g s; check the name, or raise --wait",
                    w->directory, w->plan->wait);
    }
}

enum status report_watch(const struct comm *comm, const char *directory,
                         const struct report_plan *report, const struct report_watch_plan *plan)
{
    struct watch w = {.directory = directory, .report = report, .plan = plan};
    w.run.directory = memory_text("%s", directory);
    w.run.pace = NAN;
    /* What signals.c says on Ctrl-C is about training. */
    const bool muted = log_muted();
    log_mute(true);
    signals_catch();
    log_mute(muted);
    enum status status = OK;
    while (status == OK && w.end == END_NOT)
        status = tick(&w, comm);
    if (status == OK)
        status = finish(&w, comm);
    free(w.written);
    report_watch_run_free(&w.run);
    report_watch_group_free(w.group);
    return status;
}
