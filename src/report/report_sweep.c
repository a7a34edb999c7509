/* The page of a sweep: a leaderboard, the score against each setting, the curves of the best
 * trials, and the best trial itself. The board is what is known now: trials may be running,
 * waiting or failed, and the page says so.
 *
 *     trials/ID/rung-1.json    -> scores of all trials               (rank 0)
 *     trials/ID/log.jsonl      -> curves of the best                 (rank 0)
 *     trials/ID/best.h5        -> the best trial on its answers      (all ranks) */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include "runs/parallel_output.h"
#include "sweep/sweep.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct page {
    const struct report_plan *plan;
    struct sweep sweep;
    struct sweep_board board;
    char *path;         /* as shown on the page */
    int metric;         /* that is drawn; trials are ranked by sweep.metric */
    struct report best; /* the best trial, if it could be measured */
    size_t n_curves;
    struct report_history histories[REPORT_MOST_RUNS];
};

static const struct sweep_result *result_of(const struct page *page, size_t place)
{
    return &page->board.results[page->board.order[place]];
}

static bool is_done(const struct page *page, size_t place)
{
    return place < page->sweep.n_trials && result_of(page, place)->state == SWEEP_DONE;
}

static const char *trial_name(const struct page *page, size_t place)
{
    return page->sweep.trials[page->board.order[place]].id;
}

/* "section.key"; caller frees. */
static char *setting_name(const struct page *page, size_t d)
{
    const struct sweep_dimension *dimension = &page->sweep.dimensions[d];
    return memory_text("%s.%s", dimension->section, dimension->key);
}

/* "hidden 2, rate 0.1": the settings that differ between trials; caller frees. */
static char *settings_of(const struct page *page, size_t place)
{
    const struct sweep *sweep = &page->sweep;
    char *text = memory_text("%s", "");
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        char *longer =
            memory_text("%s%s%s %s", text, d > 0 ? ", " : "", sweep->dimensions[d].key,
                        sweep->trials[page->board.order[place]].values[d]);
        memory_free(text);
        text = longer;
    }
    return text;
}

/* ---- the lead */

static void show_states(FILE *out, const struct page *page)
{
    const size_t *n = page->board.n_by_state;
    const size_t n_open = n[SWEEP_RUNNING] + n[SWEEP_WAITING];
    if (n_open + n[SWEEP_FAILED] == 0)
        return;
    fputs("<div class=\"lead warn\">\n", out);
    if (n_open > 0)
        html_say(out, "p",
                 "The sweep is not finished: %zu of %zu trials are done, %zu running, %zu "
                 "waiting. This page shows what is known so far.",
                 n[SWEEP_DONE], page->sweep.n_trials, n[SWEEP_RUNNING], n[SWEEP_WAITING]);
    if (n[SWEEP_FAILED] > 0)
        fprintf(out,
                "<p>%zu trial%s failed; the reasons are below the leaderboard. <code>cohort "
                "sweep ... --retry</code> trains failed trials again.</p>\n",
                n[SWEEP_FAILED], n[SWEEP_FAILED] == 1 ? "" : "s");
    fputs("</div>\n", out);
}

