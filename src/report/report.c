/* The page of a report: a lead that says in plain words how good the model is, then the
 * sections. All ranks measure the runs; rank 0 prints. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/html.h"
#include "report/report_internal.h"
#include "runs/parallel_output.h"
#include <math.h>
#include <string.h>

const char *report_split_words(const struct report_run *run, int64_t n)
{
    static const char *const words[][N_SPLITS + 1][2] = {
        {{"answer it was trained on", "answers it was trained on"},
         {"validation answer", "validation answers"},
         {"test answer", "test answers"},
         {"answer, possibly one it was trained on",
          "answers, including those it was trained on"}},
        {{"student it was trained on", "students it was trained on"},
         {"validation student", "validation students"},
         {"test student", "test students"},
         {"student, possibly one it was trained on",
          "students, including those it was trained on"}}};
    return words[run->task != TASK_TRACE][run->split][n != 1];
}

/* Numbers distinguish runs with equal labels. */
static void label_runs(struct report *report)
{
    bool distinct = true;
    for (size_t a = 0; a < report->n; a++)
        for (size_t b = 0; b < a; b++)
            distinct &= strcmp(report->runs[a].label, report->runs[b].label) != 0;
    for (size_t r = 0; r < report->n && !distinct; r++) {
        char *label = memory_text("%zu %s", r + 1, report->runs[r].label);
        memory_free(report->runs[r].label);
        report->runs[r].label = label;
    }
}

/* Judged by counts: two folds of a cross-validation have the same data and may have as many
 * test answers, but not as many for each item. */
static bool same_answers(const struct report_run *a, const struct report_run *b)
{
    bool same =
        a->split == b->split && a->task == b->task && a->model.all.n == b->model.all.n &&
        a->model.all.correct == b->model.all.correct && names_equal(&a->items, &b->items);
    for (size_t i = 0; same && i < a->items.n; i++)
        same = a->item_n[i] == b->item_n[i] && a->item_right[i] == b->item_right[i];
    return same;
}

static void compare_runs(struct report *report)
{
    const struct report_run *first = &report->runs[0];
    report->same_data = report->comparable = true;
    for (size_t r = 1; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        report->same_data &= strcmp(run->data.digest, first->data.digest) == 0;
        report->comparable &= same_answers(run, first);
    }
    report->comparable &= report->same_data;
}

/* A warning unless the model beats the baseline by more than sampling of students explains. */
static const char *verdict(const struct report_run *run)
{
    const double auc = run->model.all.auc, mean = run->item_mean.all.auc;
    if (run->split == TRAIN || run->split == REPORT_ALL)
        return " It was trained on these answers, so new answers will be predicted less well.";
    if (!run->has_item_mean || !isfinite(auc) || !isfinite(mean))
        return "";
    if (run->model.low.auc > mean)
        return "";
    return auc > mean ? " That is hardly better than knowing nothing about the student."
                      : " That is no better than knowing nothing about the student: the model "
                        "has learned nothing useful here.";
}

static const char *calibration_words(double error)
{
    return error < 0.02   ? "Its chances can be taken literally"
           : error < 0.05 ? "Its chances can be taken almost literally"
                          : "Use its chances to rank answers, not as exact percentages";
}

static void lead_answers(FILE *out, const struct report_run *run)
{
    const struct score *score = &run->model.all;
    fputs("<p>", out);
    if (isfinite(score->auc)) {
        fprintf(out, "This model predicts the next answer with an <b>AUC of %.4f</b>",
                score->auc);
        if (run->has_item_mean && isfinite(run->item_mean.all.auc))
            fprintf(out, "; the item mean, which knows nothing about the student, reaches %.4f",
                    run->item_mean.all.auc);
    } else {
        fprintf(out,
                "All these answers are right or all are wrong, so there is no AUC; the model's "
                "<b>log-loss is %.5f</b>",
                score->log_loss);
    }
    fprintf(out, " (%s %s from %s student%s).", html_whole(score->n).text,
            report_split_words(run, score->n), html_whole(score->n_students).text,
            score->n_students == 1 ? "" : "s");
    html_text(out, verdict(run));
    fputs("</p>\n", out);
    if (isfinite(score->auc))
        html_say(
            out, "p",
            "In other words: of one right and one wrong answer, it gives the right one the "
            "higher chance %.0f times out of 100. %s: on average they are off by %.1f "
            "percentage points.",
            100 * score->auc, calibration_words(score->calibration_error),
            100 * score->calibration_error);
}

static void lead_targets(FILE *out, const struct report_run *run)
{
    const struct score *score = &run->model.all, *mean = &run->item_mean.all;
    const char *whom = report_split_words(run, score->n);
    if (run->task == TASK_CHANCE)
        html_say(
            out, "p",
            "This model predicts which of two students reaches the target with an AUC of %.4f "
            "(%s %s). Its log-loss is %.5f; the mean of the training targets has %.5f.%s",
            score->auc, html_whole(score->n).text, whom, score->log_loss, mean->log_loss,
            run->split == TRAIN ? " It was trained on these students, so new students will be "
                                  "predicted less well."
                                : "");
    else
        html_say(out, "p",
                 "This model's predictions explain %.1f %% of the variance of the students' "
                 "targets (R² %.4f; %s %s). Their typical error (RMSE) is %s; the mean of the "
                 "training targets has %s.",
                 100 * score->r2, score->r2, html_whole(score->n).text, whom,
                 html_short(score->rmse).text, html_short(mean->rmse).text);
}

