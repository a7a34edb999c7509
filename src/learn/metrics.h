/* Scores of predictions: AUC, log-loss, calibration and others. */
#ifndef COHORT_METRICS_H
#define COHORT_METRICS_H

#include "base/base.h"
#include "base/comm.h"

/* One scored attempt. */
struct prediction {
    float probability; /* of a correct answer */
    uint32_t student;  /* of the data set */
    int32_t group;     /* of the item, -1: none */
    bool correct;
    bool is_first; /* the student's first attempt in the data set */
};

struct score {
    int64_t n, n_students;
    double correct;  /* share of correct answers */
    double cbd;      /* capped binomial deviance, base 10, capped to [0.01, 0.99] */
    double log_loss; /* nats */
    double auc;      /* exact, ties count half; NaN where all outcomes are equal */
    double accuracy; /* at 0.5 */
    double rmse;
    double r2; /* share of variance explained; for numeric targets only (targets.h) */
    double calibration_error; /* mean |share correct - mean probability| over 15 equal bins */
};

/* The metrics of a score by index, for printing and for confidence intervals. */
enum metric {
    METRIC_CBD,
    METRIC_LOG_LOSS,
    METRIC_AUC,
    METRIC_ACCURACY,
    METRIC_RMSE,
    METRIC_CALIBRATION_ERROR,
    N_METRICS
};
extern const char *const metrics_names[N_METRICS];
double *metrics_value(struct score *score, int metric);
bool metrics_up(int metric); /* larger is better */

/* {"n": ..., the metrics by name, null for NaN; "r2" only if it is a number}. */
struct json_t *score_json(const struct score *score);

enum { N_CALIBRATION_BINS = 15 };
struct calibration_bin {
    int64_t n;
    double probability, correct; /* means */
};

/* All collective: each rank passes its own predictions, and every rank gets the same bits, on
 * any number of ranks. */
void metrics_score(const struct comm *comm, const struct prediction *predictions, size_t n,
                   struct score *score);
void metrics_calibration(const struct comm *comm, const struct prediction *predictions,
                         size_t n, struct calibration_bin bins[N_CALIBRATION_BINS]);

/* The scores of bootstrap samples of students (a Poisson(1) weight for each student and
 * replicate, from the seed): students have the same weights in every list of predictions.
 * `scores`: n_replicates, without n_students; NaN unless there is an interval. */
void metrics_resample(const struct comm *comm, const struct prediction *predictions, size_t n,
                      size_t n_replicates, uint64_t seed, struct score *scores);

/* Samples of a single student are all alike, so they say nothing about other students. */
static inline bool metrics_has_interval(int64_t n_students)
{
    return n_students >= 2;
}

/* Says in one sentence that so many students are too few for intervals, or only enough for
 * rough ones, if so. */
void metrics_say_few(int64_t n_students);

/* 95 % intervals from `replicates` such samples; NaN if there is none. */
void metrics_interval(const struct comm *comm, const struct prediction *predictions, size_t n,
                      int replicates, uint64_t seed, struct score *low, struct score *high);

/* Not collective: the middle 95 % of n values, which are reordered, without those that are NaN;
 * and of each metric of n scores. */
void metrics_middle(double *values, size_t n, double *low, double *high);
void metrics_span(const struct score *replicates, size_t n, struct score *low,
                  struct score *high);

#endif
