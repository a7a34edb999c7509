/* A page about one run or several, to be read and mailed. */
#ifndef COHORT_REPORT_H
#define COHORT_REPORT_H

#include "base/base.h"
#include "base/comm.h"
#include "data/dataset.h"

enum { REPORT_MOST_RUNS = 8, REPORT_ALL = N_SPLITS };

struct report_plan {
    const char *data;   /* another data set, or "" */
    const char *title;  /* or "" */
    const char *output; /* the file */
    int split;          /* an enum split, or REPORT_ALL; another one where it has no attempts */
    int64_t n_rows;     /* of long tables */
};

/* Collective: runs or checkpoints are measured one after the other, then the page is written,
 * whole or not at all; its bytes are the same at any number of ranks. */
CHECKED enum status report_write(const struct comm *comm, const char *const *paths, size_t n,
                                 const struct report_plan *plan);

#endif
