/* What the files of `cohort export` share. */
#ifndef COHORT_EXPORT_INTERNAL_H
#define COHORT_EXPORT_INTERNAL_H

#include "runs/inference.h"

/* Collective: writes the graph of a model as a table of edges (.csv) or as a drawing for
 * Graphviz (.dot) of the edges whose gate is at least `least`. */
CHECKED enum status command_export_graph(const struct inference *inference, const char *output,
                                         double least);

#endif
