/* The page of a report: a lead that says in plain words how good the model is, then the
 * sections. All ranks measure the runs, one after the other, so that a page needs the memory of
 * one model; rank 0 prints.
 *
 *     at most REPORT_MOST_RUNS runs    each is measured once
 *     more                             scores of all, which decide on the order; then the best
 *                                      are measured again, with all sections of the page */
#include "report/report.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "report/report_internal.h"
#include "runs/parallel_output.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers distinguish runs with equal labels. What `cohort auto` chose is called that. */
static void label_runs(struct report *report)
{
    bool distinct = true;
    if (report->whole == WHOLE_AUTO) {
        struct report_run *choice = &report->runs[0];
        choice->is_choice = true;
        memory_free(choice->label);
        choice->label = memory_text("chosen: %s", choice->kind->name);
    }
    for (size_t a = 0; a < report->n_all; a++)
        for (size_t b = 0; b < a; b++)
            distinct &= strcmp(report->runs[a].label, report->runs[b].label) != 0;
    for (size_t r = 0; r < report->n_all && !distinct; r++) {
        char *label = memory_text("%zu %s", r + 1, report->runs[r].label);
        memory_free(report->runs[r].label);
        report->runs[r].label = label;
    }
}

/* Runs of numbers are compared if they have the same targets. */
static void compare_runs(struct report *report)
{
    const struct report_run *first = &report->runs[0];
    report->same_data = report->comparable = true;
    for (size_t r = 1; r < report->n_all; r++) {
        const struct report_run *run = &report->runs[r];
        report->same_data &= strcmp(run->data.digest, first->data.digest) == 0;
        report->comparable &= report_is_number(first)
                                  ? run->task == first->task && run->split == first->split &&
                                        strcmp(run->held_out, first->held_out) == 0
                                  : run->entry != SIZE_MAX;
    }
    report->comparable &= report->same_data;
}

/* The metric that was asked for; or the one that all runs monitored; or the log-loss. */
static void choose_metric(struct report *report)
{
    report->metric = report->runs[0].monitor;
    for (size_t r = 1; r < report->n_all; r++)
        if (report->runs[r].monitor != report->metric)
            report->metric = METRIC_LOG_LOSS;
    if (report->plan->metric > 0)
        report->metric = report->plan->metric - 1;
    if (report_is_number(&report->runs[0]))
        report->metric = METRIC_RMSE;
    if (report->metric < 0)
        report->metric = METRIC_LOG_LOSS;
}

/* Best first; equal ones, and those without a score, as they were given. */
static void sort_runs(struct report *report)
{
    const double sign = metrics_up(report->metric) ? -1 : 1;
    for (size_t r = 1; r < report->n_all; r++) {
        const struct report_run run = report->runs[r];
        const double value = sign * report_metric_value(&run.model.all, report->metric);
        size_t place = r;
        for (; place > 0; place--) {
            const double other =
                sign * report_metric_value(&report->runs[place - 1].model.all, report->metric);
            if (!(value < other || (isnan(other) && !isnan(value))))
                break;
            report->runs[place] = report->runs[place - 1];
        }
        report->runs[place] = run;
    }
}

static char *title_of(const struct report *report)
{
    if (report->plan->title[0] != '\0')
        return memory_text("%s", report->plan->title);
    return report->path != NULL ? memory_text("Report: %s", report->path)
                                : memory_text("Report: %s%s", report->runs[0].path,
                                              report->n_all > 1 ? " and others" : "");
}

static void print_sections(FILE *out, const struct report *report)
{
    const bool folds = report->whole == WHOLE_FOLDS;
    if (folds)
        report_folds_show(out, report);
    else
        report_show_scores(out, report);
    report_show_chances(out, report);
    report_show_students(out, report);
    report_show_class(out, report);
    if (!folds) {
        report_show_items(out, report);
        report_practice_show(out, report);
    }
    report_show_history(out, report);
    if (!folds)
        report_show_learned(out, report);
    report_show_data(out, report);
    report_show_settings(out, report);
}

/* The page of several runs is long: it has a list of its sections. */
static void print_listed(FILE *out, const struct report *report)
{
    char *text = NULL;
    size_t n = 0;
    FILE *sections = memory_stream(&text, &n);
    print_sections(sections, report);
    fclose(sections);
    html_sections(out, text);
    free(text);
}

static void print_page(FILE *out, size_t row, const void *arg)
{
    const struct report *report = arg;
    (void)row;
    char *title = title_of(report);
    html_begin(out, title);
    if (report->whole == WHOLE_AUTO)
        report_auto_lead(out, report);
    else
        report_show_lead(out, report);
    if (report->whole == WHOLE_FOLDS)
        report_folds_warn(out, report);
    else
        report_show_warnings(out, report);
    if (report->n > 1)
        print_listed(out, report);
    else
        print_sections(out, report);
    html_end(out);
    memory_free(title);
}

