/* Predictions that ignore the student, to compare models with. */
#ifndef COHORT_BASELINE_H
#define COHORT_BASELINE_H

#include "base/base.h"
#include "runs/inference.h"
#include "runs/scoring.h"

/* Collective: predicts the attempts of `predictions` by the mean of each item: the probability
 * of a correct answer is (right + 1) / (n + 2), counted over the item's training attempts. NULL
 * if the training data are not available; caller frees. */
struct prediction *baseline_items(const struct inference *inference,
                                  const struct predictions *predictions);

/* Collective: mean and variance of the training students' targets. */
struct baseline_target {
    double mean, variance;
};
struct baseline_target baseline_target(const struct inference *inference);

#endif
