/* Students sampled from an RTRBM, step by step; symbols as in rtrbm.c.
 *
 * A step of few answers is sampled exactly, from the probabilities of all its states. A longer
 * one is sampled by a Gibbs chain that starts at bits drawn from the visible biases alone. The
 * model does not choose the items: they are those of a student of the data. Where every item is
 * visible, all of them are answered in every step. */
#include "base/rng.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* Samples the outcomes of work->now.targets from the probabilities of all states, given the
 * input work->z. */
static void draw_states(const struct model *model, struct rtrbm_work *work,
                        const struct rng *rng)
{
    struct rtrbm_step *now = &work->now;
    const size_t n = now->n_targets, width = work->shape->width;
    double chance[1 << MOST_UNITS], most = -INFINITY, total = 0;
    for (unsigned state = 0; state < 1u << n; state++) {
        memcpy(work->h, work->z, width * sizeof(real));
        chance[state] = 0;
        for (size_t a = 0; a < n; a++) {
            const uint32_t unit = (now->targets[a] & ~1u) | (state >> a & 1);
            rnn_cells->add(1, rtrbm_row(work, unit), work->h, width);
            chance[state] += rtrbm_bias(model, unit);
        }
        chance[state] += (double)rbm_marginal->worth(work->h, width);
        most = fmax(most, chance[state]);
    }
    for (unsigned state = 0; state < 1u << n; state++)
        total += chance[state] = Sleef_cinz_expd1_u10purec(chance[state] - most);
    double u = rng_uniform(rng, 0) * total;
    unsigned drawn = 0;
    while (drawn + 1 < 1u << n && u >= chance[drawn])
        u -= chance[drawn++];
    for (size_t a = 0; a < n; a++)
        now->targets[a] = (now->targets[a] & ~1u) | (drawn >> a & 1);
}

static void draw_chain(const struct model *model, struct rtrbm_work *work, struct rng *rng,
                       int64_t n_gibbs)
{
    struct rtrbm_step *now = &work->now;
    const size_t n = now->n_targets, width = work->shape->width;
    const uint32_t first = rng->part;
    for (int64_t g = 0; g <= n_gibbs; g++) {
        rng->part = (uint32_t)((first * (uint64_t)(n_gibbs + 1) + (uint64_t)g) & 0xffffff);
        memset(work->logit, 0, size_padded(n) * sizeof(real));
        if (g > 0) {
            memcpy(work->h, work->z, width * sizeof(real));
            rtrbm_add_units(work, now->targets, n, work->h);
            vec->sigmoid(work->h, width);
            rng->purpose = RNG_HIDDEN;
            vec->uniform(rng, work->u, width);
            rbm_marginal->draw(work->h, work->u, work->h, width);
            rbm_rows->dot(&work->shape->rows, work->visible, now->targets, n, work->h,
                          work->logit);
        }
        for (size_t a = 0; a < n; a++) {
            const uint32_t right = now->targets[a] | 1;
            work->logit[a] += (real)(rtrbm_bias(model, right) - rtrbm_bias(model, right ^ 1));
        }
        rng->purpose = RNG_VISIBLE;
        vec->uniform(rng, work->u, n);
        vec->binomial(work->logit, work->u, 1, work->count, size_padded(n));
        for (size_t a = 0; a < n; a++)
            now->targets[a] = (now->targets[a] & ~1u) | work->count[a];
    }
}

void rtrbm_sample(const struct model *model, void *memory, size_t s, uint64_t seed,
                  uint32_t who, int64_t n_gibbs, const struct sample_sink *sink)
{
    struct rtrbm_work *work = memory;
    struct rtrbm_step *now = &work->now;
    rtrbm_walk_begin(model, work);
    for (uint64_t q = work->first_step[s]; q < work->first_step[s + 1]; q++) {
        const size_t t = q - work->first_step[s];
        struct rng rng = {.seed = seed,
                          .purpose = RNG_SIMULATE,
                          .part = (uint32_t)(t & 0xffffff),
                          .who = who};
        now->n_targets = work->dense ? model->n_items : work->step[q + 1] - work->step[q];
        for (uint32_t a = 0; a < now->n_targets; a++)
            now->targets[a] = 2 * (work->dense ? a : work->shard->item[work->step[q] + a]);
        memcpy(work->z, work->base, work->shape->width * sizeof(real));
        if (now->n_targets <= MOST_UNITS)
            draw_states(model, work, &rng);
        else
            draw_chain(model, work, &rng, n_gibbs);
        for (size_t a = 0; a < now->n_targets; a++)
            sink->take(sink->arg, now->targets[a] >> 1, now->targets[a] & 1, a == 0);
        rtrbm_add_units(work, now->targets, now->n_targets, work->z);
        rtrbm_walk_on(model, work);
    }
}
