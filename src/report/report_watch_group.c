/* Several runs that are trained for one aim, as far as their files tell:
 *
 *     a sweep              DIR/trials/ID       one part
 *     cohort auto          DIR/kinds, DIR/around-KIND: sweeps, one part each
 *     a cross-validation   DIR/fold-1 ...      one part without a sweep
 *
 * A trial is an entry: its state and scores come from its result (sweep_results.c), or from the
 * log of its run while it is training. Only the runs that the page draws are read. */
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_watch_internal.h"
#include "runs/run_find.h"
#include "sweep/portfolio.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 32, MOST_CURVES = 8, MOST_FOLDS = 1000 };

struct entry {
    char *settings;
    enum sweep_state state;
    bool is_complete; /* done at the last rung */
    int64_t epochs;
    double score; /* the monitored one, of validation */
    char *reason; /* of a failure */
    size_t part, trial;
};

struct part {
    char *directory;
    struct watch_stamp files[2]; /* sweep.ini, size.ini */
    bool is_open;
    struct sweep sweep;
    size_t n_runs;
    struct watch_run *runs; /* by trial; without a directory: not looked at */
};

struct watch_group {
    char *directory;
    enum watch_kind kind;
    struct part parts[MOST_PARTS];
    size_t n_parts;
    struct entry *entries; /* the best comes first */
    size_t n, n_by_state[4];
    int monitor;
    enum watch_state state;
    int64_t changed;
};

enum watch_kind report_watch_kind(const char *directory)
{
    if (file_is_in(directory, "sweep.ini"))
        return WATCH_SWEEP;
    if (file_is_in(directory, "fold-1"))
        return WATCH_FOLDS;
    return file_is_in(directory, "kinds/sweep.ini") ? WATCH_AUTO : WATCH_SINGLE;
}

static void add_part(struct watch_group *group, char *directory)
{
    if (group->n_parts < MOST_PARTS)
        group->parts[group->n_parts++].directory = directory;
    else
        memory_free(directory);
}

struct watch_group *report_watch_group_create(const char *directory, enum watch_kind kind)
{
    struct watch_group *group = NEW(struct watch_group, 1);
    group->directory = memory_text("%s", directory);
    group->kind = kind;
    group->monitor = METRIC_LOG_LOSS;
    add_part(group, kind == WATCH_AUTO ? memory_text("%s/kinds", directory)
                                       : memory_text("%s", directory));
    for (size_t e = 0; e < n_portfolio && kind == WATCH_AUTO; e++)
        if (e == 0 || strcmp(portfolio[e].kind, portfolio[e - 1].kind) != 0)
            add_part(group, memory_text("%s/around-%s", directory, portfolio[e].kind));
    return group;
}

static void forget_entries(struct watch_group *group)
{
    for (size_t e = 0; e < group->n; e++) {
        memory_free(group->entries[e].settings);
        memory_free(group->entries[e].reason);
    }
    memory_free(group->entries);
    group->entries = NULL;
    group->n = 0;
    memset(group->n_by_state, 0, sizeof group->n_by_state);
}

static void close_part(struct part *part)
{
    for (size_t r = 0; r < part->n_runs; r++)
        report_watch_run_free(&part->runs[r]);
    memory_free(part->runs);
    if (part->is_open)
        sweep_destroy(&part->sweep);
    *part = (struct part){.directory = part->directory};
}

void report_watch_group_free(struct watch_group *group)
{
    if (group == NULL)
        return;
    forget_entries(group);
    for (size_t p = 0; p < group->n_parts; p++) {
        close_part(&group->parts[p]);
        memory_free(group->parts[p].directory);
    }
    memory_free(group->directory);
    memory_free(group);
}

/* ---- looking */

static void note_change(struct watch_group *group, int64_t seconds)
{
    group->changed = seconds > group->changed ? seconds : group->changed;
}

/* The design of a sweep is read again when it grew. */
static enum status open_sweep(struct part *part)
{
    static const char *const names[] = {"sweep.ini", "size.ini"};
    struct watch_stamp now[COUNT(names)];
    for (size_t f = 0; f < COUNT(names); f++) {
        char *path = memory_text("%s/%s", part->directory, names[f]);
        now[f] = report_watch_stamp_of(path);
        memory_free(path);
    }
    if (now[0].inode == 0 || memcmp(now, part->files, sizeof now) == 0)
        return OK;
    close_part(part);
    memcpy(part->files, now, sizeof now);
    char *word = memory_text("run.directory=%s", part->directory);
    struct config *config = config_create();
    enum status status = config_set(config, word, "--watch");
    if (status == OK)
        status = sweep_recall(config);
    memory_free(word);
    if (status != OK) {
        config_destroy(config);
        return status;
    }
    part->is_open = true; /* also after a failure: the sweep owns the settings */
    TRY(sweep_create(&part->sweep, config));
    part->n_runs = part->sweep.n_trials;
    part->runs = NEW(struct watch_run, part->n_runs);
    return OK;
}

