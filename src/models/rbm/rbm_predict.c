/* Prediction with an RBM; symbols as in rbm.c.
 *
 * x, the input of the hidden units from everything shown so far, is updated along the student's
 * attempts. For item q with n of its N copies correct, summing out the hidden units gives
 *
 *     log P(n) = log C(N, n) + n a^1 + (N - n) a^0
 *                + sum_j S(x_j + n W_qj^1 + (N - n) W_qj^0) + constant
 *
 *     S(z) = log(1 + e^z)   binary units
 *     S(z) = z^2 / 2        gaussian units
 *
 * and the prediction is p = E[n] / N. mean_field makes one pass up and down:
 *
 *     p = sigma(a^1 - a^0 + E[h | x] . (W^1 - W^0)) */
#include "base/memory.h"
#include "models/rbm/rbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* The logarithm of the sum over the states of hidden units with inputs z. */
static double worth(const struct rbm_shape *shape, real *z)
{
    double sum = 0;
    if (shape->hidden_kind == HIDDEN_BINARY) {
        vec->softplus(z, shape->stride);
        for (size_t j = 0; j < shape->m; j++)
            sum += (double)z[j];
    } else {
        for (size_t j = 0; j < shape->m; j++)
            sum += 0.5 * (double)z[j] * (double)z[j];
    }
    return sum;
}

static double predict_exact(const struct model *model, struct rbm_work *work, uint32_t item)
{
    const struct rbm_shape *shape = work->shape;
    const size_t row = shape->rows.stride;
    const int copies = shape->rows.copies;
    const real *right =
        params_rows(&model->params, PANEL_VISIBLE) +
        ((size_t)item * (size_t)shape->rows.per_item + (size_t)(shape->rows.per_item - 1)) *
            row;
    const real *wrong = shape->rows.per_item == 2 ? right - row : NULL;
    double log_chance[16], most = -INFINITY, binomial = 0;
    for (int n = 0; n <= copies; n++) {
        double bias = n * (double)right[shape->dims];
        for (size_t j = 0; j < row; j++)
            work->g[j] = (real)n * right[j];
        if (wrong != NULL) {
            bias += (copies - n) * (double)wrong[shape->dims];
            for (size_t j = 0; j < row; j++)
                work->g[j] += (real)(copies - n) * wrong[j];
        }
        rbm_add_common(shape, model, n, copies - n, work->g);
        rbm_lift(shape, model, work->g, work->x, work->h);
        log_chance[n] = binomial + bias + worth(shape, work->h);
        binomial += Sleef_cinz_logd1_u10purec((double)(copies - n) / (n + 1));
        most = log_chance[n] > most ? log_chance[n] : most;
    }
    double total = 0, mean = 0;
    for (int n = 0; n <= copies; n++) {
        const double chance = Sleef_cinz_expd1_u10purec(log_chance[n] - most);
        total += chance;
        mean += n * chance;
    }
    return mean / (total * copies);
}

static double predict_mean_field(const struct model *model, struct rbm_work *work,
                                 uint32_t item)
{
    const struct rbm_shape *shape = work->shape;
    const uint32_t unit = 2 * item;
    real logit[WIDTH] __attribute__((aligned(64)));
    rbm_mean(shape, work->x, work->h);
    rbm_lower(shape, model, work->h, work->g);
    rbm_visible_input(shape, model, &unit, 1, work->g, logit);
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-(double)logit[0]));
}

/* A walk along a student's attempts. work->shown lists the units shown so far. The first
 * n_added of them are in work->f, the sum of their rows. Rows are added in batches between
 * predictions, always in the same order. work->base is the input without them. work->last[item]
 * is -1 before the item appears, 0 once it was seen, and 1 + unit once it was answered;
 * work->met lists the items that appeared. */
static void walk_end(struct rbm_work *work)
{
    while (work->n_met > 0)
        work->last[work->met[--work->n_met]] = -1;
}

static void walk_begin(const struct model *model, struct rbm_work *work)
{
    walk_end(work);
    memset(work->f, 0, work->shape->rows.stride * sizeof(real));
    memcpy(work->base, params_rows(&model->params, PANEL_HIDDEN),
           work->shape->stride * sizeof(real));
    work->n_shown = work->n_added = 0;
    work->n_known[0] = work->n_known[1] = 0;
}

static void walk_meet(struct rbm_work *work, uint32_t item, int64_t last)
{
    if (work->last[item] < 0) {
        GROW(work->met, work->n_met, work->met_room);
        work->met[work->n_met++] = item;
    }
    work->last[item] = last;
}

/* Whether seeing the item changes the input. */
static bool is_new(const struct model *model, const struct rbm_work *work, uint32_t item)
{
    const struct rbm_options *o = model->options;
    return o->conditional && work->last[item] < 0;
}

static void add_seen(const struct model *model, struct rbm_work *work, uint32_t item)
{
    const real *seen = params_rows(&model->params, PANEL_SEEN) + item * work->shape->stride;
    for (size_t j = 0; j < work->shape->stride; j++)
        work->base[j] += seen[j];
}