/* Draws the page again. */
enum status report_figures(const struct report_plan *plan,
                           void (*print)(FILE *out, size_t row, const void *arg),
                           const void *arg)
{
    char *text = NULL;
    size_t n = 0;
    bool has_pdf = true;
    FILE *out = memory_stream(&text, &n);
    plot_figures_begin();
    print(out, 0, arg);
    fclose(out);
    free(text);
    TRY(plot_figures_write(plan->figures, &n, &has_pdf));
    log_say("wrote %zu figures to %s as SVG%s and CSV", n, plan->figures,
            has_pdf ? ", PDF" : "");
    if (!has_pdf)
        log_say(
            "note: PDF needs rsvg-convert (Debian package librsvg2-bin), which was not found");
    return OK;
}

/* Measures a run whose scores and place are known once more, with all sections. */
static enum status measure_again(struct report_run *run, const struct comm *comm,
                                 const char *path, const struct report_plan *plan)
{
    struct report_run whole = {0};
    const enum status status = report_measure(&whole, comm, path, plan, NULL, true);
    whole.entry = run->entry;
    whole.is_choice = run->is_choice;
    whole.model.low = run->model.low;
    whole.model.high = run->model.high;
    whole.item_mean.low = run->item_mean.low;
    whole.item_mean.high = run->item_mean.high;
    char *label = whole.label;
    whole.label = run->label;
    run->label = label;
    report_run_free(run);
    *run = whole;
    return status;
}

static enum status measure_all(struct report *report, const struct comm *comm,
                               const struct names *paths)
{
    const size_t n = paths->n;
    enum status status = OK;
    while (status == OK && report->n_all < n) {
        struct report_run *run = &report->runs[report->n_all];
        const char *path = names_get(paths, report->n_all);
        log_live("report: run %zu of %zu, %s", report->n_all + 1, n, path);
        run->source = report->n_all++;
        status = report_measure(run, comm, path, report->plan, &report->pairs,
                                n <= REPORT_MOST_RUNS);
    }
    if (status != OK)
        return status;
    label_runs(report);
    choose_metric(report);
    compare_runs(report);
    if (report->comparable)
        sort_runs(report);
    report->n = size_min(n, REPORT_MOST_RUNS);
    for (size_t r = 0; status == OK && n > REPORT_MOST_RUNS && r < report->n; r++) {
        const size_t source = report->runs[r].source;
        log_live("report: drawing run %zu of %zu", r + 1, report->n);
        status = measure_again(&report->runs[r], comm, names_get(paths, source), report->plan);
        report->runs[r].source = source;
    }
    return status;
}

static enum status write_page(const struct comm *comm, const struct report_sources *sources,
                              const char *path, const struct report_plan *plan)
{
    struct report report = {.plan = plan,
                            .whole = sources->whole,
                            .n_folds = sources->n_folds,
                            .runs = NEW(struct report_run, sources->paths.n),
                            .pairs = {.baseline = {SIZE_MAX, SIZE_MAX}}};
    if (sources->whole != WHOLE_RUNS)
        report.path = report_shown(path, 1);
    paired_start(&report.pairs.paired, comm, REPORT_RESAMPLINGS, REPORT_SEED);
    enum status status = measure_all(&report, comm, &sources->paths);
    if (status == OK) {
        log_live("report: writing %s", plan->output);
        status =
            parallel_output_write(comm, plan->output, "", comm->rank == 0, print_page, &report);
    }
    if (status == OK && plan->figures[0] != '\0')
        status =
            comm_agree(comm, comm->rank == 0 ? report_figures(plan, print_page, &report) : OK);
    for (size_t r = 0; r < report.n_all; r++)
        report_run_free(&report.runs[r]);
    paired_free(&report.pairs.paired);
    memory_free(report.runs);
    memory_free(report.path);
    return status;
}

enum status report_write(const struct comm *comm, const char *const *paths, size_t n,
                         const struct report_plan *plan)
{
    if (plan->student[0] != '\0')
        return report_student_write(comm, paths[0], plan);
    struct report_sources sources;
    enum status status = report_sources_find(&sources, comm, paths, n);
    struct report_plan own = *plan;
    own.compares = sources.whole == WHOLE_FOLDS || sources.paths.n > 1;
    if (status == OK && sources.whole == WHOLE_SWEEP)
        status = report_sweep_write(comm, names_get(&sources.paths, 0), &own);
    else if (status == OK)
        status = write_page(comm, &sources, paths[0], &own);
    names_free(&sources.paths);
    return status;
}
