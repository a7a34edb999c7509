/* The gradient of an RTRBM through time; symbols as in rtrbm.c.
 *
 * A block of students moves through time side by side (sequence.h), in stretches of about the
 * square root of the number of steps:
 *
 *     forward   x_t = b + U r_{t-1}, r_t = sigma(x_t + W v_t)       one product per step
 *     steps     e_t and the statistics of the visible units         all steps of a stretch
 *     back      D = U^T (g + e), g_t = D r_t (1 - r_t)              one product per step
 *     outer     dU += r_{t-1} (g_t + e_t)^T                         one product for many steps
 *
 * With `recompute` the first pass keeps only the states at the borders between stretches. Each
 * stretch is computed again before its derivatives are. This needs memory for 2 sqrt(T) steps
 * instead of T, and one more forward pass. Order and shapes of all operations are the same
 * either way, so the bits are the same. */
#include "base/memory.h"
#include "kernels/matmul.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <string.h>

enum { OUTER_ROWS = 1024 }; /* collected for one product */

/* Number of rows of steps from .. to - 1. */
static size_t rows_between(const struct sequence *sequence, size_t from, size_t to)
{
    return sequence->offset[to] - sequence->offset[from];
}

static size_t segment_end(const struct rtrbm_work *work, size_t from)
{
    return size_min(from + work->stretch, work->sequence.n_steps);
}

static void reserve(real **table, size_t *capacity, size_t n)
{
    if (n <= *capacity)
        return;
    *capacity = n + n / 4;
    memory_free(*table);
    *table = NEW(real, *capacity);
}

static void reserve_all(struct rtrbm_work *work, bool recompute)
{
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width, n = sequence->n;
    size_t largest = 0, n_stretches = 0;
    for (size_t from = 0; from < sequence->n_steps; from += work->stretch, n_stretches++)
        largest = size_max(largest, rows_between(sequence, from, segment_end(work, from)));
    const size_t n_rows = recompute ? largest : sequence->n_rows;
    if (n_rows > work->rows.capacity) {
        size_t capacity = 0;
        reserve(&work->rows.x, &capacity, n_rows * width);
        capacity = 0;
        reserve(&work->rows.r, &capacity, n_rows * width);
        work->rows.capacity = capacity / width;
    }
    if (n > work->row_capacity) {
        real **const tables[] = {&work->carry, &work->through, &work->through_g};
        for (size_t k = 0; k < COUNT(tables); k++) {
            memory_free(*tables[k]);
            *tables[k] = NEW(real, n * width);
        }
        work->row_capacity = n;
    }
    const size_t n_outer = size_max(largest, OUTER_ROWS);
    if (n_outer > work->outer_room) {
        work->outer_room = n_outer;
        size_t capacity = 0;
        reserve(&work->before, &capacity, n_outer * width);
        capacity = 0;
        reserve(&work->after, &capacity, n_outer * width);
    }
    /* of this block alone: it decides what is summed together */
    work->outer_capacity = n_outer;
    if (recompute)
        reserve(&work->borders, &work->border_capacity, n_stretches * n * width);
}

/* Inputs and states of a stretch. `first` is its first row in the tables, `border` the states
 * before it. */
static void forward(const struct model *model, struct rtrbm_work *work, size_t from, size_t to,
                    size_t first, const real *border)
{
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width, hidden = work->shape->hidden;
    const real *before = border;
    for (size_t t = from; t < to; t++) {
        const size_t n = sequence->active[t];
        const size_t row = first + sequence->offset[t] - sequence->offset[from];
        real *x = work->rows.x + row * width, *r = work->rows.r + row * width;
        const real *bias = params_rows(&model->params, t == 0 ? PANEL_FIRST : PANEL_BIAS);
        for (size_t i = 0; i < n; i++) {
            memcpy(x + i * width, bias, hidden * sizeof *x);
            for (size_t j = hidden; j < width; j++)
                x[i * width + j] = BINARY_OFF;
        }
        if (t > 0)
            matmul->add(n, before, width, &work->forth, x, width);
        memcpy(r, x, n * width * sizeof *r);
        for (size_t i = 0; i < n; i++) {
            rtrbm_read_step(work, sequence->student[i], t);
            rtrbm_add_units(work, work->now.shown, work->now.n_shown, r + i * width);
        }
        vec->sigmoid(r, n * width);
        before = r;
    }
}

