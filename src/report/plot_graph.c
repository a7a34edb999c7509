/* Draws a small directed graph: nodes on a circle, their names outside it. Edges are arcs; each
 * bends to its own left, so that the two directions of a pair do not overlap:
 *
 *       .-->--.
 *     a         b
 *       '--<--'
 */
#include "report/html.h"
#include "report/plot.h"
#include <math.h>
#include <sleef.h>

enum { WIDE = 540, HIGH = 420, RADIUS = 140, NODE = 9 };

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

static void draw_edge(FILE *out, struct point a, struct point b, double weight)
{
    /* The control point lies to the left of the line from a to b. */
    const struct point bend = {(a.x + b.x) / 2 + 0.14 * (b.y - a.y),
                               (a.y + b.y) / 2 - 0.14 * (b.x - a.x)};
    const struct point from = towards(a, bend, NODE), tip = towards(b, bend, NODE + 1),
                       back = towards(b, bend, NODE + 9);
    const double x = 3.5 * (tip.y - back.y) / 8, y = 3.5 * (tip.x - back.x) / 8;
    fprintf(out,
            "<path class=\"line\" style=\"stroke-width:%.1f;stroke-opacity:%.2f\" "
            "d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>"
            "<path class=\"arrow\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n",
            0.6 + 2.4 * weight, 0.35 + 0.6 * weight, from.x, from.y, bend.x, bend.y, back.x,
            back.y, tip.x, tip.y, back.x + x, back.y - y, back.x - x, back.y + y);
}

void plot_graph(FILE *out, const char *title, const char *const *names, size_t n,
                const double *weight, double least)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDE, HIGH);
    html_text(out, title);
    fputs("\">\n<g class=\"c0\">\n", out);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            if (a != b && weight[a * n + b] >= least)
                draw_edge(out, at(a, n), at(b, n), weight[a * n + b]);
    for (size_t i = 0; i < n; i++) {
        const struct point p = at(i, n);
        const double right = (p.x - WIDE / 2) / RADIUS, down = (p.y - HIGH / 2) / RADIUS;
        fprintf(out,
                "<circle class=\"node\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>"
                "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                p.x, p.y, NODE, p.x + 16 * right, p.y + 20 * down + 4,
                right > 0.2    ? "start"
                : right < -0.2 ? "end"
                               : "middle");
        html_cut(out, names[i], 16);
        fputs("</text>\n", out);
    }
    fputs("</g></svg>\n", out);
}
