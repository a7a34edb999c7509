/* Forward-backward for chains of two hidden states; see src/kernels/hmm.h.
 *
 *              learn
 *          0 --------> 1        e1_t, e0_t: probability of the outcome of step t
 *            <--------          in state 1 and in state 0
 *              forget
 *
 * Forward: f_t and u_t are the probabilities of state 1 and state 0 at t, given the outcomes
 * before t.
 *
 *     c_t     = f_t e1_t + u_t e0_t
 *     f_{t+1} = ((1 - forget) f_t e1_t + learn u_t e0_t) / c_t
 *     u_{t+1} = (forget f_t e1_t + (1 - learn) u_t e0_t) / c_t
 *
 * Backward: b_t(state) = P(outcomes from t on | state at t) / P(outcomes from t on | outcomes
 * before t), written b1_t and b0_t; both are 1 after the last step.
 *
 *     b1_t = e1_t / c_t ((1 - forget) b1_{t+1} + forget b0_{t+1})
 *     b0_t = e0_t / c_t (learn b1_{t+1} + (1 - learn) b0_{t+1})
 *
 * Given all outcomes:
 *
 *     P(state 1 at t)   = f_t b1_t
 *     P(0 -> 1 after t) = u_t e0_t / c_t learn b1_{t+1}
 *
 * All numbers stay near 1, so no logarithms are needed; f_t, u_t and 1 / c_t are all that the
 * forward pass stores. u_t is not computed as 1 - f_t: after many right outcomes it is too
 * small for a difference from 1, and after wrong ones it matters again. Without forgetting it
 * has no lower limit. A group in which it falls below SHALLOW is computed again with u_t in
 * units of UNIT^-depth, with a depth per lane. At depth > 0, u_t is negligible compared with
 * f_t, so both ways give the same bits. The probability of all outcomes is a product, from
 * which the power of two is extracted every few steps.
 *
 * A step depends on the previous one, with a latency of about 40 cycles for both passes;
 * several independent registers side by side hide it. */
#include "kernels/hmm.h"
#include "kernels/simd.h"

#ifdef COHORT_REAL_DOUBLE
enum { MANTISSA_BITS = 52, EXPONENT_OF_ONE = 1023 };
#define UNIT ((real)0x1p512)
#define SHALLOW ((real)0x1p-900)
#else
enum { MANTISSA_BITS = 23, EXPONENT_OF_ONE = 127 };
#define UNIT ((real)0x1p64)
#define SHALLOW ((real)0x1p-92) /* a step multiplies by 2^-34 at least: nothing is denormal */
#endif
enum { STEPS_TO_UNDERFLOW = 4 }; /* a step's factor is above 1e-6 */

/* Expands the bits of a word to masks in the lanes of register r. */
static inline rmask spread(uint16_t word, const rmask *bit, int r)
{
    return (((rmask){0} + word) & bit[r]) == bit[r];
}

/* The probabilities of wrong outcomes in both states. An exclusive or of their bits with
 * `other` gives those of right outcomes. */
struct chances {
    rreal wrong1[REGISTERS], wrong0[REGISTERS];
    rmask other1[REGISTERS], other0[REGISTERS];
};

static inline __attribute__((always_inline)) void look_up(const struct chances *c,
                                                          const struct hmm_group *group,
                                                          size_t t, const rmask *bit, int r,
                                                          rreal *e1, rreal *e0)
{
    if (group->chance != NULL) {
        *e1 = IN(group->chance, 2 * t * WIDTH + (size_t)r * LANES);
        *e0 = IN(group->chance, (2 * t + 1) * WIDTH + (size_t)r * LANES);
        return;
    }
    const rmask right = spread(group->right[t], bit, r);
    *e1 = (rreal)((rmask)c->wrong1[r] ^ (right & c->other1[r]));
    *e0 = (rreal)((rmask)c->wrong0[r] ^ (right & c->other0[r]));
    if (group->known != NULL) {
        const rmask known = spread(group->known[t], bit, r);
        *e1 = simd_select(known, *e1, simd_all(1));
        *e0 = simd_select(known, *e0, simd_all(1));
    }
}