static void walk_see(const struct model *model, struct rbm_work *work, uint32_t item)
{
    if (!is_new(model, work, item))
        return;
    add_seen(model, work, item);
    walk_meet(work, item, 0);
}

static void walk_add(const struct model *model, struct rbm_work *work, size_t n)
{
    const uint32_t *unit = work->shown + work->n_added;
    rbm_rows->gather(&work->shape->rows, params_rows(&model->params, PANEL_VISIBLE), unit, n,
                     work->f);
    for (size_t a = 0; a < n; a++)
        work->n_known[unit[a] & 1]++;
    work->n_added += n;
}

/* Removes an answer from the sum. */
static void walk_forget(const struct model *model, struct rbm_work *work, uint32_t unit)
{
    const size_t row = work->shape->rows.stride;
    memset(work->g, 0, row * sizeof(real));
    rbm_rows->gather(&work->shape->rows, params_rows(&model->params, PANEL_VISIBLE), &unit, 1,
                     work->g);
    for (size_t j = 0; j < row; j++)
        work->f[j] -= work->g[j];
    work->n_known[unit & 1]--;
}

/* Brings work->x up to date. */
static void walk_arrive(const struct model *model, struct rbm_work *work)
{
    const struct rbm_options *o = model->options;
    const size_t window = o->window > 0 ? (size_t)o->window : SIZE_MAX;
    if (work->n_added < window && work->n_added < work->n_shown)
        walk_add(model, work, size_min(window, work->n_shown) - work->n_added);
    while (work->n_added < work->n_shown) {
        walk_add(model, work, 1);
        walk_forget(model, work, work->shown[work->n_added - 1 - window]);
    }
    memcpy(work->g, work->f, work->shape->rows.stride * sizeof(real));
    rbm_add_common(work->shape, model, work->n_known[1] * work->shape->rows.copies,
                   work->n_known[0] * work->shape->rows.copies, work->g);
    rbm_lift(work->shape, model, work->g, work->base, work->x);
}

static void walk_answer(const struct model *model, struct rbm_work *work, uint32_t unit)
{
    const struct rbm_options *o = model->options;
    const int64_t last = work->last[unit >> 1];
    if (o->repeats == REPEATS_LAST && last > 0) {
        walk_add(model, work, work->n_shown - work->n_added);
        walk_forget(model, work, (uint32_t)(last - 1));
    }
    GROW(work->shown, work->n_shown, work->shown_room);
    work->shown[work->n_shown++] = unit;
    walk_meet(work, unit >> 1, 1 + (int64_t)unit);
}

/* An attempt was made. */
static void walk_on(const struct model *model, struct rbm_work *work, uint32_t item,
                    uint8_t mark)
{
    walk_see(model, work, item);
    if (mark_is_shown(mark))
        walk_answer(model, work, 2 * item + (mark_outcome(mark) == CORRECT));
}

static real chance(const struct model *model, struct rbm_work *work, uint32_t item)
{
    const struct rbm_options *o = model->options;
    return (real)(o->prediction == PREDICTION_EXACT ? predict_exact(model, work, item)
                                                    : predict_mean_field(model, work, item));
}

void rbm_predict(const struct model *model, void *memory, size_t s, unsigned splits, real *p)
{
    struct rbm_work *work = memory;
    const struct shard *shard = work->shard;
    const uint64_t start = shard->first[s];
    walk_begin(model, work);
    for (uint64_t t = start; t < shard->first[s + 1]; t++) {
        walk_see(model, work, shard->item[t]);
        if (splits >> mark_split(shard->mark[t]) & 1) {
            walk_arrive(model, work);
            p[t - start] = chance(model, work, shard->item[t]);
        }
        walk_on(model, work, shard->item[t], shard->mark[t]);
    }
    walk_end(work);
}

void rbm_hidden(const struct model *model, void *memory, size_t s, real *activation)
{
    struct rbm_work *work = memory;
    const struct shard *shard = work->shard;
    walk_begin(model, work);
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        walk_on(model, work, shard->item[t], shard->mark[t]);
    walk_end(work);
    walk_arrive(model, work);
    rbm_mean(work->shape, work->x, work->mean);
    memcpy(activation, work->mean, work->shape->m * sizeof *activation);
}

void rbm_live_begin(const struct model *model, void *memory, void *state)
{
    (void)state;
    walk_begin(model, memory);
}

void rbm_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        walk_on(model, memory, attempts[i].item, attempts[i].mark);
}

/* Asking about an item is seeing it, for this question alone. */
void rbm_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)state;
    (void)when;
    struct rbm_work *work = memory;
    const size_t size = work->shape->stride * sizeof(real);
    bool ready = false;
    memcpy(work->mean, work->base, size);
    for (size_t i = 0; i < n; i++) {
        const bool sees = is_new(model, work, items[i]);
        if (sees)
            add_seen(model, work, items[i]);
        if (sees || !ready)
            walk_arrive(model, work);
        ready = !sees;
        p[i] = chance(model, work, items[i]);
        if (sees)
            memcpy(work->base, work->mean, size);
    }
}