/* `kind` differs between the sweeps of the page, or is NULL. */
static char *settings_of(const struct sweep *sweep, size_t trial, const char *kind)
{
    char *first = kind != NULL ? memory_text("model.kind=%s", kind) : memory_text("%s", "");
    char *text = sweep_describe(sweep, trial, first);
    memory_free(first);
    return text;
}

/* A trial that is done at a rung may be running the next one. */
static enum sweep_state state_of(const struct sweep *sweep, size_t trial,
                                 const struct sweep_result *result)
{
    struct sweep_result next = {.state = SWEEP_WAITING};
    if (result->state == SWEEP_DONE && result->rung < sweep->options.rungs)
        sweep_read_result(sweep, trial, result->rung + 1, &next);
    memory_free(next.reason);
    return next.state == SWEEP_RUNNING ? SWEEP_RUNNING : result->state;
}

static void add_entry(struct watch_group *group, size_t *capacity, const struct entry *entry)
{
    GROW(group->entries, group->n, *capacity);
    group->entries[group->n++] = *entry;
    group->n_by_state[entry->state]++;
}

static void add_trials(struct watch_group *group, size_t p, size_t *capacity)
{
    const struct sweep *sweep = &group->parts[p].sweep;
    const char *kind = p > 0 ? config_get(sweep->config, "model", "kind") : NULL;
    struct sweep_board board;
    sweep_read_board(sweep, &board);
    for (size_t t = 0; t < sweep->n_trials; t++) {
        struct sweep_result *result = &board.results[t];
        const bool is_done = result->state == SWEEP_DONE;
        char *name = memory_text("rung-%lld.json", (long long)result->rung);
        char *path = sweep_path(sweep, t, name);
        note_change(group, report_watch_stamp_of(path).seconds);
        memory_free(path);
        memory_free(name);
        add_entry(group, capacity,
                  &(struct entry){
                      .settings = settings_of(sweep, t, kind),
                      .state = state_of(sweep, t, result),
                      .is_complete = is_done && result->rung == sweep->options.rungs,
                      .epochs = result->epochs,
                      .score = is_done ? *metrics_value(&result->valid, sweep->metric) : NAN,
                      .reason = result->reason,
                      .part = p,
                      .trial = t});
        result->reason = NULL;
    }
    group->monitor = sweep->metric;
    sweep_board_free(sweep, &board);
}

static void add_folds(struct watch_group *group, size_t *capacity)
{
    struct part *part = &group->parts[0];
    char *first = memory_text("%s/fold-1", part->directory);
    char *folds = run_setting(first, "train", "folds");
    const long long n = folds != NULL ? strtoll(folds, NULL, 10) : 1;
    memory_free(folds);
    memory_free(first);
    if (part->n_runs == 0 || (long long)part->n_runs < n) {
        close_part(part);
        part->n_runs = n < 1 ? 1 : n > MOST_FOLDS ? MOST_FOLDS : (size_t)n;
        part->runs = NEW(struct watch_run, part->n_runs);
    }
    for (size_t f = 0; f < part->n_runs; f++) {
        static const enum sweep_state states[] = {SWEEP_WAITING, SWEEP_RUNNING, SWEEP_WAITING,
                                                  SWEEP_DONE};
        struct watch_run *run = &part->runs[f];
        double epoch = 0;
        if (run->directory == NULL)
            run->directory = memory_text("%s/fold-%zu", part->directory, f + 1);
        report_watch_run_look(run, false);
        note_change(group, run->changed);
        if (run->kind != NULL)
            group->monitor = run->monitor;
        const bool is_done = run->state == WATCH_FINISHED;
        add_entry(group, capacity,
                  &(struct entry){.settings = memory_text("fold %zu", f + 1),
                                  .state = states[run->state],
                                  .is_complete = is_done,
                                  .epochs = report_watch_run_epoch(run),
                                  .score = is_done ? report_watch_run_best(run, &epoch) : NAN,
                                  .trial = f});
    }
}

