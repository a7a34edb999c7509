/* The exact gradient of one step of an RTRBM; symbols as in rtrbm.c.
 *
 * One answer, with outcome y, q = P(the other outcome | past) and s_k = sigma(x + W^k):
 *
 *     e        = q (s_y - s_other)
 *     dW^y     = q s_y
 *     dW^other = -q s_other
 *     dc^y     = q = -dc^other
 *
 * Several answers: all 2^n states of the step are summed. */
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

void rtrbm_learn_one(const struct model *model, struct rtrbm_work *work, real *x,
                     struct tally *tally)
{
    const struct rtrbm_step *now = &work->now;
    const size_t width = work->shape->width;
    const uint32_t unit = now->targets[0], other = unit ^ 1;
    rtrbm_add_units(work, now->clamped, now->n_clamped, x);
    /* s0 belongs to the other outcome, s1 to the observed one */
    const real worth = rbm_marginal->pair(x, rtrbm_row(work, other), rtrbm_row(work, unit),
                                          width, work->s0, work->s1);
    const double logit = (double)worth + rtrbm_bias(model, unit) - rtrbm_bias(model, other);
    const double u = Sleef_cinz_expd1_u10purec(-fabs(logit));
    const double q = logit > 0 ? u / (1 + u) : 1 / (1 + u);
    tally_add_loss(tally, Sleef_cinz_log1pd1_u10purec(u) + fmax(-logit, 0));
    real *sum = rtrbm_touch(work, unit);
    if (sum != NULL)
        rnn_cells->add((real)q, work->s1, sum, width);
    sum = rtrbm_touch(work, other);
    if (sum != NULL)
        rnn_cells->add((real)-q, work->s0, sum, width);
    rtrbm_touch_bias(work, unit, (real)q);
    rtrbm_touch_bias(work, other, (real)-q);
    for (size_t j = 0; j < width; j++)
        x[j] = (real)q * (work->s1[j] - work->s0[j]);
}

/* z = x plus the rows of a state, whose bit a is the outcome of target a. */
static void enter_state(const struct rtrbm_work *work, const real *x, unsigned state, real *z)
{
    memcpy(z, x, work->shape->width * sizeof *z);
    for (size_t a = 0; a < work->now.n_targets; a++) {
        const uint32_t unit = (work->now.targets[a] & ~1u) | (state >> a & 1);
        rnn_cells->add(1, rtrbm_row(work, unit), z, work->shape->width);
    }
}

void rtrbm_learn_states(const struct model *model, struct rtrbm_work *work, real *x,
                        struct tally *tally)
{
    const struct rtrbm_step *now = &work->now;
    const size_t width = work->shape->width, n = now->n_targets;
    const unsigned n_states = 1u << n;
    double chance[1 << MOST_UNITS], most = -INFINITY, total = 0;
    unsigned seen = 0;
    rtrbm_add_units(work, now->clamped, now->n_clamped, x);
    for (size_t a = 0; a < n; a++)
        seen |= (now->targets[a] & 1) << a;
    for (unsigned state = 0; state < n_states; state++) {
        enter_state(work, x, state, work->z);
        chance[state] = (double)rbm_marginal->worth(work->z, width);
        for (size_t a = 0; a < n; a++)
            chance[state] += rtrbm_bias(model, (now->targets[a] & ~1u) | (state >> a & 1));
        most = fmax(most, chance[state]);
    }
    const double got = chance[seen];
    for (unsigned state = 0; state < n_states; state++)
        total += chance[state] = Sleef_cinz_expd1_u10purec(chance[state] - most);
    tally_add_loss(tally, most + Sleef_cinz_logd1_u10purec(total) - got);

    /* sum: data minus model; enumerated: the same by unit and outcome */
    memset(work->sum, 0, width * sizeof *work->sum);
    memset(work->enumerated, 0, 2 * n * width * sizeof *work->enumerated);
    real bias[2 * MOST_UNITS] = {0};
    for (unsigned state = 0; state < n_states; state++) {
        const real share = (real)((state == seen) - chance[state] / total);
        enter_state(work, x, state, work->z);
        vec->sigmoid(work->z, width);
        rnn_cells->add(share, work->z, work->sum, width);
        for (size_t a = 0; a < n; a++) {
            rnn_cells->add(share, work->z,
                           work->enumerated + (2 * a + (state >> a & 1)) * width, width);
            bias[2 * a + (state >> a & 1)] += share;
        }
    }
    for (size_t k = 0; k < 2 * n; k++) {
        const uint32_t unit = (now->targets[k / 2] & ~1u) | (k & 1);
        real *sum = rtrbm_touch(work, unit);
        if (sum != NULL)
            rnn_cells->add(1, work->enumerated + k * width, sum, width);
        rtrbm_touch_bias(work, unit, bias[k]);
    }
    memcpy(x, work->sum, width * sizeof *x);
}
