/* Which models are worth trying on a data set, and which settings around their defaults. */
#ifndef COHORT_PORTFOLIO_H
#define COHORT_PORTFOLIO_H

#include "base/base.h"
#include "data/data_shape.h"

struct portfolio_entry {
    const char *kind;
    bool (*fits)(const struct data_shape *shape); /* NULL: any data */
    const char
        *unfit; /* why no line of the kind fits; NULL: another line says it, or one fits */
    /* Lists of settings for a sweep; NULL: there is nothing to vary. */
    const char *around;
    bool in_rungs; /* trained by epochs, so that a bad trial shows early */
};

extern const struct portfolio_entry portfolio[];
extern const size_t n_portfolio;

static inline bool portfolio_fits(const struct portfolio_entry *entry,
                                  const struct data_shape *shape)
{
    return entry->fits == NULL || entry->fits(shape);
}

#endif
