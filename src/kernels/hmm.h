/* Forward-backward over chains of two hidden states, many side by side. */
#ifndef COHORT_HMM_H
#define COHORT_HMM_H

#include "base/base.h"

/* WIDTH chains of the same length, one in each lane. Bit i of right[t] is lane i's outcome in
 * step t; where bit i of known[t] is not set, there is none (known = NULL: all are known). */
struct hmm_group {
    size_t n_steps;
    const uint16_t *right, *known;
    /* Where outcomes have chances of their own: [n_steps][2][WIDTH], of what was seen if the
     * state is 1 and if it is 0 (1 where nothing was); else NULL, and guess and slip say it. */
    const real *chance;
};

/* Of each lane: P(state 1 at first), P(0 -> 1), P(1 -> 0), P(right | 0), P(wrong | 1); none
 * nearer to 0 or 1 than 1e-5, but P(1 -> 0) may be 0 in all lanes. */
struct hmm_rates {
    real first[WIDTH], learn[WIDTH], forget[WIDTH], guess[WIDTH], slip[WIDTH];
} __attribute__((aligned(64)));

/* What is known of a chain after all its outcomes: the expected number of steps in state 1 (the
 * first; the last; those whose outcome is right, wrong, not known), of moves 0 -> 1, and the
 * logarithm of the probability of the outcomes, LOG + ln 2 * EXPONENT (a whole number). */
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
    /* `scratch` has 3 * n_steps * WIDTH numbers; its first third receives P(state 1 | all
     * outcomes) of each step where the group has `chance`. */
    void (*smooth)(const struct hmm_group *group, const struct hmm_rates *rates, bool forgets,
                   real *scratch, real sums[N_CHAINS_SUMS][WIDTH]);
    /* to = x in whole units, so that sums of them are exact; |x| * unit < 2^51. */
    void (*round)(const real *x, double unit, double *to, size_t n);
};
extern const struct hmm_table *hmm;

#endif
