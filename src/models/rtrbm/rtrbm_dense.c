/* Means of all visible units of a step of an RTRBM, given the steps before; symbols as in
 * rtrbm.c.
 *
 *     p_i = E[v_i | x],   P(v, h | x) ~ exp(h . (W v + x) + c . v)
 *
 * With up to 8 units on either side, all states of that side are rows of a table, the other
 * side is summed in closed form, and p is exact. Otherwise `chains` Gibbs chains of `sweeps`
 * steps run side by side, as rows of matrix products:
 *
 *     h ~ sigma(x + W v)
 *     q = sigma(c + W^T h)
 *     v ~ q
 *
 * and p is the mean of q over all chains and all sweeps after the first quarter. q has the same
 * mean as v and less variance (Rao-Blackwell). Mean field is faster but was worse than the
 * items' base rates: frames have many modes, and it finds one.
 *
 * Random numbers are named by the step number and the sweep alone. So p depends only on the
 * student's own steps, and two models are compared with the same numbers. A step costs chains x
 * sweeps products with W and with its transpose. */
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

void rtrbm_dense_reserve(const struct model *model, struct rtrbm_work *work)
{
    const struct rtrbm_options *o = model->options;
    struct rtrbm_dense *dense = &work->dense_rows;
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE_BIAS];
    const size_t width = work->shape->width, hidden = work->shape->hidden;
    if (dense->v == NULL) {
        dense->stride = size_padded(model->n_items);
        const bool few = size_min(model->n_items, hidden) <= MOST_UNITS;
        dense->n = few ? (size_t)1 << size_min(model->n_items, hidden) : (size_t)o->chains;
        dense->v = NEW(real, dense->n * dense->stride);
        dense->h = NEW(real, dense->n * width);
        dense->u = NEW(real, dense->n * size_max(width, dense->stride) + 4 * WIDTH);
        dense->bias = NEW(real, dense->stride);
        dense->p = NEW(real, dense->stride);
        dense->chance = NEW(double, dense->n);
    }
    matmul_pack(&dense->up, model->n_items, hidden, work->visible, width, false);
    matmul_pack(&dense->down, hidden, model->n_items, work->visible, width, true);
    for (size_t i = 0; i < model->n_items; i++)
        dense->bias[i] = params_rows(&model->params, PANEL_VISIBLE_BIAS)[i * panel->stride];
}

void rtrbm_dense_free(struct rtrbm_dense *dense)
{
    matmul_free(&dense->up);
    matmul_free(&dense->down);
    void *const all[] = {dense->v, dense->h, dense->u, dense->bias, dense->p, dense->chance};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
    *dense = (struct rtrbm_dense){0};
}

/* All rows: inputs of the hidden units from v (lift), of the visible units from h (lower). */
static void lift(struct rtrbm_work *work)
{
    const struct rtrbm_dense *dense = &work->dense_rows;
    const size_t width = work->shape->width;
    for (size_t c = 0; c < dense->n; c++)
        memcpy(dense->h + c * width, work->base, width * sizeof(real));
    matmul->add(dense->n, dense->v, dense->stride, &dense->up, dense->h, width);
}

static void lower(struct rtrbm_work *work)
{
    const struct rtrbm_dense *dense = &work->dense_rows;
    for (size_t c = 0; c < dense->n; c++)
        memcpy(dense->v + c * dense->stride, dense->bias, dense->stride * sizeof(real));
    matmul->add(dense->n, dense->h, work->shape->width, &dense->down, dense->v, dense->stride);
}

/* p = the mean of the rows of v weighted by their probabilities, exp(dense->chance). */
static void mix_states(struct rtrbm_dense *dense)
{
    double most = -INFINITY, total = 0;
    for (size_t c = 0; c < dense->n; c++)
        most = fmax(most, dense->chance[c]);
    for (size_t c = 0; c < dense->n; c++)
        total += dense->chance[c] = Sleef_cinz_expd1_u10purec(dense->chance[c] - most);
    for (size_t c = 0; c < dense->n; c++)
        rnn_cells->add((real)(dense->chance[c] / total), dense->v + c * dense->stride, dense->p,
                       dense->stride);
}

