/* The penalties of DKT+ (Yeung and Yeung, 2018), added to the loss of answers. With y_t the
 * probabilities of all M items from the state after attempt t:
 *
 *     reconstruction   r   sum_t  cross-entropy of outcome t at its own item in y_t
 *     waviness         w1  sum_t  |y_{t+1} - y_t|_1 / M
 *     waviness2        w2  sum_t  |y_{t+1} - y_t|_2^2 / M
 *
 * each times its setting: predict the outcome just seen, and do not let predictions jump.
 * Waviness needs every item's output at every step, which DKT otherwise never computes: M x H
 * operations per attempt. Three steps are in memory at a time: y of step t+1 gives the
 * derivative by y of step t, and from it follow those by the states and by the items' rows. An
 * item's row is the sum of its features' rows. */
#include "base/memory.h"
#include "kernels/matmul.h"
#include "kernels/rnn_cells.h"
#include "kernels/vec.h"
#include "models/dkt/dkt_internal.h"
#include <math.h>
#include <string.h>

struct dkt_waves {
    size_t capacity;               /* students there is memory for */
    real *row, *gradient;          /* items x width + 1: outputs of items, their derivatives */
    struct packed forward, back;   /* row^T, row */
    real *now, *next, *d, *d_next; /* students x items: y, and derivatives by y */
};

void dkt_free_waves(struct dkt_waves *waves)
{
    if (waves == NULL)
        return;
    real *const all[] = {waves->row,  waves->gradient, waves->now,
                         waves->next, waves->d,        waves->d_next};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
    matmul_free(&waves->forward);
    matmul_free(&waves->back);
    memory_free(waves);
}

static void add_reconstruction(const struct model *model, struct dkt_work *work,
                               struct tally *tally)
{
    const struct dkt_options *o = model->options;
    const struct shard *shard = work->shard;
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->stack.width, top = work->shape->stack.n_layers - 1;
    for (size_t t = 1; t < sequence->n_steps; t++)
        for (size_t i = 0; i < sequence->active[t]; i++) {
            const uint64_t a = shard->first[sequence->student[i]] + t - 1;
            const size_t at = (sequence->offset[t] + i) * width;
            if (mark_trains(shard->mark[a]) && mark_is_shown(shard->mark[a]))
                tally_add_loss(tally, dkt_add_answer(model, work, shard->item[a],
                                                     mark_outcome(shard->mark[a]) == CORRECT,
                                                     o->reconstruction, work->run.h[top] + at,
                                                     work->run.dh + at));
        }
}

/* Rows of items, packed; memory for the block. */
static struct dkt_waves *prepare(const struct model *model, struct dkt_work *work)
{
    const size_t n_items = model->n_items, padded = size_padded(n_items);
    const size_t width = work->shape->stack.width, stride = width + WIDTH;
    const struct panel *panel = &model->params.panels[work->shape->output.panel];
    if (work->waves == NULL) {
        work->waves = NEW(struct dkt_waves, 1);
        work->waves->row = NEW(real, padded * stride);
        work->waves->gradient = NEW(real, padded * stride);
    }
    struct dkt_waves *const waves = work->waves;
    if (work->sequence.n > waves->capacity) {
        real **const all[] = {&waves->now, &waves->next, &waves->d, &waves->d_next};
        waves->capacity = work->sequence.n;
        for (size_t k = 0; k < COUNT(all); k++) {
            memory_free(*all[k]);
            *all[k] = NEW(real, waves->capacity * padded);
        }
    }
    memset(waves->row, 0, padded * stride * sizeof(real));
    memset(waves->gradient, 0, padded * stride * sizeof(real));
    for (size_t i = 0; i < n_items; i++)
        for (uint64_t f = work->feature_first[i]; f < work->feature_first[i + 1]; f++)
            rnn_cells->add(1,
                           params_rows(&model->params, work->shape->output.panel) +
                               work->feature[f] * panel->stride,
                           waves->row + i * stride, size_padded(width + 1));
    matmul_pack(&waves->forward, work->shape->stack.hidden, padded, waves->row, stride, true);
    matmul_pack(&waves->back, padded, width, waves->row, stride, false);
    return waves;
}

