/* The Wright map: students and items on one scale, from high to low (Wright and Masters 1982),
 *
 *        students          items
 *              ##  2 -
 *           #####    |  fractions-3
 *       #########  1 -  angles-1, angles-4
 *     ###########    |  sums-2
 *        ########  0 -
 *
 * A student at the height of an item answers it right in half of the cases. Items are named if
 * their names fit, whole or cut; else bars count them, like the students. And the abilities alone, beside the
 * normal distribution of the same mean and standard deviation. */
#include "base/csv_quote.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include "report/information.h"
#include "report/report_internal.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 2 * PLOT_MOST_TICKS + 2,
    MOST_NAMED = 80, /* items */
    MOST_LINES = 44, /* of names, in all rows */
    COLUMNS = 25,    /* of names in a line */
    SHORT = 11,      /* of a name, so that a line has two */
    MOST_TOOLTIP = 80,
    CHARACTER = 8,
    LINE = 17,
    TOP = 28,
    AXIS = 190,  /* the scale */
    REACH = 130, /* the longest bar of students */
    RIGHT = 214, /* the items */
    ACROSS = PLOT_WIDE - RIGHT - 6
};

struct map {
    const char *title;
    const struct report_scales *scales;
    const struct report_scale *scale;
    size_t n_rows, n_beyond;    /* n_beyond: items outside the scale, or without a place */
    double edge[MOST_ROWS + 1]; /* from low to high */
    int digits;
    size_t students[MOST_ROWS], items[MOST_ROWS];
    size_t lines; /* of every row */
    size_t *row;  /* of each item; SIZE_MAX: outside */
    size_t cut;   /* columns of a name, at most */
    bool named;
};

static const char *name_of(const struct map *map, size_t i)
{
    return names_get(&map->scales->items, map->scale->item[i]);
}

/* Half steps between at most `most` ticks of the scale, which is longer here by items that are not
 * far beyond it. */
static void settle(struct map *map, size_t most)
{
    struct plot_ticks ticks;
    const struct report_scale *scale = map->scale;
    const double reach = 0.3 * (scale->high - scale->low);
    double low = scale->low, high = scale->high;
    for (size_t i = 0; i < scale->n_items; i++) {
        const double at = information_place(scale->a[i], scale->b[i]);
        if (at >= scale->low - reach && at <= scale->high + reach) {
            low = fmin(low, at);
            high = fmax(high, at);
        }
    }
    plot_ticks_between(&ticks, low, high, most);
    const double step = ticks.step / 2, first = floor(low / step), last = ceil(high / step);
    map->n_rows = (size_t)fmax(1, fmin(last - first, MOST_ROWS));
    map->digits = ticks.digits;
    for (size_t r = 0; r <= map->n_rows; r++)
        map->edge[r] = (first + (double)r) * step;
}

static size_t row_at(const struct map *map, double value)
{
    size_t r = 0;
    if (!(value >= map->edge[0] && value <= map->edge[map->n_rows]))
        return SIZE_MAX;
    while (r + 1 < map->n_rows && value >= map->edge[r + 1])
        r++;
    return r;
}

/* Of its name, and the comma after it. */
static size_t columns_of(const struct map *map, size_t i)
{
    return size_min(html_columns(name_of(map, i)), map->cut) + 2;
}

/* The lines that the names of a row need. */
static size_t count_lines(const struct map *map, size_t r)
{
    size_t n = 0, used = COLUMNS + 1;
    for (size_t i = 0; i < map->scale->n_items; i++) {
        if (map->row[i] != r)
            continue;
        const size_t columns = columns_of(map, i);
        if (used + columns > COLUMNS + 2) {
            n++;
            used = 0;
        }
        used += columns;
    }
    return n;
}

/* Puts students and items into rows. */
static void place(struct map *map)
{
    const struct report_scale *scale = map->scale;
    memset(map->students, 0, sizeof map->students);
    memset(map->items, 0, sizeof map->items);
    map->n_beyond = 0;
    map->lines = 1;
    map->named = scale->n_items <= MOST_NAMED;
    for (size_t i = 0; i < scale->n_items; i++) {
        map->row[i] = row_at(map, information_place(scale->a[i], scale->b[i]));
        if (map->row[i] == SIZE_MAX)
            map->n_beyond++;
        else
            map->items[map->row[i]]++;
    }
    for (size_t i = 0; i < scale->n_students; i++) {
        const size_t r = row_at(map, scale->theta[i]);
        map->students[r != SIZE_MAX                    ? r
                      : scale->theta[i] < map->edge[0] ? 0
                                                       : map->n_rows - 1]++;
    }
    for (size_t r = 0; r < map->n_rows; r++)
        map->lines = size_max(map->lines, count_lines(map, r));
    map->named &= map->lines * map->n_rows <= MOST_LINES;
    if (!map->named)
        map->lines = 1;
}

/* Fine rows if names fit into them, else coarse ones, else the same with shorter names, else fine
 * ones without names. All rows have the same height, so that the scale is even. */
