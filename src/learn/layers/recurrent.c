/* Recurrent layers, forward and backward through time.
 *
 *     step t of layer l:  z = b + W_x h_below(t) + W_h h(t-1)
 *                         (c, h)(t) = cell(z, c(t-1), h(t-1))
 *
 * All steps of a layer are computed before the next layer. W_x h_below is then one matrix
 * product over all rows of the block (a dense layer), and so are, backward, the gradients of W_x
 * and W_h and the derivatives by h_below. Only W_h h(t-1) and its derivative must go step by
 * step, over the students still active; the matrices are packed once for all steps (matmul.h),
 * and a student's states do not depend on the other students. Cost: 3 x 2 x gates x H^2
 * operations per row and matrix; memory: (gates + 2..3) x H numbers per row. */
#include "learn/layers/recurrent.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/matmul.h"
#include "kernels/rnn_cells.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const gate_names[][4] = {
    [CELL_RNN] = {"state"},
    [CELL_LSTM] = {"in", "forget", "out", "cell"},
    [CELL_GRU] = {"reset", "keep", "state"},
};
static const size_t gate_counts[] = {[CELL_RNN] = 1, [CELL_LSTM] = 4, [CELL_GRU] = 3};

void recurrent_gate_tensors(const struct recurrent *stack, struct params *params, size_t panel,
                            const char *name, int rank, const uint64_t *shape)
{
    for (size_t g = 0; g < stack->n_gates; g++) {
        struct tensor tensor = {.panel = panel,
                                .first_column = g * stack->width,
                                .n_columns = stack->hidden,
                                .rank = rank,
                                .decays = rank > 1};
        snprintf(tensor.name, sizeof tensor.name, "%s_%s", name, gate_names[stack->kind][g]);
        memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
        params_tensor(params, &tensor);
    }
}

void recurrent_declare(struct recurrent *stack, enum recurrent_kind kind, size_t n_layers,
                       size_t hidden, struct params *params)
{
    *stack = (struct recurrent){.kind = kind,
                                .n_layers = n_layers,
                                .hidden = hidden,
                                .width = size_padded(hidden),
                                .n_gates = gate_counts[kind]};
    const size_t columns = stack->n_gates * stack->width;
    const uint64_t square[2] = {hidden, hidden};
    for (size_t l = 0; l < n_layers; l++) {
        char name[32];
        struct dense *const input = &stack->input[l];
        *input = (struct dense){.n_in = hidden, .n_out = columns};
        stack->recurrent_panel[l] = params_panel(params, hidden, columns);
        snprintf(name, sizeof name, "layer%zu_recurrent", l + 1);
        recurrent_gate_tensors(stack, params, stack->recurrent_panel[l], name, 2, square);
        if (l > 0) {
            input->weight = params_panel(params, hidden, columns);
            snprintf(name, sizeof name, "layer%zu_input", l + 1);
            recurrent_gate_tensors(stack, params, input->weight, name, 2, square);
        }
        input->bias = params_panel(params, 1, columns);
        snprintf(name, sizeof name, "layer%zu_bias", l + 1);
        recurrent_gate_tensors(stack, params, input->bias, name, 1, square);
    }
}

void recurrent_init(const struct recurrent *stack, struct params *params, uint64_t seed)
{
    const double size = 1 / sqrt((double)stack->hidden);
    for (size_t l = 0; l < stack->n_layers; l++) {
        params_fill_uniform(params, stack->recurrent_panel[l], stack->n_gates, stack->hidden,
                            seed, size);
        if (l > 0)
            params_fill_uniform(params, stack->input[l].weight, stack->n_gates, stack->hidden,
                                seed, size);
        if (stack->kind == CELL_LSTM) /* begins by remembering (Jozefowicz and others, 2015) */
            for (size_t j = 0; j < stack->hidden; j++)
                params_rows(params, stack->input[l].bias)[stack->width + j] = 1;
    }
}

