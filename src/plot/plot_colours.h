/* The colours of pages and pictures. */
#ifndef COHORT_PLOT_COLOURS_H
#define COHORT_PLOT_COLOURS_H

#include <stddef.h>
#include <stdio.h>

/* The rules of the style sheet that set a variable for each colour: --ink, --c0, ... */
void plot_colours_style(FILE *out);

/* The colour on paper of a name of n bytes without the "--". */
const char *plot_colours_of(const char *name, size_t n);

#endif