static void arrange(struct map *map)
{
    static const size_t most[] = {PLOT_MOST_TICKS, 7, PLOT_MOST_TICKS, 7, PLOT_MOST_TICKS},
                        cuts[] = {COLUMNS, COLUMNS, SHORT, SHORT, SHORT};
    for (size_t k = 0; k < COUNT(most) && !map->named; k++) {
        map->cut = cuts[k];
        settle(map, most[k]);
        place(map);
    }
}

static size_t most_of(const size_t *counts, size_t n)
{
    size_t most = 1;
    for (size_t i = 0; i < n; i++)
        most = size_max(most, counts[i]);
    return most;
}

/* A name that is cut has all of itself as its tooltip. */
static void draw_item(FILE *out, const struct map *map, size_t i)
{
    const char *name = name_of(map, i);
    const bool is_cut = html_columns(name) > map->cut;
    fputs(is_cut ? "<tspan><title>" : "", out);
    if (is_cut)
        html_cut(out, name, MOST_TOOLTIP);
    fputs(is_cut ? "</title>" : "", out);
    html_cut(out, name, map->cut);
    fputs(is_cut ? "</tspan>" : "", out);
}

static void draw_names(FILE *out, const struct map *map, size_t r, double y)
{
    size_t used = COLUMNS + 1, left = map->items[r];
    bool is_open = false;
    for (size_t i = 0; i < map->scale->n_items; i++) {
        if (map->row[i] != r)
            continue;
        const size_t columns = columns_of(map, i);
        if (used + columns > COLUMNS + 2) {
            fprintf(out, "%s<text class=\"ink\" x=\"%d\" y=\"%.1f\">", is_open ? "</text>" : "",
                    RIGHT, y + 13);
            y += LINE;
            used = 0;
            is_open = true;
        }
        draw_item(out, map, i);
        fputs(--left > 0 ? ", " : "", out);
        used += columns;
    }
    fputs(is_open ? "</text>" : "", out);
}

static void draw_bar(FILE *out, double x, double y, double width, double height, size_t n)
{
    if (n > 0)
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                "<title>%zu</title></rect>",
                x, y + 1.5, fmax(1, width), height - 3, n);
}

static void draw_row(FILE *out, const struct map *map, size_t r, double y)
{
    const double height = (double)(map->lines * LINE);
    const double students = (double)REACH * (double)map->students[r] /
                            (double)most_of(map->students, map->n_rows),
                 items = 0.7 * ACROSS * (double)map->items[r] /
                         (double)most_of(map->items, map->n_rows);
    const double x = AXIS - 46;
    fputs("<g class=\"c0\">", out);
    draw_bar(out, x - students, y, students, height, map->students[r]);
    fputs("</g><g class=\"c1\">", out);
    if (!map->named)
        draw_bar(out, RIGHT, y, items, height, map->items[r]);
    fputs("</g>", out);
    if (map->named)
        draw_names(out, map, r, y);
    fputs("\n", out);
}

static void draw(FILE *out, const void *what)
{
    const struct map *map = what;
    const double height = (double)(map->n_rows * map->lines * LINE);
    double y = TOP;
    plot_begin(out, TOP + height + 12, map->title);
    fprintf(out,
            "<text x=\"%d\" y=\"14\" text-anchor=\"end\">students</text>"
            "<text x=\"%d\" y=\"14\">items",
            AXIS - 46, RIGHT);
    if (!map->named)
        fprintf(out, " (longest bar: %zu)", most_of(map->items, map->n_rows));
    fputs("</text>\n", out);
    for (size_t r = map->n_rows + 1; r-- > 0;) {
        /* Every second edge is a tick. */
        const double steps = map->edge[r] / (map->edge[1] - map->edge[0]);
        fprintf(out, "<path class=\"edge\" d=\"M%d %.1fh6\"/>", AXIS, y);
        if (fabs(fmod(round(steps), 2)) < 0.5)
            fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", AXIS - 4,
                    y + 5, plot_tick_word(map->edge[r], map->digits).text);
        if (r > 0) {
            draw_row(out, map, r - 1, y);
            y += (double)(map->lines * LINE);
        }
    }
    fprintf(out, "<path class=\"edge\" d=\"M%d %dV%.1f\"/></svg>\n", AXIS + 6, TOP,
            TOP + height);
}

static void print_numbers(FILE *out, const void *what)
{
    const struct map *map = what;
    const struct report_scale *scale = map->scale;
    fputs("what,from,to,place,number,name\n", out);
    for (size_t r = 0; r < map->n_rows; r++)
        fprintf(out, "students,%.9g,%.9g,,%zu,\n", map->edge[r], map->edge[r + 1],
                map->students[r]);
    for (size_t i = 0; i < scale->n_items; i++) {
        const double at = information_place(scale->a[i], scale->b[i]);
        fputs("item,,,", out);
        if (isfinite(at))
            fprintf(out, "%.9g", at);
        fputs(",,", out);
        csv_quote(out, name_of(map, i));
        fputc('\n', out);
    }
}

