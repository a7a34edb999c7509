/* The sections about the data: students, items and attempts, and which items are hard. */
#include "base/memory.h"
#include "data/split.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void big(FILE *out, struct html_word word, const char *what)
{
    fprintf(out, "<li><b>%s</b><span>%s</span></li>", word.text, what);
}

static void big_count(FILE *out, int64_t n, const char *one, const char *many)
{
    big(out, html_whole(n), n == 1 ? one : many);
}

static void show_numbers(FILE *out, const struct report_data *data)
{
    fputs("<ul class=\"numbers\">", out);
    big_count(out, data->n_students, "student", "students");
    big_count(out, data->n_attempts, "attempt", "attempts");
    big_count(out, data->n_items, "item", "items");
    if (data->n_skills > 0)
        big_count(out, data->n_skills, "skill", "skills");
    if (data->n_groups > 0)
        big_count(out, data->n_groups, "group of items", "groups of items");
    if (data->n_targets > 0)
        big_count(out, data->n_targets, "student with a target", "students with a target");
    struct html_word share = {"–"};
    if (data->known > 0)
        snprintf(share.text, sizeof share.text, "%.1f %%",
                 100 * (double)data->correct / (double)data->known);
    big(out, share, "of the answers are right");
    fputs("</ul>\n", out);
}

static void show_splits(FILE *out, const struct report_data *data)
{
    static const char *const words[N_SPLITS] = {
        "training: the model learns from these",
        "validation: decides on settings and the best epoch",
        "test: held out to score the model"};
    static const char *const heads[] = {"split", "attempts", "students"};
    if (data->fold > 0)
        html_say(out, "p",
                 "Fold %s of %s; every other fold holds out other students or attempts of the "
                 "same data.",
                 html_whole(data->fold).text, html_whole(data->n_folds).text);
    html_table_begin(out, heads, COUNT(heads));
    for (int split = 0; split < N_SPLITS; split++) {
        if (data->attempts[split] == 0)
            continue;
        html_row(out, words[split]);
        html_count(out, data->attempts[split]);
        html_count(out, data->students[split]);
        html_row_end(out);
    }
    if (data->unused_attempts > 0) {
        html_row(out, "not used by any fold: the test split of the data set, and unknown "
                      "outcomes");
        html_count(out, data->unused_attempts);
        html_count(out, data->unused_students);
        html_row_end(out);
    }
    html_table_end(out);
}

static void show_lengths(FILE *out, const struct report_data *data)
{
    double x[REPORT_BUCKETS], y[REPORT_BUCKETS];
    size_t first = REPORT_BUCKETS, last = 0;
    for (size_t b = 0; b < REPORT_BUCKETS; b++)
        if (data->lengths[b] > 0) {
            first = size_min(first, b);
            last = b;
        }
    const size_t n = last - first + 1;
    for (size_t k = 0; k < n; k++) {
        x[k] = (double)k;
        y[k] = (double)data->lengths[first + k];
    }
    const struct plot_series bars = {.style = PLOT_BARS, .n = n, .x = x, .y = y};
    html_figure(out, "Attempts per student");
    plot_draw(out, &(struct plot){.title = "Number of students by number of attempts",
                                  .x = {.label = "attempts per student",
                                        .names = report_bucket_names + first,
                                        .n_names = n},
                                  .y = {.label = "students"},
                                  .series = &bars,
                                  .n_series = 1});
    html_caption(
        out,
        "Each bar counts students. They made from %s to %s attempts; half of them made "
        "at least %s.",
        html_whole(data->least).text, html_whole(data->most).text,
        html_whole(data->median).text);
}

/* How many answers to other items are in no picture of items. Caller frees. */
static char *unseen_words(int64_t n)
{
    return n == 0 ? memory_text("%s", "")
                  : memory_text(" Not counted: %s answer%s to items that the model was not "
                                "trained on.",
                                html_whole(n).text, n == 1 ? "" : "s");
}

static void show_shares(FILE *out, const struct report_data *data)
{
    double x[REPORT_BINS], y[REPORT_BINS];
    for (size_t b = 0; b < REPORT_BINS; b++) {
        x[b] = ((double)b + 0.5) / REPORT_BINS;
        y[b] = (double)data->shares[b];
    }
    const struct plot_series bars = {
        .style = PLOT_BARS, .colour = 2, .n = REPORT_BINS, .x = x, .y = y};
    html_figure(out, "Items by their share of right answers");
    plot_draw(out, &(struct plot){
                       .title = "Number of items by share of right answers",
                       .x = {.label = "share of right answers", .high = 1, .percent = true},
                       .y = {.label = "items"},
                       .series = &bars,
                       .n_series = 1});
    char *unseen = unseen_words(data->unseen);
    html_caption(out,
                 "Each bar counts items; hard items are on the left. An item that nearly "
                 "everyone answers right, or nearly everyone wrong, says little about any "
                 "student.%s",
                 unseen);
    memory_free(unseen);
}

