/* Draws small multiples in two columns. Each panel has its name above it, on at most two lines,
 * and its own numbers at the axes:
 *
 *     legend
 *     a short name          a longer name that
 *                           needs two lines
 *     100 %+                100 %+
 *      50 %+  . o --o        50 %+ o  o
 *       0 %+--+-----+         0 %+--+-----+
 *          1  5    10            1  5    10
 *                     label                  */
#include "plot/plot_panels.h"
#include "base/csv_quote.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include <math.h>

enum {
    N_COLUMNS = 2,
    PANEL = PLOT_WIDE / N_COLUMNS,
    LEFT = 54,
    ACROSS = PANEL - LEFT - 14,
    HEIGHT = 96,
    NAME_COLUMNS = 25,
    LINE = 17,
    BELOW = 34, /* numbers of the x axis, and space */
    TOP = 26,
    MOST_LINES = 2
};

/* Lines of a name; the last is shortened if there are more than MOST_LINES. */
static size_t count_lines(const char *name)
{
    size_t n = 0;
    for (; *name != '\0' && n < MOST_LINES; n++)
        name += html_break(name, NAME_COLUMNS);
    return n;
}

static void draw_name(FILE *out, const char *name, double x, double bottom)
{
    const size_t n = count_lines(name);
    for (size_t l = 0; l < n; l++) {
        const size_t length = html_break(name, NAME_COLUMNS);
        fprintf(out, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\">", x + 6,
                bottom - (double)((n - 1 - l) * LINE));
        if (l + 1 == n && name[length] != '\0') {
            html_cut(out, name, NAME_COLUMNS);
        } else {
            char *line = memory_text("%.*s", (int)length, name);
            html_text(out, line);
            memory_free(line);
        }
        fputs("</text>", out);
        name += length;
    }
}

/* Where the panel is, and how its x axis runs. */
struct frame {
    double left, top;
    size_t longest;
};

static double x_of(const struct frame *f, size_t i)
{
    return f->left + (double)ACROSS * ((double)i + 0.5) / (double)f->longest;
}

static double y_of(const struct frame *f, double share)
{
    return f->top + HEIGHT * (1 - fmin(1, fmax(0, share)));
}

static void draw_axes(FILE *out, const struct frame *f)
{
    for (int half = 0; half <= 2; half++) {
        const double y = y_of(f, half / 2.0);
        fprintf(out,
                "<path class=\"%s\" d=\"M%.1f %.1fh%d\"/><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%d %%</text>",
                half == 0 ? "edge" : "grid", f->left, y, ACROSS, f->left - 5, y + 5, 50 * half);
    }
    for (size_t i = 0; i < f->longest; i = i == 0 ? 4 : i + 5)
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%zu</text>",
                x_of(f, i), f->top + HEIGHT + 17, i + 1);
}

static void draw_panel(FILE *out, const struct plot_panel *panel, const struct frame *f)
{
    draw_axes(out, f);
    fputs("<g class=\"c0\"><path class=\"line\" d=\"", out);
    for (size_t i = 0; i < panel->n; i++)
        fprintf(out, "%c%.1f %.1f", i > 0 ? 'L' : 'M', x_of(f, i), y_of(f, panel->line[i]));
    fputs("\"/></g><g class=\"c1\">", out);
    for (size_t i = 0; i < panel->n; i++)
        fprintf(out,
                "<path class=\"reach\" d=\"M%.1f %.1fV%.1f\"/><circle class=\"dot\" "
                "cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%zu: %.1f %%, n %.0f</title></circle>",
                x_of(f, i), y_of(f, panel->low[i]), y_of(f, panel->high[i]), x_of(f, i),
                y_of(f, panel->share[i]), i + 1, 100 * panel->share[i], panel->weight[i]);
    fputs("</g>\n", out);
}

static void draw_legend(FILE *out, const struct plot_panels *panels)
{
    const size_t right = 40 + 8 * html_columns(panels->dots);
    fputs("<g class=\"c1\"><circle class=\"dot\" cx=\"14\" cy=\"10\" r=\"4\"/></g>"
          "<text x=\"28\" y=\"14\">",
          out);
    html_text(out, panels->dots);
    fprintf(out,
            "</text><g class=\"c0\"><path class=\"line\" d=\"M%zu 10h22\"/></g>"
            "<text x=\"%zu\" y=\"14\">",
            right + 2, right + 28);
    html_text(out, panels->line);
    fputs("</text>\n", out);
}

/* The lines of the longest name in the row of panels that begins with `first`. */
static size_t row_lines(const struct plot_panels *panels, size_t first)
{
    size_t lines = 1;
    for (size_t p = first; p < size_min(first + N_COLUMNS, panels->n); p++)
        lines = size_max(lines, count_lines(panels->list[p].name));
    return lines;
}

static void draw(FILE *out, const void *what)
{
    const struct plot_panels *panels = what;
    double y = TOP;
    for (size_t p = 0; p < panels->n; p += N_COLUMNS)
        y += (double)(row_lines(panels, p) * LINE) + 8 + HEIGHT + BELOW;
    plot_begin(out, y + 14, panels->title);
    draw_legend(out, panels);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">", PLOT_WIDE / 2, y + 4);
    html_text(out, panels->label);
    fputs("</text>\n", out);
    y = TOP;
    for (size_t p = 0; p < panels->n; p++) {
        const double names = (double)(row_lines(panels, p - p % N_COLUMNS) * LINE);
        const double left = (double)(p % N_COLUMNS * PANEL);
        const struct frame f = {left + LEFT, y + names + 8, panels->longest};
        draw_name(out, panels->list[p].name, left, y + names - 4);
        draw_panel(out, &panels->list[p], &f);
        if (p % N_COLUMNS == N_COLUMNS - 1)
            y += names + 8 + HEIGHT + BELOW;
    }
    fputs("</svg>\n", out);
}

static void print_numbers(FILE *out, const void *what)
{
    const struct plot_panels *panels = what;
    fputs("name,x,n,observed,low,high,model\n", out);
    for (size_t p = 0; p < panels->n; p++) {
        const struct plot_panel *panel = &panels->list[p];
        for (size_t i = 0; i < panel->n; i++) {
            csv_quote(out, panel->name);
            fprintf(out, ",%zu,%.0f,%.9g,%.9g,%.9g,%.9g\n", i + 1, panel->weight[i],
                    panel->share[i], panel->low[i], panel->high[i], panel->line[i]);
        }
    }
}

void plot_panels_draw(FILE *out, const struct plot_panels *panels)
{
    draw(out, panels);
    plot_figures_keep(panels->title, panels, draw, print_numbers);
}
