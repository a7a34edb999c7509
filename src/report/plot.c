/* Draws a plot from a description; where the numbers come from does not matter here.
 *
 *     legend     o model   - - item mean
 *               |      mark
 *     high   1.0+- - - - |- - - - - - -    grid lines at the ticks of the y axis
 *        y      |    o   |    o
 *     low    0.0+--------+--------------   the x axis, with ticks or names below it
 *               0        1        2
 *                        x
 *
 * Coordinates are printed to a tenth of a unit. Colours are the classes c0, c1, ..., which the
 * style sheet of the page defines. Every plot has a title for screen readers. Colours also
 * differ in dash pattern and in the shape of points, so that prints in black and white stay
 * readable. */
#include "report/plot.h"
#include "base/fail.h"
#include "base/memory.h"
#include "report/html.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>
#include <string.h>

const char plot_style_sheet[] =
    ":root{--c0:#1f5fbf;--c1:#c2570c;--c2:#0a7d54;--c3:#8a3ffc;--c4:#b0214b;--c5:#0e7490;"
    "--c6:#7a5c00;--c7:#6b7280}\n"
    "@media (prefers-color-scheme:dark){:root{--c0:#6ea8fe;--c1:#ff9d5c;--c2:#4cc38a;"
    "--c3:#b794f6;--c4:#ff7a9c;--c5:#4fd1e0;--c6:#e0b93a;--c7:#9aa5b4}}\n"
    "@media print{:root{--c0:#1f5fbf;--c1:#c2570c;--c2:#0a7d54;--c3:#8a3ffc;--c4:#b0214b;"
    "--c5:#0e7490;--c6:#7a5c00;--c7:#555}}\n"
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}"
    ".c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}\n"
    "svg text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;"
    "fill:var(--soft)}svg text.ink{fill:var(--ink)}\n"
    "svg .grid{stroke:var(--line);stroke-width:1}svg .edge{stroke:var(--soft);"
    "stroke-width:1}\n"
    "svg .bar{fill:currentColor;fill-opacity:.8}"
    "svg .dot{fill:currentColor;stroke:var(--paper);stroke-width:.7}"
    "svg .many .dot{stroke:none}svg .many .reach{stroke-width:.6;stroke-opacity:.45}"
    "svg .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
    "svg .reach{stroke:currentColor;stroke-width:1.2;stroke-opacity:.65}"
    "svg .guide{fill:none;stroke:var(--soft);stroke-width:1.3}"
    "svg .node{fill:var(--tint);stroke:currentColor;stroke-width:1.5}"
    "svg .arrow{fill:currentColor}\n";

enum {
    N_COLOURS = 8,
    WIDE = 540,
    HIGH = 300,
    CHARACTER = 7,
    LEGEND_LINE = 18,
    ROW = 20,
    STAGGER = 13
};
enum { MOST_NAME = 24, FEW_DOTS = 60, FEW_NOTES = 120 };

/* 1, 2 or 5 times a power of ten, as a fraction, so that multiples are rounded only once. */
static double step_of(int rank, double *divisor)
{
    static const double first[] = {1, 2, 5};
    const int power = rank >= 0 ? rank / 3 : -((2 - rank) / 3);
    double ten = 1;
    for (int k = 0; k < abs(power); k++)
        ten *= 10;
    *divisor = power < 0 ? ten : 1;
    return first[rank - 3 * power] * (power < 0 ? 1 : ten);
}

void plot_ticks_between(struct plot_ticks *ticks, double low, double high, size_t most)
{
    ENSURE(most >= 2 && most <= PLOT_MOST_TICKS);
    *ticks = (struct plot_ticks){0};
    for (int rank = -60; rank <= 60; rank++) {
        double divisor = 1;
        const double step = step_of(rank, &divisor);
        const double slack = 1e-9 * (high - low);
        const double first = ceil((low - slack) * divisor / step),
                     last = floor((high + slack) * divisor / step);
        if (last - first + 1 > (double)most)
            continue;
        for (; (double)ticks->n <= last - first; ticks->n++)
            ticks->value[ticks->n] = (first + (double)ticks->n) * step / divisor + 0.0;
        for (double d = divisor; d > 1; d /= 10)
            ticks->digits++;
        ticks->step = step / divisor;
        return;
    }
}