static void show_lead(FILE *out, const struct page *page)
{
    const struct sweep *sweep = &page->sweep;
    if (page->plan->title[0] != '\0')
        html_say(out, "h1 dir=\"auto\"", "%s", page->plan->title);
    else
        html_say(out, "h1", "A sweep of %zu trial%s", sweep->n_trials,
                 sweep->n_trials == 1 ? "" : "s");
    html_say(out, "p class=\"under\"", "%s", page->path);
    fputs("<div class=\"lead\">\n", out);
    if (!is_done(page, 0)) {
        html_say(out, "p", "No trial is done yet, so there are no scores to show.");
    } else {
        const struct sweep_result *best = result_of(page, 0);
        const int digits = report_metric_digits(sweep->metric);
        fputs("<p>The best of ", out);
        fprintf(out, "%zu finished trials is <b>%s</b>", page->board.n_by_state[SWEEP_DONE],
                trial_name(page, 0));
        char *settings = settings_of(page, 0);
        if (settings[0] != '\0') {
            fputs(" (", out);
            html_text(out, settings);
            fputs(")", out);
        }
        memory_free(settings);
        fprintf(out, ": validation %s %.*f", report_metric_words(sweep->metric), digits,
                report_metric_value(&best->valid, sweep->metric));
        if (best->test.n > 0)
            fprintf(out, ", test %s %.*f", report_metric_words(sweep->metric), digits,
                    report_metric_value(&best->test, sweep->metric));
        fputs(".</p>\n", out);
        if (best->test.n > 0)
            html_say(out, "p",
                     "Its validation score looks a little too good, because it was picked for "
                     "it; trust the test score.");
    }
    fputs("</div>\n", out);
    if (page->best.n > 0)
        report_show_warnings(out, &page->best);
    show_states(out, page);
}

/* ---- the leaderboard */

static void text_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    html_cut(out, text, 40);
    fputs("</td>", out);
}

/* Validation in the metric of the sweep, then test. */
static void score_cells(FILE *out, const struct page *page, const struct sweep_result *result)
{
    const int metrics[] = {page->sweep.metric, page->sweep.metric, METRIC_AUC};
    const struct score *const scores[] = {&result->valid, &result->test, &result->test};
    const struct score *const spreads[] = {&result->valid_spread, &result->test_spread,
                                           &result->test_spread};
    for (size_t k = 0; k < (page->sweep.metric == METRIC_AUC ? 2 : COUNT(metrics)); k++) {
        const double value = report_metric_value(scores[k], metrics[k]);
        if (result->state != SWEEP_DONE || scores[k]->n == 0 || !isfinite(value)) {
            fputs("<td></td>", out);
            continue;
        }
        fprintf(out, "<td>%.*f", report_metric_digits(metrics[k]), value);
        if (page->sweep.folds)
            fprintf(out, "<small>± %.*f</small>", report_metric_digits(metrics[k]),
                    report_metric_value(spreads[k], metrics[k]));
        fputs("</td>", out);
    }
}

static void show_failures(FILE *out, const struct page *page)
{
    static const char *const heads[] = {"failed trial", "reason"};
    size_t n = 0;
    for (size_t p = 0; p < page->sweep.n_trials && n < (size_t)page->plan->n_rows; p++) {
        const struct sweep_result *result = result_of(page, p);
        if (result->state != SWEEP_FAILED)
            continue;
        if (n++ == 0)
            html_table_begin(out, heads, COUNT(heads));
        html_row(out, trial_name(page, p));
        fputs("<td class=\"name\">", out);
        html_text(out, result->reason != NULL ? result->reason : "");
        fputs("</td>", out);
        html_row_end(out);
    }
    if (n > 0)
        html_table_end(out);
}

