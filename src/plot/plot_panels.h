/* Small multiples: the same plot for several things, on the same axes. */
#ifndef COHORT_PLOT_PANELS_H
#define COHORT_PLOT_PANELS_H

#include "base/base.h"
#include <stdio.h>

/* Shares (dots, with bars from low to high) and a line to compare them with, both at x = 1, 2,
 * ..., n. */
struct plot_panel {
    const char *name;
    size_t n;
    const double *share, *low, *high, *line;
    const double *weight; /* how many answers a point has; for the numbers only */
};

struct plot_panels {
    const char *title;               /* what the plot shows, for screen readers */
    const char *dots, *line, *label; /* in the legend; of the x axis */
    const struct plot_panel *list;
    size_t n, longest; /* panels; points of the x axis */
};

void plot_panels_draw(FILE *out, const struct plot_panels *panels);

#endif
