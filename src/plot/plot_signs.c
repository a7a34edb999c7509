/* The signs of series, which differ also in black and white, and the legend that explains them:
 *
 *     --o-- a series    - - - a guide    /\ what is beyond the axis */
#include "plot/html.h"
#include "plot/plot_internal.h"

enum { MOST_LEGEND = 40 };

/* The entry s of the legend: of a series, or after all of them that of what is beyond the axis;
 * NULL: none. */
static const char *legend_name(const struct plot *plot, size_t s)
{
    return s < plot->n_series ? plot->series[s].name : plot->beyond;
}

size_t plot_legend_lines(const struct plot *plot)
{
    size_t lines = 0, used = PLOT_WIDE;
    for (size_t s = 0; s <= plot->n_series; s++) {
        const char *name = legend_name(plot, s);
        if (name == NULL)
            continue;
        const size_t columns = size_min(html_columns(name), MOST_LEGEND);
        const size_t width = columns * PLOT_CHARACTER + 40;
        if (used + width > PLOT_WIDE) {
            lines++;
            used = 0;
        }
        used += width;
    }
    return lines;
}

/* Colours also have different shapes, for prints in black and white. */
void plot_shape(FILE *out, size_t colour, double x, double y, double r)
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

/* The dash pattern of a line; a single line is solid. */
const char *plot_dashes(const struct plot *plot, const struct plot_series *s)
{
    static const char *const patterns[PLOT_COLOURS] = {"none", "7 3", "2 3",  "9 3 2 3",
                                                       "4 2",  "1 2", "12 4", "3 5"};
    size_t n_lines = 0;
    for (size_t k = 0; k < plot->n_series; k++)
        n_lines += plot->series[k].style == PLOT_LINE;
    return s->style == PLOT_GUIDE ? (s->colour % 2 == 0 ? "5 4" : "1.5 3")
           : n_lines > 1          ? patterns[s->colour % PLOT_COLOURS]
                                  : "none";
}

/* An open triangle at the edge, pointing to where the value is. */
void plot_beyond(FILE *out, double x, double y, int side)
{
    fprintf(out, "<path class=\"beyond\" d=\"M%.1f %.1fl5 %dh-10Z\"/>", x, y - 4 * side,
            8 * side);
}

static void draw_sign(FILE *out, const struct plot *plot, size_t k, double x, double y)
{
    if (k == plot->n_series) {
        fputs("<g class=\"c0\">", out);
        plot_beyond(out, x + 14, y - 4, 1);
        fputs("</g>", out);
        return;
    }
    const struct plot_series *s = &plot->series[k];
    fprintf(out, "<g class=\"c%zu\">", s->colour % PLOT_COLOURS);
    if (s->style == PLOT_BARS || s->style == PLOT_ROWS)
        fprintf(out, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"11\"/>",
                x + 8, y - 9);
    else if (s->style != PLOT_POINTS)
        fprintf(out, "<path class=\"%s\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh22\"/>",
                s->style == PLOT_GUIDE ? "guide" : "line", plot_dashes(plot, s), x + 2, y - 4);
    if (plot_has_dots(s))
        plot_shape(out, s->colour, x + 14, y - 4, 4);
    fputs("</g>", out);
}

void plot_legend(FILE *out, const struct plot *plot)
{
    double x = PLOT_WIDE, y = 14 - PLOT_LEGEND_LINE;
    for (size_t k = 0; k <= plot->n_series; k++) {
        const char *name = legend_name(plot, k);
        if (name == NULL)
            continue;
        const double width =
            (double)(size_min(html_columns(name), MOST_LEGEND) * PLOT_CHARACTER + 40);
        if (x + width > PLOT_WIDE) {
            x = 0;
            y += PLOT_LEGEND_LINE;
        }
        draw_sign(out, plot, k, x, y);
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 28, y);
        html_cut(out, name, MOST_LEGEND);
        fputs("</text>", out);
        x += width;
    }
}
