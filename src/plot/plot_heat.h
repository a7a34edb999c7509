/* Heat maps as SVG inside an HTML page. */
#ifndef COHORT_PLOT_HEAT_H
#define COHORT_PLOT_HEAT_H

#include "base/base.h"
#include <stdio.h>

enum plot_heat_mark { HEAT_PLAIN, HEAT_RIGHT, HEAT_WRONG, HEAT_OPEN, HEAT_THIN };

/* With names, more columns than this do not fit. */
enum { PLOT_HEAT_COLUMNS = 15 };

/* Rows are named on the left; columns above the cells or, without names, by numbers below them,
 * from first_number on. */
struct plot_heat {
    const char *title; /* what the map shows, for screen readers */
    size_t n_rows, n_columns;
    const char *const *rows, *const *columns; /* columns: may be NULL */
    size_t first_number;
    const char *label;   /* below the numbers */
    const char *scale;   /* what the shades mean */
    const double *value; /* rows x columns, 0 to 1; NaN: an empty cell */
    double most;         /* not 0: values from -most to most, in percentage points */
    const uint8_t *mark; /* likewise an enum plot_heat_mark; HEAT_THIN: a thin cell */
    const bool *gap;     /* before each row; NULL: none */
};

void plot_heat_draw(FILE *out, const struct plot_heat *heat);

/* Must be part of the page's style sheet. */
extern const char plot_heat_style_sheet[];

#endif
