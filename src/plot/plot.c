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
 * readable. Points, lines and bars are drawn by plot_series.c. */
#include "plot/plot.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char plot_style_sheet[] =
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}"
    ".c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}\n"
    "svg text{font:14px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;"
    "fill:var(--soft);unicode-bidi:isolate}svg text.ink{fill:var(--ink)}"
    "svg text.named{paint-order:stroke;stroke:var(--paper);stroke-width:3px}\n"
    "svg .grid{stroke:var(--line);stroke-width:1}svg .edge{stroke:var(--soft);"
    "stroke-width:1}\n"
    "svg .bar{fill:currentColor;fill-opacity:.8}"
    "svg .dot{fill:currentColor;stroke:var(--paper);stroke-width:.7}"
    "svg .many .dot{stroke:none}svg .many .reach{stroke-width:.6;stroke-opacity:.45}"
    "svg .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
    "svg .reach{stroke:currentColor;stroke-width:1.2;stroke-opacity:.65}"
    "svg .guide{fill:none;stroke:var(--soft);stroke-width:1.3}"
    "svg .beyond{fill:var(--paper);stroke:currentColor;stroke-width:1.3}"
    "svg .node{fill:var(--tint);stroke:currentColor;stroke-width:1.5}"
    "svg .arrow{fill:currentColor}\n";

enum { WIDE = PLOT_WIDE, HIGH = 290, STAGGER = 16 };
enum { MOST_NAME = 17, MOST_ROW_NAME = 20, MOST_TOOLTIP = 80 }; /* columns */

static double inside(double share)
{
    return !(share >= 0) ? 0 : share > 1 ? 1 : share; /* NaN becomes 0 */
}

double plot_frame_x(const struct plot_frame *f, double x)
{
    return f->left + f->width * inside(plot_place(x, f->x.low, f->x.high, f->x.logarithmic));
}

double plot_frame_share(const struct plot_frame *f, double y)
{
    return plot_place(y, f->y.low, f->y.high, false);
}

double plot_frame_y_at(const struct plot_frame *f, double share)
{
    return f->top + f->height * (f->y.names != NULL ? share : 1 - share);
}

double plot_frame_y(const struct plot_frame *f, double y)
{
    return plot_frame_y_at(f, inside(plot_frame_share(f, y)));
}

/* Where a point is that the y axis does not show: 1 above, -1 below; 0: it is shown. */
int plot_frame_side(const struct plot_frame *f, const struct plot_series *s, size_t i)
{
    const double share = plot_frame_share(f, s->y[i]), slack = 1e-9;
    return share > 1 + slack ? 1 : share < -slack ? -1 : 0;
}

bool plot_is_there(const struct plot_series *s, size_t i)
{
    return plot_is_drawable(s->x[i]) && plot_is_drawable(s->y[i]);
}

static void include_value(double value, double *low, double *high)
{
    if (!plot_is_drawable(value))
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
            if (!plot_is_there(one, i))
                continue;
            include_value(is_y ? one->y[i] : one->x[i], &low, &high);
            if (reaches && one->low != NULL) {
                include_value(one->low[i], &low, &high);
                include_value(one->high[i], &low, &high);
            }
        }
        if ((is_y && one->style == PLOT_BARS) || (!is_y && one->style == PLOT_ROWS))
            include_value(0, &low, &high);
    }
    if (!(low <= high))
        low = 0, high = 1;
    if (!axis->logarithmic && is_y == (plot->y.names == NULL))
        plot_widen(&low, &high);
    axis->low = low;
    axis->high = high;
    if (!axis->logarithmic)
        plot_round(&axis->low, &axis->high);
    else if (!(high > low))
        axis->high = 10 * low;
}

struct html_word plot_tick_word(double value, int digits)
{
    struct html_word word;
    if (digits == 0 && fabs(value) < 1e15)
        return html_whole((int64_t)value);
    if (fabs(value) >= 1e15 || digits > 7)
        snprintf(word.text, sizeof word.text, "%s%.3g", value < 0 ? "−" : "", fabs(value));
    else
        snprintf(word.text, sizeof word.text, "%s%.*f", value < 0 ? "−" : "", digits,
                 fabs(value));
    return word;
}

