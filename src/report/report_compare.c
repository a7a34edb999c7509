/* Which differences between runs are more than chance: of scores on the same bootstrap samples of students
 * (runs/paired.c), as in `cohort evaluate A B C`. All are compared with the best run, or with what
 * `cohort auto` chose. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>

/* A run or a baseline of the comparison. */
struct side {
    const char *name;
    size_t entry;
    bool is_baseline;
};

/* The score of a side; larger is better. */
static double goodness(const struct report *report, const struct side *side)
{
    const double value =
        report_metric_value(&report->pairs.paired.entries[side->entry].score, report->metric);
    return metrics_up(report->metric) ? value : -value;
}

const struct report_run *report_reference(const struct report *report)
{
    for (size_t r = 0; r < report->n_all; r++)
        if (report->runs[r].is_choice)
            return &report->runs[r];
    return &report->runs[0];
}

/* The reference, then the other runs and the baselines, best first. */
static struct side *sides_of(const struct report *report, size_t *n)
{
    const struct report_run *first = &report->runs[0];
    const char *const names[N_BASELINES] = {
        first->task == TASK_TRACE ? "item mean" : "mean of the training targets",
        "running mean"};
    struct side *sides = NEW(struct side, report->n_all + N_BASELINES);
    const struct report_run *reference = report_reference(report);
    *n = 0;
    sides[(*n)++] = (struct side){reference->label, reference->entry, false};
    for (size_t r = 0; r < report->n_all; r++)
        if (&report->runs[r] != reference)
            sides[(*n)++] = (struct side){report->runs[r].label, report->runs[r].entry, false};
    for (int b = 0; b < N_BASELINES; b++)
        if (report->pairs.baseline[b] != SIZE_MAX) {
            const struct side side = {names[b], report->pairs.baseline[b], true};
            size_t place = (*n)++;
            for (; place > 1 && goodness(report, &side) > goodness(report, &sides[place - 1]);
                 place--)
                sides[place] = sides[place - 1];
            sides[place] = side;
        }
    return sides;
}

struct paired_difference report_difference(const struct report *report, size_t a, size_t b,
                                           enum metric metric)
{
    struct paired_difference d = paired_difference(&report->pairs.paired, a, b, metric);
    if (report->runs[0].model.all.n_students < REPORT_FEWEST_STUDENTS) {
        d.low = d.high = NAN;
        d.better = 0;
    }
    return d;
}

static struct paired_difference difference(const struct report *report, const struct side *a,
                                           const struct side *b, int metric)
{
    return report_difference(report, a->entry, b->entry, (enum metric)metric);
}

/* The metric of the page, then log-loss and AUC. */
static size_t metrics_of(const struct report *report, int metrics[3])
{
    static const int others[] = {METRIC_LOG_LOSS, METRIC_AUC};
    size_t n = 0;
    metrics[n++] = report->metric;
    for (size_t k = 0; k < COUNT(others); k++)
        if (others[k] != report->metric)
            metrics[n++] = others[k];
    return n;
}

static void signed_number(FILE *out, int digits, double value)
{
    fprintf(out, "%s%.*f", value < 0 ? "−" : "+", digits, fabs(value));
}

static void difference_cell(FILE *out, const struct paired_difference *d, int digits)
{
    if (!isfinite(d->value)) {
        fputs("<td></td>", out);
        return;
    }
    fputs("<td>", out);
    signed_number(out, digits, d->value);
    if (isfinite(d->low)) {
        fputs("<small>", out);
        signed_number(out, digits, d->low);
        fputs(" to ", out);
        signed_number(out, digits, d->high);
        fputs("</small>", out);
    }
    fputs("</td>", out);
}

static const char *verdict(const struct paired_difference *d)
{
    return d->better < 0 ? "better" : d->better > 0 ? "worse" : "may be chance";
}

static void show_table(FILE *out, const struct report *report, const struct side *sides,
                       size_t n)
{
    int metrics[3];
    const size_t n_metrics = metrics_of(report, metrics);
    const char *heads[5] = {""};
    for (size_t m = 0; m < n_metrics; m++)
        heads[1 + m] = report_metric_words(metrics[m]);
    char *last = memory_text("by %s", report_metric_words(report->metric));
    heads[1 + n_metrics] = last;
    html_table_begin(out, heads, 2 + n_metrics);
    for (size_t k = 1; k < n; k++) {
        html_row(out, sides[k].name);
        for (size_t m = 0; m < n_metrics; m++) {
            const struct paired_difference d =
                difference(report, &sides[k], &sides[0], metrics[m]);
            difference_cell(out, &d, metrics[m] == METRIC_AUC ? 4 : 5);
        }
        const struct paired_difference d =
            difference(report, &sides[k], &sides[0], report->metric);
        fprintf(out, "<td>%s</td>", verdict(&d));
        html_row_end(out);
    }
    html_table_end(out);
    memory_free(last);
}

enum { MOST_ROWS = 24 };

/* The scores with their intervals. */
static void draw_scores(FILE *out, const struct report *report, const struct side *sides,
                        size_t n)
{
    const char *names[MOST_ROWS];
    double place[MOST_ROWS], score[MOST_ROWS], low[MOST_ROWS], high[MOST_ROWS];
    for (size_t k = 0; k < n; k++) {
        const struct paired_entry *entry = &report->pairs.paired.entries[sides[k].entry];
        names[k] = sides[k].name;
        place[k] = (double)k;
        score[k] = report_metric_value(&entry->score, report->metric);
        low[k] = report_metric_value(&entry->low, report->metric);
        high[k] = report_metric_value(&entry->high, report->metric);
    }
    const struct plot_series points = {
        .style = PLOT_POINTS, .n = n, .x = score, .y = place, .low = low, .high = high};
    const char *word = report_metric_words(report->metric);
    char *title = memory_text("%s of each run, with 95 %% intervals", word);
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = word},
                                  .y = {.names = names, .n_names = n},
                                  .series = &points,
                                  .n_series = 1});
    html_caption(out,
                 "Further %s is better. Bars are 95 %% intervals over the choice of students. "
                 "The axis does not begin at 0.",
                 metrics_up(report->metric) ? "right" : "left");
    memory_free(title);
}