/* Runs that are training now, as many as the page draws. */
static void look_at_runs(struct watch_group *group)
{
    size_t n = 0;
    for (size_t e = 0; e < group->n && group->kind != WATCH_FOLDS; e++) {
        const struct entry *entry = &group->entries[e];
        struct part *part = &group->parts[entry->part];
        struct watch_run *run = &part->runs[entry->trial];
        if (entry->state != SWEEP_RUNNING || n == MOST_CURVES) {
            report_watch_run_free(run);
            continue;
        }
        n++;
        if (run->directory == NULL)
            run->directory = sweep_path(&part->sweep, entry->trial, NULL);
        report_watch_run_look(run, false);
        note_change(group, run->changed);
    }
}

static bool is_sweep_complete(const struct sweep *sweep)
{
    bool is_complete = sweep->n_trials > 0;
    for (int64_t rung = 1; is_complete && rung <= sweep->options.rungs; rung++) {
        size_t n = 0;
        size_t *trials = sweep_rung(sweep, rung, &n);
        is_complete = sweep_n_open(sweep, rung, trials, n) == 0;
        memory_free(trials);
    }
    return is_complete;
}

static enum watch_state group_state(const struct watch_group *group)
{
    char *lock = memory_text("%s/lock", group->directory);
    const bool works = group->n_by_state[SWEEP_RUNNING] > 0 ||
                       (group->kind == WATCH_AUTO && file_lock_is_held(lock));
    memory_free(lock);
    if (works)
        return WATCH_RUNNING;
    const bool is_finished =
        group->kind == WATCH_SWEEP
            ? is_sweep_complete(&group->parts[0].sweep)
            : file_is_in(group->directory,
                         group->kind == WATCH_AUTO ? "leaderboard.csv" : "result.json");
    return is_finished                                    ? WATCH_FINISHED
           : group->n_by_state[SWEEP_WAITING] == group->n ? WATCH_ABSENT
                                                          : WATCH_STOPPED;
}

/* For qsort, which passes no context: larger is better. */
static bool is_up;

/* Complete ones first, then by score; those without one keep their order. */
static int compare(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->is_complete != b->is_complete)
        return a->is_complete ? -1 : 1;
    if (isnan(a->score) != isnan(b->score))
        return isnan(b->score) ? -1 : 1;
    if (!isnan(a->score) && a->score != b->score)
        return (a->score < b->score) != is_up ? -1 : 1;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return a->trial < b->trial ? -1 : a->trial > b->trial;
}

enum status report_watch_group_look(struct watch_group *group)
{
    size_t capacity = 0;
    forget_entries(group);
    for (size_t p = 0; p < group->n_parts && group->kind != WATCH_FOLDS; p++) {
        TRY(open_sweep(&group->parts[p]));
        if (group->parts[p].is_open)
            add_trials(group, p, &capacity);
    }
    if (group->kind == WATCH_FOLDS) {
        add_folds(group, &capacity);
    } else {
        is_up = metrics_up(group->monitor);
        qsort(group->entries, group->n, sizeof *group->entries, compare);
    }
    look_at_runs(group);
    group->state = group_state(group);
    return OK;
}

enum watch_state report_watch_group_state(const struct watch_group *group)
{
    return group->state;
}

int64_t report_watch_group_changed(const struct watch_group *group)
{
    return group->changed;
}

/* ---- printing */

void report_watch_group_lead(FILE *out, const struct watch_group *group)
{
    const size_t n_ended = group->n_by_state[SWEEP_DONE] + group->n_by_state[SWEEP_FAILED];
    const char *things = group->kind == WATCH_FOLDS ? "folds" : "trials";
    fprintf(out, "<p><b>%s of %s %s %s ended.</b> ", html_whole((int64_t)n_ended).text,
            html_whole((int64_t)group->n).text, things, n_ended == 1 ? "has" : "have");
    switch (group->state) {
    case WATCH_FINISHED:
        fputs("It is finished.", out);
        break;
    case WATCH_RUNNING:
        if (group->kind == WATCH_AUTO && n_ended == group->n)
            fputs("The best of them are being compared, tuned or blended.", out);
        else
            fprintf(out, "%s %s training now.",
                    html_whole((int64_t)group->n_by_state[SWEEP_RUNNING]).text,
                    group->n_by_state[SWEEP_RUNNING] == 1 ? "is" : "are");
        break;
    case WATCH_ABSENT:
        fputs("None has begun.", out);
        break;
    default:
        fputs("No job is training now. The same command trains what is missing.", out);
    }
    fprintf(out,
            "</p>\n<progress max=\"%zu\" value=\"%zu\" aria-label=\"%s that have ended\">"
            "</progress>\n",
            size_max(group->n, 1), n_ended, things);
}