static struct html_word tick_word(const struct plot_axis *axis, double value, int digits)
{
    struct html_word word;
    if (!axis->percent)
        return plot_tick_word(value, digits);
    snprintf(word.text, sizeof word.text, "%.*f %%", digits > 2 ? digits - 2 : 0, 100 * value);
    return word;
}

/* The width of the numbers at the y axis. */
static size_t y_columns(const struct plot_frame *f)
{
    struct plot_ticks ticks;
    size_t columns = 0;
    plot_ticks_between(&ticks, f->y.low, f->y.high, 7);
    for (size_t t = 0; t < ticks.n; t++)
        columns = size_max(columns,
                           html_columns(tick_word(&f->y, ticks.value[t], ticks.digits).text));
    return columns;
}

static void settle(struct plot_frame *f, const struct plot *plot)
{
    *f = (struct plot_frame){.plot = plot, .x = plot->x, .y = plot->y};
    settle_axis(plot, &f->x, false);
    settle_axis(plot, &f->y, true);
    size_t columns = plot->y.names != NULL ? 0 : y_columns(f), widest = 0;
    for (size_t i = 0; i < plot->y.n_names && plot->y.names != NULL; i++)
        columns = size_max(columns, size_min(html_columns(plot->y.names[i]), MOST_ROW_NAME));
    f->left =
        fmax(26, (double)(columns * PLOT_CHARACTER + 14 + (plot->y.names == NULL ? 20 : 0)));
    f->width = WIDE - f->left - 26;
    f->top = 12 + (double)(plot_legend_lines(plot) * PLOT_LEGEND_LINE) +
             (plot->mark_name != NULL ? PLOT_LEGEND_LINE : 0);
    f->height = plot->y.names != NULL ? (double)(plot->y.n_names * PLOT_ROW_HEIGHT) : HIGH - 64;
    for (size_t i = 0; i < plot->x.n_names && plot->x.names != NULL; i++)
        widest = size_max(widest, size_min(html_columns(plot->x.names[i]), MOST_NAME) + 1);
    f->n_lines = 1;
    while (f->n_lines < 4 &&
           (double)(widest * PLOT_CHARACTER * plot->x.n_names) > f->width * (double)f->n_lines)
        f->n_lines++;
    f->whole = f->top + f->height + 50 + (double)((f->n_lines - 1) * STAGGER);
}

/* A text that is cut has all of itself as its tooltip. */
static void draw_text(FILE *out, double x, double y, const char *anchor, const char *text,
                      size_t most)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    if (html_columns(text) > most) {
        fputs("<title>", out);
        html_cut(out, text, MOST_TOOLTIP);
        fputs("</title>", out);
    }
    html_cut(out, text, most);
    fputs("</text>", out);
}

static void x_ticks(const struct plot_frame *f, struct plot_ticks *ticks)
{
    size_t most = 6;
    do
        plot_ticks_between(ticks, f->x.low, f->x.high, most);
    while (f->x.whole && ticks->digits > 0 && --most >= 2);
}

static void draw_x_axis(FILE *out, const struct plot_frame *f)
{
    const double bottom = f->top + f->height;
    struct plot_ticks ticks = {0};
    if (f->x.names == NULL && f->x.logarithmic)
        plot_ticks_log(&ticks, f->x.low, f->x.high);
    else if (f->x.names == NULL)
        x_ticks(f, &ticks);
    double free_from = -INFINITY; /* labels that would overlap are skipped */
    for (size_t t = 0; t < ticks.n; t++) {
        const double x = plot_frame_x(f, ticks.value[t]);
        if (f->y.names != NULL)
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, f->top, bottom);
        const struct html_word word = f->x.logarithmic
                                          ? html_short(ticks.value[t])
                                          : tick_word(&f->x, ticks.value[t], ticks.digits);
        const double half = (double)(html_columns(word.text) * PLOT_CHARACTER) / 2;
        if (x - half < free_from)
            continue;
        draw_text(out, x, bottom + 18, "middle", word.text, 16);
        free_from = x + half + 4;
    }
    for (size_t i = 0; f->x.names != NULL && i < f->x.n_names; i++)
        draw_text(out, plot_frame_x(f, (double)i),
                  bottom + 18 + (double)(i % f->n_lines * STAGGER), "middle", f->x.names[i],
                  MOST_NAME);
    fprintf(out, "<path class=\"edge\" d=\"M%.1f %.1fH%.1f\"/>", f->left, bottom,
            f->left + f->width);
    /* In the middle of the axis, unless the label would leave the picture. */
    const double half = (double)(html_columns(f->x.label) * PLOT_CHARACTER) / 2,
                 middle = f->left + f->width / 2;
    draw_text(out, fmax(fmin(middle, WIDE - half), fmin(half, WIDE / 2.0)),
              bottom + 41 + (double)((f->n_lines - 1) * STAGGER), "middle", f->x.label, 50);
}

