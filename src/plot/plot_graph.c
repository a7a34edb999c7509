/* Draws a small directed graph: nodes on a circle, their names outside it. Edges are arcs; each
 * bends to its own left, so that the two directions of a pair do not overlap:
 *
 *       .-->--.
 *     a         b
 *       '--<--'
 */
#include "base/csv_quote.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include <math.h>
#include <sleef.h>

enum { WIDE = PLOT_WIDE, HIGH = 330, RADIUS = 112, NODE = 12, MOST_NAME = 10, LINE = 20 };

struct point {
    double x, y;
};

static struct point at(size_t i, size_t n)
{
    const double angle = 2 * M_PI * (double)i / (double)n - M_PI / 2;
    return (struct point){WIDE / 2 + RADIUS * Sleef_cinz_cosd1_u10purec(angle),
                          HIGH / 2 + RADIUS * Sleef_cinz_sind1_u10purec(angle)};
}

/* The point at distance `length` from `from` in the direction of `to`. */
static struct point towards(struct point from, struct point to, double length)
{
    const double x = to.x - from.x, y = to.y - from.y, far = sqrt(x * x + y * y);
    return (struct point){from.x + x / far * length, from.y + y / far * length};
}

static void draw_edge(FILE *out, struct point a, struct point b, double signed_weight)
{
    const double weight = fabs(signed_weight);
    /* The control point lies to the left of the line from a to b. */
    const struct point bend = {(a.x + b.x) / 2 + 0.14 * (b.y - a.y),
                               (a.y + b.y) / 2 - 0.14 * (b.x - a.x)};
    const struct point from = towards(a, bend, NODE), tip = towards(b, bend, NODE + 1),
                       back = towards(b, bend, NODE + 9);
    const double x = 3.5 * (tip.y - back.y) / 8, y = 3.5 * (tip.x - back.x) / 8;
    fprintf(out,
            "<path class=\"line\" style=\"stroke-width:%.1f;stroke-opacity:%.2f%s\" "
            "d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>"
            "<path class=\"arrow\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n",
            0.6 + 2.4 * weight, 0.35 + 0.6 * weight,
            signed_weight < 0 ? ";stroke-dasharray:4 3" : "", from.x, from.y, bend.x, bend.y,
            back.x, back.y, tip.x, tip.y, back.x + x, back.y - y, back.x - x, back.y + y);
}

/* Beside its node if all names are short; else the node has a number, and the names follow
 * below. */
static void draw_name(FILE *out, struct point p, const char *name, size_t number)
{
    const double right = (p.x - WIDE / 2) / RADIUS, down = (p.y - HIGH / 2) / RADIUS;
    if (number > 0) {
        fprintf(out,
                "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%zu</text>\n",
                p.x, p.y + 5, number);
        return;
    }
    fprintf(out, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
            p.x + 18 * right, p.y + 24 * down + 4,
            right > 0.2    ? "start"
            : right < -0.2 ? "end"
                           : "middle");
    html_cut(out, name, MOST_NAME);
    fputs("</text>\n", out);
}

struct graph {
    const char *title, *const *names;
    size_t n;
    const double *weight;
    double least;
};

static void draw(FILE *out, const void *what)
{
    const struct graph *g = what;
    const size_t n = g->n;
    bool numbered = false;
    for (size_t i = 0; i < n; i++)
        numbered |= html_columns(g->names[i]) > MOST_NAME;
    plot_begin(out, HIGH + (numbered ? (double)(n * LINE) : 0), g->title);
    fputs("<g class=\"c0\">\n", out);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            if (a != b && fabs(g->weight[a * n + b]) >= g->least)
                draw_edge(out, at(a, n), at(b, n), g->weight[a * n + b]);
    for (size_t i = 0; i < n; i++) {
        const struct point p = at(i, n);
        fprintf(out, "<circle class=\"node\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", p.x, p.y,
                NODE);
        draw_name(out, p, g->names[i], numbered ? i + 1 : 0);
    }
    for (size_t i = 0; i < n && numbered; i++) {
        fprintf(out, "<text x=\"4\" y=\"%zu\">%zu  ", HIGH + i * LINE + 12, i + 1);
        html_cut(out, g->names[i], 46);
        fputs("</text>\n", out);
    }
    fputs("</g></svg>\n", out);
}

static void print_numbers(FILE *out, const void *what)
{
    const struct graph *g = what;
    fputs("from,to,weight\n", out);
    for (size_t e = 0; e < g->n * g->n; e++) {
        csv_quote(out, g->names[e / g->n]);
        fputc(',', out);
        csv_quote(out, g->names[e % g->n]);
        fprintf(out, ",%.9g\n", g->weight[e]);
    }
}

void plot_graph(FILE *out, const char *title, const char *const *names, size_t n,
                const double *weight, double least)
{
    const struct graph graph = {title, names, n, weight, least};
    draw(out, &graph);
    plot_figures_keep(title, &graph, draw, print_numbers);
}
