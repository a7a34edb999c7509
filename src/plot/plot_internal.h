/* Shared by the files that draw plots. */
#ifndef COHORT_PLOT_INTERNAL_H
#define COHORT_PLOT_INTERNAL_H

#include "plot/html.h"
#include "plot/plot.h"

/* A plot with its final ranges and layout. */
struct plot_frame {
    const struct plot *plot;
    struct plot_axis x, y;
    double left, top, width, height; /* of the area inside the axes */
    double whole;                    /* height of the picture */
    size_t n_lines;                  /* of the names below the x axis */
};

double plot_frame_x(const struct plot_frame *f, double x);
double plot_frame_y(const struct plot_frame *f, double y);
/* The position of a y on its axis, 0 to 1 or beyond; the place of such a position. */
double plot_frame_share(const struct plot_frame *f, double y);
double plot_frame_y_at(const struct plot_frame *f, double share);
/* Where a point is that the y axis does not show: 1 above, -1 below; 0: it is shown. */
int plot_frame_side(const struct plot_frame *f, const struct plot_series *s, size_t i);
bool plot_is_there(const struct plot_series *s, size_t i);
void plot_series_draw(FILE *out, const struct plot_frame *f, const struct plot_series *s);

/* The label of a tick. */
struct html_word plot_tick_word(double value, int digits);

/* The numbers of a struct plot as CSV. */
void plot_numbers(FILE *out, const void *what);

/* Begins the picture, which is PLOT_WIDE units wide. */
void plot_begin(FILE *out, double height, const char *title);

enum {
    PLOT_CHARACTER = 8,   /* width of a character */
    PLOT_ROW_HEIGHT = 22, /* height of a row with a name */
    PLOT_LEGEND_LINE = 20 /* height of a line of the legend */
};

/* The shape of a point, which depends on its colour. */
void plot_shape(FILE *out, size_t colour, double x, double y, double r);
/* An open triangle at the edge that points to a value beyond it: up (1) or down (-1). */
void plot_beyond(FILE *out, double x, double y, int side);
/* Whether its points are drawn: not those of a long line. */
bool plot_has_dots(const struct plot_series *s);
/* The dash pattern of a line. */
const char *plot_dashes(const struct plot *plot, const struct plot_series *s);
size_t plot_legend_lines(const struct plot *plot);
void plot_legend(FILE *out, const struct plot *plot);

/* A place in the picture. */
struct plot_spot {
    double x, y;
    const char *name;
};

/* Writes the names of `labels` between two corners, clear of each other and of the points. */
void plot_labels_draw(FILE *out, const struct plot_spot *labels, size_t n,
                      const struct plot_spot *points, size_t n_points,
                      const struct plot_spot corners[2]);

#endif
