/* Default settings that follow from the shape of the data. */
#ifndef COHORT_DEFAULTS_H
#define COHORT_DEFAULTS_H

#include "base/base.h"
#include "base/config.h"
#include "data/data_shape.h"
#include <stdio.h>

/* Adds the defaults of the model kind that `config` chooses, as suggestions. They rank below
 * everything set, preset or continued. `out` (NULL: none) gets a line for each, with the
 * reason. */
CHECKED enum status defaults_suggest(struct config *config, const struct data_shape *shape,
                                     FILE *out);

#endif