void recurrent_reserve(const struct recurrent *stack, struct recurrent_run *run,
                       const struct sequence *sequence)
{
    const size_t width = stack->width, columns = stack->n_gates * width;
    if (run->gradient == NULL)
        run->gradient = NEW(real, (stack->hidden + 1) * columns);
    if (sequence->n_rows <= run->capacity)
        return;
    const size_t n = run->capacity = sequence->n_rows + sequence->n_rows / 4;
    for (size_t l = 0; l < stack->n_layers; l++) {
        real **const tables[] = {&run->h[l], &run->c[l], &run->gated[l]};
        const bool wanted[] = {true, stack->kind == CELL_LSTM, stack->kind == CELL_GRU};
        memory_free(run->z[l]);
        run->z[l] = NEW(real, n * columns);
        for (size_t k = 0; k < COUNT(tables); k++) {
            memory_free(*tables[k]);
            *tables[k] = wanted[k] ? NEW(real, n * width) : NULL;
        }
    }
    real **const scratch[] = {&run->dh, &run->d_below, &run->before,
                              &run->dc, &run->d_gated, &run->dh_before};
    for (size_t k = 0; k < COUNT(scratch); k++) {
        memory_free(*scratch[k]);
        *scratch[k] = NEW(real, n * width);
    }
}

void recurrent_free(struct recurrent_run *run)
{
    for (size_t l = 0; l < COUNT(run->z); l++) {
        memory_free(run->z[l]);
        memory_free(run->h[l]);
        memory_free(run->c[l]);
        memory_free(run->gated[l]);
    }
    void *const scratch[] = {run->dh,      run->d_below,   run->before,  run->dc,
                             run->d_gated, run->dh_before, run->gradient};
    for (size_t k = 0; k < COUNT(scratch); k++)
        memory_free(scratch[k]);
    recurrent_unpack(&run->packed);
    *run = (struct recurrent_run){0};
}

void recurrent_pack(const struct recurrent *stack, const struct params *params,
                    struct recurrent_packed *packed, bool backward)
{
    const size_t width = stack->width, hidden = stack->hidden, columns = stack->n_gates * width;
    const size_t at_once = stack->kind == CELL_GRU ? 2 * width : columns;
    for (size_t l = 0; l < stack->n_layers; l++) {
        const real *w = params_rows(params, stack->recurrent_panel[l]);
        matmul_pack(&packed->recurrent[l], hidden, at_once, w, columns, false);
        if (at_once < columns)
            matmul_pack(&packed->fresh[l], hidden, width, w + at_once, columns, false);
        if (backward) {
            matmul_pack(&packed->recurrent_back[l], at_once, hidden, w, columns, true);
            if (at_once < columns)
                matmul_pack(&packed->fresh_back[l], width, hidden, w + at_once, columns, true);
        }
        if (l > 0)
            dense_pack(&stack->input[l], params, &packed->input[l], backward);
    }
}

void recurrent_unpack(struct recurrent_packed *packed)
{
    for (size_t l = 0; l < COUNT(packed->input); l++) {
        struct packed *const all[] = {&packed->recurrent[l], &packed->recurrent_back[l],
                                      &packed->fresh[l], &packed->fresh_back[l]};
        for (size_t k = 0; k < COUNT(all); k++)
            matmul_free(all[k]);
        dense_unpack(&packed->input[l]);
    }
}

/* One step of layer l; z holds the input. The new states may overwrite the old ones, except h of
 * the gru. */
static void forward_step(const struct recurrent *stack, const struct recurrent_packed *packed,
                         size_t l, size_t n, real *z, const real *h_before,
                         const real *c_before, real *h, real *c, real *gated)
{
    const size_t width = stack->width, columns = stack->n_gates * width;
    matmul->add(n, h_before, width, &packed->recurrent[l], z, columns);
    switch (stack->kind) {
    case CELL_RNN:
        rnn_cells->rnn_forward(n, width, z, h);
        break;
    case CELL_LSTM:
        rnn_cells->lstm_forward(n, width, z, c_before, c, h);
        break;
    case CELL_GRU:
        rnn_cells->gru_gates(n, width, z, h_before, gated);
        matmul->add(n, gated, width, &packed->fresh[l], z + 2 * width, columns);
        rnn_cells->gru_forward(n, width, z, h_before, h);
        break;
    }
}