void plot_ticks_log(struct plot_ticks *ticks, double low, double high)
{
    *ticks = (struct plot_ticks){0};
    for (int every = 1; every <= 27; every = every == 1 ? 3 : every + 3) {
        ticks->n = 0;
        bool fits = true;
        for (int rank = -60; rank <= 60 && fits; rank++) {
            double divisor = 1;
            const double step = step_of(rank, &divisor), value = step / divisor;
            if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9) || rank % every != 0)
                continue;
            fits = ticks->n < 8;
            if (fits)
                ticks->value[ticks->n++] = value;
        }
        if (fits)
            return;
    }
}

void plot_round(double *low, double *high)
{
    /* Ends that differ only in their last digits count as equal: no tick could separate
     * them. */
    if (!(*high - *low > 1e-9 * fmax(fabs(*low), fabs(*high)))) {
        const double away = *low != 0 ? fabs(*low) / 2 : 1;
        *low -= away;
        *high += away;
    }
    /* Rounding may make room for one tick too many, which makes the step coarser. */
    struct plot_ticks ticks = {0};
    for (double step = -1; step != ticks.step;) {
        step = ticks.step;
        plot_ticks_between(&ticks, *low, *high, 7);
        *low = floor(*low / ticks.step + 1e-9) * ticks.step;
        *high = ceil(*high / ticks.step - 1e-9) * ticks.step;
    }
}

double plot_place(double value, double low, double high, bool logarithmic)
{
    if (logarithmic)
        return Sleef_cinz_logd1_u10purec(value / low) / Sleef_cinz_logd1_u10purec(high / low);
    return (value - low) / (high - low);
}

/* A plot with its final ranges and layout. */
struct frame {
    const struct plot *plot;
    struct plot_axis x, y;
    double left, top, width, height; /* of the area inside the axes */
    double whole;                    /* height of the picture */
    bool is_staggered;               /* names below the x axis alternate between two lines */
};

static double inside(double share)
{
    return !(share >= 0) ? 0 : share > 1 ? 1 : share; /* NaN becomes 0 */
}

static double x_of(const struct frame *f, double x)
{
    return f->left + f->width * inside(plot_place(x, f->x.low, f->x.high, f->x.logarithmic));
}

static double y_of(const struct frame *f, double y)
{
    const double share = inside(plot_place(y, f->y.low, f->y.high, false));
    return f->top + f->height * (f->y.names != NULL ? share : 1 - share);
}

static bool is_there(const struct plot_series *s, size_t i)
{
    return isfinite(s->x[i]) && isfinite(s->y[i]);
}