/* Replaces x by e in all rows of a stretch. */
static void learn_steps(const struct model *model, struct rtrbm_work *work, size_t from,
                        size_t to, const struct draw *draw, real *x, struct tally *tally)
{
    const struct rtrbm_options *o = model->options;
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width;
    const size_t most = o->gradient == GRADIENT_EXACT ? MOST_UNITS : 0;
    if (o->dense && model->n_items > most) {
        rtrbm_learn_frames(model, work, from, to, draw, x, tally);
        return;
    }
    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < sequence->active[t]; i++, x += width) {
            const size_t s = sequence->student[i];
            rtrbm_read_step(work, s, t);
            const int64_t n_scored = tally->n_scored + (int64_t)work->now.n_targets;
            if (o->dense && work->now.n_targets > 0)
                rtrbm_read_whole(model, work);
            if (work->now.n_targets == 0)
                memset(x, 0, width * sizeof *x);
            else if (work->now.n_targets > most)
                rtrbm_learn_cd(model, work, s, t, draw, x, tally);
            else if (work->now.n_targets == 1)
                rtrbm_learn_one(model, work, x, tally);
            else
                rtrbm_learn_states(model, work, x, tally);
            tally->n_scored = n_scored;
            for (size_t a = 0; a < work->now.n_clamped; a++) {
                real *sum = rtrbm_touch(work, work->now.clamped[a]);
                if (sum != NULL)
                    rnn_cells->add(1, x, sum, width);
            }
        }
}

/* Adds g to e in all rows of a stretch, from its end to its start. On entry work->carry has the
 * derivatives by the inputs of the step after it, on exit those of its own first step. */
static void back(struct rtrbm_work *work, size_t from, size_t to, size_t first)
{
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width;
    const real *after = work->carry;
    for (size_t t = to; t-- > from;) {
        const size_t n = sequence->active[t + 1]; /* students with a next step */
        const size_t row = first + sequence->offset[t] - sequence->offset[from];
        real *e = work->rows.x + row * width;
        memset(work->through, 0, n * width * sizeof(real));
        matmul->add(n, after, width, &work->back, work->through, width);
        rbm_marginal->back(work->through, work->rows.r + row * width, e, work->through_g,
                           n * width);
        for (size_t i = 0; i < n; i++) {
            rtrbm_read_step(work, sequence->student[i], t);
            for (size_t a = 0; a < work->now.n_shown; a++) {
                real *sum = rtrbm_touch(work, work->now.shown[a]);
                if (sum != NULL)
                    rnn_cells->add(1, work->through_g + i * width, sum, width);
            }
        }
        after = e;
    }
    memcpy(work->carry, after, sequence->active[from] * width * sizeof *after);
}

/* Adds the collected rows to the gradient of U. */
static void flush_outer(struct rtrbm_work *work)
{
    const size_t width = work->shape->width, hidden = work->shape->hidden;
    matmul->outer(work->n_outer, hidden, hidden, 1, work->before, width, work->after, width,
                  work->gradient, width);
    work->n_outer = 0;
}

/* Adds the gradients of a stretch to those of the hidden biases. For U its rows are collected,
 * since a product of few rows is slow. */
