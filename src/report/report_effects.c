/* Caterpillar plots: values from the smallest to the largest, each with its 95 % interval
 *
 *     value +- 1.96 standard error
 *
 * Few rows are named, one line each, the largest at the top. Of many, an even selection is drawn
 * without names, and the caption names the ends. The dashed line is zero. */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include "report/report_titles.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 40, MOST_POINTS = 400, N_ENDS = 3 };

struct effect {
    double value, error; /* error is NaN: not known */
    size_t row;
};

/* What is drawn; sorted. */
struct effects {
    const char *title, *label; /* label: of the values */
    const char *rows;          /* what the rows are: "items" */
    const struct names *names; /* of rows, or NULL */
    struct effect *list;
    size_t n, n_errors, n_apart; /* n_apart: intervals without zero */
};

static int compare(const void *a, const void *b)
{
    const struct effect *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value ? 1 : -1)
                                : (x->row > y->row) - (x->row < y->row);
}

static void add(struct effects *effects, double value, double error, size_t row)
{
    effects->list[effects->n++] = (struct effect){value, error, row};
    effects->n_errors += isfinite(error);
    effects->n_apart += isfinite(error) && fabs(value) > 1.96 * error;
}

/* "name (value), ..." of the ends: the largest, or the smallest. Caller frees. */
static char *name_ends(const struct effects *effects, bool largest)
{
    char *text = memory_text("%s", "");
    for (size_t k = 0; k < size_min(N_ENDS, effects->n); k++) {
        const struct effect *one = &effects->list[largest ? effects->n - 1 - k : k];
        char *longer =
            memory_text("%s%s%s (%s)", text, k > 0 ? ", " : "",
                        names_get(effects->names, one->row), html_short(one->value).text);
        memory_free(text);
        text = longer;
    }
    return text;
}

static void caption(FILE *out, const struct effects *effects, bool named)
{
    char *intervals =
        effects->n_errors > 0
            ? memory_text(
                  " Bars are 95 %% intervals; where two overlap widely, the data do not "
                  "show which value is larger. Intervals that do not contain zero: %s "
                  "of %s.",
                  html_whole((int64_t)effects->n_apart).text,
                  html_whole((int64_t)effects->n_errors).text)
            : memory_text("%s", "");
    char *ends = memory_text("%s", "");
    if (!named && effects->names != NULL) {
        char *most = name_ends(effects, true), *least = name_ends(effects, false);
        memory_free(ends);
        ends = memory_text(" Largest: %s. Smallest: %s.", most, least);
        memory_free(most);
        memory_free(least);
    }
    html_caption(out, "Each dot is one of the %s, sorted by value.%s%s%s", effects->rows,
                 intervals, ends,
                 effects->n > MOST_POINTS ? " Only an even selection is drawn." : "");
    memory_free(intervals);
    memory_free(ends);
}

/* Sorts and draws; nothing if there is only one. */
static void draw(FILE *out, struct effects *effects)
{
    qsort(effects->list, effects->n, sizeof *effects->list, compare);
    const bool named = effects->names != NULL && effects->n <= MOST_NAMED;
    const size_t n = size_min(effects->n, MOST_POINTS);
    const char **names = NEW(const char *, n);
    double *numbers = NEW_SCRATCH(double, 4 * n), *place = numbers, *value = place + n,
           *low = value + n, *high = low + n, least = INFINITY, most = -INFINITY;
    for (size_t k = 0; k < n; k++) {
        const size_t at = size_cut(effects->n, named ? n - 1 - k : k, n);
        const struct effect *one = &effects->list[at];
        names[k] = named ? names_get(effects->names, one->row) : NULL;
        place[k] = named ? (double)k : (double)(at + 1);
        value[k] = one->value;
        low[k] = one->value - 1.96 * one->error;
        high[k] = one->value + 1.96 * one->error;
        least = fmin(least, fmin(value[k], low[k]));
        most = fmax(most, fmax(value[k], high[k]));
    }
    const double zero[] = {0, 0},
                 ends[] = {named ? -0.5 : 1, named ? (double)n - 0.5 : (double)effects->n};
    const bool has_zero = least < 0 && most > 0;
    const struct plot_series series[] = {{.style = PLOT_POINTS,
                                          .n = n,
                                          .x = named ? value : place,
                                          .y = named ? place : value,
                                          .low = effects->n_errors > 0 ? low : NULL,
                                          .high = high},
                                         {.style = PLOT_GUIDE,
                                          .n = has_zero ? 2 : 0,
                                          .x = named ? zero : ends,
                                          .y = named ? ends : zero}};
    char *label = memory_text("%s, from smallest to largest", effects->rows);
    if (effects->n > 1) {
        html_figure(out, effects->title);
        plot_draw(out, &(struct plot){.title = effects->title,
                                      .x = {.label = named ? effects->label : label,
                                            .low = named ? 0 : 1,
                                            .high = named ? 0 : (double)effects->n,
                                            .whole = !named},
                                      .y = {.label = effects->label,
                                            .names = named ? names : NULL,
                                            .n_names = named ? n : 0},
                                      .series = series,
                                      .n_series = COUNT(series)});
        caption(out, effects, named);
    }
    memory_free(label);
    memory_free(names);
    memory_free(numbers);
}

