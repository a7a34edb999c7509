/* Plots as SVG inside an HTML page. */
#ifndef COHORT_PLOT_H
#define COHORT_PLOT_H

#include "base/base.h"
#include <stdio.h>

enum { PLOT_COLOURS = 8 };

enum plot_style {
    PLOT_LINE,   /* a line through the points, with a dot on each if they are few */
    PLOT_POINTS, /* dots, with bars from `low` to `high` if those are given */
    PLOT_BARS,   /* vertical bars from zero; several series are drawn side by side */
    PLOT_ROWS,   /* horizontal bars from zero, for a y axis with names */
    PLOT_GUIDE   /* a thin reference line */
};

/* Points whose x or y is NaN are skipped. Where a y is beyond its axis, a line leaves the frame,
 * and an open triangle at the edge points there. */
struct plot_series {
    const char *name; /* in the legend; NULL: not listed */
    enum plot_style style;
    size_t
        colour; /* 0 .. PLOT_COLOURS - 1, then again; also selects the dash pattern and the shape of points */
    size_t n;
    const double *x, *y;
    const double *low, *high; /* along y; along x if the y axis has names. NULL: none */
    const double *weight;     /* of points: proportional to their areas; NULL: all equal */
    const char *const *names; /* of points, for those who point at them; NULL: none */
};

/* A name beside a point. */
struct plot_label {
    double x, y;
    const char *text;
};

/* Width of a picture in units of its text, which is 14 high: on a phone of 390 pixels, text is
 * still 11 pixels high. */
enum { PLOT_WIDE = 420 };

struct plot_axis {
    const char *label;
    double low, high;         /* equal: computed from the series */
    bool percent;             /* show shares in percent */
    bool logarithmic;         /* x axis only; values must be positive */
    bool whole;               /* x axis only: ticks at integers */
    const char *const *names; /* of 0, 1, ..., instead of ticks; y axis: from the top down */
    size_t n_names;
};

struct plot {
    const char *title; /* what the plot shows, for screen readers */
    struct plot_axis x, y;
    const struct plot_series *series;
    size_t n_series;
    double mark;           /* a vertical line at this x */
    const char *mark_name; /* its label; NULL: no line */
    const struct plot_label
        *labels; /* the important ones first; what does not fit is left out */
    size_t n_labels;
    const char *beyond; /* in the legend: what values beyond the y axis mean; NULL: none are */
};

void plot_draw(FILE *out, const struct plot *plot);

/* A directed graph with its nodes on a circle. weight[a * n + b] in [-1, 1] belongs to the edge
 * from a to b; negative ones are dashed. Edges with less than `least`, whatever their sign, and
 * edges from a node to itself are not drawn. */
void plot_graph(FILE *out, const char *title, const char *const *names, size_t n,
                const double *weight, double least);

/* Whether a number can be drawn: finite, and so are its differences to others. */
bool plot_is_drawable(double value);

/* At most `most` ticks in [low, high], at multiples of 1, 2 or 5 times a power of ten. */
enum { PLOT_MOST_TICKS = 12 };
struct plot_ticks {
    size_t n;
    double value[PLOT_MOST_TICKS];
    int digits; /* after the point, enough to distinguish the ticks */
    double step;
};
void plot_ticks_between(struct plot_ticks *ticks, double low, double high, size_t most);
/* The same for a logarithmic axis: powers of ten, and 2 and 5 times them if there is room. */
void plot_ticks_log(struct plot_ticks *ticks, double low, double high);

/* Moves both ends outwards to round numbers; separates equal ends. */
void plot_round(double *low, double *high);

/* An axis of values spans at least 2 % of the largest one: what differs by less than that looks
 * level, so that noise is not magnified to the height of the plot. */
void plot_widen(double *low, double *high);

/* The position of a value on an axis from low to high, 0 to 1. */
double plot_place(double value, double low, double high, bool logarithmic);

/* The part of a segment between two such positions, as shares of its length, that is on the axis;
 * false: none. */
bool plot_clip(double a, double b, double *from, double *to);

/* Must be part of the page's style sheet. */
extern const char plot_style_sheet[];

#endif
