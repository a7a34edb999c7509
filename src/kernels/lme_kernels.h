/* Kernels of the mixed model, in double precision. */
#ifndef COHORT_LME_KERNELS_H
#define COHORT_LME_KERNELS_H

#include "base/base.h"

/* Like vec.h, compiled once per instruction set: sums have one fixed order, nothing is fused,
 * and the tables differ only in speed. Any n, any alignment. */
struct lme_kernels_table {
    /* With p = 1 / (1 + exp(-eta)): eta = p - outcome, weight = p (1 - p); returns minus the
     * log-likelihood of the outcomes. */
    double (*logistic)(double *eta, const uint8_t *outcome, double *weight, size_t n);
    /* sums = (sum of p - outcome, sum of p (1 - p)) at eta + shift. */
    void (*slope)(const double *eta, const uint8_t *outcome, size_t n, double shift,
                  double sums[2]);
    /* to[at[i]] += round(scale value[i]), |scale value| < 2^51; `at` ascends. */
    void (*add)(int64_t *to, const uint32_t *at, const double *value, size_t n, double scale);
    /* product[i] += scale from[at[i]]; returns the sum of from[at[i]] value[i]. */
    double (*multiply)(const double *from, const uint32_t *at, const double *value, size_t n,
                       double scale, double *product);
};
extern const struct lme_kernels_table *lme_kernels;

#endif
