/* What the files of `cohort auto` share. Nothing else includes this. */
#ifndef COHORT_AUTO_INTERNAL_H
#define COHORT_AUTO_INTERNAL_H

#include "data/data_shape.h"
#include "sweep/auto.h"
#include "sweep/portfolio.h"

enum { N_RUNS = 2 }; /* of a kind, in the blend */

/* The best runs of a kind so far, best first; run == NULL: there is none. */
struct candidate {
    const struct portfolio_entry *entry;
    struct auto_model runs[N_RUNS];
    double seconds; /* of one trial */
};

struct auto_work {
    const struct comm *comm;
    const struct auto_plan *plan;
    struct data_shape shape;
    struct candidate kinds[16];
    size_t n_kinds;
    struct auto_model
        *models; /* after the sweeps: the best of each kind, then the second best */
    size_t n_models;
    int64_t n_trials; /* used up */
    double started;
};

void auto_forget(struct auto_model *model);

/* auto_sweeps.c, collective: the kinds with their defaults; settings around the best kinds. */
CHECKED enum status auto_sweeps_kinds(struct auto_work *work);
CHECKED enum status auto_sweeps_around(struct auto_work *work);

/* auto_blend.c, collective: lists the models under their names; keeps the members that count,
 * best first. */
CHECKED enum status auto_blend_name(struct auto_work *work);
CHECKED enum status auto_blend_best(struct auto_work *work, struct auto_result *result);

#endif