static void print_counts(FILE *out, const struct watch_group *group)
{
    static const enum sweep_state order[] = {SWEEP_DONE, SWEEP_RUNNING, SWEEP_FAILED,
                                             SWEEP_WAITING};
    fputs("<ul class=\"numbers\">\n", out);
    for (size_t k = 0; k < COUNT(order); k++)
        fprintf(out, "<li><b>%s</b><span>%s</span></li>\n",
                html_whole((int64_t)group->n_by_state[order[k]]).text, sweep_states[order[k]]);
    fputs("</ul>\n", out);
}

static const struct watch_run *run_of(const struct watch_group *group,
                                      const struct entry *entry)
{
    return &group->parts[entry->part].runs[entry->trial];
}

static void print_name(FILE *out, const struct entry *entry)
{
    html_row(out, entry->settings[0] != '\0' ? entry->settings : "defaults");
}

static void print_running(FILE *out, const struct watch_group *group)
{
    const char *const heads[] = {group->kind == WATCH_FOLDS ? "fold" : "settings", "epoch",
                                 "of at most", report_watch_score_words(group->monitor)};
    struct watch_curve curves[MOST_CURVES];
    size_t n = 0;
    for (size_t e = 0; e < group->n && n < MOST_CURVES; e++) {
        const struct entry *entry = &group->entries[e];
        const bool is_drawn = entry->state == SWEEP_RUNNING || group->kind == WATCH_FOLDS;
        if (is_drawn && run_of(group, entry)->state != WATCH_ABSENT)
            curves[n++] = (struct watch_curve){entry->settings, run_of(group, entry)};
    }
    if (n == 0)
        return;
    html_say(out, "h2", group->kind == WATCH_FOLDS ? "The folds" : "In training now");
    html_table_begin(out, heads, COUNT(heads));
    for (size_t c = 0; c < n; c++) {
        const struct watch_run *run = curves[c].run;
        html_row(out, curves[c].name[0] != '\0' ? curves[c].name : "defaults");
        html_count(out, report_watch_run_epoch(run));
        html_count(out, run->epochs);
        html_number(out, 5, report_watch_run_last(run));
        html_row_end(out);
    }
    html_table_end(out);
    html_figures(out);
    report_watch_curves(out, curves, n, group->monitor);
    html_figures_end(out);
}

static void print_board(FILE *out, const struct watch_group *group, int64_t n_rows)
{
    const char *const heads[] = {"settings", "place", report_watch_score_words(group->monitor),
                                 "epochs"};
    int64_t place = 0;
    for (size_t e = 0; e < group->n && place < n_rows; e++) {
        const struct entry *entry = &group->entries[e];
        if (!isfinite(entry->score) || group->kind == WATCH_FOLDS)
            continue;
        if (place++ == 0) {
            html_say(out, "h2", "The best so far");
            html_table_begin(out, heads, COUNT(heads));
        }
        print_name(out, entry);
        html_count(out, place);
        html_number(out, 5, entry->score);
        html_count(out, entry->epochs);
        html_row_end(out);
    }
    if (place == 0)
        return;
    html_table_end(out);
    html_say(out, "p class=\"note\"",
             "By the score on the validation answers; %s is better. Trials that were trained "
             "to the end come before those that were not.",
             metrics_up(group->monitor) ? "higher" : "lower");
}

static void print_failures(FILE *out, const struct watch_group *group, int64_t n_rows)
{
    static const char *const heads[] = {"settings", "reason"};
    int64_t n = 0;
    for (size_t e = 0; e < group->n && n < n_rows; e++) {
        const struct entry *entry = &group->entries[e];
        if (entry->state != SWEEP_FAILED)
            continue;
        if (n++ == 0) {
            html_say(out, "h2", "Failed");
            html_table_begin(out, heads, COUNT(heads));
        }
        print_name(out, entry);
        fputs("<td class=\"names\">", out);
        html_text(out, entry->reason != NULL ? entry->reason : "");
        fputs("</td>", out);
        html_row_end(out);
    }
    if (n > 0)
        html_table_end(out);
}

void report_watch_group_show(FILE *out, const struct watch_group *group, int64_t n_rows)
{
    print_counts(out, group);
    print_board(out, group, n_rows);
    print_running(out, group);
    print_failures(out, group, n_rows);
}