/* " Not drawn, ...: a, b and 4 more." or nothing. Caller frees. */
static char *say_beyond(const struct map *map)
{
    enum { MOST = 3 };
    char *text = memory_text("%s", "");
    size_t n = 0;
    for (size_t i = 0; i < map->scale->n_items && n < MOST; i++) {
        if (map->row[i] != SIZE_MAX)
            continue;
        char *longer = memory_text("%s%s%s", text, n++ > 0 ? ", " : "", name_of(map, i));
        memory_free(text);
        text = longer;
    }
    char *all = n == 0 ? memory_text("%s", "")
                       : memory_text(" Not drawn, as they lie beyond the scale or their chance "
                                     "does not grow with the ability: %s%s.",
                                     text, map->n_beyond > n ? ", ..." : "");
    memory_free(text);
    return all;
}

static void draw_map(FILE *out, const struct report_scales *scales,
                     const struct report_scale *scale, const char *title)
{
    struct map *map = NEW(struct map, 1);
    map->title = title;
    map->scales = scales;
    map->scale = scale;
    map->row = NEW_SCRATCH(size_t, scale->n_items);
    arrange(map);
    html_figure(out, title);
    draw(out, map);
    plot_figures_keep(title, map, draw, print_numbers);
    char *beyond = say_beyond(map);
    html_caption(out,
                 "The scale of the ability runs from low (bottom) to high. On the left, "
                 "students (the longest bar is %zu). On the right, %s, at the ability with "
                 "which half of the answers are right. A student is expected to solve what is "
                 "below and to fail at what is above. Good items lie where the students are; "
                 "a gap on the right beside many students is a place for new items.%s",
                 most_of(map->students, map->n_rows), map->named ? "items" : "numbers of items",
                 beyond);
    memory_free(beyond);
    memory_free(map->row);
    memory_free(map);
}

/* Students in bins, and how many a normal distribution would have in them. */
static void draw_abilities(FILE *out, const struct report_scales *scales,
                           const struct report_scale *scale, const char *title)
{
    enum { N_BINS = 24 };
    double x[N_BINS], y[N_BINS] = {0}, normal[N_BINS];
    const double wide = (scale->high - scale->low) / N_BINS;
    for (size_t i = 0; i < scale->n_students; i++) {
        const double at = floor((scale->theta[i] - scale->low) / wide);
        y[at > 0 ? size_min((size_t)at, N_BINS - 1) : 0]++;
    }
    for (size_t k = 0; k < N_BINS; k++) {
        x[k] = scale->low + wide * ((double)k + 0.5);
        const double z = (x[k] - scale->mean) / scale->spread;
        normal[k] = (double)scale->n_students * wide / (scale->spread * sqrt(2 * M_PI)) *
                    Sleef_cinz_expd1_u10purec(-z * z / 2);
    }
    const struct plot_series series[] = {
        {.name = "students", .style = PLOT_BARS, .n = N_BINS, .x = x, .y = y},
        {.name = "normal distribution",
         .style = PLOT_GUIDE,
         .n = scale->spread > 0 ? N_BINS : 0,
         .x = x,
         .y = normal}};
    html_figure(out, title);
    plot_draw(out,
              &(struct plot){.title = title,
                             .x = {.label = "ability", .low = scale->low, .high = scale->high},
                             .y = {.label = "students"},
                             .series = series,
                             .n_series = COUNT(series)});
    const double reliability =
        scale->spread * scale->spread / (scale->spread * scale->spread + scale->squares);
    char *words = isfinite(reliability)
                      ? memory_text(" Their reliability is %.2f: the share of their variance "
                                    "that is not error. 0.8 and more is good for "
                                    "single students.",
                                    reliability)
                      : memory_text("%s", "");
    html_caption(out,
                 "Abilities as estimated from all answers that the model has seen: %s "
                 "student%s%s, mean %s, standard deviation %.2f.%s",
                 html_whole((int64_t)scale->n_students).text, scale->n_students == 1 ? "" : "s",
                 scales->n_all_students > scale->n_students ? " of the data" : "",
                 html_fixed(2, scale->mean).text, scale->spread, words);
    memory_free(words);
}

void report_wright_draw(FILE *out, const struct report_scales *scales, size_t k)
{
    const struct report_scale *scale = &scales->list[k];
    static const char *const titles[] = {"Wright map: students beside items",
                                         "Abilities of the students"};
    char *own[COUNT(titles)];
    for (size_t t = 0; t < COUNT(titles); t++)
        own[t] = scale->name != NULL ? memory_text("%s: %s", titles[t], scale->name)
                                     : memory_text("%s", titles[t]);
    draw_map(out, scales, scale, own[0]);
    draw_abilities(out, scales, scale, own[1]);
    for (size_t t = 0; t < COUNT(titles); t++)
        memory_free(own[t]);
}