/* Changes the unit of u, and `depth` with it, so that u stays near 1. */
static inline __attribute__((always_inline)) void measure(rreal *u, rmask *depth)
{
    const rmask less = *u < 1 / UNIT, more = (*u > 1) & (*depth > 0);
    *u = simd_select(less, *u * UNIT, simd_select(more, *u * (1 / UNIT), *u));
    *depth += more - less; /* a mask that is true is -1 */
}

/* Returns false, without sums, if `deep` is false but some lane needs it. */
static inline __attribute__((always_inline)) bool
smooth_as(const struct hmm_group *group, const struct hmm_rates *rates, bool forgets, bool deep,
          real *scratch, real sums[N_CHAINS_SUMS][WIDTH])
{
    const size_t n_steps = group->n_steps;
    const rmask mantissa = (((rmask){0} + 1) << MANTISSA_BITS) - 1;
    const rmask one_bits = ((rmask){0} + EXPONENT_OF_ONE) << MANTISSA_BITS;
    real *const kept = scratch, *const inverse = scratch + n_steps * WIDTH;
    real *const other_kept = scratch + 2 * n_steps * WIDTH;
    struct chances c;
    rmask bit[REGISTERS], power[REGISTERS] = {0}, depth[REGISTERS] = {0};
    rreal f[REGISTERS], u[REGISTERS], product[REGISTERS], lowest[REGISTERS];
    UNROLL for (int r = 0; r < REGISTERS; r++)
    {
        const size_t at = (size_t)r * LANES;
        for (int i = 0; i < LANES; i++)
            bit[r][i] = 1 << (r * LANES + i);
        c.wrong1[r] = IN(rates->slip, at);
        c.wrong0[r] = 1 - IN(rates->guess, at);
        c.other1[r] = (rmask)c.wrong1[r] ^ (rmask)(1 - IN(rates->slip, at));
        c.other0[r] = (rmask)c.wrong0[r] ^ (rmask)IN(rates->guess, at);
        f[r] = IN(rates->first, at);
        u[r] = 1 - f[r];
        product[r] = lowest[r] = simd_all(1);
    }
    for (size_t t = 0; t < n_steps; t++) {
        UNROLL for (int r = 0; r < REGISTERS; r++)
        {
            const size_t at = (size_t)r * LANES;
            const rreal learn = IN(rates->learn, at);
            rreal e1, e0;
            look_up(&c, group, t, bit, r, &e1, &e0);
            const rreal one = f[r] * e1, zero = u[r] * e0;
            const rreal all = one + (deep ? (rreal)((rmask)zero & (depth[r] == 0)) : zero);
            const rreal over = 1 / all;
            AT(kept, t * WIDTH + at) = f[r];
            AT(other_kept, t * WIDTH + at) = u[r];
            AT(inverse, t * WIDTH + at) = over;
            product[r] *= all;
            const rreal known = one * over, unknown = zero * over;
            u[r] = (1 - learn) * unknown;
            if (forgets) {
                const rreal forget = IN(rates->forget, at);
                f[r] = (1 - forget) * known + learn * unknown;
                u[r] += forget * known;
            } else if (deep) {
                f[r] = known + (rreal)((rmask)(learn * unknown) & (depth[r] == 0));
                measure(&u[r], &depth[r]);
            } else {
                f[r] = known + learn * unknown;
                lowest[r] = simd_select(u[r] < lowest[r], u[r], lowest[r]);
            }
        }
        if (t % STEPS_TO_UNDERFLOW == STEPS_TO_UNDERFLOW - 1)
            UNROLL for (int r = 0; r < REGISTERS; r++)
            {
                const rmask bits = (rmask)product[r];
                power[r] += (bits >> MANTISSA_BITS) - EXPONENT_OF_ONE;
                product[r] = (rreal)((bits & mantissa) | one_bits);
            }
    }

    if (!forgets && !deep)
        for (int r = 0; r < REGISTERS; r++)
            for (int i = 0; i < LANES; i++)
                if (lowest[r][i] < SHALLOW)
                    return false;

    rreal next1[REGISTERS], next0[REGISTERS], b1[REGISTERS] = {0}, smoothed[REGISTERS] = {0};
    rreal right[REGISTERS] = {0}, wrong[REGISTERS] = {0}, other[REGISTERS] = {0};
    rreal learned[REGISTERS] = {0};
    UNROLL for (int r = 0; r < REGISTERS; r++) next1[r] = next0[r] = simd_all(1);
    for (size_t t = n_steps; t-- > 0;) {
        UNROLL for (int r = 0; r < REGISTERS; r++)
        {
            const size_t at = (size_t)r * LANES;
            const rreal learn = IN(rates->learn, at), before = IN(kept, t * WIDTH + at);
            const rreal over = IN(inverse, t * WIDTH + at);
            rreal e1, e0;
            look_up(&c, group, t, bit, r, &e1, &e0);
            const rreal w0 = e0 * over, b0 = w0 * next0[r];
            if (forgets)
                learned[r] += IN(other_kept, t * WIDTH + at) * w0 * b1[r];
            b1[r] = e1 * over * next1[r];
            smoothed[r] = before * b1[r];
            const rmask is_right = spread(group->right[t], bit, r);
            right[r] += (rreal)(is_right & (rmask)smoothed[r]);
            if (group->known == NULL)
                wrong[r] += (rreal)(~is_right & (rmask)smoothed[r]);
            else {
                const rmask known = spread(group->known[t], bit, r);
                wrong[r] += (rreal)(~is_right & known & (rmask)smoothed[r]);
                other[r] += (rreal)(~known & (rmask)smoothed[r]);
            }
            if (group->chance != NULL)
                AT(kept, t * WIDTH + at) = smoothed[r];
            next1[r] = b1[r];
            next0[r] = (1 - learn) * b0 + learn * b1[r];
            if (forgets) {
                const rreal forget = IN(rates->forget, at);
                next1[r] = (1 - forget) * b1[r] + forget * b0;
            }
            if (t == n_steps - 1)
                AT(sums[CHAINS_LAST], at) = smoothed[r];
        }
    }
    UNROLL for (int r = 0; r < REGISTERS; r++)
    {
        const size_t at = (size_t)r * LANES;
        AT(sums[CHAINS_FIRST], at) = smoothed[r];
        AT(sums[CHAINS_RIGHT], at) = right[r];
        AT(sums[CHAINS_WRONG], at) = wrong[r];
        AT(sums[CHAINS_OTHER], at) = other[r];
        /* without forgetting, a skill is learned at most once */
        AT(sums[CHAINS_LEARNED], at) = forgets ? learned[r] * IN(rates->learn, at)
                                               : IN(sums[CHAINS_LAST], at) - smoothed[r];
        AT(sums[CHAINS_LOG], at) = simd_log(product[r]);
        AT(sums[CHAINS_EXPONENT], at) = __builtin_convertvector(power[r], rreal);
    }
    return true;
}

