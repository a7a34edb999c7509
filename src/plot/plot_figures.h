/* Pictures of a page as files of their own, for papers and slides. */
#ifndef COHORT_PLOT_FIGURES_H
#define COHORT_PLOT_FIGURES_H

#include "base/base.h"
#include <stdio.h>

/* From plot_figures_begin until plot_figures_write, every picture drawn is kept. */
void plot_figures_begin(void);

/* Keeps a picture, if they are kept: its SVG element, by the function that draws it on a page,
 * and its numbers as CSV. */
void plot_figures_keep(const char *title, const void *what,
                       void (*draw)(FILE *out, const void *what),
                       void (*numbers)(FILE *out, const void *what));

/* Writes NN-TITLE.svg, .csv and, if rsvg-convert is installed, .pdf for each kept picture into
 * `directory`, which is created, and forgets them. Sets how many there were. */
CHECKED enum status plot_figures_write(const char *directory, size_t *n, bool *has_pdf);

#endif