/* Names the best run: by log-loss, or by RMSE if targets are numbers. */
static void lead_comparison(FILE *out, const struct report *report)
{
    if (!report->comparable) {
        html_say(out, "p",
                 "These runs were scored on different answers, so their numbers do not show "
                 "which model is better.");
        return;
    }
    const bool numbers = !isfinite(report->runs[0].model.all.calibration_error);
    const struct report_run *best = &report->runs[0];
    for (size_t r = 1; r < report->n; r++) {
        const struct score *score = &report->runs[r].model.all;
        if (numbers ? score->rmse < best->model.all.rmse
                    : score->log_loss < best->model.all.log_loss)
            best = &report->runs[r];
    }
    fputs("<p>Of these ", out);
    fprintf(out, "%zu runs, <b>", report->n);
    html_text(out, best->label);
    fprintf(out, "</b> (%s) predicts best: ", best->kind->name);
    if (numbers)
        fprintf(out, "RMSE %s", html_short(best->model.all.rmse).text);
    else
        fprintf(out, "log-loss %.5f, AUC %.4f", best->model.all.log_loss, best->model.all.auc);
    if (!numbers && best->has_item_mean)
        fprintf(out, "; %s %.5f and %.4f",
                best->task == TASK_TRACE
                    ? "the item mean, which knows nothing about the student, has"
                    : "the mean of the training targets has",
                best->item_mean.all.log_loss, best->item_mean.all.auc);
    fprintf(out, " (%s %s).</p>\n", html_whole(best->model.all.n).text,
            report_split_words(best, best->model.all.n));
}

static void show_fallback(FILE *out, const struct report *report)
{
    static const char *const words[] = {"training", "validation", "test"};
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        if (run->split != report->plan->split)
            html_say(out, "p",
                     "%s has no %s answers that can be scored; this report uses the %s answers "
                     "instead.",
                     run->data.name, words[report->plan->split], words[run->split]);
        if (run->is_unfinished)
            html_say(out, "p",
                     "Training of %s is not finished: this is the model after epoch %lld of at "
                     "most %lld.",
                     run->label, (long long)run->progress.epoch, (long long)run->epochs);
    }
}

static void show_head(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    if (report->plan->title[0] != '\0')
        html_say(out, "h1", "%s", report->plan->title);
    else if (report->n > 1)
        html_say(out, "h1", "%zu models of what students know", report->n);
    else
        html_say(out, "h1", "A model of what students know");
    fputs("<p class=\"under\">", out);
    for (size_t r = 0; r < report->n; r++) {
        run = &report->runs[r];
        fputs(r > 0 ? "; " : "", out);
        html_text(out, run->path);
        fprintf(out, ": %s%s", run->kind->name, run->is_refit ? ", refitted" : "");
        if (run->kind->made_by == NULL)
            fprintf(out, " after epoch %lld", (long long)run->progress.epoch);
        if (!report->same_data || r + 1 == report->n) {
            fputs(", on ", out);
            html_text(out, run->data.name);
        }
    }
    fputs("</p>\n<div class=\"lead\">\n", out);
    if (report->n > 1)
        lead_comparison(out, report);
    else if (run->task == TASK_TRACE)
        lead_answers(out, run);
    else
        lead_targets(out, run);
    show_fallback(out, report);
    fputs("</div>\n", out);
}

static char *title_of(const struct report *report)
{
    return report->plan->title[0] != '\0' ? memory_text("%s", report->plan->title)
                                          : memory_text("Report: %s%s", report->runs[0].path,
                                                        report->n > 1 ? " and others" : "");
}

static void print_page(FILE *out, size_t row, const void *arg)
{
    const struct report *report = arg;
    (void)row;
    char *title = title_of(report);
    html_begin(out, title);
    show_head(out, report);
    report_show_scores(out, report);
    report_show_chances(out, report);
    report_show_students(out, report);
    report_show_items(out, report);
    report_show_history(out, report);
    report_show_learned(out, report);
    report_show_data(out, report);
    report_show_settings(out, report);
    html_end(out);
    memory_free(title);
}

enum status report_write(const struct comm *comm, const char *const *paths, size_t n,
                         const struct report_plan *plan)
{
    struct report *report = NEW(struct report, 1);
    report->plan = plan;
    enum status status = OK;
    while (status == OK && report->n < n) {
        struct report_run *run = &report->runs[report->n];
        log_live("report: run %zu of %zu, %s", report->n + 1, n, paths[report->n]);
        status = report_measure(run, comm, paths[report->n], plan);
        report->n++;
    }
    if (status == OK) {
        label_runs(report);
        compare_runs(report);
        log_live("report: writing %s", plan->output);
        status =
            parallel_output_write(comm, plan->output, "", comm->rank == 0, print_page, report);
    }
    for (size_t r = 0; r < report->n; r++)
        report_run_free(&report->runs[r]);
    memory_free(report);
    return status;
}