static void show_board(FILE *out, const struct page *page)
{
    const struct sweep *sweep = &page->sweep;
    const char *word = report_metric_words(sweep->metric);
    const size_t n_scores = sweep->metric == METRIC_AUC ? 2 : 3,
                 n_more = sweep->options.rungs > 1;
    const size_t n_heads = 1 + n_scores + sweep->n_dimensions + 2 + n_more;
    const char **heads = NEW(const char *, n_heads);
    char *valid = memory_text("validation %s", word), *test = memory_text("test %s", word);
    size_t h = 0;
    heads[h++] = "trial";
    heads[h++] = valid;
    heads[h++] = test;
    if (n_scores == 3)
        heads[h++] = "test AUC";
    for (size_t d = 0; d < sweep->n_dimensions; d++)
        heads[h++] = sweep->dimensions[d].key;
    heads[h++] = "epochs";
    if (n_more > 0)
        heads[h++] = "rung";
    heads[h++] = "state";
    html_say(out, "h2", "Scores: the trials, best first");
    html_table_begin(out, heads, n_heads);
    const size_t n = size_min(sweep->n_trials, (size_t)page->plan->n_rows);
    for (size_t p = 0; p < n; p++) {
        const size_t t = page->board.order[p];
        const struct sweep_result *result = &page->board.results[t];
        html_row(out, sweep->trials[t].id);
        score_cells(out, page, result);
        for (size_t d = 0; d < sweep->n_dimensions; d++)
            text_cell(out, sweep->trials[t].values[d]);
        if (result->state == SWEEP_DONE)
            html_count(out, result->epochs);
        else
            fputs("<td></td>", out);
        if (n_more > 0)
            html_count(out, result->rung);
        text_cell(out, sweep_states[result->state]);
        html_row_end(out);
    }
    html_table_end(out);
    html_say(out, "p class=\"note\"", "Ranked by validation %s, %s is better%s.%s", word,
             metrics_up(sweep->metric) ? "higher" : "lower",
             n_more > 0 ? "; trials that reached a later rung come first" : "",
             sweep->folds ? " Each trial is a cross-validation: small numbers are standard "
                            "deviations over its folds."
                          : "");
    if (n < sweep->n_trials)
        html_say(out, "p class=\"note\"",
                 "Trials not shown: %zu. leaderboard.csv in the sweep's directory has all.",
                 sweep->n_trials - n);
    show_failures(out, page);
    memory_free(valid);
    memory_free(test);
    memory_free(heads);
}

/* ---- score against settings */

/* Trials that are done, with their scores; several rungs have several colours. */
struct points {
    bool chances;        /* scores of what is right or wrong: those have an AUC */
    size_t n, n_outside; /* n_outside: worse than the axis */
    double *score;
    size_t *trial;
    int64_t *rung;
};

static void take_points(const struct page *page, struct points *points)
{
    const size_t most = page->sweep.n_trials;
    *points = (struct points){
        .score = NEW(double, most), .trial = NEW(size_t, most), .rung = NEW(int64_t, most)};
    for (size_t p = 0; p < most; p++) {
        const struct sweep_result *result = result_of(page, p);
        const double value = report_metric_value(&result->valid, page->metric);
        if (result->state != SWEEP_DONE || result->valid.n == 0 || !isfinite(value))
            continue;
        points->chances |= isfinite(result->valid.auc);
        points->score[points->n] = value;
        points->trial[points->n] = page->board.order[p];
        points->rung[points->n++] = result->rung;
    }
}

static void free_points(struct points *points)
{
    memory_free(points->score);
    memory_free(points->trial);
    memory_free(points->rung);
}

/* The place of a value on the axis of its setting. */
static double place_of(const struct sweep_dimension *d, const char *value)
{
    for (size_t v = 0; v < d->n_values; v++)
        if (strcmp(d->values[v], value) == 0)
            return (double)v;
    return strtod(value, NULL);
}

static void draw_setting(FILE *out, const struct page *page, const struct points *points,
                         size_t d, const struct plot_axis *y)
{
    const struct sweep_dimension *dimension = &page->sweep.dimensions[d];
    const size_t n = points->n, n_rungs = (size_t)page->sweep.options.rungs;
    char *key = setting_name(page, d), *title = memory_text("Score by %s", key);
    double *x = NEW(double, n_rungs *n);
    struct plot_series series[REPORT_MOST_RUNS];
    char names[REPORT_MOST_RUNS][32];
    size_t n_series = 0;
    for (size_t r = 0; r < size_min(n_rungs, REPORT_MOST_RUNS); r++) {
        for (size_t i = 0; i < n; i++)
            x[r * n + i] =
                points->rung[i] == (int64_t)r + 1
                    ? place_of(dimension, page->sweep.trials[points->trial[i]].values[d])
                    : NAN;
        snprintf(names[r], sizeof names[r], "rung %zu", r + 1);
        series[n_series++] = (struct plot_series){.name = n_rungs > 1 ? names[r] : NULL,
                                                  .style = PLOT_POINTS,
                                                  .colour = r,
                                                  .n = n,
                                                  .x = x + r * n,
                                                  .y = points->score};
    }
    struct plot_axis axis = {.label = key};
    if (dimension->n_values > 0) {
        axis.names = (const char *const *)dimension->values;
        axis.n_names = dimension->n_values;
    } else {
        axis.low = dimension->low;
        axis.high = dimension->high;
        axis.logarithmic = dimension->is_log;
    }
    html_panel(out, key);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = axis,
                                  .y = *y,
                                  .series = series,
                                  .n_series = n_series,
                                  .beyond = points->n_outside > 0 ? report_beyond : NULL});
    html_panel_end(out);
    memory_free(x);
    memory_free(title);
    memory_free(key);
}

