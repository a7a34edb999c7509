/* A cross-validation: the scores of its folds, their mean and their standard deviation, for the
 * model and for the baselines. Folds hold out different answers, so they are not compared with
 * each other; in each fold, the model and its baselines have the same answers. */
#include "plot/html.h"
#include "report/report_internal.h"
#include <math.h>

enum side { MODEL, ITEM_MEAN, RUNNING_MEAN, N_SIDES };

static const struct score *score_of(const struct report_run *run, enum side side)
{
    return side == MODEL                                     ? &run->model.all
           : side == ITEM_MEAN && run->has_item_mean         ? &run->item_mean.all
           : side == RUNNING_MEAN && run->running_mean.n > 0 ? &run->running_mean
                                                             : NULL;
}

/* Mean and standard deviation over the folds that have a score. */
struct spread {
    size_t n;
    double mean, deviation;
};

static struct spread spread_of(const struct report *report, enum side side, int metric)
{
    double sum = 0, squares = 0;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double mean = n > 0 ? sum / (double)n : NAN;
        n = 0;
        for (size_t r = 0; r < report->n_all; r++) {
            const struct score *score = score_of(&report->runs[r], side);
            const double value = score != NULL ? report_metric_value(score, metric) : NAN;
            if (!isfinite(value))
                continue;
            n++;
            sum += pass == 0 ? value : 0;
            squares += pass == 0 ? 0 : (value - mean) * (value - mean);
        }
    }
    return (struct spread){n, n > 0 ? sum / (double)n : NAN,
                           n > 1 ? sqrt(squares / (double)(n - 1)) : NAN};
}

static const char *side_words(const struct report *report, enum side side)
{
    return side == RUNNING_MEAN                 ? "running mean"
           : report->runs[0].task == TASK_TRACE ? "item mean"
                                                : "mean of the training targets";
}

static size_t count_better(const struct report *report, enum side side)
{
    size_t n = 0;
    for (size_t r = 0; r < report->n_all; r++) {
        const struct score *other = score_of(&report->runs[r], side);
        const double a = report_metric_value(&report->runs[r].model.all, report->metric),
                     b = other != NULL ? report_metric_value(other, report->metric) : NAN;
        n += metrics_up(report->metric) ? a > b : a < b;
    }
    return n;
}

void report_folds_lead(FILE *out, const struct report *report)
{
    const int digits = report_metric_digits(report->metric);
    const struct spread own = spread_of(report, MODEL, report->metric);
    const char *word = report_metric_words(report->metric);
    fprintf(out,
            "<p>Over %zu fold%s, this model's mean <b>%s is %.*f ± %.*f</b> (± the standard "
            "deviation; %s is better).",
            own.n, own.n == 1 ? "" : "s", word, digits, own.mean, digits,
            isfinite(own.deviation) ? own.deviation : 0,
            metrics_up(report->metric) ? "higher" : "lower");
    for (enum side side = ITEM_MEAN; side < N_SIDES; side++) {
        const struct spread other = spread_of(report, side, report->metric);
        if (other.n == 0)
            continue;
        fprintf(out, " The %s has %.*f; the model is better in %zu of %zu folds.",
                side_words(report, side), digits, other.mean, count_better(report, side),
                other.n);
    }
    fputs("</p>\n", out);
    if ((int64_t)report->n_all < report->n_folds)
        html_say(out, "p",
                 "The cross-validation is not finished: this page shows the %zu of %lld folds "
                 "that have a model.",
                 report->n_all, (long long)report->n_folds);
}

/* The amber box: a baseline that is as good on average, or better in some fold. */
void report_folds_warn(FILE *out, const struct report *report)
{
    bool begun = false;
    for (enum side side = ITEM_MEAN; side < N_SIDES; side++) {
        const struct spread own = spread_of(report, MODEL, report->metric),
                            other = spread_of(report, side, report->metric);
        const size_t n_better = count_better(report, side);
        if (other.n == 0 || n_better == other.n)
            continue;
        const bool better =
            metrics_up(report->metric) ? own.mean > other.mean : own.mean < other.mean;
        if (!begun)
            fputs("<div class=\"lead warn\">\n", out);
        begun = true;
        html_say(out, "p",
                 "This model is %s better than the %s: its mean %s is %.*f, and that of the "
                 "baseline %.*f. It is better in %zu of %zu folds.",
                 better ? "hardly" : "no", side_words(report, side),
                 report_metric_words(report->metric), report_metric_digits(report->metric),
                 own.mean, report_metric_digits(report->metric), other.mean, n_better, other.n);
    }
    if (begun) {
        html_say(out, "p",
                 "A useful model beats its baselines in every fold. Check the data and the "
                 "settings%s, or try another model.",
                 report_longer(report));
        fputs("</div>\n", out);
    }
}

/* The metrics that folds have: targets that are numbers have only some. */
static size_t metrics_of(const struct report *report, enum metric metrics[N_METRICS])
{
    size_t n = 0;
    for (size_t k = 0; k < N_METRICS; k++)
        if (spread_of(report, MODEL, report_metric_shown[k]).n > 0)
            metrics[n++] = report_metric_shown[k];
    return n;
}

