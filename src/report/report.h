/* An HTML page about one or more runs. */
#ifndef COHORT_REPORT_H
#define COHORT_REPORT_H

#include "base/base.h"
#include "base/comm.h"
#include "data/dataset.h"

/* Runs that are drawn on a page. */
enum { REPORT_MOST_RUNS = 8, REPORT_ALL = N_SPLITS };

struct report_plan {
    const char *data;    /* another data set, or "" */
    const char *title;   /* or "" */
    const char *output;  /* path of the page */
    const char *figures; /* directory for its pictures, or "" */
    int split;           /* an enum split or REPORT_ALL; another split is used if it is empty */
    int64_t n_rows;      /* most rows of a table */
    const char *student; /* the page is about this student; "": about the class */
    bool names;          /* show the names of students */
    bool compares;       /* the page is about several runs: it shows no students */
    int metric;          /* that runs are compared by: 1 + an enum metric; 0: the monitored */
};

/* Collective: measures runs or checkpoints one after the other, then writes the page, all of it
 * or nothing. Its bytes are the same on any number of ranks. A single path may also be the
 * directory of a cross-validation, of a sweep, or of `cohort auto`. */
CHECKED enum status report_write(const struct comm *comm, const char *const *paths, size_t n,
                                 const struct report_plan *plan);

#endif