static void widen(double value, double *low, double *high)
{
    if (!isfinite(value))
        return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* The ends of an axis: given, set by the names, or round numbers around the data. */
static void settle_axis(const struct plot *plot, struct plot_axis *axis, bool is_y)
{
    if (axis->names != NULL) {
        axis->low = -0.5;
        axis->high = (double)axis->n_names - 0.5;
        return;
    }
    if (axis->low != axis->high)
        return;
    double low = INFINITY, high = -INFINITY;
    const bool reaches = is_y ? plot->y.names == NULL : plot->y.names != NULL;
    for (size_t s = 0; s < plot->n_series; s++) {
        const struct plot_series *one = &plot->series[s];
        for (size_t i = 0; i < one->n; i++) {
            if (!is_there(one, i))
                continue;
            widen(is_y ? one->y[i] : one->x[i], &low, &high);
            if (reaches && one->low != NULL) {
                widen(one->low[i], &low, &high);
                widen(one->high[i], &low, &high);
            }
        }
        if ((is_y && one->style == PLOT_BARS) || (!is_y && one->style == PLOT_ROWS))
            widen(0, &low, &high);
    }
    if (!(low <= high))
        low = 0, high = 1;
    axis->low = low;
    axis->high = high;
    if (!axis->logarithmic)
        plot_round(&axis->low, &axis->high);
    else if (!(high > low))
        axis->high = 10 * low;
}

static size_t legend_lines(const struct plot *plot)
{
    size_t lines = 0, used = WIDE;
    for (size_t s = 0; s < plot->n_series; s++) {
        if (plot->series[s].name == NULL)
            continue;
        const size_t columns = size_min(html_columns(plot->series[s].name), 40);
        const size_t width = columns * CHARACTER + 40;
        if (used + width > WIDE) {
            lines++;
            used = 0;
        }
        used += width;
    }
    return lines;
}

static struct html_word tick_word(const struct plot_axis *axis, double value, int digits)
{
    struct html_word word;
    if (axis->percent) {
        snprintf(word.text, sizeof word.text, "%.*f %%", digits > 2 ? digits - 2 : 0,
                 100 * value);
        return word;
    }
    if (digits == 0 && fabs(value) < 1e15)
        return html_whole((int64_t)value);
    if (fabs(value) >= 1e15 || digits > 7)
        snprintf(word.text, sizeof word.text, "%s%.3g", value < 0 ? "−" : "", fabs(value));
    else
        snprintf(word.text, sizeof word.text, "%s%.*f", value < 0 ? "−" : "", digits,
                 fabs(value));
    return word;
}

/* The width of the numbers at the y axis. */
static size_t y_columns(const struct frame *f)
{
    struct plot_ticks ticks;
    size_t columns = 0;
    plot_ticks_between(&ticks, f->y.low, f->y.high, 7);
    for (size_t t = 0; t < ticks.n; t++)
        columns = size_max(columns,
                           html_columns(tick_word(&f->y, ticks.value[t], ticks.digits).text));
    return columns;
}

static void settle(struct frame *f, const struct plot *plot)
{
    *f = (struct frame){.plot = plot, .x = plot->x, .y = plot->y};
    settle_axis(plot, &f->x, false);
    settle_axis(plot, &f->y, true);
    size_t columns = plot->y.names != NULL ? 0 : y_columns(f);
    for (size_t i = 0; i < plot->y.n_names && plot->y.names != NULL; i++)
        columns = size_max(columns, size_min(html_columns(plot->y.names[i]), MOST_NAME));
    f->left = (double)(columns * CHARACTER + 8 + (plot->y.names == NULL ? 18 : 0));
    f->width = WIDE - f->left - 22;
    f->top = 12 + (double)(legend_lines(plot) * LEGEND_LINE) +
             (plot->mark_name != NULL ? LEGEND_LINE : 0);
    f->height = plot->y.names != NULL ? (double)(plot->y.n_names * ROW) : HIGH - 64;
    size_t widest = 0;
    for (size_t i = 0; i < plot->x.n_names && plot->x.names != NULL; i++)
        widest = size_max(widest, size_min(html_columns(plot->x.names[i]), MOST_NAME) + 1);
    f->is_staggered = (double)(widest * CHARACTER * plot->x.n_names) > f->width;
    f->whole = f->top + f->height + 44 + (f->is_staggered ? STAGGER : 0);
}

static void draw_text(FILE *out, double x, double y, const char *anchor, const char *text,
                      size_t most)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_cut(out, text, most);
    fputs("</text>", out);
}

static void x_ticks(const struct frame *f, struct plot_ticks *ticks)
{
    size_t most = 8;
    do
        plot_ticks_between(ticks, f->x.low, f->x.high, most);
    while (f->x.whole && ticks->digits > 0 && --most >= 2);
}