/* Row c of a table is state c of `n` units. */
static void list_states(real *table, size_t n_rows, size_t stride, size_t n)
{
    for (size_t c = 0; c < n_rows; c++)
        for (size_t i = 0; i < n; i++)
            table[c * stride + i] = (real)(c >> i & 1);
}

static void sum_visible(const struct model *model, struct rtrbm_work *work)
{
    struct rtrbm_dense *dense = &work->dense_rows;
    const size_t width = work->shape->width;
    list_states(dense->v, dense->n, dense->stride, model->n_items);
    lift(work);
    for (size_t c = 0; c < dense->n; c++)
        dense->chance[c] =
            (double)rbm_marginal->worth(dense->h + c * width, width) +
            (double)rnn_cells->dot(dense->bias, dense->v + c * dense->stride, dense->stride);
    mix_states(dense);
}

static void sum_hidden(struct rtrbm_work *work)
{
    struct rtrbm_dense *dense = &work->dense_rows;
    const size_t width = work->shape->width, hidden = work->shape->hidden;
    memset(dense->h, 0, dense->n * width * sizeof(real));
    list_states(dense->h, dense->n, width, hidden);
    lower(work);
    for (size_t c = 0; c < dense->n; c++) { /* the padding adds the same to every row */
        dense->chance[c] =
            (double)rbm_marginal->worth(dense->v + c * dense->stride, dense->stride);
        for (size_t j = 0; j < hidden; j++)
            dense->chance[c] += c >> j & 1 ? (double)work->base[j] : 0;
    }
    vec->sigmoid(dense->v, dense->n * dense->stride);
    mix_states(dense);
}

static void run_chains(const struct model *model, struct rtrbm_work *work, uint32_t when)
{
    const struct rtrbm_options *o = model->options;
    struct rtrbm_dense *dense = &work->dense_rows;
    const size_t width = work->shape->width, n_v = dense->n * dense->stride;
    const int64_t first = o->sweeps / 4;
    const real share = 1 / (real)((double)(o->sweeps - first) * (double)dense->n);
    memset(dense->v, 0, n_v * sizeof(real));
    for (int64_t g = 0; g < o->sweeps; g++) {
        struct rng rng = {.purpose = RNG_HIDDEN, .part = (uint32_t)g, .when = when};
        lift(work);
        vec->sigmoid(dense->h, dense->n * width);
        vec->uniform(&rng, dense->u, dense->n * width);
        rbm_marginal->draw(dense->h, dense->u, dense->h, dense->n * width);
        lower(work);
        vec->sigmoid(dense->v, n_v);
        for (size_t c = 0; g >= first && c < dense->n; c++)
            rnn_cells->add(share, dense->v + c * dense->stride, dense->p, dense->stride);
        rng.purpose = RNG_VISIBLE;
        vec->uniform(&rng, dense->u, n_v);
        rbm_marginal->draw(dense->v, dense->u, dense->v, n_v);
        for (size_t c = 0; c < dense->n; c++)
            for (size_t i = model->n_items; i < dense->stride; i++)
                dense->v[c * dense->stride + i] = 0;
    }
}

const real *rtrbm_dense_means(const struct model *model, struct rtrbm_work *work, uint32_t when)
{
    struct rtrbm_dense *dense = &work->dense_rows;
    memset(dense->p, 0, dense->stride * sizeof(real));
    if (size_min(model->n_items, work->shape->hidden) > MOST_UNITS)
        run_chains(model, work, when);
    else if (model->n_items <= work->shape->hidden)
        sum_visible(model, work);
    else
        sum_hidden(work);
    for (size_t i = 0; i < model->n_items; i++) /* weights sum to 1 up to rounding */
        dense->p[i] = dense->p[i] < 1 ? dense->p[i] : 1;
    return dense->p;
}