/* The inputs of n rows of gates of layer l. Those of layer 0 are there already, but for the
 * biases; the others' come from the layer below. */
static void read_below(const struct recurrent *stack, const struct params *params,
                       const struct recurrent_packed *packed, size_t l, size_t n,
                       const real *below, real *z)
{
    const size_t columns = stack->n_gates * stack->width;
    if (l > 0)
        dense_forward(&stack->input[l], params, &packed->input[l], n, below, z);
    else
        for (size_t row = 0; row < n; row++)
            rnn_cells->add(1, params_rows(params, stack->input[0].bias), z + row * columns,
                           columns);
}

void recurrent_forward(const struct recurrent *stack, const struct params *params,
                       const struct sequence *sequence, struct recurrent_run *run)
{
    const size_t width = stack->width, columns = stack->n_gates * width;
    const size_t first = sequence->n_steps > 1 ? sequence->offset[1] : sequence->n_rows;
    const size_t n_later = sequence->n_rows - first;
    recurrent_pack(stack, params, &run->packed, true);
    for (size_t l = 0; l < stack->n_layers; l++) {
        memset(run->h[l], 0, sequence->n * width * sizeof(real));
        if (run->c[l] != NULL)
            memset(run->c[l], 0, sequence->n * width * sizeof(real));
        read_below(stack, params, &run->packed, l, n_later,
                   l > 0 ? run->h[l - 1] + first * width : NULL, run->z[l] + first * columns);
        for (size_t t = 1; t < sequence->n_steps; t++) {
            const size_t now = sequence->offset[t], then = sequence->offset[t - 1];
            forward_step(stack, &run->packed, l, sequence->active[t], run->z[l] + now * columns,
                         run->h[l] + then * width, run->c[l] ? run->c[l] + then * width : NULL,
                         run->h[l] + now * width, run->c[l] ? run->c[l] + now * width : NULL,
                         run->gated[l] ? run->gated[l] + now * width : NULL);
        }
    }
}

/* Derivatives by the gates' inputs of a step from those by its h. What reaches the step before
 * is added to dh_then and, for the lstm, left in dc. */
static void backward_step(const struct recurrent *stack, struct recurrent_run *run, size_t l,
                          size_t n, size_t now, size_t then, bool passes)
{
    const size_t width = stack->width, columns = stack->n_gates * width;
    real *z = run->z[l] + now * columns, *dh = run->dh + now * width;
    real *dh_then = run->dh + then * width;
    const real *h_before = run->h[l] + then * width;
    switch (stack->kind) {
    case CELL_RNN:
        rnn_cells->rnn_backward(n, width, dh, z);
        break;
    case CELL_LSTM:
        rnn_cells->lstm_backward(n, width, dh, run->c[l] + then * width,
                                 run->c[l] + now * width, z, run->dc);
        break;
    case CELL_GRU:
        rnn_cells->gru_candidate(n, width, dh, h_before, z, run->dh_before);
        memset(run->d_gated, 0, n * width * sizeof(real));
        matmul->add(n, z + 2 * width, columns, &run->packed.fresh_back[l], run->d_gated, width);
        rnn_cells->gru_reset(n, width, run->d_gated, h_before, z, run->dh_before);
        break;
    }
    if (!passes) {
        memset(run->dc, 0, n * width * sizeof(real));
        return;
    }
    matmul->add(n, z, columns, &run->packed.recurrent_back[l], dh_then, width);
    if (stack->kind == CELL_GRU)
        for (size_t i = 0; i < n * width; i++)
            dh_then[i] += run->dh_before[i];
}