/* y = the probabilities of all items at n rows of states. */
static void predict_all(const struct model *model, const struct dkt_work *work, size_t n,
                        const real *h, real *y)
{
    const struct dkt_waves *waves = work->waves;
    const size_t padded = size_padded(model->n_items), width = work->shape->stack.width;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < padded; j++)
            y[i * padded + j] = waves->row[j * (width + WIDTH) + width];
    matmul->add(n, h, width, &waves->forward, y, padded);
    vec->sigmoid(y, n * padded);
}

/* The penalty between y of one step and of the next, for n students, and minus its derivatives
 * by both. */
static double add_waves(const struct dkt_options *o, size_t n, size_t n_items,
                        struct dkt_waves *waves)
{
    const size_t padded = size_padded(n_items);
    double loss = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_items; j++) {
            const size_t at = i * padded + j;
            const double jump = (double)(waves->next[at] - waves->now[at]);
            loss += o->waviness * fabs(jump) + o->waviness2 * jump * jump;
            const real d = (real)((o->waviness * (jump > 0   ? 1
                                                  : jump < 0 ? -1
                                                             : 0) +
                                   2 * o->waviness2 * jump) /
                                  (double)n_items);
            waves->d[at] += d;
            waves->d_next[at] = -d;
        }
    return loss / (double)n_items;
}

/* From the derivatives by y of a step to those by its states and the items' rows. */
static void pass_on(const struct model *model, struct dkt_work *work, size_t n, const real *h,
                    real *dh)
{
    struct dkt_waves *const waves = work->waves;
    const size_t padded = size_padded(model->n_items), width = work->shape->stack.width;
    const size_t stride = width + WIDTH;
    for (size_t at = 0; at < n * padded; at++)
        waves->d[at] *= waves->now[at] * (1 - waves->now[at]);
    matmul->add(n, waves->d, padded, &waves->back, dh, width);
    matmul->outer(n, padded, width, 1, waves->d, padded, h, width, waves->gradient, stride);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < padded; j++)
            waves->gradient[j * stride + width] += waves->d[i * padded + j];
}

static void add_waviness(const struct model *model, struct dkt_work *work, struct tally *tally)
{
    const struct dkt_options *o = model->options;
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->stack.width, top = work->shape->stack.n_layers - 1;
    const size_t n_items = model->n_items, padded = size_padded(n_items);
    struct dkt_waves *const waves = prepare(model, work);
    for (size_t t = 1; t < sequence->n_steps; t++) {
        const size_t n = sequence->active[t], n_next = sequence->active[t + 1];
        const real *h = work->run.h[top] + sequence->offset[t] * width;
        if (t == 1) {
            predict_all(model, work, n, h, waves->now);
            memset(waves->d, 0, n * padded * sizeof(real));
        }
        predict_all(model, work, n_next, h + n * width, waves->next);
        memset(waves->d_next, 0, n_next * padded * sizeof(real));
        tally_add_loss(tally, add_waves(o, n_next, n_items, waves));
        pass_on(model, work, n, h, work->run.dh + sequence->offset[t] * width);
        real *const now = waves->now, *const d = waves->d;
        waves->now = waves->next;
        waves->next = now;
        waves->d = waves->d_next;
        waves->d_next = d;
    }
    for (size_t i = 0; i < n_items; i++)
        for (uint64_t f = work->feature_first[i]; f < work->feature_first[i + 1]; f++)
            rnn_cells->add(1, waves->gradient + i * (width + WIDTH),
                           row_sums_at(&work->outputs, work->feature[f]),
                           size_padded(width + 1));
}

void dkt_add_penalties(const struct model *model, struct dkt_work *work, struct tally *tally)
{
    const struct dkt_options *o = model->options;
    if (o->reconstruction > 0)
        add_reconstruction(model, work, tally);
    if (o->waviness > 0 || o->waviness2 > 0)
        add_waviness(model, work, tally);
}
