/* Contrastive divergence in the steps of an RTRBM; symbols as in rtrbm.c.
 *
 * Given the states r, every step is an RBM of its own. Each starts a Gibbs chain at its data:
 * hidden units are sampled, then visible ones, and so on. The last hidden units are means. The
 * loss is the cross-entropy of the data given the first sample of the hidden units.
 *
 * Where all items are visible (dense), all steps of a stretch run the chain together, as matrix
 * products. */
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* Uniform random numbers for Gibbs step g of step t of a student. */
static void draw_uniform(const struct rtrbm_work *work, const struct draw *draw,
                         enum rng_purpose purpose, size_t s, size_t t, int64_t g,
                         int64_t n_gibbs, real *u, size_t n)
{
    const uint64_t part = (uint64_t)t * (uint64_t)n_gibbs + (uint64_t)g;
    const struct rng rng = {.seed = draw->seed,
                            .purpose = purpose,
                            .part = (uint32_t)(part & 0xffffff),
                            .when = draw->epoch,
                            .who = (uint32_t)(work->shard->first_student + s)};
    vec->uniform(&rng, u, n);
}

/* -log of the probability of an outcome with this logit. */
static double surprise(double logit)
{
    return Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(logit))) +
           fmax(-logit, 0);
}

void rtrbm_learn_cd(const struct model *model, struct rtrbm_work *work, size_t s, size_t t,
                    const struct draw *draw, real *x, struct tally *tally)
{
    const struct rtrbm_step *now = &work->now;
    const size_t width = work->shape->width, n = now->n_targets;
    const int64_t n_gibbs = rtrbm_cd_steps(model->options, draw->epoch);
    rtrbm_add_units(work, now->clamped, now->n_clamped, x);
    real *const data = work->s1, *const mean = work->s0;
    memcpy(data, x, width * sizeof *data);
    rtrbm_add_units(work, now->targets, n, data);
    vec->sigmoid(data, width);
    memcpy(mean, data, width * sizeof *mean);
    double loss = 0;
    for (int64_t g = 0; g < n_gibbs; g++) {
        draw_uniform(work, draw, RNG_HIDDEN, s, t, g, n_gibbs, work->u, width);
        rbm_marginal->draw(mean, work->u, work->h, width);
        rbm_rows->dot(&work->shape->rows, work->visible, now->targets, n, work->h, work->logit);
        for (size_t a = 0; a < n; a++) {
            const uint32_t right = now->targets[a] | 1;
            work->logit[a] += (real)(rtrbm_bias(model, right) - rtrbm_bias(model, right ^ 1));
            if (g == 0)
                loss += surprise(now->targets[a] & 1 ? (double)work->logit[a]
                                                     : -(double)work->logit[a]);
        }
        draw_uniform(work, draw, RNG_VISIBLE, s, t, g, n_gibbs, work->u, n);
        vec->binomial(work->logit, work->u, 1, work->count, size_padded(n));
        memcpy(mean, x, width * sizeof *mean);
        rbm_rows->mix(&work->shape->rows, work->visible, now->targets, work->count, n, mean);
        vec->sigmoid(mean, width);
    }
    tally_add_loss(tally, loss);
    for (size_t a = 0; a < n; a++) {
        const uint32_t drawn = (now->targets[a] & ~1u) | work->count[a];
        real *sum = rtrbm_touch(work, now->targets[a]);
        if (sum != NULL)
            rnn_cells->add(1, data, sum, width);
        sum = rtrbm_touch(work, drawn);
        if (sum != NULL)
            rnn_cells->add(-1, mean, sum, width);
        rtrbm_touch_bias(work, now->targets[a], 1);
        rtrbm_touch_bias(work, drawn, -1);
    }
    for (size_t j = 0; j < width; j++)
        x[j] = data[j] - mean[j];
}

