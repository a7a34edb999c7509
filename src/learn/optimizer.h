/* How a sum of statistics moves the parameters. */
#ifndef COHORT_OPTIMIZER_H
#define COHORT_OPTIMIZER_H

#include "base/base.h"
#include "base/config.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

enum optimizer_method { METHOD_SGD, METHOD_ADAM };
enum optimizer_schedule { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE, SCHEDULE_STEP };

struct optimizer_options {
    int method, schedule;
    double rate, momentum, decay, bias_rate;
    double beta1, beta2, epsilon;
    double clip, average;
    int64_t warm_up;
    double floor, drop;
    int64_t drop_every;
};
extern const struct option optimizer_table[];
extern const size_t n_optimizer_table;

/* Each rank moves its own slice of the parameters and holds the state (momentum, Adam's means)
 * of that slice only. */
struct optimizer {
    struct optimizer_options options;
    const struct params *params;
    const struct exact_slices *slices;
    int n_slots;
    real *slot[3];      /* flat vectors; the own slice is meaningful */
    real *rate, *decay; /* one row of coefficients, for the widest panel */
    int64_t n_epochs;   /* of the schedule */
    double largest;     /* |parameter| after the last step, of the own slice */
};

void optimizer_create(struct optimizer *optimizer, const struct optimizer_options *options,
                      const struct params *params, const struct exact_slices *slices,
                      int64_t n_epochs);
void optimizer_destroy(struct optimizer *optimizer);
extern const char *const optimizer_slot_names[2][3]; /* [method][slot] */

/* The rate of step `step` (counted from 0) in an epoch that has n_steps. */
double optimizer_rate(const struct optimizer *optimizer, int64_t step, int64_t n_steps);

/* Collective: moves params->value by gradient ascent. `tally` holds the sum in the own slice
 * (see exact_sum). */
void optimizer_step(struct optimizer *optimizer, const struct tally *tally, int64_t step,
                    int64_t n_steps);

/* Collective: where averages of the parameters are kept, they and the parameters change places;
 * elsewhere nothing happens. */
void optimizer_swap(struct optimizer *optimizer);

#endif
