/* The amber box: scores of too few answers to prove anything, and runs that do not beat a
 * prediction that needs no training. Judged by log-loss,
 * for targets that are numbers by RMSE:
 *
 *     item mean        knows nothing about the student
 *     running mean     knows the student's answers so far, but has learned nothing from others
 *     mean target      knows nothing about the student
 *
 *     model - baseline, 95 % interval     0
 *                            |-----o----| |           better: no box
 *                                  |----o-+--|        hardly better: the lead may be chance
 *                                         |  o        no better */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>

enum { N_JUDGED = N_BASELINES };

static const char *words_of(const struct report_run *run, int b)
{
    return run->task != TASK_TRACE ? "predicting the mean of the training targets"
           : b == BASELINE_ITEMS   ? "predicting each item's mean"
                                 : "each student's running mean, a rule that needs no training";
}

/* The number of a baseline that the run does not beat, or does not beat for certain; -1: none.
 * Those that it does not beat at all come first. */
static int unbeaten(const struct report *report, const struct report_run *run,
                    double values[N_JUDGED], double own, bool *is_chance)
{
    for (int b = 0; b < N_JUDGED; b++)
        if (own >= values[b]) {
            *is_chance = false;
            return b;
        }
    *is_chance = true;
    for (int b = 0; b < N_JUDGED && run->entry != SIZE_MAX; b++)
        if (isfinite(values[b]) && report->pairs.baseline[b] != SIZE_MAX &&
            report_difference(report, run->entry, report->pairs.baseline[b], METRIC_LOG_LOSS)
                    .better == 0)
            return b;
    return -1;
}

/* What a run does not beat. */
struct judgement {
    int baseline; /* -1: it beats all */
    bool is_chance;
    double own, theirs;
};

static struct judgement judge(const struct report *report, const struct report_run *run)
{
    const bool rmse = report_is_number(run);
    double values[N_JUDGED] = {NAN, NAN};
    struct judgement judgement = {.own = rmse ? run->model.all.rmse : run->model.all.log_loss};
    if (run->has_item_mean)
        values[BASELINE_ITEMS] = rmse ? run->item_mean.all.rmse : run->item_mean.all.log_loss;
    if (run->running_mean.n > 0)
        values[BASELINE_AVERAGE] = run->running_mean.log_loss;
    judgement.baseline = unbeaten(report, run, values, judgement.own, &judgement.is_chance);
    if (judgement.baseline >= 0)
        judgement.theirs = values[judgement.baseline];
    return judgement;
}

static void warn_of_one(FILE *out, const struct report_run *run, const char *name,
                        const struct judgement *judgement)
{
    html_say(out, "p", "%s is %s better than %s: its %s is %s, and that of the baseline %s%s.",
             name, judgement->is_chance ? "hardly" : "no", words_of(run, judgement->baseline),
             report_is_number(run) ? "RMSE" : "log-loss", html_short(judgement->own).text,
             html_short(judgement->theirs).text,
             judgement->is_chance ? ", a difference that may be chance" : "");
}

/* Of several runs, those with one judgement in one sentence. */
static void warn_of_some(FILE *out, const struct report *report,
                         const struct judgement *judgements, int baseline, bool is_chance)
{
    size_t n = 0, last = 0;
    for (size_t r = 0; r < report->n_all; r++)
        if (judgements[r].baseline == baseline && judgements[r].is_chance == is_chance) {
            n++;
            last = r;
        }
    if (n == 1)
        warn_of_one(out, &report->runs[last], report->runs[last].label, &judgements[last]);
    if (n <= 1)
        return;
    bool any = false;
    fputs("<p>", out);
    for (size_t r = 0; r <= last; r++) {
        if (judgements[r].baseline != baseline || judgements[r].is_chance != is_chance)
            continue;
        fputs(!any ? "" : r == last ? " and " : ", ", out);
        html_text(out, report->runs[r].label);
        any = true;
    }
    fprintf(out, " are %s better than ", is_chance ? "hardly" : "no");
    html_text(out, words_of(&report->runs[last], baseline));
    fprintf(out, "%s.</p>\n", is_chance ? ": their lead may be chance" : "");
}

bool report_proves_nothing(const struct report_run *run)
{
    return run->model.all.n < REPORT_FEWEST_SCORED ||
           run->model.all.n_students < REPORT_FEWEST_STUDENTS;
}

static void warn_of_few(FILE *out, const struct report_run *run)
{
    char *whom =
        run->task != TASK_TRACE
            ? memory_text("%s", "")
            : memory_text(" of %s student%s", html_whole(run->model.all.n_students).text,
                          run->model.all.n_students == 1 ? "" : "s");
    html_say(out, "p",
             "%s %s%s: so few prove nothing about a model. Hold out more students or attempts "
             "(--split of “cohort import”), or score other data with --data.",
             html_whole(run->model.all.n).text, report_split_words(run, run->model.all.n),
             whom);
    memory_free(whom);
}

void report_show_warnings(FILE *out, const struct report *report)
{
    struct judgement *judgements = NEW(struct judgement, report->n_all);
    bool any = false;
    for (size_t r = 0; r < report->n_all; r++) {
        judgements[r] = judge(report, &report->runs[r]);
        any |= judgements[r].baseline >= 0;
    }
    const bool few = report_proves_nothing(&report->runs[0]);
    if (few) {
        fputs("<div class=\"lead warn\">\n", out);
        warn_of_few(out, &report->runs[0]);
        fputs("</div>\n", out);
    } else if (any) {
        fputs("<div class=\"lead warn\">\n", out);
        for (int b = 0; b < N_JUDGED && report->n_all > 1; b++) {
            warn_of_some(out, report, judgements, b, false);
            warn_of_some(out, report, judgements, b, true);
        }
        if (report->n_all == 1)
            warn_of_one(out, &report->runs[0], "This model", &judgements[0]);
        html_say(out, "p",
                 "%s Check the data and the settings, train longer, or try another model.",
                 report->runs[0].task == TASK_TRACE
                     ? "A useful model beats both the item mean and the running mean."
                     : "A useful model beats the mean of the training targets.");
        fputs("</div>\n", out);
    }
    memory_free(judgements);
}

void report_warn_teacher(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    const struct judgement judgement = judge(report, run);
    const bool few = report_proves_nothing(run);
    if (judgement.baseline < 0 && !few)
        return;
    fputs("<div class=\"lead warn\">\n", out);
    if (few)
        html_say(out, "p",
                 "Do not rely on this page. Its model was tested on %s answer%s of %s "
                 "student%s only, which proves nothing.",
                 html_whole(run->model.all.n).text, run->model.all.n == 1 ? "" : "s",
                 html_whole(run->model.all.n_students).text,
                 run->model.all.n_students == 1 ? "" : "s");
    else
        html_say(out, "p",
                 "Do not rely on this page. Its model predicts answers %s better than %s%s.",
                 judgement.is_chance ? "hardly" : "no", words_of(run, judgement.baseline),
                 judgement.is_chance ? ", and the difference may be chance" : "");
    html_say(out, "p",
             "What it says on mastery and practice may be wrong: trust your own impression of "
             "the student more, and ask for a page from a better model.");
    fputs("</div>\n", out);
}