void rtrbm_frames_reserve(const struct model *model, struct rtrbm_work *work, size_t n_rows)
{
    struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width, stride = size_padded(model->n_items);
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE_BIAS];
    if (n_rows > frames->capacity) {
        const size_t n = n_rows + n_rows / 4;
        rtrbm_frames_free(frames);
        *frames = (struct rtrbm_frames){.capacity = n,
                                        .stride = stride,
                                        .data = NEW(real, n * stride),
                                        .model = NEW(real, n * stride),
                                        .mean = NEW(real, n * width),
                                        .first = NEW(real, n * width),
                                        .hidden = NEW(real, n * width),
                                        .u = NEW(real, size_max(width, stride) + 4 * WIDTH),
                                        .bias = NEW(real, stride),
                                        .gradient = NEW(real, model->n_items * width),
                                        .bias_gradient = NEW(real, stride),
                                        .learned = NEW(bool, n)};
    }
    for (size_t i = 0; i < model->n_items; i++)
        frames->bias[i] = params_rows(&model->params, PANEL_VISIBLE_BIAS)[i * panel->stride];
}

void rtrbm_frames_free(struct rtrbm_frames *frames)
{
    void *const all[] = {frames->data,          frames->model,  frames->mean, frames->first,
                         frames->hidden,        frames->u,      frames->bias, frames->gradient,
                         frames->bias_gradient, frames->learned};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
    *frames = (struct rtrbm_frames){0};
}

/* The visible units of the step in work->now as a row: targets and clamped units. */
void rtrbm_read_frame(const struct rtrbm_work *work, real *row)
{
    const struct rtrbm_step *now = &work->now;
    memset(row, 0, work->frames.stride * sizeof *row);
    for (size_t a = 0; a < now->n_targets; a++)
        if (now->targets[a] & 1)
            row[now->targets[a] >> 1] = 1;
    for (size_t a = 0; a < now->n_clamped; a++)
        if (now->clamped[a] & 1)
            row[now->clamped[a] >> 1] = 1;
}

/* frames->model = the inputs of the visible units from samples of the hidden units. */
static void lower(struct rtrbm_work *work, size_t n)
{
    const struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width;
    for (size_t row = 0; row < n; row++)
        memcpy(frames->model + row * frames->stride, frames->bias,
               frames->stride * sizeof(real));
    matmul->add(n, frames->hidden, width, &work->down, frames->model, frames->stride);
}

/* mean = sigma(x + W v) */
static void lift(struct rtrbm_work *work, size_t n, const real *x, const real *v)
{
    const struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width;
    memcpy(frames->mean, x, n * width * sizeof *x);
    matmul->add(n, v, frames->stride, &work->up, frames->mean, width);
    vec->sigmoid(frames->mean, n * width);
}

/* Adds `sign` times the products of visible and hidden units to frames->gradient. */
static void add_frames(const struct model *model, struct rtrbm_work *work, size_t n, real sign,
                       const real *v)
{
    const struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width;
    matmul->outer(n, model->n_items, work->shape->hidden, sign, v, frames->stride, frames->mean,
                  width, frames->gradient, width);
    for (size_t row = 0; row < n; row++)
        rnn_cells->add(sign, v + row * frames->stride, frames->bias_gradient, frames->stride);
}

static void flush_frames(const struct model *model, struct rtrbm_work *work)
{
    const struct rtrbm_frames *frames = &work->frames;
    for (uint32_t i = 0; i < model->n_items; i++) {
        rnn_cells->add(1, frames->gradient + i * work->shape->width,
                       rtrbm_touch(work, 2 * i + 1), work->shape->width);
        rtrbm_touch_bias(work, 2 * i + 1, frames->bias_gradient[i]);
    }
}

/* The loss of a frame: of the data given the inputs from a sample of the hidden units. */
static double frame_loss(const struct model *model, const real *v, const real *logit)
{
    double loss = 0;
    for (size_t i = 0; i < model->n_items; i++)
        loss += surprise(v[i] > 0 ? (double)logit[i] : -(double)logit[i]);
    return loss;
}

