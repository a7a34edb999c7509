/* What the files of `cohort export` share. */
#ifndef COHORT_EXPORT_INTERNAL_H
#define COHORT_EXPORT_INTERNAL_H

#include "runs/inference.h"

/* Collective: the graph a model has learned, as a table of edges (.csv) or, for those whose
 * gate is open at least so far, a drawing for Graphviz (.dot). */
CHECKED enum status command_export_graph(const struct inference *inference, const char *output,
                                         double least);

#endif
