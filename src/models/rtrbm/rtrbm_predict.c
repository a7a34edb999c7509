/* Prediction with an RTRBM; symbols as in rtrbm.c.
 *
 * A walk along the student's steps updates x. The two states of the answer to predict are
 * compared with the hidden units summed out, given the earlier shown answers of the same step.
 * Answers not yet given are absent. So p is exact:
 *
 *     log P(1) / P(0) = c^1 - c^0 + sum_j S(z_j + W^1_j) - S(z_j + W^0_j)
 *     S(z) = log(1 + e^z)
 *
 * Where all items are visible (dense), p depends on the steps before alone: rtrbm_dense.c. */
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static void set_base(const struct model *model, struct rtrbm_work *work, size_t panel)
{
    const struct rtrbm_shape *shape = work->shape;
    memcpy(work->base, params_rows(&model->params, panel), shape->hidden * sizeof *work->base);
    for (size_t j = shape->hidden; j < shape->width; j++)
        work->base[j] = BINARY_OFF;
}

void rtrbm_walk_begin(const struct model *model, struct rtrbm_work *work)
{
    rtrbm_weigh(model, work);
    set_base(model, work, PANEL_FIRST);
    memcpy(work->z, work->base, work->shape->width * sizeof *work->z);
}

/* On entry work->z includes the shown answers of the step. It becomes the state, and work->base
 * the input of the next step. */
void rtrbm_walk_on(const struct model *model, struct rtrbm_work *work)
{
    const struct rtrbm_shape *shape = work->shape;
    vec->sigmoid(work->z, shape->width);
    set_base(model, work, PANEL_BIAS);
    rnn_cells->combine(work->z, shape->hidden, work->recurrent, shape->width, work->base,
                       shape->width);
}

static double predict_one(const struct model *model, struct rtrbm_work *work, uint32_t item)
{
    const uint32_t wrong = 2 * item, right = wrong + 1;
    const real worth =
        rbm_marginal->pair(work->z, rtrbm_row(work, wrong), rtrbm_row(work, right),
                           work->shape->width, work->s0, work->s1);
    const double logit = (double)worth + rtrbm_bias(model, right) - rtrbm_bias(model, wrong);
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-logit));
}

/* The answers of a step, in order; those of `splits` are predicted. */
static void walk_step(const struct model *model, struct rtrbm_work *work, uint32_t when,
                      uint64_t from, uint64_t to, unsigned splits, real *p)
{
    const struct shard *shard = work->shard;
    bool wanted = false;
    for (uint64_t a = from; a < to; a++)
        wanted |= splits >> mark_split(shard->mark[a]) & 1;
    const real *all = work->dense && wanted ? rtrbm_dense_means(model, work, when) : NULL;
    memcpy(work->z, work->base, work->shape->width * sizeof *work->z);
    for (uint64_t a = from; a < to; a++) {
        const uint32_t item = shard->item[a];
        const uint8_t mark = shard->mark[a];
        if (splits >> mark_split(mark) & 1)
            p[a - from] = all != NULL ? all[item] : (real)predict_one(model, work, item);
        const uint32_t unit = 2 * item + (mark_outcome(mark) == CORRECT);
        if (mark_is_shown(mark))
            rtrbm_add_units(work, &unit, 1, work->z);
    }
}

void rtrbm_predict(const struct model *model, void *memory, size_t s, unsigned splits, real *p)
{
    struct rtrbm_work *work = memory;
    const uint64_t start = work->shard->first[s];
    rtrbm_walk_begin(model, work);
    if (work->dense)
        rtrbm_dense_reserve(model, work);
    for (uint64_t q = work->first_step[s]; q < work->first_step[s + 1]; q++) {
        const uint64_t from = work->step[q];
        walk_step(model, work, (uint32_t)(q - work->first_step[s]), from, work->step[q + 1],
                  splits, splits ? p + (from - start) : p);
        rtrbm_walk_on(model, work);
    }
}

void rtrbm_hidden(const struct model *model, void *memory, size_t s, real *activation)
{
    struct rtrbm_work *work = memory;
    rtrbm_predict(model, work, s, 0, NULL);
    if (work->first_step[s] == work->first_step[s + 1])
        vec->sigmoid(work->z, work->shape->width);
    memcpy(activation, work->z, work->shape->hidden * sizeof *activation);
}

/* A student whose attempts come one by one: the input of the step it is in, without and with the
 * answers shown in it. */
struct live_state {
    uint32_t n_steps;
    real rows[] __attribute__((aligned(64))); /* base, z */
};

size_t rtrbm_live_size(const struct model *model)
{
    return sizeof(struct live_state) + 2 * rtrbm_shape(model)->width * sizeof(real);
}

void rtrbm_live_ready(const struct model *model, void *memory)
{
    struct rtrbm_work *work = memory;
    rtrbm_weigh(model, work);
    if (work->dense)
        rtrbm_dense_reserve(model, work);
}

static void put_aside(const struct rtrbm_work *work, struct live_state *now)
{
    const size_t width = work->shape->width;
    memcpy(now->rows, work->base, width * sizeof(real));
    memcpy(now->rows + width, work->z, width * sizeof(real));
}

/* Loads a state, and begins the next step if the attempt does. Returns the number of steps. */
static uint32_t take_up(const struct model *model, struct rtrbm_work *work,
                        const struct live_state *now, const struct live_attempt *attempt)
{
    const size_t width = work->shape->width;
    memcpy(work->base, now->rows, width * sizeof(real));
    memcpy(work->z, now->rows + width, width * sizeof(real));
    if (now->n_steps > 0 && !(attempt->mark & MARK_STEP))
        return now->n_steps;
    if (now->n_steps > 0)
        rtrbm_walk_on(model, work);
    memcpy(work->z, work->base, width * sizeof(real));
    return now->n_steps + 1;
}

void rtrbm_live_begin(const struct model *model, void *memory, void *state)
{
    struct rtrbm_work *work = memory;
    struct live_state *now = state;
    now->n_steps = 0;
    set_base(model, work, PANEL_FIRST);
    put_aside(work, now);
}

void rtrbm_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                     const struct live_attempt *attempts)
{
    struct rtrbm_work *work = memory;
    for (size_t i = 0; i < n; i++) {
        struct live_state *now = state[i];
        const uint8_t mark = attempts[i].mark;
        const uint32_t unit = 2 * attempts[i].item + (mark_outcome(mark) == CORRECT);
        now->n_steps = take_up(model, work, now, &attempts[i]);
        if (mark_is_shown(mark))
            rtrbm_add_units(work, &unit, 1, work->z);
        put_aside(work, now);
    }
}

void rtrbm_live_ask(const struct model *model, void *memory, const void *state,
                    const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    struct rtrbm_work *work = memory;
    const uint32_t n_steps = take_up(model, work, state, when);
    const real *all = work->dense ? rtrbm_dense_means(model, work, n_steps - 1) : NULL;
    for (size_t i = 0; i < n; i++)
        p[i] = all != NULL ? all[items[i]] : (real)predict_one(model, work, items[i]);
}