static void draw_x_axis(FILE *out, const struct frame *f)
{
    const double bottom = f->top + f->height;
    struct plot_ticks ticks = {0};
    if (f->x.names == NULL && f->x.logarithmic)
        plot_ticks_log(&ticks, f->x.low, f->x.high);
    else if (f->x.names == NULL)
        x_ticks(f, &ticks);
    for (size_t t = 0; t < ticks.n; t++) {
        const double x = x_of(f, ticks.value[t]);
        if (f->y.names != NULL)
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, f->top, bottom);
        const struct html_word word = f->x.logarithmic
                                          ? html_short(ticks.value[t])
                                          : tick_word(&f->x, ticks.value[t], ticks.digits);
        draw_text(out, x, bottom + 16, "middle", word.text, 16);
    }
    for (size_t i = 0; f->x.names != NULL && i < f->x.n_names; i++)
        draw_text(out, x_of(f, (double)i),
                  bottom + 16 + (f->is_staggered && i % 2 == 1 ? STAGGER : 0), "middle",
                  f->x.names[i], MOST_NAME);
    fprintf(out, "<path class=\"edge\" d=\"M%.1f %.1fH%.1f\"/>", f->left, bottom,
            f->left + f->width);
    draw_text(out, f->left + f->width / 2, bottom + 36 + (f->is_staggered ? STAGGER : 0),
              "middle", f->x.label, 80);
}

static void draw_y_axis(FILE *out, const struct frame *f)
{
    for (size_t i = 0; f->y.names != NULL && i < f->y.n_names; i++)
        draw_text(out, f->left - 8, y_of(f, (double)i) + 4, "end", f->y.names[i], MOST_NAME);
    if (f->y.names != NULL)
        return;
    struct plot_ticks ticks;
    plot_ticks_between(&ticks, f->y.low, f->y.high, 7);
    for (size_t t = 0; t < ticks.n; t++) {
        const double y = y_of(f, ticks.value[t]);
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", f->left, y,
                f->left + f->width);
        draw_text(out, f->left - 6, y + 4, "end",
                  tick_word(&f->y, ticks.value[t], ticks.digits).text, 16);
    }
    fprintf(out, "<text transform=\"translate(12 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            f->top + f->height / 2);
    html_cut(out, f->y.label, 44);
    fputs("</text>", out);
}

/* The tooltip of a shape. */
static void draw_note(FILE *out, const struct frame *f, const struct plot_series *s, size_t i)
{
    if (s->n > FEW_NOTES)
        return;
    const struct plot_axis *axis = f->y.names != NULL ? &f->y : &f->x;
    const double at = f->y.names != NULL ? s->y[i] : s->x[i],
                 value = f->y.names != NULL ? s->x[i] : s->y[i];
    const size_t place = at >= 0 ? (size_t)(at + 0.5) : 0;
    fputs("<title>", out);
    if (axis->names != NULL && place < axis->n_names)
        html_cut(out, axis->names[place], 80);
    else
        fputs(html_short(at).text, out);
    fprintf(out, ": %s", html_short(value).text);
    if (s->low != NULL && isfinite(s->low[i]) && isfinite(s->high[i]))
        fprintf(out, " (%s to %s)", html_short(s->low[i]).text, html_short(s->high[i]).text);
    fputs("</title>", out);
}

/* Colours also have different shapes, for prints in black and white. */
static void draw_shape(FILE *out, size_t colour, double x, double y, double r)
{
    switch (colour % 4) {
    case 0:
        fprintf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", x, y, r);
        break;
    case 1:
        fprintf(out, "<path class=\"dot\" d=\"M%.1f %.1fh%.1fv%.1fh%.1fZ\"/>", x - 0.9 * r,
                y - 0.9 * r, 1.8 * r, 1.8 * r, -1.8 * r);
        break;
    case 2:
        fprintf(out, "<path class=\"dot\" d=\"M%.1f %.1fl%.1f %.1fh%.1fZ\"/>", x, y - 1.2 * r,
                1.2 * r, 2.1 * r, -2.4 * r);
        break;
    default:
        fprintf(out, "<path class=\"dot\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fZ\"/>", x,
                y - 1.3 * r, 1.3 * r, 1.3 * r, -1.3 * r, 1.3 * r, -1.3 * r, -1.3 * r);
    }
}

