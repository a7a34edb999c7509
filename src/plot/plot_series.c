/* Draws the series of a plot: lines, points with their intervals, bars and rows, each with a
 * tooltip where they are few. What lies beyond the y axis is an open triangle at its edge. */
#include "plot/html.h"
#include "plot/plot_internal.h"
#include <math.h>

enum { FEW_DOTS = 60, FEW_NOTES = 120 };

bool plot_has_dots(const struct plot_series *s)
{
    return s->style == PLOT_POINTS || (s->style == PLOT_LINE && s->n <= FEW_DOTS);
}

/* The tooltip of a shape. */
static void draw_note(FILE *out, const struct plot_frame *f, const struct plot_series *s,
                      size_t i)
{
    if (s->names != NULL) {
        fputs("<title>", out);
        html_cut(out, s->names[i], 80);
        fprintf(out, ": %s, %s</title>", html_short(s->x[i]).text, html_short(s->y[i]).text);
        return;
    }
    if (s->n > FEW_NOTES)
        return;
    const struct plot_axis *axis = f->y.names != NULL ? &f->y : &f->x;
    const double at = f->y.names != NULL ? s->y[i] : s->x[i],
                 value = f->y.names != NULL ? s->x[i] : s->y[i];
    fputs("<title>", out);
    if (axis->names != NULL && at >= 0 && at + 0.5 < (double)axis->n_names)
        html_cut(out, axis->names[(size_t)(at + 0.5)], 80);
    else
        fputs(html_short(at).text, out);
    fprintf(out, ": %s", html_short(value).text);
    if (s->low != NULL && isfinite(s->low[i]) && isfinite(s->high[i]))
        fprintf(out, " (%s to %s)", html_short(s->low[i]).text, html_short(s->high[i]).text);
    fputs("</title>", out);
}

static void draw_dot(FILE *out, const struct plot_frame *f, const struct plot_series *s,
                     size_t i, double most)
{
    const double radius = s->weight != NULL  ? 2 + 7 * sqrt(s->weight[i] / most)
                          : s->n > FEW_NOTES ? 2
                                             : 3.6;
    fputs("<g>", out);
    draw_note(out, f, s, i);
    plot_shape(out, s->colour, plot_frame_x(f, s->x[i]), plot_frame_y(f, s->y[i]), radius);
    fputs("</g>", out);
}

static void draw_reach(FILE *out, const struct plot_frame *f, const struct plot_series *s,
                       size_t i)
{
    if (s->low == NULL || !isfinite(s->low[i]) || !isfinite(s->high[i]))
        return;
    if (f->y.names != NULL)
        fprintf(out, "<path class=\"reach\" d=\"M%.1f %.1fH%.1f\"/>",
                plot_frame_x(f, s->low[i]), plot_frame_y(f, s->y[i]),
                plot_frame_x(f, s->high[i]));
    else
        fprintf(out, "<path class=\"reach\" d=\"M%.1f %.1fV%.1f\"/>", plot_frame_x(f, s->x[i]),
                plot_frame_y(f, s->low[i]), plot_frame_y(f, s->high[i]));
}

/* Leaves the frame where values are beyond the axis. */
static void draw_line(FILE *out, const struct plot_frame *f, const struct plot_series *s)
{
    fprintf(out, "<path class=\"%s\" stroke-dasharray=\"%s\" d=\"",
            s->style == PLOT_GUIDE ? "guide" : "line", plot_dashes(f->plot, s));
    size_t last = SIZE_MAX;
    bool joins = false; /* the path ends at the point before */
    for (size_t i = 0; i < s->n; i++) {
        if (!plot_is_there(s, i))
            continue;
        double from = 0, to = 1;
        if (last == SIZE_MAX ? plot_frame_side(f, s, i) == 0
                             : plot_clip(plot_frame_share(f, s->y[last]),
                                         plot_frame_share(f, s->y[i]), &from, &to)) {
            const size_t first = last == SIZE_MAX ? i : last;
            const double x[2] = {plot_frame_x(f, s->x[first]), plot_frame_x(f, s->x[i])},
                         y[2] = {plot_frame_y_at(f, plot_frame_share(f, s->y[first])),
                                 plot_frame_y_at(f, plot_frame_share(f, s->y[i]))};
            if (!joins)
                fprintf(out, "M%.1f %.1f", x[0] + from * (x[1] - x[0]),
                        y[0] + from * (y[1] - y[0]));
            if (last != SIZE_MAX)
                fprintf(out, "L%.1f %.1f", x[0] + to * (x[1] - x[0]),
                        y[0] + to * (y[1] - y[0]));
        }
        joins = plot_frame_side(f, s, i) == 0;
        last = i;
    }
    fputs("\"/>", out);
}

