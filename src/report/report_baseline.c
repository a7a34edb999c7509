/* The amber box: scores of too few answers to prove anything, and runs that do not beat a
 * prediction that needs no training. Judged by log-loss, for targets that are numbers by RMSE:
 *
 *     item mean        knows nothing about the student
 *     running mean     knows the student's answers so far, but has learned nothing from others
 *     mean target      knows nothing about the student
 *
 *     model - baseline, 95 % interval     0
 *                            |-----o----| |           better: no box
 *                                  |----o-+--|        hardly better: the lead may be chance
 *                                         |  o        no better
 *                                         | |--o--|   worse */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>

/* Which baselines a run does not beat, as bits: those that are as good as the run or better, and
 * those that are worse, though perhaps by chance. `certain`: those that are better, by more than chance
 * explains. */
enum { NEITHER = 1 << BASELINE_ITEMS | 1 << BASELINE_AVERAGE };
struct judgement {
    unsigned better, close, certain;
    double own, theirs[N_BASELINES];
};

static bool has(unsigned set, int b)
{
    return (set & 1u << b) != 0;
}

/* The baselines that a page names: the others are beaten, or nearly. */
static unsigned unbeaten(const struct judgement *judgement)
{
    return judgement->better != 0 ? judgement->better : judgement->close;
}

static const char *words_of(const struct report_run *run, unsigned baselines)
{
    return run->task != TASK_TRACE ? "predicting the mean of the training targets"
           : baselines == NEITHER  ? "either simple rule, predicting each item's mean or "
                                     "each student's running mean"
           : has(baselines, BASELINE_ITEMS)
               ? "predicting each item's mean"
               : "each student's running mean, a rule that needs no training";
}

/* The run minus a baseline; false if that is not known. */
static bool find_difference(const struct report *report, const struct report_run *run, int b,
                            struct paired_difference *difference)
{
    if (run->entry == SIZE_MAX || report->pairs.baseline[b] == SIZE_MAX)
        return false;
    *difference =
        report_difference(report, run->entry, report->pairs.baseline[b], METRIC_LOG_LOSS);
    return isfinite(difference->low);
}

static struct judgement judge(const struct report *report, const struct report_run *run)
{
    const bool rmse = report_is_number(run);
    struct judgement judgement = {.own = rmse ? run->model.all.rmse : run->model.all.log_loss,
                                  .theirs = {NAN, NAN}};
    if (run->has_item_mean)
        judgement.theirs[BASELINE_ITEMS] =
            rmse ? run->item_mean.all.rmse : run->item_mean.all.log_loss;
    if (run->running_mean.n > 0)
        judgement.theirs[BASELINE_AVERAGE] = run->running_mean.log_loss;
    for (int b = 0; b < N_BASELINES; b++) {
        struct paired_difference difference;
        const bool known = find_difference(report, run, b, &difference);
        if (judgement.own >= judgement.theirs[b])
            judgement.better |= 1u << b;
        else if (isfinite(judgement.theirs[b]) && known && difference.better == 0)
            judgement.close |= 1u << b;
        if (known && difference.better > 0)
            judgement.certain |= 1u << b;
    }
    return judgement;
}

/* How a run compares with all baselines that a page names. */
static const char *compared(const struct judgement *judgement)
{
    return judgement->better == 0                    ? "hardly better"
           : judgement->better == judgement->certain ? "worse"
                                                     : "no better";
}

/* The differences of a run from the baselines that it does not beat, with their intervals. */
static void show_differences(FILE *out, const struct report *report,
                             const struct report_run *run, unsigned baselines)
{
    static const char *const words[] = {"the item mean", "the running mean"};
    size_t n = 0;
    for (int b = 0; b < N_BASELINES; b++) {
        struct paired_difference difference;
        if (!has(baselines, b) || !find_difference(report, run, b, &difference))
            continue;
        fprintf(
            out,
            "%s log-loss is %s %s than that of %s; the 95\u00a0%% interval, %s to %s, %s 0.",
            n++ == 0 ? "<p>Its" : " Its", html_short(fabs(difference.value)).text,
            difference.value < 0 ? "lower (better)" : "higher (worse)",
            run->task == TASK_TRACE ? words[b] : "that mean", html_short(difference.low).text,
            html_short(difference.high).text, difference.better == 0 ? "includes" : "excludes");
    }
    fputs(n > 0 ? "</p>\n" : "", out);
}

