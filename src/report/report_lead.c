/* The head of the page: what it is about, and in plain words how good the models are. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
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

static bool is_seen(const struct report_run *run)
{
    return run->split == TRAIN || run->split == REPORT_ALL;
}

/* The calibration error that a perfectly calibrated model with these chances has by chance. Of n
 * answers with a mean chance p, the share that is right differs from p by d, which is nearly
 * normal:
 *
 *     mean of |d|    sqrt(2 / pi * p (1 - p) / n)        variance    (1 - 2 / pi) p (1 - p) / n */
struct chance {
    double mean, deviation;
};

static struct chance chance_error(const struct report_run *run)
{
    double sum = 0, squares = 0, n_all = 0;
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++) {
        const double n = (double)run->bins[b].n, p = run->bins[b].probability;
        if (n == 0)
            continue;
        sum += sqrt(2 / M_PI * p * (1 - p) * n);
        squares += (1 - 2 / M_PI) * p * (1 - p) * n;
        n_all += n;
    }
    return n_all > 0 ? (struct chance){sum / n_all, sqrt(squares) / n_all}
                     : (struct chance){NAN, NAN};
}

static bool is_rough(struct chance chance)
{
    return chance.mean >= 0.03;
}

/* One rule: an error is the model's if it is two standard deviations beyond chance. `trusted`: the
 * model beats its baselines; what does not gets no praise. */
static const char *calibration_words(double error, struct chance chance, bool trusted)
{
    const double excess = error - chance.mean;
    return excess > 2 * chance.deviation && excess >= 0.02
               ? " This model's chances are less exact than they should be: use them to rank "
                 "answers, not as exact percentages."
           : excess > 2 * chance.deviation
               ? (trusted ? " They can be taken almost literally." : "")
           : is_rough(chance) ? " The difference is too small to judge."
           : trusted          ? " They can be taken literally."
                              : "";
}

static void lead_answers(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
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
    fprintf(out, " (%s %s from %s student%s).%s</p>\n", html_whole(score->n).text,
            report_split_words(run, score->n), html_whole(score->n_students).text,
            score->n_students == 1 ? "" : "s",
            is_seen(run) ? " It was trained on these answers, so new answers will be predicted "
                           "less well."
                         : "");
    if (!isfinite(score->auc))
        return;
    const double error = score->calibration_error;
    const struct chance chance = chance_error(run);
    html_say(out, "p",
             "In other words: of one right and one wrong answer, it gives the right one the "
             "higher chance %.0f times out of 100. Its chances are off by %.1f percentage "
             "points on average; with %s%s answers, a perfectly calibrated model would be off "
             "by about %.1f.%s",
             100 * score->auc, 100 * error, is_rough(chance) ? "only " : "",
             html_whole(score->n).text, 100 * chance.mean,
             calibration_words(error, chance, report_distrust(report, run) == NULL));
}

static void lead_targets(FILE *out, const struct report_run *run)
{
    const struct score *score = &run->model.all, *mean = &run->item_mean.all;
    const char *whom = report_split_words(run, score->n);
    const char *seen =
        is_seen(run) ? " It was trained on these students, so new students will be predicted "
                       "less well."
                     : "";
    if (run->task == TASK_CHANCE)
        html_say(
            out, "p",
            "This model predicts which of two students reaches the target with an AUC of %.4f "
            "(%s %s). Its log-loss is %.5f; the mean of the training targets has %.5f.%s",
            score->auc, html_whole(score->n).text, whom, score->log_loss, mean->log_loss, seen);
    else
        html_say(out, "p",
                 "This model's predictions explain %.1f %% of the variance of the students' "
                 "targets (R² %.4f; %s %s). Their typical error (RMSE) is %s; the mean of the "
                 "training targets has %s.%s",
                 100 * score->r2, score->r2, html_whole(score->n).text, whom,
                 html_short(score->rmse).text, html_short(mean->rmse).text, seen);
}

/* The number of runs whose difference from the best may be chance. */
static size_t count_ties(const struct report *report)
{
    size_t n = 0;
    for (size_t r = 1; r < report->n_all; r++)
        n += report_difference(report, report->runs[r].entry, report->runs[0].entry,
                               (enum metric)report->metric)
                 .better == 0;
    return n;
}

static void say_ties(FILE *out, const struct report *report)
{
    const size_t n_ties = count_ties(report);
    if (n_ties == 0) {
        html_say(out, "p", "It is better than every other run, by more than chance explains.");
        return;
    }
    fputs("<p>Its lead over ", out);
    size_t n = 0;
    for (size_t r = 1; r < report->n_all && n_ties <= 3; r++)
        if (report_difference(report, report->runs[r].entry, report->runs[0].entry,
                              (enum metric)report->metric)
                .better == 0) {
            fputs(n == 0 ? "" : n + 1 == n_ties ? " and " : ", ", out);
            html_text(out, report->runs[r].label);
            n++;
        }
    if (n_ties > 3)
        fprintf(out, "%zu of the other %zu runs", n_ties, report->n_all - 1);
    fprintf(out, " may be chance%s.</p>\n",
            n_ties + 1 < report->n_all ? "; the others are worse (95 % intervals)" : "");
}

