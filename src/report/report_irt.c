/* Item response theory in pictures, for each scale of report_scale.c (equations: information.c):
 *
 *     item characteristic curves    P(theta) of a few items
 *     item information              a^2 P (1 - P) of the same items
 *     test information              its sum over all items
 *     standard error                1 / sqrt(test information)
 *
 * then the Wright map and the abilities (report_wright.c, report_effects.c). */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/information.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_POINTS = 81, MOST_CURVES = 5, MOST_COLUMNS = 40 };

/* Chosen items; numbers on the scale. */
struct chosen {
    size_t n, item[MOST_CURVES];
    const char *role[MOST_CURVES];
    char *label[MOST_CURVES];
};

struct ranked {
    double value;
    size_t i;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value ? 1 : -1)
                                : (x->i > y->i) - (x->i < y->i);
}

static void add(struct chosen *chosen, size_t i, const char *role)
{
    for (size_t k = 0; k < chosen->n; k++)
        if (chosen->item[k] == i)
            return;
    chosen->role[chosen->n] = role;
    chosen->item[chosen->n++] = i;
}

/* The easiest, the middle and the hardest item; and the steepest and the flattest if they differ
 * in that, else the quarters between. Returns how many items do not rise with the ability. */
static size_t choose(struct chosen *chosen, const struct report_scale *scale)
{
    struct ranked *places = NEW_SCRATCH(struct ranked, scale->n_items);
    size_t n = 0, steep = 0, flat = 0;
    for (size_t i = 0; i < scale->n_items; i++) {
        places[n] = (struct ranked){information_place(scale->a[i], scale->b[i]), i};
        n += isfinite(places[n].value);
        steep = scale->a[i] > scale->a[steep] ? i : steep;
        flat = fabs(scale->a[i]) < fabs(scale->a[flat]) ? i : flat;
    }
    qsort(places, n, sizeof *places, compare);
    *chosen = (struct chosen){0};
    if (n > 0) {
        add(chosen, places[0].i, "easiest");
        add(chosen, places[n / 2].i, "middle");
        add(chosen, places[n - 1].i, "hardest");
        if (scale->a[steep] > scale->a[flat]) {
            add(chosen, steep, "steepest");
            add(chosen, flat, "flattest");
        } else {
            add(chosen, places[n / 4].i, "easier");
            add(chosen, places[3 * n / 4].i, "harder");
        }
    }
    memory_free(places);
    return scale->n_items - n;
}

static const char *item_name(const struct report_scales *scales,
                             const struct report_scale *scale, size_t i)
{
    return names_get(&scales->items, scale->item[i]);
}

/* The role and the name, if all fit into the legend; else the role. */
static void label(struct chosen *chosen, const struct report_scales *scales,
                  const struct report_scale *scale)
{
    bool fits = true;
    for (size_t k = 0; k < chosen->n; k++)
        fits &= html_columns(item_name(scales, scale, chosen->item[k])) + 10 <= MOST_COLUMNS;
    for (size_t k = 0; k < chosen->n; k++)
        chosen->label[k] = fits ? memory_text("%s: %s", chosen->role[k],
                                              item_name(scales, scale, chosen->item[k]))
                                : memory_text("%s", chosen->role[k]);
}

/* The chosen items with their numbers, in words. Caller frees. */
static char *describe(const struct chosen *chosen, const struct report_scales *scales,
                      const struct report_scale *scale)
{
    char *text = memory_text("%s", "");
    for (size_t k = 0; k < chosen->n; k++) {
        const size_t i = chosen->item[k];
        char *slope = scales->is_rasch
                          ? memory_text("%s", "")
                          : memory_text(", slope a %s", html_short(scale->a[i]).text);
        char *longer =
            memory_text("%s%s%s: %s (half right at %s%s)", text, k > 0 ? "; " : "",
                        chosen->role[k], item_name(scales, scale, i),
                        html_short(information_place(scale->a[i], scale->b[i])).text, slope);
        memory_free(text);
        memory_free(slope);
        text = longer;
    }
    return text;
}