static void add_outer(struct rtrbm_work *work, size_t from, size_t to, size_t first,
                      const real *border)
{
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width;
    const real *d = work->rows.x + first * width;
    size_t n_rows = rows_between(sequence, from, to);
    if (from == 0) {
        for (size_t row = 0; row < sequence->active[0]; row++, d += width)
            rnn_cells->add(1, d, work->first_gradient, width);
        n_rows -= sequence->active[0];
    }
    for (size_t row = 0; row < n_rows; row++)
        rnn_cells->add(1, d + row * width, work->bias_gradient, width);
    if (work->n_outer + n_rows > work->outer_capacity)
        flush_outer(work);
    memcpy(work->after + work->n_outer * width, d, n_rows * width * sizeof *d);
    real *to_row = work->before + work->n_outer * width;
    work->n_outer += n_rows;
    const real *from_row = from == 0 ? work->rows.r + first * width : border;
    for (size_t t = size_max(1, from); t < to; t++) {
        const size_t n = sequence->active[t] * width;
        if (t > from)
            from_row = work->rows.r +
                       (first + sequence->offset[t - 1] - sequence->offset[from]) * width;
        memcpy(to_row, from_row, n * sizeof *to_row);
        to_row += n;
    }
}

/* The states before a stretch. */
static real *border_of(const struct rtrbm_work *work, bool recompute, size_t from)
{
    const size_t width = work->shape->width;
    if (recompute)
        return work->borders + from / work->stretch * work->sequence.n * width;
    return from == 0 ? work->rows.r : work->rows.r + work->sequence.offset[from - 1] * width;
}

void rtrbm_accumulate(const struct model *model, void *memory, const uint32_t *students,
                      size_t n, const struct draw *draw, struct tally *tally)
{
    struct rtrbm_work *work = memory;
    const bool recompute = ((const struct rtrbm_options *)model->options)->recompute;
    struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->width;
    const int64_t n_scored = tally->n_scored;
    sequence_arrange(sequence, students, n, work->length);
    if (sequence->n == 0)
        return;
    work->stretch = (size_t)ceil(sqrt((double)sequence->n_steps));
    reserve_all(work, recompute);
    rtrbm_weigh(model, work);
    const size_t hidden = work->shape->hidden;
    matmul_pack(&work->forth, hidden, hidden, work->recurrent, width, false);
    matmul_pack(&work->back, hidden, hidden, work->recurrent, width, true);
    if (work->dense) {
        matmul_pack(&work->up, model->n_items, hidden, work->visible, width, false);
        matmul_pack(&work->down, hidden, model->n_items, work->visible, width, true);
    }
    memset(work->gradient, 0, hidden * width * sizeof(real));
    memset(work->first_gradient, 0, width * sizeof(real));
    memset(work->bias_gradient, 0, width * sizeof(real));
    memset(work->carry, 0, sequence->n * width * sizeof(real));

    size_t last = 0;
    for (size_t from = 0; from < sequence->n_steps; from += work->stretch) {
        const size_t to = segment_end(work, from);
        forward(model, work, from, to, recompute ? 0 : sequence->offset[from],
                border_of(work, recompute, from));
        if (recompute && to < sequence->n_steps)
            memcpy(border_of(work, recompute, to),
                   work->rows.r + (sequence->offset[to - 1] - sequence->offset[from]) * width,
                   sequence->active[to] * width * sizeof(real));
        last = from;
    }
    for (size_t from = last;; from -= work->stretch) {
        const size_t to = segment_end(work, from);
        const size_t first = recompute ? 0 : sequence->offset[from];
        const real *border = border_of(work, recompute, from);
        if (recompute && from != last)
            forward(model, work, from, to, first, border);
        learn_steps(model, work, from, to, draw, work->rows.x + first * width, tally);
        back(work, from, to, first);
        add_outer(work, from, to, first, border);
        if (from == 0)
            break;
    }
    flush_outer(work);
    tally_add(tally, model->params.panels[PANEL_FIRST].offset, work->first_gradient, width);
    tally_add(tally, model->params.panels[PANEL_BIAS].offset, work->bias_gradient, width);
    rtrbm_add_recurrent(model, work, tally->n_scored - n_scored, tally);
    rtrbm_mask_weights(model, work);
    row_sums_flush(&work->weights, &model->params.panels[PANEL_VISIBLE], tally);
    row_sums_flush(&work->biases, &model->params.panels[PANEL_VISIBLE_BIAS], tally);
}