static void draw_dot(FILE *out, const struct frame *f, const struct plot_series *s, size_t i,
                     double most)
{
    const double radius = s->weight != NULL  ? 2 + 7 * sqrt(s->weight[i] / most)
                          : s->n > FEW_NOTES ? 2
                                             : 3.6;
    fputs("<g>", out);
    draw_note(out, f, s, i);
    draw_shape(out, s->colour, x_of(f, s->x[i]), y_of(f, s->y[i]), radius);
    fputs("</g>", out);
}

static void draw_reach(FILE *out, const struct frame *f, const struct plot_series *s, size_t i)
{
    if (s->low == NULL || !isfinite(s->low[i]) || !isfinite(s->high[i]))
        return;
    if (f->y.names != NULL)
        fprintf(out, "<path class=\"reach\" d=\"M%.1f %.1fH%.1f\"/>", x_of(f, s->low[i]),
                y_of(f, s->y[i]), x_of(f, s->high[i]));
    else
        fprintf(out, "<path class=\"reach\" d=\"M%.1f %.1fV%.1f\"/>", x_of(f, s->x[i]),
                y_of(f, s->low[i]), y_of(f, s->high[i]));
}

/* The dash pattern of a line; a single line is solid. */
static const char *dashes(const struct plot *plot, const struct plot_series *s)
{
    static const char *const patterns[N_COLOURS] = {"none", "7 3", "2 3",  "9 3 2 3",
                                                    "4 2",  "1 2", "12 4", "3 5"};
    size_t n_lines = 0;
    for (size_t k = 0; k < plot->n_series; k++)
        n_lines += plot->series[k].style == PLOT_LINE;
    return s->style == PLOT_GUIDE ? "5 4"
           : n_lines > 1          ? patterns[s->colour % N_COLOURS]
                                  : "none";
}

static void draw_line(FILE *out, const struct frame *f, const struct plot_series *s)
{
    fprintf(out, "<path class=\"%s\" stroke-dasharray=\"%s\" d=\"",
            s->style == PLOT_GUIDE ? "guide" : "line", dashes(f->plot, s));
    char next = 'M';
    for (size_t i = 0; i < s->n; i++) {
        if (!is_there(s, i))
            continue;
        fprintf(out, "%c%.1f %.1f", next, x_of(f, s->x[i]), y_of(f, s->y[i]));
        next = 'L';
    }
    fputs("\"/>", out);
}

/* The number of this series among the series of bars, and their count. */
static size_t bar_series(const struct plot *plot, const struct plot_series *s, size_t *n)
{
    size_t own = 0;
    *n = 0;
    for (size_t k = 0; k < plot->n_series; k++) {
        if (plot->series[k].style != s->style)
            continue;
        if (&plot->series[k] == s)
            own = *n;
        ++*n;
    }
    return own;
}

static void draw_bars(FILE *out, const struct frame *f, const struct plot_series *s)
{
    size_t n_side = 1;
    const size_t own = bar_series(f->plot, s, &n_side);
    double apart = INFINITY;
    for (size_t i = 1; i < s->n; i++)
        apart = fmin(apart, fabs(s->x[i] - s->x[i - 1]));
    if (!isfinite(apart))
        apart = 1;
    const double width = 0.84 * apart / (double)n_side;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_there(s, i) || s->y[i] == 0)
            continue;
        const double from = s->x[i] - 0.42 * apart + width * (double)own;
        const double x = x_of(f, from), zero = y_of(f, 0), y = y_of(f, s->y[i]);
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", x,
                fmin(y, zero), fmax(0.5, x_of(f, from + width) - x), fabs(zero - y));
        draw_note(out, f, s, i);
        fputs("</rect>", out);
    }
}

