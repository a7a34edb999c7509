/* Draws a small directed graph: nodes on a circle, their names outside it. Edges are curves; each
 * bends to its own left, so that the two directions of a pair do not overlap:
 *
 *       .-->--.
 *     a         b
 *       '--<--'
 *
 * All ends of edges at a node have places of their own on its rim: an edge that arrives never
 * seems to go on in one that leaves. An end wants to be where its edge is headed; ends that are
 * too close push each other along the rim. */
#include "base/csv_quote.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>

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

/* The point at distance `length` from `from` in the direction of `angle`. */
static struct point along(struct point from, double angle, double length)
{
    return (struct point){from.x + length * Sleef_cinz_cosd1_u10purec(angle),
                          from.y + length * Sleef_cinz_sind1_u10purec(angle)};
}

/* One of the two ends of an edge: its angle at its node. */
struct end {
    size_t edge;
    bool arrives;
    double angle;
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return x->angle != y->angle ? (x->angle > y->angle ? 1 : -1)
                                : (x->edge > y->edge) - (x->edge < y->edge);
}

/* Pushes the ends at a node apart, which are sorted by their angles. */
static void spread_ends(struct end *ends, size_t n)
{
    const double gap = fmin(0.7, 0.95 * 2 * M_PI / (double)n);
    for (int round = 0; round < 200; round++)
        for (size_t k = 0; k < n && n > 1; k++) {
            struct end *one = &ends[k], *next = &ends[(k + 1) % n];
            const double lack = gap - (next->angle + (k + 1 == n ? 2 * M_PI : 0) - one->angle);
            if (lack > 0) {
                one->angle -= lack / 2;
                next->angle += lack / 2;
            }
        }
}

static void draw_edge(FILE *out, struct point a, struct point b, double leaves, double arrives,
                      double signed_weight)
{
    const double weight = fabs(signed_weight), wide = b.x - a.x, high = b.y - a.y,
                 pull = 0.35 * sqrt(wide * wide + high * high);
    const struct point from = along(a, leaves, NODE), tip = along(b, arrives, NODE + 1),
                       back = along(b, arrives, NODE + 9),
                       bend[2] = {along(from, leaves, pull), along(back, arrives, pull)};
    const double x = 3.5 * (tip.y - back.y) / 8, y = 3.5 * (tip.x - back.x) / 8;
    fprintf(out,
            "<path class=\"line\" style=\"stroke-width:%.1f;stroke-opacity:%.2f%s\" "
            "d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>"
            "<path class=\"arrow\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n",
            0.6 + 2.4 * weight, 0.35 + 0.6 * weight,
            signed_weight < 0 ? ";stroke-dasharray:4 3" : "", from.x, from.y, bend[0].x,
            bend[0].y, bend[1].x, bend[1].y, back.x, back.y, tip.x, tip.y, back.x + x,
            back.y - y, back.x - x, back.y + y);
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

static bool is_drawn(const struct graph *g, size_t from, size_t to)
{
    return from != to && fabs(g->weight[from * g->n + to]) >= g->least;
}

static void draw_edges(FILE *out, const struct graph *g)
{
    const size_t n = g->n;
    const double bend = 0.27;
    double *angle[2] = {NEW_SCRATCH(double, n *n), NEW_SCRATCH(double, n *n)};
    struct end *ends = NEW(struct end, 2 * n);
    for (size_t i = 0; i < n; i++) {
        size_t n_ends = 0;
        for (size_t other = 0; other < n; other++) {
            const double towards = Sleef_cinz_atan2d1_u10purec(at(other, n).y - at(i, n).y,
                                                               at(other, n).x - at(i, n).x);
            if (is_drawn(g, i, other))
                ends[n_ends++] = (struct end){i * n + other, false, towards - bend};
            if (is_drawn(g, other, i))
                ends[n_ends++] = (struct end){other * n + i, true, towards + bend};
        }
        qsort(ends, n_ends, sizeof *ends, compare_ends);
        spread_ends(ends, n_ends);
        for (size_t k = 0; k < n_ends; k++)
            angle[ends[k].arrives][ends[k].edge] = ends[k].angle;
    }
    for (size_t e = 0; e < n * n; e++)
        if (is_drawn(g, e / n, e % n))
            draw_edge(out, at(e / n, n), at(e % n, n), angle[false][e], angle[true][e],
                      g->weight[e]);
    memory_free(ends);
    memory_free(angle[false]);
    memory_free(angle[true]);
}

static void draw(FILE *out, const void *what)
{
    const struct graph *g = what;
    const size_t n = g->n;
    bool numbered = false;
    for (size_t i = 0; i < n; i++)
        numbered |= html_columns(g->names[i]) > MOST_NAME;
    plot_begin(out, HIGH + (numbered ? (double)(n * LINE) : 0), g->title);
    fputs("<g class=\"c0\">\n", out);
    draw_edges(out, g);
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
