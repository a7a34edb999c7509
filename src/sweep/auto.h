/* From a data set to the best model: a portfolio of trials, their blend and a leaderboard. */
#ifndef COHORT_AUTO_H
#define COHORT_AUTO_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/metrics.h"
#include "runs/paired.h"

struct auto_plan {
    const char *data, *directory;
    int64_t trials; /* at most this many */
    double minutes; /* begin no sweep that would take longer; 0: no limit */
    bool refit;     /* train the members of the blend again, on validation attempts too */
};

/* A model of the leaderboard. */
struct auto_model {
    char *run, *kind, *settings; /* settings: what differs from the default */
    double valid;                /* validation log-loss */
    double weight;               /* in the blend */
};

struct auto_result {
    size_t n;                  /* models */
    struct auto_model *models; /* the best of each kind, best first; then second best runs */
    bool blended;              /* there is a blend, with weights of several models */
    struct paired paired;      /* entries: the models in this order, the blend, baselines */
    int lock;                  /* of the directory, until auto_free */
    int split;                 /* attempts that were compared: TEST, or VALID */
    double item_means;         /* their validation log-loss; NAN: unknown */
    char *best;                /* the run to predict with */
};

/* Collective: trains what is missing and blends. Free the result after a failure too. */
CHECKED enum status auto_run(const struct comm *comm, const struct auto_plan *plan,
                             struct auto_result *result);
void auto_free(struct auto_result *result);

#endif