/* Of a line with many points, only where it leaves the frame; of a guide, its end. */
static void draw_all_beyond(FILE *out, const struct plot_frame *f, const struct plot_series *s)
{
    const bool many = s->style == PLOT_LINE && s->n > FEW_DOTS;
    for (size_t i = s->style == PLOT_GUIDE ? s->n - 1 : 0; i < s->n; i++) {
        const int side = plot_is_there(s, i) ? plot_frame_side(f, s, i) : 0;
        if (side == 0 ||
            (many && i > 0 && plot_is_there(s, i - 1) && plot_frame_side(f, s, i - 1) == side))
            continue;
        fputs("<g>", out);
        draw_note(out, f, s, i);
        plot_beyond(out, plot_frame_x(f, s->x[i]), plot_frame_y(f, s->y[i]), side);
        fputs("</g>", out);
    }
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

static void draw_bars(FILE *out, const struct plot_frame *f, const struct plot_series *s)
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
        if (!plot_is_there(s, i) || s->y[i] == 0)
            continue;
        const double from = s->x[i] - 0.42 * apart + width * (double)own;
        const double x = plot_frame_x(f, from), zero = plot_frame_y(f, 0),
                     y = plot_frame_y(f, s->y[i]);
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", x,
                fmin(y, zero), fmax(0.5, plot_frame_x(f, from + width) - x), fabs(zero - y));
        draw_note(out, f, s, i);
        fputs("</rect>", out);
    }
}

static void draw_rows(FILE *out, const struct plot_frame *f, const struct plot_series *s)
{
    size_t n_side = 1;
    const size_t own = bar_series(f->plot, s, &n_side);
    const double thick = 0.7 * PLOT_ROW_HEIGHT / (double)n_side;
    for (size_t i = 0; i < s->n; i++) {
        if (!plot_is_there(s, i))
            continue;
        const double zero = plot_frame_x(f, 0), x = plot_frame_x(f, s->x[i]);
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
                fmin(x, zero),
                plot_frame_y(f, s->y[i]) - 0.35 * PLOT_ROW_HEIGHT + thick * (double)own,
                fmax(0.5, fabs(x - zero)), thick);
        draw_note(out, f, s, i);
        fputs("</rect>", out);
    }
}

static void draw_points(FILE *out, const struct plot_frame *f, const struct plot_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n && s->weight != NULL; i++)
        most = fmax(most, s->weight[i]);
    for (size_t i = 0; i < s->n; i++)
        if (plot_is_there(s, i))
            draw_reach(out, f, s, i);
    for (size_t i = 0; i < s->n; i++)
        if (plot_is_there(s, i) && plot_frame_side(f, s, i) == 0)
            draw_dot(out, f, s, i, most);
}

void plot_series_draw(FILE *out, const struct plot_frame *f, const struct plot_series *s)
{
    fprintf(out, "<g class=\"c%zu%s\">", s->colour % PLOT_COLOURS,
            s->n > FEW_NOTES ? " many" : "");
    if (s->style == PLOT_BARS)
        draw_bars(out, f, s);
    else if (s->style == PLOT_ROWS)
        draw_rows(out, f, s);
    else if (s->style != PLOT_POINTS)
        draw_line(out, f, s);
    if (plot_has_dots(s))
        draw_points(out, f, s);
    if (s->style == PLOT_POINTS || s->style == PLOT_LINE || s->style == PLOT_GUIDE)
        draw_all_beyond(out, f, s);
    fputs("</g>\n", out);
}