static void warn_of_one(FILE *out, const struct report *report, const struct report_run *run,
                        const char *name, const struct judgement *judgement)
{
    const unsigned which = unbeaten(judgement);
    const char *score = report_is_number(run) ? "RMSE" : "log-loss";
    char *theirs =
        which == NEITHER
            ? memory_text("the item mean has %s, and the running mean %s",
                          html_short(judgement->theirs[BASELINE_ITEMS]).text,
                          html_short(judgement->theirs[BASELINE_AVERAGE]).text)
            : memory_text(
                  "that of the baseline is %s",
                  html_short(judgement->theirs[has(which, BASELINE_ITEMS) ? BASELINE_ITEMS
                                                                          : BASELINE_AVERAGE])
                      .text);
    html_say(out, "p", "%s is %s than %s: its %s is %s; %s%s.", name, compared(judgement),
             words_of(run, which), score, html_short(judgement->own).text, theirs,
             judgement->better != 0 ? "" : ", a difference that may be chance");
    show_differences(out, report, run, which);
    memory_free(theirs);
}

const char *report_longer(const struct report *report)
{
    bool longer = false;
    for (size_t r = 0; r < report->n_all; r++) {
        const struct report_run *run = &report->runs[r];
        longer |= run->kind->made_by == NULL && !run->is_refit && run->epochs > 0 &&
                  run->progress.epoch >= run->epochs;
    }
    return longer ? ", train longer" : "";
}

/* Of several runs, those with one judgement in one sentence. */
static void warn_of_some(FILE *out, const struct report *report,
                         const struct judgement *judgements, unsigned which, bool is_close)
{
    size_t n = 0, last = 0;
    for (size_t r = 0; r < report->n_all; r++)
        if (unbeaten(&judgements[r]) == which && (judgements[r].better == 0) == is_close) {
            n++;
            last = r;
        }
    if (n == 1) {
        char *name = memory_text("The run %s", report->runs[last].label);
        warn_of_one(out, report, &report->runs[last], name, &judgements[last]);
        memory_free(name);
    }
    if (n <= 1)
        return;
    bool any = false;
    fputs("<p>The runs ", out);
    for (size_t r = 0; r <= last; r++) {
        if (unbeaten(&judgements[r]) != which || (judgements[r].better == 0) != is_close)
            continue;
        fputs(!any ? "" : r == last ? " and " : ", ", out);
        html_text(out, report->runs[r].label);
        any = true;
    }
    fprintf(out, " are %s better than ", is_close ? "hardly" : "no");
    html_text(out, words_of(&report->runs[last], which));
    fprintf(out, "%s.</p>\n", is_close ? ": their lead may be chance" : "");
}

bool report_proves_nothing(const struct report_run *run)
{
    return run->model.all.n < REPORT_FEWEST_SCORED ||
           run->model.all.n_students < REPORT_FEWEST_STUDENTS;
}

const char *report_distrust(const struct report *report, const struct report_run *run)
{
    const struct judgement judgement = judge(report, run);
    return report_proves_nothing(run) ? "the model was tested on too few answers"
           : judgement.better != 0    ? "the model does not predict better than simple rules"
           : judgement.close != 0     ? "the model's lead over simple rules may be chance"
                                      : NULL;
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
        any |= unbeaten(&judgements[r]) != 0;
    }
    const bool few = report_proves_nothing(&report->runs[0]);
    if (few) {
        fputs("<div class=\"lead warn\">\n", out);
        warn_of_few(out, &report->runs[0]);
        fputs("</div>\n", out);
    } else if (any) {
        fputs("<div class=\"lead warn\">\n", out);
        for (unsigned which = 1; which <= NEITHER && report->n_all > 1; which++) {
            warn_of_some(out, report, judgements, which, false);
            warn_of_some(out, report, judgements, which, true);
        }
        if (report->n_all == 1)
            warn_of_one(out, report, &report->runs[0], "This model", &judgements[0]);
        html_say(out, "p", "%s Check the data and the settings%s, or try another model.",
                 report->runs[0].task == TASK_TRACE
                     ? "A useful model beats both the item mean and the running mean."
                     : "A useful model beats the mean of the training targets.",
                 report_longer(report));
        fputs("</div>\n", out);
    }
    memory_free(judgements);
}

void report_warn_teacher(FILE *out, const struct report *report)
{
    const struct report_run *run = &report->runs[0];
    const struct judgement judgement = judge(report, run);
    const bool few = report_proves_nothing(run);
    if (unbeaten(&judgement) == 0 && !few)
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
        html_say(out, "p", "Do not rely on this page. Its model predicts answers %s than %s%s.",
                 compared(&judgement), words_of(run, unbeaten(&judgement)),
                 judgement.better != 0 ? "" : ", and the difference may be chance");
    html_say(out, "p",
             "What it says on mastery and practice may be wrong: trust your own impression of "
             "the student more, and ask for a page from a better model.");
    fputs("</div>\n", out);
}
