/* A page about training that goes on. */
#ifndef COHORT_REPORT_WATCH_H
#define COHORT_REPORT_WATCH_H

#include "report/report.h"

struct report_watch_plan {
    double every; /* seconds between two looks at the files */
    double wait;  /* seconds to wait for a run that has not begun, or has stopped */
};

/* Collective: writes the page again whenever the files of the run, the sweep, the
 * cross-validation or the `cohort auto` in `directory` have changed, until it is finished. The
 * page of a finished run is the report that report_write would write. STOPPED after a signal, or
 * if training has stopped for too long; BAD_USER if no run has begun. */
CHECKED enum status report_watch(const struct comm *comm, const char *directory,
                                 const struct report_plan *report,
                                 const struct report_watch_plan *plan);

#endif
