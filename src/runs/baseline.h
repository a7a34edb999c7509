/* Predictions that know nothing of the student, to compare models with. */
#ifndef COHORT_BASELINE_H
#define COHORT_BASELINE_H

#include "base/base.h"
#include "runs/inference.h"
#include "runs/scoring.h"

/* Collective: the attempts of `predictions` by the mean of each item instead: the probability
 * that it is answered correctly is (right + 1) / (n + 2), counted over the training attempts,
 * whoever the student is. NULL where the data the model was trained on are not at hand; caller
 * frees. */
struct prediction *baseline_items(const struct inference *inference,
                                  const struct predictions *predictions);

/* Collective: the training students' targets. */
struct baseline_target {
    double mean, variance;
};
struct baseline_target baseline_target(const struct inference *inference);

#endif