static void draw_rows(FILE *out, const struct frame *f, const struct plot_series *s)
{
    size_t n_side = 1;
    const size_t own = bar_series(f->plot, s, &n_side);
    const double thick = 0.7 * ROW / (double)n_side;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_there(s, i))
            continue;
        const double zero = x_of(f, 0), x = x_of(f, s->x[i]);
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
                fmin(x, zero), y_of(f, s->y[i]) - 0.35 * ROW + thick * (double)own,
                fmax(0.5, fabs(x - zero)), thick);
        draw_note(out, f, s, i);
        fputs("</rect>", out);
    }
}

static void draw_points(FILE *out, const struct frame *f, const struct plot_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n && s->weight != NULL; i++)
        most = fmax(most, s->weight[i]);
    for (size_t i = 0; i < s->n; i++)
        if (is_there(s, i))
            draw_reach(out, f, s, i);
    for (size_t i = 0; i < s->n; i++)
        if (is_there(s, i))
            draw_dot(out, f, s, i, most);
}

static void draw_series(FILE *out, const struct frame *f, const struct plot_series *s)
{
    fprintf(out, "<g class=\"c%zu%s\">", s->colour % N_COLOURS,
            s->n > FEW_NOTES ? " many" : "");
    if (s->style == PLOT_BARS)
        draw_bars(out, f, s);
    else if (s->style == PLOT_ROWS)
        draw_rows(out, f, s);
    else if (s->style != PLOT_POINTS)
        draw_line(out, f, s);
    if (s->style == PLOT_POINTS || (s->style == PLOT_LINE && s->n <= FEW_DOTS))
        draw_points(out, f, s);
    fputs("</g>\n", out);
}

static void draw_legend(FILE *out, const struct frame *f)
{
    double x = WIDE, y = 14 - LEGEND_LINE;
    for (size_t k = 0; k < f->plot->n_series; k++) {
        const struct plot_series *s = &f->plot->series[k];
        if (s->name == NULL)
            continue;
        const double width = (double)(size_min(html_columns(s->name), 40) * CHARACTER + 40);
        if (x + width > WIDE) {
            x = 0;
            y += LEGEND_LINE;
        }
        fprintf(out, "<g class=\"c%zu\">", s->colour % N_COLOURS);
        if (s->style == PLOT_BARS || s->style == PLOT_ROWS)
            fprintf(out,
                    "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"11\"/>",
                    x + 8, y - 9);
        else if (s->style == PLOT_POINTS)
            draw_shape(out, s->colour, x + 14, y - 4, 4);
        else
            fprintf(out, "<path class=\"%s\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh22\"/>",
                    s->style == PLOT_GUIDE ? "guide" : "line", dashes(f->plot, s), x + 2,
                    y - 4);
        fputs("</g>", out);
        draw_text(out, x + 28, y, "start", s->name, 40);
        x += width;
    }
}

static void draw_mark(FILE *out, const struct frame *f)
{
    const double x = x_of(f, f->plot->mark);
    const bool right = x < f->left + 0.7 * f->width;
    fprintf(out, "<path class=\"edge\" d=\"M%.1f %.1fV%.1f\"/>", x, f->top - 14,
            f->top + f->height);
    draw_text(out, right ? x + 5 : x - 5, f->top - 5, right ? "start" : "end",
              f->plot->mark_name, 40);
}

static void begin(FILE *out, double height, const char *title)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDE, height);
    html_text(out, title);
    fputs("\">\n", out);
}

void plot_draw(FILE *out, const struct plot *plot)
{
    struct frame f;
    settle(&f, plot);
    begin(out, f.whole, plot->title);
    draw_y_axis(out, &f);
    draw_x_axis(out, &f);
    if (plot->mark_name != NULL)
        draw_mark(out, &f);
    for (size_t s = 0; s < plot->n_series; s++)
        draw_series(out, &f, &plot->series[s]);
    draw_legend(out, &f);
    fputs("</svg>\n", out);
}