/* The abilities at which curves are computed: where students and items are, and at least three
 * units around the mean, in which curves change. */
static void spread_points(double x[N_POINTS], const struct report_scale *scale)
{
    const double low = fmin(scale->low, scale->mean - 3),
                 high = fmax(scale->high, scale->mean + 3);
    for (size_t p = 0; p < N_POINTS; p++)
        x[p] = low + (high - low) * (double)p / (N_POINTS - 1);
}

static struct plot_axis axis_of(const double x[N_POINTS])
{
    return (struct plot_axis){.label = "ability", .low = x[0], .high = x[N_POINTS - 1]};
}

/* Curves of the chosen items: chances, or information. */
static void draw_items(FILE *out, const struct report_scale *scale, const struct chosen *chosen,
                       const char *title, bool information)
{
    double *x = NEW_SCRATCH(double, N_POINTS), *y = NEW_SCRATCH(double, chosen->n *N_POINTS);
    struct plot_series series[MOST_CURVES];
    double low = 0, most = 0;
    spread_points(x, scale);
    for (size_t k = 0; k < chosen->n; k++) {
        const double a = scale->a[chosen->item[k]], b = scale->b[chosen->item[k]];
        for (size_t p = 0; p < N_POINTS; p++)
            y[k * N_POINTS + p] =
                information ? information_item(a, b, x[p]) : information_chance(a, b, x[p]);
        for (size_t p = 0; p < N_POINTS; p++)
            most = fmax(most, y[k * N_POINTS + p]);
        series[k] = (struct plot_series){.name = chosen->label[k],
                                         .style = PLOT_LINE,
                                         .colour = k,
                                         .n = N_POINTS,
                                         .x = x,
                                         .y = y + k * N_POINTS};
    }
    plot_round(&low, &most);
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = axis_of(x),
                                  .y = {.label = information ? "information of one answer"
                                                             : "chance of a right answer",
                                        .high = information ? most : 1,
                                        .percent = !information},
                                  .series = series,
                                  .n_series = chosen->n});
    memory_free(x);
    memory_free(y);
}

/* The information of all items together, and the standard error it leaves. */
struct test {
    double x[N_POINTS], information[N_POINTS], error[N_POINTS];
    size_t best;
};

static void measure_test(struct test *test, const struct report_scale *scale)
{
    test->best = 0;
    spread_points(test->x, scale);
    for (size_t p = 0; p < N_POINTS; p++) {
        test->information[p] = information_test(scale->a, scale->b, scale->n_items, test->x[p]);
        test->error[p] = information_error(test->information[p]);
        if (test->information[p] > test->information[test->best])
            test->best = p;
    }
    /* Where hardly anything is measured, the error leaves the picture. */
    for (size_t p = 0; p < N_POINTS; p++)
        if (test->error[p] > 5 * test->error[test->best])
            test->error[p] = NAN;
}

static void draw_information(FILE *out, const struct report_scale *scale,
                             const struct test *test, const char *title)
{
    const struct plot_series line = {
        .style = PLOT_LINE, .n = N_POINTS, .x = test->x, .y = test->information};
    double low = 0, most = test->information[test->best];
    plot_round(&low, &most);
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = axis_of(test->x),
                                  .y = {.label = "information", .low = 0, .high = most},
                                  .series = &line,
                                  .n_series = 1});
    html_caption(out,
                 "The sum over all %s items, as if a student answered each of them once. They "
                 "measure best near ability %s. A good test has its peak where the students "
                 "are: their mean is %s.",
                 html_whole((int64_t)scale->n_items).text,
                 html_fixed(2, test->x[test->best]).text, html_fixed(2, scale->mean).text);
}