void report_show_data(FILE *out, const struct report *report)
{
    html_say(out, "h2", "The data");
    for (size_t r = 0; r < (report->same_data ? 1 : report->n); r++) {
        const struct report_run *run = &report->runs[r];
        if (!report->same_data)
            html_say(out, "h3", "%s: %s", run->label, run->data.name);
        show_numbers(out, &run->data);
        if (!run->own_data)
            html_say(out, "p",
                     "This is not the data that the model was trained on%s%s; items were "
                     "matched by name.",
                     run->training != NULL ? ", which is " : "",
                     run->training != NULL ? run->training : "");
        show_splits(out, &run->data);
        if (run->data.least == run->data.most)
            html_say(out, "p", "Every student made %s attempt%s.",
                     html_whole(run->data.most).text, run->data.most == 1 ? "" : "s");
        html_figures(out);
        if (run->data.least < run->data.most)
            show_lengths(out, &run->data);
        show_shares(out, &run->data);
        html_figures_end(out);
    }
}

/* Items sorted by `order`; items with few scored answers are skipped. */
struct ranked {
    size_t item;
    double observed, order;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->order != y->order ? (x->order > y->order ? 1 : -1)
                                : (x->item > y->item) - (x->item < y->item);
}

enum { FEWEST = 5 };

/* HARDEST_FIRST, EASIEST_FIRST: by the share of right answers, shrunk towards the mean since
 * few answers would make an item the hardest or the easiest by chance. FURTHEST_FIRST: by the
 * distance from the predicted share, in standard deviations of a binomial sample. */
enum order { HARDEST_FIRST, EASIEST_FIRST, FURTHEST_FIRST };

static double order_of(const struct report_run *runs, size_t n_runs, size_t i, double observed,
                       enum order order)
{
    const double n = (double)runs->item_n[i], some = 10;
    const double share = (n * observed + some * runs->model.all.correct) / (n + some);
    if (order != FURTHEST_FIRST)
        return order == HARDEST_FIRST ? share : -share;
    double sum = 0;
    for (size_t r = 0; r < n_runs; r++) {
        const double p = runs[r].item_predicted[i];
        sum += fabs(observed - p) / sqrt(p * (1 - p) / n + 1e-12);
    }
    return -sum;
}

static size_t rank_items(const struct report_run *runs, size_t n_runs, enum order order,
                         struct ranked *ranked)
{
    size_t n = 0;
    for (size_t i = 0; i < runs->items.n; i++)
        if (runs->item_n[i] >= FEWEST) {
            const double observed = (double)runs->item_right[i] / (double)runs->item_n[i];
            ranked[n++] =
                (struct ranked){i, observed, order_of(runs, n_runs, i, observed, order)};
        }
    qsort(ranked, n, sizeof *ranked, compare);
    return n;
}

static void list_items(FILE *out, const struct report_run *runs, size_t n_runs,
                       const struct ranked *ranked, size_t n, const char *title)
{
    const char *heads[3 + REPORT_MOST_RUNS] = {"item", "answers", "observed"};
    for (size_t r = 0; r < n_runs; r++)
        heads[3 + r] = n_runs > 1 ? runs[r].label : "predicted";
    fputs(n_runs > 1 ? "<figure class=\"full\">" : "<figure>", out);
    html_say(out, "h3", "%s", title);
    html_table_begin(out, heads, 3 + n_runs);
    for (size_t k = 0; k < n; k++) {
        const size_t i = ranked[k].item;
        html_row(out, names_get(&runs->items, i));
        html_count(out, runs->item_n[i]);
        html_number(out, 3, ranked[k].observed);
        for (size_t r = 0; r < n_runs; r++)
            html_number(out, 3, runs[r].item_predicted[i]);
        html_row_end(out);
    }
    html_table_end(out);
    fputs("</figure>\n", out);
}

