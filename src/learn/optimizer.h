/* Optimizers: update the parameters from summed gradients. */
#ifndef COHORT_OPTIMIZER_H
#define COHORT_OPTIMIZER_H

#include "base/base.h"
#include "base/config.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

enum optimizer_method { METHOD_SGD, METHOD_ADAM };
enum optimizer_gradient { GRADIENT_MEAN, GRADIENT_SUM };

struct optimizer_options {
    int method, gradient, schedule; /* schedule: see learning_rate.h */
    double rate, momentum, decay, bias_rate;
    double beta1, beta2, epsilon;
    double clip, average;
    int64_t warm_up;
    double floor, drop;
    int64_t drop_every;
};
extern const struct option optimizer_table[];
extern const size_t n_optimizer_table;

/* Each rank updates its own slice of the parameters and keeps the state (momentum, Adam's
 * moments) of that slice only. */
struct optimizer {
    struct optimizer_options options;
    const struct params *params;
    const struct exact_slices *slices;
    int n_slots;
    real *slot[3];      /* flat vectors; only the own slice is meaningful */
    real *rate, *decay; /* coefficients of one row, as wide as the widest panel */
    int64_t n_epochs;   /* length of the schedule */
    double share;       /* factor of the summed gradient: 1 / students per step, or 1 */
    double largest;     /* largest |parameter| of the own slice after the last step */
};

/* n_epochs: length of the schedule; n_students: in a mini-batch, on average. */
void optimizer_create(struct optimizer *optimizer, const struct optimizer_options *options,
                      const struct params *params, const struct exact_slices *slices,
                      int64_t n_epochs, double n_students);
void optimizer_destroy(struct optimizer *optimizer);
extern const char *const optimizer_slot_names[2][3]; /* [method][slot] */

/* Collective: one step of gradient ascent on params->value. The own slice of `tally` holds the
 * sum over all ranks (see exact_sum). */
void optimizer_step(struct optimizer *optimizer, const struct tally *tally, int64_t step,
                    int64_t n_steps);

/* Collective: swaps the parameters and their running mean; does nothing without a mean. */
void optimizer_swap(struct optimizer *optimizer);

#endif