static void lead_comparison(FILE *out, const struct report *report)
{
    if (!report->comparable) {
        html_say(out, "p",
                 "These runs were scored on different answers, so their numbers do not show "
                 "which model is better.");
        if (!report->same_data)
            html_say(out, "p",
                     "To compare them, give one data set to score them all on with --data.");
        return;
    }
    const struct report_run *best = &report->runs[0];
    const bool numbers = report_is_number(best);
    fprintf(out, "<p>Of these %zu runs, <b>", report->n_all);
    html_name(out, best->label);
    fprintf(out, "</b> (%s) predicts best", best->kind->name);
    if (report->metric == METRIC_AUC)
        fputs(" by AUC", out);
    else if (report->metric != METRIC_LOG_LOSS && !numbers)
        fprintf(out, " by %s (%.*f)", report_metric_words(report->metric),
                report_metric_digits(report->metric),
                report_metric_value(&best->model.all, report->metric));
    fputs(": ", out);
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
    if (best->entry != SIZE_MAX)
        say_ties(out, report);
}

/* What the reader must know about single runs. */
static void show_notes(FILE *out, const struct report *report)
{
    static const char *const words[] = {"training", "validation", "test"};
    const struct report_run *before = NULL;
    for (size_t r = 0; r < report->n_all; r++) {
        const struct report_run *run = &report->runs[r];
        const bool again = before != NULL && before->split == run->split &&
                           strcmp(before->data.name, run->data.name) == 0;
        if (run->split != report->plan->split && !again)
            html_say(out, "p",
                     "%s has no %s answers that can be scored; this report uses the %s answers "
                     "instead.",
                     run->data.name, words[report->plan->split], words[run->split]);
        before = run;
        if (run->is_unfinished)
            html_say(out, "p",
                     "Training of %s is not finished: this is the model after epoch %lld of at "
                     "most %lld.",
                     run->label, (long long)run->progress.epoch, (long long)run->epochs);
    }
    size_t n_refits = 0;
    for (size_t r = 0; r < report->n_all; r++)
        n_refits += report->runs[r].is_refit;
    if (n_refits > 0 && n_refits < report->n_all)
        html_say(out, "p",
                 "Runs marked as refitted have learned the validation answers too, unlike the "
                 "others.");
    if (report->n < report->n_all)
        html_say(out, "p", "The table of scores has all %zu runs; %s %zu are drawn.",
                 report->n_all, report->comparable ? "the best" : "the first", report->n);
}

static void show_run(FILE *out, const struct report_run *run)
{
    html_name(out, run->path);
    fprintf(out, ": %s%s", run->kind->name, run->is_refit ? ", refitted" : "");
    if (run->kind->made_by == NULL)
        fprintf(out, " after epoch %lld", (long long)run->progress.epoch);
}

static void show_under(FILE *out, const struct report *report)
{
    fputs("<p class=\"under\">", out);
    if (report->whole == WHOLE_FOLDS) {
        html_name(out, report->path);
        fprintf(out, ": %s", report->runs[0].kind->name);
    }
    for (size_t r = 0; r < report->n && report->whole != WHOLE_FOLDS; r++) {
        fputs(r > 0 ? "; " : "", out);
        show_run(out, &report->runs[r]);
        if (!report->same_data && r + 1 < report->n) {
            fputs(", on ", out);
            html_name(out, report->runs[r].data.name);
        }
    }
    if (report->n < report->n_all && report->whole != WHOLE_FOLDS)
        fprintf(out, "; and %zu more", report->n_all - report->n);
    fputs(", on ", out);
    html_name(out, report->runs[report->n - 1].data.name);
    fputs("</p>\n", out);
}

void report_show_lead(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    if (report->plan->title[0] != '\0')
        html_say(out, "h1 dir=\"auto\"", "%s", report->plan->title);
    else if (report->whole == WHOLE_FOLDS)
        html_say(out, "h1", "A model of what students know, cross-validated");
    else if (report->n_all > 1)
        html_say(out, "h1", "%zu models of what students know", report->n_all);
    else
        html_say(out, "h1", "A model of what students know");
    show_under(out, report);
    const bool warn = report->whole != WHOLE_FOLDS && report_distrust(report, run) != NULL;
    fprintf(out, "<div class=\"lead%s\">\n", warn ? " warn" : "");
    if (report->whole == WHOLE_FOLDS)
        report_folds_lead(out, report);
    else if (report->n_all > 1)
        lead_comparison(out, report);
    else if (run->task == TASK_TRACE)
        lead_answers(out, report);
    else
        lead_targets(out, run);
    show_notes(out, report);
    fputs("</div>\n", out);
}