static void show_settings(FILE *out, const struct page *page)
{
    enum { MOST_PANELS = 24 };
    struct points points;
    take_points(page, &points);
    const size_t n_panels = size_min(page->sweep.n_dimensions, MOST_PANELS);
    if (points.n > 0 && n_panels > 0) {
        struct plot_axis y = {.label = report_metric_words(page->metric)};
        points.n_outside =
            report_metric_axis(&y, page->metric, points.chances, points.score, points.n);
        char outside[200] = "";
        if (points.n_outside > 0)
            snprintf(outside, sizeof outside,
                     " Open triangles at the edge are trials worse than a coin, which has "
                     "%.*f: %zu.",
                     report_metric_digits(page->metric), report_metric_coin(page->metric),
                     points.n_outside);
        html_say(out, "h2", "The score against each setting");
        html_figures(out);
        char *title =
            memory_text("Validation %s by setting", report_metric_words(page->metric));
        html_panels(out, title);
        for (size_t d = 0; d < n_panels; d++)
            draw_setting(out, page, &points, d, &y);
        html_panels_end(out);
        html_caption(out,
                     "Each dot is a trial; %s is better, and all panels have one axis. A "
                     "setting matters if its dots rise or fall together; other settings vary "
                     "too, so single dots prove little. A best value at the end of its range "
                     "suggests a wider range.%s",
                     metrics_up(page->metric) ? "higher" : "lower", outside);
        html_figures_end(out);
        memory_free(title);
    }
    free_points(&points);
}

/* ---- curves, and the best trial */

static void show_curves(FILE *out, const struct page *page)
{
    struct report_curve curves[REPORT_MOST_RUNS];
    bool any = false;
    for (size_t c = 0; c < page->n_curves; c++)
        any |= report_history_is_validated(&page->histories[c], page->metric);
    if (!any)
        return;
    char *names[REPORT_MOST_RUNS];
    for (size_t c = 0; c < page->n_curves; c++) {
        names[c] = settings_of(page, c);
        curves[c] = (struct report_curve){names[c][0] != '\0' ? names[c] : trial_name(page, c),
                                          &page->histories[c]};
    }
    html_say(out, "h2", "Training: the best trials by epoch");
    report_history_draw(out, curves, page->n_curves, page->metric,
                        page->best.n > 0 ? page->best.runs[0].valid : NULL);
    for (size_t c = 0; c < page->n_curves; c++)
        memory_free(names[c]);
}

static void show_best(FILE *out, const struct page *page)
{
    if (!is_done(page, 0))
        return;
    html_say(out, "h2", "The best trial");
    html_say(out, "p", "This command writes the page of the best trial:");
    char *trial = shell_quote_text("%s/trials/%s", page->path, trial_name(page, 0));
    html_say(out, "pre", "cohort report %s -o best.html", trial);
    memory_free(trial);
    if (page->best.n == 0) {
        html_say(out, "p",
                 page->sweep.folds
                     ? "It is a cross-validation, so its page shows its folds."
                     : "Its model or its data cannot be read here, so only its scores are "
                       "shown.");
        return;
    }
    report_show_scores(out, &page->best);
    report_show_chances(out, &page->best);
    report_show_data(out, &page->best);
    report_show_settings(out, &page->best);
}