/* Adds a^T b, a (n x hidden) and b (n x columns), to a panel's statistics. */
static void add_gradient(const struct recurrent *stack, const struct params *params,
                         size_t panel, size_t column, size_t n_columns, size_t n, const real *a,
                         const real *b, struct recurrent_run *run, struct tally *tally)
{
    const struct panel *p = &params->panels[panel];
    const size_t columns = stack->n_gates * stack->width;
    memset(run->gradient, 0, stack->hidden * n_columns * sizeof(real));
    matmul->outer(n, stack->hidden, n_columns, 1, a, stack->width, b, columns, run->gradient,
                  n_columns);
    for (size_t row = 0; row < stack->hidden; row++)
        tally_add(tally, p->offset + row * p->stride + column, run->gradient + row * n_columns,
                  n_columns);
}

static void add_gradients(const struct recurrent *stack, const struct params *params,
                          const struct sequence *sequence, struct recurrent_run *run, size_t l,
                          struct tally *tally)
{
    const size_t width = stack->width, columns = stack->n_gates * width;
    const size_t first = sequence->offset[1], n = sequence->n_rows - first;
    const real *dz = run->z[l] + first * columns;
    for (size_t t = 1; t < sequence->n_steps; t++)
        memcpy(run->before + sequence->offset[t] * width,
               run->h[l] + sequence->offset[t - 1] * width,
               sequence->active[t] * width * sizeof(real));
    const real *before = run->before + first * width;
    const size_t whole = stack->kind == CELL_GRU ? 2 * width : columns;
    add_gradient(stack, params, stack->recurrent_panel[l], 0, whole, n, before, dz, run, tally);
    if (stack->kind == CELL_GRU)
        add_gradient(stack, params, stack->recurrent_panel[l], whole, width, n,
                     run->gated[l] + first * width, dz + whole, run, tally);
    if (l > 0) {
        memset(run->d_below, 0, sequence->offset[1] * width * sizeof(real));
        dense_backward(&stack->input[l], params, &run->packed.input[l], n,
                       run->h[l - 1] + first * width, dz, run->d_below + first * width,
                       run->gradient, tally);
        return;
    }
    memset(run->gradient, 0, columns * sizeof(real));
    for (size_t row = 0; row < n; row++)
        rnn_cells->add(1, dz + row * columns, run->gradient, columns);
    tally_add(tally, params->panels[stack->input[0].bias].offset, run->gradient, columns);
}

void recurrent_backward(const struct recurrent *stack, const struct params *params,
                        const struct sequence *sequence, struct recurrent_run *run,
                        size_t window, struct tally *tally)
{
    const size_t width = stack->width;
    if (sequence->n_steps < 2)
        return;
    for (size_t l = stack->n_layers; l-- > 0;) {
        memset(run->dc, 0, sequence->n * width * sizeof(real));
        for (size_t t = sequence->n_steps - 1; t > 0; t--)
            backward_step(stack, run, l, sequence->active[t], sequence->offset[t],
                          sequence->offset[t - 1], t > 1 && (window == 0 || t % window != 0));
        add_gradients(stack, params, sequence, run, l, tally);
        if (l == 0)
            break;
        real *const swap = run->dh;
        run->dh = run->d_below;
        run->d_below = swap;
    }
}

void recurrent_advance(const struct recurrent *stack, const struct params *params,
                       const struct recurrent_packed *packed, size_t n, size_t room, real *z,
                       real *h, real *c, real *scratch)
{
    const size_t width = stack->width, size = room * width;
    real *const gated = scratch, *const fresh = scratch + size;
    for (size_t l = 0; l < stack->n_layers; l++) {
        real *const state = h + l * size, *const cell = c + l * size;
        read_below(stack, params, packed, l, n, l > 0 ? h + (l - 1) * size : NULL, z);
        forward_step(stack, packed, l, n, z, state, cell, fresh, cell, gated);
        memcpy(state, fresh, n * width * sizeof *state);
    }
}