static void draw_differences(FILE *out, const struct report *report, const struct side *sides,
                             size_t n)
{
    const char *names[MOST_ROWS];
    double place[MOST_ROWS], value[MOST_ROWS], low[MOST_ROWS], high[MOST_ROWS];
    for (size_t k = 0; k < n; k++) {
        const struct paired_difference d =
            difference(report, &sides[k], &sides[0], report->metric);
        names[k] = sides[k].name;
        place[k] = (double)k;
        value[k] = d.value;
        low[k] = k > 0 ? d.low : NAN;
        high[k] = k > 0 ? d.high : NAN;
    }
    const struct plot_series points = {.style = PLOT_POINTS,
                                       .colour = 1,
                                       .n = n,
                                       .x = value,
                                       .y = place,
                                       .low = low,
                                       .high = high};
    char *title = memory_text("Difference from %s, with 95 %% intervals", sides[0].name);
    char *label = memory_text("difference in %s", report_metric_words(report->metric));
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = label},
                                  .y = {.names = names, .n_names = n},
                                  .series = &points,
                                  .n_series = 1,
                                  .mark = 0,
                                  .mark_name = "equally good"});
    html_caption(out,
                 "Runs whose bar touches the line at 0 may be as good as %s. All "
                 "are compared on the same students, so these bars are shorter than those of "
                 "the scores.",
                 sides[0].name);
    memory_free(label);
    memory_free(title);
}

/* How many after sides[k] are worse (-1) or better (1) for certain, or neither (0). */
static size_t count(const struct report *report, const struct side *sides, size_t n, size_t k,
                    int better)
{
    size_t n_such = 0;
    for (size_t other = k + 1; other < n; other++)
        n_such += difference(report, &sides[k], &sides[other], report->metric).better == better;
    return n_such;
}

/* "a, b and c": those that `count` counts. */
static void list(FILE *out, const struct report *report, const struct side *sides, size_t n,
                 size_t k, int better)
{
    const size_t n_all = count(report, sides, n, k, better);
    size_t n_listed = 0;
    for (size_t other = k + 1; other < n; other++) {
        if (difference(report, &sides[k], &sides[other], report->metric).better != better)
            continue;
        fputs(n_listed == 0 ? " " : n_listed + 1 == n_all ? " and " : ", ", out);
        html_text(out, sides[other].name);
        n_listed++;
    }
}

static void show_words(FILE *out, const struct report *report, const struct side *sides,
                       size_t n)
{
    const size_t n_shown = size_min(n - 1, MOST_ROWS);
    fputs("<ul>\n", out);
    for (size_t k = 0; k < n_shown; k++) {
        fputs("<li><b>", out);
        html_text(out, sides[k].name);
        fputs("</b>", out);
        const size_t n_worse = count(report, sides, n, k, -1),
                     n_better = count(report, sides, n, k, 1),
                     n_open = count(report, sides, n, k, 0);
        if (n_worse > 0) {
            fputs(" is better than", out);
            list(out, report, sides, n, k, -1);
        }
        if (n_better > 0) {
            fputs(n_worse > 0 ? "; it is worse than" : " is worse than", out);
            list(out, report, sides, n, k, 1);
        }
        if (n_open > 0) {
            fprintf(out, "%s its difference%s from", n_worse + n_better > 0 ? ";" : ":",
                    n_open == 1 ? "" : "s");
            list(out, report, sides, n, k, 0);
            fputs(" may be chance", out);
        }
        fputs(".</li>\n", out);
    }
    fputs("</ul>\n", out);
    if (n_shown + 1 < n)
        html_say(out, "p class=\"note\"",
                 "The %zu best are compared with all that are worse. Not listed: the "
                 "comparisons of %zu others with each other.",
                 n_shown, n - n_shown);
}

/* The best runs and the baselines, as many as a picture has room for. */
static size_t choose_drawn(const struct report *report, struct side *sides, size_t n)
{
    const size_t n_runs = size_min(report->n_all, MOST_ROWS - (n - report->n_all));
    size_t n_drawn = 0, runs = 0;
    for (size_t k = 0; k < n; k++)
        if (sides[k].is_baseline || runs++ < n_runs)
            sides[n_drawn++] = sides[k];
    return n_drawn;
}

void report_show_differences(FILE *out, const struct report *report)
{
    size_t n = 0;
    struct side *sides = sides_of(report, &n);
    html_say(out, "h2", "Which differences are more than chance");
    html_say(out, "p",
             "Each row is a run or a baseline minus %s, %s. A difference is "
             "more than chance if its 95 %% interval excludes 0.",
             sides[0].name,
             report_reference(report)->is_choice ? "what cohort auto chose" : "the best run");
    show_table(out, report, sides, n);
    html_say(out, "p class=\"note\"",
             "Small numbers are 95 %% intervals of the difference: all runs are scored on the "
             "same %d bootstrap samples of the students. An interval is for its pair alone: of "
             "20 pairs of equally good models, about one looks different.",
             REPORT_RESAMPLINGS);
    html_say(out, "h3", "In words, by %s", report_metric_words(report->metric));
    show_words(out, report, sides, n);
    n = choose_drawn(report, sides, n);
    html_figures(out);
    draw_scores(out, report, sides, n);
    draw_differences(out, report, sides, n);
    html_figures_end(out);
    memory_free(sides);
}