/* Every item: predicted against observed share of right answers. */
static void draw_items(FILE *out, const struct report_run *run, const struct ranked *ranked,
                       size_t n, size_t most, const char *title)
{
    const size_t n_shown = size_min(n, most);
    static const double ends[] = {0, 1};
    double *observed = NEW_SCRATCH(double, n_shown), *expected = NEW_SCRATCH(double, n_shown);
    for (size_t k = 0; k < n_shown; k++) {
        const struct ranked *one = &ranked[size_cut(n, k, n_shown)];
        observed[k] = one->observed;
        expected[k] = run->item_predicted[one->item];
    }
    const struct plot_series series[] = {
        {.style = PLOT_GUIDE, .n = 2, .x = ends, .y = ends},
        {.style = PLOT_POINTS, .n = n_shown, .x = expected, .y = observed}};
    plot_draw(
        out, &(struct plot){
                 .title = title,
                 .x = {.label = "predicted share of right answers", .high = 1, .percent = true},
                 .y = {.label = "observed share", .high = 1, .percent = true},
                 .series = series,
                 .n_series = COUNT(series)});
    memory_free(observed);
    memory_free(expected);
}

static void draw_all_items(FILE *out, const struct report_run *runs, size_t n_runs,
                           const struct ranked *ranked, size_t n)
{
    static const char *const title = "Items: predicted against observed";
    const size_t most = n_runs > 1 ? 300 : 800;
    if (n_runs == 1) {
        html_figure(out, title);
        draw_items(out, runs, ranked, n, most, title);
    } else {
        html_panels(out, title);
        for (size_t r = 0; r < n_runs; r++) {
            char *own = memory_text("%s (%s)", title, runs[r].label);
            html_panel(out, runs[r].label);
            draw_items(out, &runs[r], ranked, n, most, own);
            html_panel_end(out);
            memory_free(own);
        }
        html_panels_end(out);
    }
    html_caption(
        out,
        "Each dot is an item%s. A good model has its dots close to the line, where the "
        "observed share equals the predicted one. Items with few answers stray from it "
        "by chance.",
        n > most ? " (an even selection of them)" : "");
}

static void show_items(FILE *out, const struct report_run *runs, size_t n_runs, int64_t n_rows)
{
    static const char *const titles[] = {"Hardest items", "Easiest items",
                                         "Items furthest from their prediction"};
    struct ranked *ranked = NEW_SCRATCH(struct ranked, runs->items.n);
    const size_t n = rank_items(runs, n_runs, HARDEST_FIRST, ranked),
                 n_listed = size_min((n + 3) / 4,
                                     (size_t)n_rows / (n_runs > 1 ? 2 : 1) + (n_rows == 1));
    if (n == 0) {
        html_say(out, "p", "No item has at least %d answers here, so none is shown.", FEWEST);
    } else {
        char *unseen = unseen_words(runs->n_unseen);
        html_say(out, "p",
                 "%s item%s at least %d of the %s. “Observed” is the share of right "
                 "answers, “predicted” the mean of the predicted chances. In the lists of the "
                 "hardest and the easiest items, an item with few answers counts as closer to "
                 "the mean; with few answers, their order is partly chance.%s",
                 html_whole((int64_t)n).text, n == 1 ? " has" : "s have", FEWEST,
                 report_split_words(runs, 2), unseen);
        memory_free(unseen);
        html_figures(out);
        draw_all_items(out, runs, n_runs, ranked, n);
        rank_items(runs, n_runs, FURTHEST_FIRST, ranked);
        list_items(out, runs, n_runs, ranked, size_min(n_listed, 10), titles[FURTHEST_FIRST]);
        for (enum order order = HARDEST_FIRST; order <= EASIEST_FIRST; order++) {
            rank_items(runs, n_runs, order, ranked);
            list_items(out, runs, n_runs, ranked, n_listed, titles[order]);
        }
        html_figures_end(out);
    }
    memory_free(ranked);
}

void report_show_items(FILE *out, const struct report *report)
{
    bool any = false;
    for (size_t r = 0; r < report->n; r++)
        any |= report->runs[r].task == TASK_TRACE;
    if (!any)
        return;
    html_say(out, "h2", "Hard and easy items");
    if (report->comparable) {
        show_items(out, report->runs, report->n, report->plan->n_rows);
        return;
    }
    for (size_t r = 0; r < report->n; r++)
        if (report->runs[r].task == TASK_TRACE) {
            html_say(out, "h3", "%s", report->runs[r].label);
            show_items(out, &report->runs[r], 1, report->plan->n_rows);
        }
}