void report_effects_draw(FILE *out, const char *kind, const struct table *table, size_t column,
                         size_t errors)
{
    const char *label = report_title_of_values(kind, table, column);
    char *words = report_title_of_column(kind, table, column),
         *title = memory_text("%s%s", words, errors != SIZE_MAX ? " (95 % intervals)" : ""),
         *rows = memory_text("%ss", table->row);
    struct effects effects = {.title = title,
                              .label = label,
                              .rows = rows,
                              .names = &table->row_names,
                              .list = NEW_SCRATCH(struct effect, table->n_rows)};
    for (size_t r = 0; r < table->n_rows; r++) {
        const double *row = table_row(table, r);
        const double error = errors != SIZE_MAX ? row[errors] : NAN;
        /* An exact zero without a standard error is no estimate: an ability that the item
         * does not need. */
        if (isfinite(row[column]) &&
            (errors == SIZE_MAX || row[column] != 0 || isfinite(error)))
            add(&effects, row[column], error, r);
    }
    draw(out, &effects);
    memory_free(effects.list);
    memory_free(words);
    memory_free(title);
    memory_free(rows);
}

void report_effects_counts(FILE *out, const struct table *table)
{
    static const struct {
        const char *column, *name;
    } lines[] = {{"right", "right answers"}, {"wrong", "wrong answers"}};
    const size_t n = table->n_rows;
    double *x = NEW_SCRATCH(double, n), *y = NEW_SCRATCH(double, COUNT(lines) * n);
    struct plot_series series[COUNT(lines)];
    size_t n_series = 0;
    for (size_t k = 0; k < COUNT(lines); k++) {
        const size_t column = table_column(table, lines[k].column);
        if (column == SIZE_MAX)
            continue;
        for (size_t r = 0; r < n; r++) {
            x[r] = strtod(names_get(&table->row_names, r), NULL);
            y[k * n + r] = table_row(table, r)[column];
        }
        series[n_series++] = (struct plot_series){.name = lines[k].name,
                                                  .style = PLOT_LINE,
                                                  .colour = k,
                                                  .n = n,
                                                  .x = x,
                                                  .y = y + k * n};
    }
    if (n_series > 0) {
        html_figure(out, "What earlier answers add");
        plot_draw(out, &(struct plot){.title = "What earlier answers add",
                                      .x = {.label = "answers in a row", .whole = true},
                                      .y = {.label = "change of the log-odds"},
                                      .series = series,
                                      .n_series = n_series});
        html_caption(out,
                     "How right and wrong answers in a row change the log-odds of the next "
                     "answer: the sum of all features that count them, without interactions. "
                     "Where the line of wrong answers rises too, students learn from mistakes; "
                     "where it falls, wrong answers mark students who find the items hard.");
    }
    memory_free(x);
    memory_free(y);
}

void report_effects_students(FILE *out, const struct report_scale *scale)
{
    char *title = scale->name != NULL
                      ? memory_text("Students from low to high ability: %s", scale->name)
                      : memory_text("Students from low to high ability");
    struct effects effects = {.title = title,
                              .label = "ability",
                              .rows = "students",
                              .list = NEW_SCRATCH(struct effect, scale->n_students)};
    for (size_t s = 0; s < scale->n_students; s++)
        add(&effects, scale->theta[s], scale->error[s], s);
    draw(out, &effects);
    memory_free(effects.list);
    memory_free(title);
}