static void draw_y_axis(FILE *out, const struct plot_frame *f)
{
    for (size_t i = 0; f->y.names != NULL && i < f->y.n_names; i++)
        draw_text(out, f->left - 8, plot_frame_y(f, (double)i) + 5, "end", f->y.names[i],
                  MOST_ROW_NAME);
    if (f->y.names != NULL)
        return;
    struct plot_ticks ticks;
    plot_ticks_between(&ticks, f->y.low, f->y.high, 7);
    for (size_t t = 0; t < ticks.n; t++) {
        const double y = plot_frame_y(f, ticks.value[t]);
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", f->left, y,
                f->left + f->width);
        draw_text(out, f->left - 6, y + 5, "end",
                  tick_word(&f->y, ticks.value[t], ticks.digits).text, 16);
    }
    fprintf(out, "<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            f->top + f->height / 2);
    html_cut(out, f->y.label, 32);
    fputs("</text>", out);
}

static void draw_mark(FILE *out, const struct plot_frame *f)
{
    const double x = plot_frame_x(f, f->plot->mark);
    const bool right = x < f->left + 0.7 * f->width;
    fprintf(out, "<path class=\"edge\" d=\"M%.1f %.1fV%.1f\"/>", x, f->top - 14,
            f->top + f->height);
    draw_text(out, right ? x + 5 : x - 5, f->top - 5, right ? "start" : "end",
              f->plot->mark_name, 40);
}

static void draw_labels(FILE *out, const struct plot_frame *f)
{
    const struct plot *plot = f->plot;
    size_t n = 0;
    for (size_t s = 0; s < plot->n_series; s++)
        n += plot->series[s].n;
    struct plot_spot *labels = NEW(struct plot_spot, plot->n_labels + n),
                     *points = labels + plot->n_labels, *next = points;
    for (size_t k = 0; k < plot->n_labels; k++)
        labels[k] =
            (struct plot_spot){plot_frame_x(f, plot->labels[k].x),
                               plot_frame_y(f, plot->labels[k].y), plot->labels[k].text};
    for (size_t s = 0; s < plot->n_series; s++)
        for (size_t i = 0; i < plot->series[s].n; i++)
            *next++ = (struct plot_spot){plot_frame_x(f, plot->series[s].x[i]),
                                         plot_frame_y(f, plot->series[s].y[i]), NULL};
    const struct plot_spot corners[2] = {{f->left, f->top, NULL},
                                         {f->left + f->width, f->top + f->height, NULL}};
    plot_labels_draw(out, labels, plot->n_labels, points, n, corners);
    memory_free(labels);
}

void plot_begin(FILE *out, double height, const char *title)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDE, height);
    html_text(out, title);
    fputs("\">\n", out);
}

static void draw(FILE *out, const void *what)
{
    const struct plot *plot = what;
    struct plot_frame f;
    settle(&f, plot);
    plot_begin(out, f.whole, plot->title);
    draw_y_axis(out, &f);
    draw_x_axis(out, &f);
    if (plot->mark_name != NULL)
        draw_mark(out, &f);
    for (size_t s = 0; s < plot->n_series; s++)
        plot_series_draw(out, &f, &plot->series[s]);
    if (plot->n_labels > 0)
        draw_labels(out, &f);
    plot_legend(out, plot);
    fputs("</svg>\n", out);
}

void plot_draw(FILE *out, const struct plot *plot)
{
    draw(out, plot);
    plot_figures_keep(plot->title, plot, draw, plot_numbers);
}
