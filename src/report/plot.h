/* Plots as SVG, to stand in a page. */
#ifndef COHORT_PLOT_H
#define COHORT_PLOT_H

#include "base/base.h"
#include <stdio.h>

enum plot_style {
    PLOT_LINE,   /* a line through the points, with a dot on each if they are few */
    PLOT_POINTS, /* dots, with bars from `low` to `high` where there are such */
    PLOT_BARS,   /* upright bars from zero; those of several series stand side by side */
    PLOT_ROWS,   /* lying bars from zero, for an axis y with names */
    PLOT_GUIDE   /* a thin line to compare with */
};

/* Points whose x or y is NaN are left out. */
struct plot_series {
    const char *name; /* in the legend; NULL: not there */
    enum plot_style style;
    size_t colour; /* 0, 1, ...; also decides how a line is dashed, for paper */
    size_t n;
    const double *x, *y;
    const double *low, *high; /* along y; along x where axis y has names. NULL: none */
    const double *weight;     /* of points: their areas go with it; NULL: all alike */
};

struct plot_axis {
    const char *label;
    double low, high;         /* equal: found from the series */
    bool percent;             /* shares are shown in percent */
    bool logarithmic;         /* axis x only; numbers must be positive */
    bool whole;               /* axis x only: ticks at whole numbers */
    const char *const *names; /* of 0, 1, ..., instead of ticks; y: from the top down */
    size_t n_names;
};

struct plot {
    const char *title; /* what it shows, for those who cannot see it */
    struct plot_axis x, y;
    const struct plot_series *series;
    size_t n_series;
    double mark;           /* an upright line at this x, */
    const char *mark_name; /* and its name; NULL: none */
};

void plot_draw(FILE *out, const struct plot *plot);

/* A directed graph with its nodes round a circle: weight[a * n + b] in [0, 1] of the edge from
 * a to b, shown from `least` on; those of the nodes themselves are not. */
void plot_graph(FILE *out, const char *title, const char *const *names, size_t n,
                const double *weight, double least);

/* Ticks at multiples of 1, 2 or 5 times a power of ten, at most so many, in [low, high]. */
enum { PLOT_MOST_TICKS = 12 };
struct plot_ticks {
    size_t n;
    double value[PLOT_MOST_TICKS];
    int digits; /* behind the point, that tell them apart */
    double step;
};
void plot_ticks_between(struct plot_ticks *ticks, double low, double high, size_t most);
/* The same for a logarithmic axis: powers of ten, and 2 and 5 times them where there is room.
 */
void plot_ticks_log(struct plot_ticks *ticks, double low, double high);

/* Moves the ends outwards to round numbers; equal ends are moved apart. */
void plot_round(double *low, double *high);

/* Where a value lies on an axis from low to high, 0 to 1. */
double plot_place(double value, double low, double high, bool logarithmic);

/* The page's style sheet must have this. */
extern const char plot_style_sheet[];

#endif