/* Reads the frames of a stretch and marks those to learn from. */
static void read_frames(struct rtrbm_work *work, size_t from, size_t to, struct tally *tally)
{
    const struct sequence *sequence = &work->sequence;
    struct rtrbm_frames *frames = &work->frames;
    for (size_t t = from, row = 0; t < to; t++)
        for (size_t i = 0; i < sequence->active[t]; i++, row++) {
            rtrbm_read_step(work, sequence->student[i], t);
            rtrbm_read_frame(work, frames->data + row * frames->stride);
            frames->learned[row] = work->now.n_targets > 0;
            tally->n_scored += (int64_t)work->now.n_targets;
        }
}

/* Clears frames that are not learned from. */
static void clear_idle(struct rtrbm_frames *frames, size_t n, real *v)
{
    for (size_t row = 0; row < n; row++)
        if (!frames->learned[row])
            memset(v + row * frames->stride, 0, frames->stride * sizeof *v);
}

/* Gibbs step g of all frames of a stretch. */
static void gibbs(const struct model *model, struct rtrbm_work *work, size_t from, size_t to,
                  const struct draw *draw, int64_t g, int64_t n_gibbs, const real *x,
                  struct tally *tally)
{
    const struct sequence *sequence = &work->sequence;
    struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width, stride = frames->stride;
    const size_t n = sequence->offset[to] - sequence->offset[from];
    for (size_t t = from, row = 0; t < to; t++)
        for (size_t i = 0; i < sequence->active[t]; i++, row++) {
            draw_uniform(work, draw, RNG_HIDDEN, sequence->student[i], t, g, n_gibbs, frames->u,
                         width);
            rbm_marginal->draw(frames->mean + row * width, frames->u,
                               frames->hidden + row * width, width);
        }
    lower(work, n);
    for (size_t t = from, row = 0; t < to; t++)
        for (size_t i = 0; i < sequence->active[t]; i++, row++) {
            real *v = frames->model + row * stride;
            if (g == 0 && frames->learned[row])
                tally_add_loss(tally, frame_loss(model, frames->data + row * stride, v));
            draw_uniform(work, draw, RNG_VISIBLE, sequence->student[i], t, g, n_gibbs,
                         frames->u, stride);
            vec->sigmoid(v, stride);
            rbm_marginal->draw(v, frames->u, v, stride);
            for (size_t k = model->n_items; k < stride; k++)
                v[k] = 0;
        }
    lift(work, n, x, frames->model);
}

void rtrbm_learn_frames(const struct model *model, struct rtrbm_work *work, size_t from,
                        size_t to, const struct draw *draw, real *x, struct tally *tally)
{
    const struct sequence *sequence = &work->sequence;
    struct rtrbm_frames *frames = &work->frames;
    const size_t width = work->shape->width, n = sequence->offset[to] - sequence->offset[from];
    const int64_t n_gibbs = rtrbm_cd_steps(model->options, draw->epoch);
    rtrbm_frames_reserve(model, work, n);
    memset(frames->gradient, 0, model->n_items * width * sizeof(real));
    memset(frames->bias_gradient, 0, frames->stride * sizeof(real));
    read_frames(work, from, to, tally);
    lift(work, n, x, frames->data);
    memcpy(frames->first, frames->mean, n * width * sizeof(real));
    for (int64_t g = 0; g < n_gibbs; g++)
        gibbs(model, work, from, to, draw, g, n_gibbs, x, tally);
    clear_idle(frames, n, frames->model);
    add_frames(model, work, n, -1, frames->model);
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j++) {
            const size_t at = row * width + j;
            x[at] = frames->learned[row] ? frames->first[at] - frames->mean[at] : 0;
        }
    real *const swap = frames->mean;
    frames->mean = frames->first;
    frames->first = swap;
    clear_idle(frames, n, frames->data);
    add_frames(model, work, n, 1, frames->data);
    flush_frames(model, work);
}