static void draw_error(FILE *out, const struct report_scale *scale, const struct test *test,
                       const char *title)
{
    const double ends[] = {test->x[0], test->x[N_POINTS - 1]},
                 spread[] = {scale->true_spread, scale->true_spread};
    double most = scale->true_spread;
    for (size_t p = 0; p < N_POINTS; p++)
        most = fmax(most, isfinite(test->error[p]) ? test->error[p] : 0);
    double low = 0;
    plot_round(&low, &most);
    const struct plot_series series[] = {
        {.name = "standard error",
         .style = PLOT_LINE,
         .n = N_POINTS,
         .x = test->x,
         .y = test->error},
        {.name = "spread of students", .style = PLOT_GUIDE, .n = 2, .x = ends, .y = spread}};
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = axis_of(test->x),
                                  .y = {.label = "standard error", .low = 0, .high = most},
                                  .series = series,
                                  .n_series = COUNT(series)});
    html_caption(out,
                 "By how much an ability measured by all %s items is typically wrong (one over "
                 "the root of the information): %.2f where it is smallest. Lower is better. "
                 "Above the dashed "
                 "line (%.2f, the standard deviation of true abilities%s) the items "
                 "hardly tell students apart.",
                 html_whole((int64_t)scale->n_items).text, test->error[test->best],
                 scale->true_spread,
                 scale->knows_spread ? " in the model" : ", estimated from these students");
}

static char *titled(const char *what, const struct report_scale *scale)
{
    return scale->name != NULL ? memory_text("%s: %s", what, scale->name)
                               : memory_text("%s", what);
}

static void show_scale(FILE *out, const struct report_scales *scales, size_t k)
{
    const struct report_scale *scale = &scales->list[k];
    struct chosen chosen;
    struct test test;
    const size_t n_falling = choose(&chosen, scale);
    label(&chosen, scales, scale);
    measure_test(&test, scale);
    char *names = describe(&chosen, scales, scale);
    char *titles[] = {titled("Item characteristic curves", scale),
                      titled("Item information", scale), titled("Test information", scale),
                      titled("Standard error of measurement", scale)};
    html_figures(out);
    if (chosen.n > 0) {
        draw_items(out, scale, &chosen, titles[0], false);
        html_caption(out,
                     "How the chance of a right answer grows with the ability%s. Items further "
                     "to the right are harder%s. Drawn: %s.%s",
                     scale->name != NULL ? ", with all other abilities at 0" : "",
                     scales->is_rasch ? "; in this model all curves are equally steep"
                                      : "; steeper ones separate students better",
                     names,
                     n_falling > 0 ? " Items whose chance does not grow are not among them."
                                   : "");
        draw_items(out, scale, &chosen, titles[1], true);
        html_caption(out,
                     "How much one answer to these items tells about the ability%s. An "
                     "item is most useful for students near its peak; a low curve tells "
                     "little about anyone.",
                     scale->name != NULL ? ", with all other abilities at 0" : "");
    }
    draw_information(out, scale, &test, titles[2]);
    draw_error(out, scale, &test, titles[3]);
    report_wright_draw(out, scales, k);
    report_effects_students(out, scale);
    html_figures_end(out);
    for (size_t t = 0; t < COUNT(titles); t++)
        memory_free(titles[t]);
    for (size_t c = 0; c < chosen.n; c++)
        memory_free(chosen.label[c]);
    memory_free(names);
}

void report_irt_show(FILE *out, const struct report_run *run)
{
    const struct report_scales *scales = &run->scales;
    size_t n = 0;
    for (size_t k = 0; k < scales->n; k++)
        n += scales->list[k].n_students > 0 && scales->list[k].n_items > 1;
    if (n == 0)
        return;
    html_say(out, "h3", "Items and students on one scale");
    if (scales->b_is != NULL)
        html_say(
            out, "p",
            "This model can be read as a Rasch model: log-odds of a right answer = ability "
            "− difficulty. The difficulty is %s; the ability is %s.",
            scales->b_is, scales->theta_is);
    if (scales->n_abilities > 1)
        html_say(out, "p",
                 "This model has %zu abilities. Each picture follows one of them, with all "
                 "others at 0, their mean.%s",
                 scales->n_abilities,
                 scales->n < scales->n_abilities ? " Those that the most items need are drawn."
                                                 : "");
    for (size_t k = 0; k < scales->n; k++)
        if (scales->list[k].n_students > 0 && scales->list[k].n_items > 1)
            show_scale(out, scales, k);
}
