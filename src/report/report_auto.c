/* The head of the page of `cohort auto`: what it chose, what to use, and how the other models
 * compare with that on the scored answers. The choice is made by the validation answers, so on
 * the test answers another model may score better. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>
#include <string.h>

/* "ktm (63 %), dkt (28 %) and average (9 %)"; members have numbers before their names. */
static void list_members(FILE *out, const struct report_members *members)
{
    for (size_t m = 0; m < members->n; m++) {
        const char *name = names_get(&members->names, m);
        fputs(m == 0 ? "" : m + 1 == members->n ? " and " : ", ", out);
        html_text(out, name + strspn(name, "0123456789 "));
        fprintf(out, " (%.0f\u00a0%%)", 100 * members->weight[m]);
    }
}

static void say_choice(FILE *out, const struct report *report, const struct report_run *choice)
{
    const bool is_blend = choice->kind->made_by != NULL;
    fprintf(out, "<p>cohort auto chose <b>%s", is_blend ? "a blend" : choice->kind->name);
    if (is_blend && choice->members.n > 0) {
        fputs(" of ", out);
        list_members(out, &choice->members);
    }
    fputs("</b>, by the validation answers", out);
    fputs(is_blend             ? ". "
          : report->n_all == 1 ? ": it is the only model. "
                               : ": no other model has weight in a blend. ",
          out);
    fputs("Use <code>", out);
    html_text(out, report->path);
    fputs("/best</code>.</p>\n", out);
}

static void say_scores(FILE *out, const struct report_run *choice)
{
    const struct score *score = &choice->model.all, *mean = &choice->item_mean.all;
    fprintf(out, "<p>On the %s %s from %s student%s, its log-loss is %.5f and its AUC %.4f",
            html_whole(score->n).text, report_split_words(choice, score->n),
            html_whole(score->n_students).text, score->n_students == 1 ? "" : "s",
            score->log_loss, score->auc);
    if (choice->has_item_mean)
        fprintf(out,
                "; the item mean, which knows nothing about the student, has %.5f and %.4f",
                mean->log_loss, mean->auc);
    fprintf(out, ".%s</p>\n",
            choice->split == VALID
                ? " The choice was made by the same answers, so its score is "
                  "a little too good."
                : "");
}

/* The other models that compare so with the choice (paired_difference.better); how many. */
static size_t list_others(FILE *out, const struct report *report,
                          const struct report_run *choice, int better)
{
    size_t n = 0, n_listed = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t r = 0; r < report->n_all; r++) {
            const struct report_run *run = &report->runs[r];
            if (run == choice || run->entry == SIZE_MAX ||
                report_difference(report, run->entry, choice->entry,
                                  (enum metric)report->metric)
                        .better != better)
                continue;
            if (pass == 0) {
                n++;
                continue;
            }
            fputs(n_listed == 0 ? "" : n_listed + 1 == n ? " and " : ", ", out);
            html_name(out, run->label);
            n_listed++;
        }
    return n;
}

static void say_others(FILE *out, const struct report *report, const struct report_run *choice)
{
    fputs("<p>", out);
    const size_t n_better = list_others(out, report, choice, -1);
    if (n_better > 0)
        fprintf(out, " predict%s these answers better, by more than chance explains. ",
                n_better == 1 ? "s" : "");
    const size_t n_equal = list_others(out, report, choice, 0);
    if (n_equal > 0)
        fprintf(out, " do%s as well on these answers: the difference%s may be chance.",
                n_equal == 1 ? "es" : "", n_equal == 1 ? "" : "s");
    else if (n_better == 0)
        fputs("It is better than every other model, by more than chance explains.", out);
    fputs("</p>\n", out);
}

/* The models of a kind after the first, which are called KIND-2, ... (sweep/auto_blend.c). */
static void say_seconds(FILE *out, const struct report *report)
{
    for (size_t r = 0; r < report->n_all; r++) {
        const struct report_run *run = &report->runs[r];
        char *second = memory_text("%s-2", run->kind->name);
        if (strcmp(run->label, second) == 0)
            html_say(out, "p", "%s: the second-best setting of %s, by validation.", second,
                     run->kind->name);
        memory_free(second);
    }
}

void report_auto_lead(FILE *out, const struct report *report)
{
    const struct report_run *choice = report_reference(report);
    if (report->plan->title[0] != '\0')
        html_say(out, "h1 dir=\"auto\"", "%s", report->plan->title);
    else
        html_say(out, "h1", "What cohort auto chose, and its models");
    fputs("<p class=\"under\">", out);
    html_name(out, report->path);
    fputs(", on ", out);
    html_name(out, choice->data.name);
    fprintf(out, "</p>\n<div class=\"lead%s\">\n",
            report_proves_nothing(choice) ? " warn" : "");
    say_choice(out, report, choice);
    say_scores(out, choice);
    if (report->n_all > 1 && choice->entry != SIZE_MAX)
        say_others(out, report, choice);
    say_seconds(out, report);
    if (report->n < report->n_all)
        html_say(out, "p", "The table of scores has all %zu models; the best %zu are drawn.",
                 report->n_all, report->n);
    fputs("</div>\n", out);
}