static void print_page(FILE *out, size_t row, const void *arg)
{
    const struct page *page = arg;
    (void)row;
    char *title = page->plan->title[0] != '\0' ? memory_text("%s", page->plan->title)
                                               : memory_text("Sweep: %s", page->path);
    html_begin(out, title);
    show_lead(out, page);
    show_board(out, page);
    show_settings(out, page);
    show_curves(out, page);
    show_best(out, page);
    html_end(out);
    memory_free(title);
}

/* ---- reading */

/* Collective: the settings of the sweep, the same on all ranks. */
static enum status open_sweep(struct page *page, const struct comm *comm, const char *path)
{
    struct config *config = config_create();
    char *run = memory_text("run.directory=%s", path);
    enum status status = config_set(config, run, "report");
    if (status == OK)
        status = sweep_recall(config);
    memory_free(run);
    if (status == OK)
        status = sweep_create(&page->sweep, config);
    else
        config_destroy(config);
    return comm_agree(comm, status);
}

static void read_curves(struct page *page)
{
    for (size_t p = 0; p < REPORT_MOST_RUNS && is_done(page, p); p++) {
        char *path = sweep_path(&page->sweep, page->board.order[p], NULL);
        report_history_read(&page->histories[p], path);
        page->n_curves += page->histories[p].n > 0 && page->n_curves == p;
        memory_free(path);
    }
}

/* Collective: measures the best trial. A page without it is better than none, so a failure is
 * only noted. */
static enum status measure_best(struct page *page, const struct comm *comm)
{
    char *path = comm->rank == 0 && is_done(page, 0) && !page->sweep.folds
                     ? sweep_path(&page->sweep, page->board.order[0], NULL)
                     : NULL;
    path = comm_share_text(comm, path);
    if (path == NULL)
        return OK;
    page->best = (struct report){.plan = page->plan,
                                 .runs = NEW(struct report_run, 1),
                                 .n_all = 1,
                                 .same_data = true,
                                 .comparable = true,
                                 .metric = page->metric,
                                 .pairs = {.baseline = {SIZE_MAX, SIZE_MAX}}};
    paired_start(&page->best.pairs.paired, comm, REPORT_RESAMPLINGS, REPORT_SEED);
    const enum status status =
        report_measure(&page->best.runs[0], comm, path, page->plan, &page->best.pairs, true);
    if (status == OK)
        page->best.n = 1;
    else
        log_say("note: the best trial is not shown in detail: %s", fail_sentence());
    fail_clear();
    memory_free(path);
    return OK;
}

enum status report_sweep_write(const struct comm *comm, const char *path,
                               const struct report_plan *plan)
{
    struct report_plan own = *plan;
    own.compares = true;
    struct page *page = NEW(struct page, 1);
    page->plan = &own;
    page->path = report_shown(path, 1);
    enum status status = open_sweep(page, comm, path);
    if (status == OK) {
        page->metric = plan->metric > 0 ? plan->metric - 1 : page->sweep.metric;
        if (comm->rank == 0) {
            sweep_read_board(&page->sweep, &page->board);
            read_curves(page);
        }
        status = measure_best(page, comm);
    }
    if (status == OK)
        status = parallel_output_write(comm, own.output, "", comm->rank == 0, print_page, page);
    if (status == OK && own.figures[0] != '\0')
        status =
            comm_agree(comm, comm->rank == 0 ? report_figures(&own, print_page, page) : OK);
    for (size_t c = 0; c < REPORT_MOST_RUNS; c++)
        report_history_free(&page->histories[c]);
    if (page->best.runs != NULL)
        report_run_free(&page->best.runs[0]);
    memory_free(page->best.runs);
    paired_free(&page->best.pairs.paired);
    sweep_board_free(&page->sweep, &page->board);
    sweep_destroy(&page->sweep);
    memory_free(page->path);
    memory_free(page);
    return status;
}
