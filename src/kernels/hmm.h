/* Forward-backward over many chains of two hidden states side by side. */
#ifndef COHORT_HMM_H
#define COHORT_HMM_H

#include "base/base.h"

/* WIDTH chains of the same length, one per lane. Bit i of right[t] is lane i's outcome in step
 * t; if bit i of known[t] is not set, the outcome is unknown (known = NULL: all are known). */
struct hmm_group {
    size_t n_steps;
    const uint16_t *right, *known;
    /* [n_steps][2][WIDTH]: the probability of each outcome in state 1 and in state 0 (1 for an
     * unknown outcome); NULL: given by guess and slip. */
    const real *chance;
};

/* Per lane: P(state 1 at the first step), P(0 -> 1), P(1 -> 0), P(right | 0), P(wrong | 1). All
 * are in [1e-5, 1 - 1e-5], except that P(1 -> 0) may be 0 in all lanes. */
struct hmm_rates {
    real first[WIDTH], learn[WIDTH], forget[WIDTH], guess[WIDTH], slip[WIDTH];
} __attribute__((aligned(64)));

/* The posterior of a chain given all its outcomes: the expected number of steps in state 1 (the
 * first step; the last; steps with a right, wrong, unknown outcome), of transitions 0 -> 1, and
 * the log-likelihood of the outcomes, LOG + ln 2 * EXPONENT (an integer). */
enum {
    CHAINS_FIRST,
    CHAINS_LAST,
    CHAINS_RIGHT,
    CHAINS_WRONG,
    CHAINS_OTHER,
    CHAINS_LEARNED,
    CHAINS_LOG,
    CHAINS_EXPONENT,
    N_CHAINS_SUMS
};

struct hmm_table {
    /* `scratch` has 3 * n_steps * WIDTH numbers. If the group has `chance`, the first third
     * receives P(state 1 | all outcomes) of each step. */
    void (*smooth)(const struct hmm_group *group, const struct hmm_rates *rates, bool forgets,
                   real *scratch, real sums[N_CHAINS_SUMS][WIDTH]);
    /* to = x * unit, rounded to an integer, so that sums are exact; |x| * unit < 2^51. */
    void (*round)(const real *x, double unit, double *to, size_t n);
};
extern const struct hmm_table *hmm;

#endif