static void fold_row(FILE *out, const struct report *report, const struct report_run *run)
{
    enum metric metrics[N_METRICS];
    const size_t n = metrics_of(report, metrics);
    html_row(out, run->label);
    for (size_t k = 0; k < n; k++) {
        const bool has_interval =
            metrics[k] != METRIC_CALIBRATION_ERROR && run->model.low.n > 0;
        report_cell(out, report_metric_digits(metrics[k]),
                    report_metric_value(&run->model.all, metrics[k]),
                    has_interval ? report_metric_value(&run->model.low, metrics[k]) : NAN,
                    has_interval ? report_metric_value(&run->model.high, metrics[k]) : NAN);
    }
    html_count(out, run->model.all.n);
    html_count(out, run->model.all.n_students);
    html_row_end(out);
}

static void spread_row(FILE *out, const struct report *report, const char *name, enum side side,
                       bool deviation)
{
    enum metric metrics[N_METRICS];
    const size_t n = metrics_of(report, metrics);
    html_row(out, name);
    for (size_t k = 0; k < n; k++) {
        const struct spread spread = spread_of(report, side, metrics[k]);
        html_number(out, report_metric_digits(metrics[k]),
                    deviation ? spread.deviation : spread.mean);
    }
    fputs("<td></td><td></td>", out);
    html_row_end(out);
}

/* The folds from the top down; the baselines beside the model. */
static void draw_folds(FILE *out, const struct report *report)
{
    enum { MOST = 40 };
    const char *names[MOST];
    double place[MOST], value[N_SIDES][MOST], low[MOST], high[MOST];
    const size_t n = size_min(report->n_all, MOST);
    for (size_t r = 0; r < n; r++) {
        const struct report_run *run = &report->runs[r];
        names[r] = run->label;
        place[r] = (double)r;
        low[r] =
            run->model.low.n > 0 ? report_metric_value(&run->model.low, report->metric) : NAN;
        high[r] =
            run->model.low.n > 0 ? report_metric_value(&run->model.high, report->metric) : NAN;
        for (enum side side = MODEL; side < N_SIDES; side++) {
            const struct score *score = score_of(run, side);
            value[side][r] = score != NULL ? report_metric_value(score, report->metric) : NAN;
        }
    }
    struct plot_series series[N_SIDES];
    size_t n_series = 0;
    for (enum side side = MODEL; side < N_SIDES; side++)
        if (score_of(&report->runs[0], side) != NULL)
            series[n_series++] = (struct plot_series){
                .name = side == MODEL ? "the model" : side_words(report, side),
                .style = PLOT_POINTS,
                .colour = side,
                .n = n,
                .x = value[side],
                .y = place,
                .low = side == MODEL ? low : NULL,
                .high = high};
    char title[80];
    snprintf(title, sizeof title, "%s of each fold", report_metric_words(report->metric));
    html_figures(out);
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = report_metric_words(report->metric)},
                                  .y = {.names = names, .n_names = n},
                                  .series = series,
                                  .n_series = n_series,
                                  .mark = spread_of(report, MODEL, report->metric).mean,
                                  .mark_name = "mean of the model"});
    html_caption(out,
                 "Further %s is better. A good model is better than the baselines in every "
                 "fold. Bars are 95 %% intervals over the choice of students. The axis does "
                 "not begin at 0.",
                 metrics_up(report->metric) ? "right" : "left");
    html_figures_end(out);
}

void report_folds_show(FILE *out, const struct report *report)
{
    const bool numbers = report_is_number(&report->runs[0]);
    html_say(out, "h2", "Scores: how well the model predicts in each fold");
    const char *heads[N_METRICS + 3] = {""};
    enum metric metrics[N_METRICS];
    const size_t n = metrics_of(report, metrics);
    for (size_t k = 0; k < n; k++)
        heads[1 + k] = report_metric_words(metrics[k]);
    heads[1 + n] = report->runs[0].task == TASK_TRACE ? "answers" : "targets";
    heads[2 + n] = "students";
    html_table_begin(out, heads, n + 3);
    for (size_t r = 0; r < report->n_all; r++)
        fold_row(out, report, &report->runs[r]);
    spread_row(out, report, "mean over folds", MODEL, false);
    spread_row(out, report, "standard deviation", MODEL, true);
    for (enum side side = ITEM_MEAN; side < N_SIDES; side++)
        if (spread_of(report, side, report->metric).n > 0)
            spread_row(out, report, side_words(report, side), side, false);
    html_table_end(out);
    fputs("<p class=\"note\">", out);
    html_text(out,
              "Each fold holds out different students. Rows of baselines are means over the "
              "folds. ");
    html_text(out, numbers ? "" : "Small numbers are 95 % intervals. ");
    fputs("<code>cohort report ", out);
    html_text(out, report->path);
    fputs("/fold-1</code> writes the page of one fold.</p>\n", out);
    draw_folds(out, report);
    report_show_meanings(out, report->runs[0].task == TASK_TRACE, !numbers, numbers);
}