static void smooth(const struct hmm_group *group, const struct hmm_rates *rates, bool forgets,
                   real *scratch, real sums[N_CHAINS_SUMS][WIDTH])
{
    /* each combination of inputs is compiled as a separate loop */
    const struct hmm_group plain = {group->n_steps, group->right, NULL, NULL};
    const struct hmm_group gaps = {group->n_steps, group->right, group->known, NULL};
    bool done = false;
    if (group->chance != NULL)
        done = smooth_as(group, rates, forgets, false, scratch, sums);
    else if (group->known != NULL && forgets)
        done = smooth_as(&gaps, rates, true, false, scratch, sums);
    else if (group->known != NULL)
        done = smooth_as(&gaps, rates, false, false, scratch, sums);
    else if (forgets)
        done = smooth_as(&plain, rates, true, false, scratch, sums);
    else
        done = smooth_as(&plain, rates, false, false, scratch, sums);
    if (!done)
        smooth_as(group, rates, false, true, scratch, sums);
}

static void round_units(const real *x, double unit, double *to, size_t n)
{
    const double shift = 0x1.8p52; /* its last bit is worth 1, so adding it rounds */
    for (size_t i = 0; i < n; i++)
        to[i] = ((double)x[i] * unit + shift) - shift;
}

extern const struct hmm_table KERNEL(hmm);
const struct hmm_table KERNEL(hmm) = {.smooth = smooth, .round = round_units};
