/* Deep knowledge tracing (Piech and others, 2015).
 *
 * A recurrent network reads a student's attempts in order. Its state before attempt t predicts
 * the answer to any item:
 *
 *     z_t = b + sum over features f of attempt t:  X[f, what was seen]
 *     h_t = cell(z_t, h_{t-1}):  rnn, lstm or gru; several layers
 *     p_t = sigma(sum over features f of the asked item:  w_f . h_{t-1} + b_f)
 *
 * The first line is a look-up, never a product. Of the last, only the rows asked for are
 * computed.
 *
 * Features are the item, its skills, or both (`input`), and with `common` one more that all
 * attempts have: right and wrong mean something before an item's own rows know. An attempt with several skills is one
 * attempt with the sum of their rows. Split into several attempts, the first would reveal the
 * outcome of the next. What was seen is incorrect, correct, or only that the item was asked
 * (its outcome is unknown or withheld).
 *
 *     tensor                    shape          symbol
 *     input_GATE                features, 3, H X, for each gate of the cell
 *     layerL_recurrent_GATE     H, H           W_h of layer L
 *     layerL_input_GATE         H, H           W_x of layer L > 1
 *     layerL_bias_GATE          H              b
 *     output, output_bias       features, H    w, b_f
 *
 * Gradients flow through the whole sequence (no cut at 200 steps), for the students of a block
 * side by side. `task = final` has one target per student instead: dkt_target.c. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/dkt/dkt_internal.h"
#include <math.h>
#include <string.h>

static const char *const cell_kinds[] = {"rnn", "lstm", "gru", NULL};
static const char *const input_kinds[] = {"item", "skill", "both", NULL};
static const char *const tasks[] = {"trace", "final", NULL};
static const char *const losses[] = {"cross_entropy", "squared", "gaussian", NULL};

#define AT(field) offsetof(struct dkt_options, field)
static const struct option table[] = {
    {"cell", OPTION_CHOICE, AT(cell), "lstm", 0, 0, cell_kinds, "recurrent cell"},
    {"hidden", OPTION_INTEGER, AT(hidden), "100", 1, 4096, NULL, "hidden units per layer"},
    {"layers", OPTION_INTEGER, AT(layers), "1", 1, 8, NULL,
     "number of stacked recurrent layers"},
    {"input", OPTION_CHOICE, AT(input), "item", 0, 0, input_kinds,
     "what identifies an attempt: its item, its skills, or both"},
    {"common", OPTION_SWITCH, AT(common), "no", 0, 0, NULL,
     "add a feature that all attempts share, so that items with few answers learn from all "
     "others"},
    {"dropout", OPTION_NUMBER, AT(dropout), "0.1", 0, 0.95, NULL,
     "dropout rate of the hidden state before the output layer, in training"},
    {"smoothing", OPTION_NUMBER, AT(smoothing), "0", 0, 0.5, NULL,
     "label smoothing: outcomes 0 and 1 count as this and one minus this"},
    {"window", OPTION_INTEGER, AT(window), "0", 0, 1e9, NULL,
     "truncate backpropagation through time every this many steps; 0: never"},
    {"reconstruction", OPTION_NUMBER, AT(reconstruction), "0", 0, 1e6, NULL,
     "DKT+ weight r: predict the outcome just seen as well; 0.1 is usual"},
    {"waviness", OPTION_NUMBER, AT(waviness), "0", 0, 1e6, NULL,
     "DKT+ weight w1: penalize jumps of predictions between steps (L1); 0.003 is usual"},
    {"waviness2", OPTION_NUMBER, AT(waviness2), "0", 0, 1e6, NULL,
     "DKT+ weight w2: penalize jumps of predictions between steps (L2); 3 is usual"},
    {"task", OPTION_CHOICE, AT(task), "trace", 0, 0, tasks,
     "trace: predict every attempt; final: predict one target per student"},
    {"loss", OPTION_CHOICE, AT(loss), "cross_entropy", 0, 0, losses,
     "with task=final: cross_entropy for targets 0 and 1, squared for scores, gaussian for "
     "scores with a learned variance"},
    {"after", OPTION_INTEGER, AT(after), "0", 0, 1e9, NULL,
     "with task=final: predict the target after this many attempts; 0: after all"},
    {"center", OPTION_NUMBER, AT(center), "0", -1e30, 1e30, NULL,
     "with task=final: learn (score - center) / unit; the mean score is a good center"},
    {"unit", OPTION_NUMBER, AT(unit), "1", 1e-30, 1e30, NULL,
     "with task=final: see center; the standard deviation of scores is a good unit"},
};

static size_t count_features(const struct model *model)
{
    const struct dkt_options *o = model->options;
    return (o->input != INPUT_SKILL ? model->n_items : 0) +
           (o->input != INPUT_ITEM ? model->n_skills : 0) + o->common;
}

static enum status declare(struct model *model)
{
    const struct dkt_options *o = model->options;
    struct params *p = &model->params;
    const uint64_t n = count_features(model), hidden = (uint64_t)o->hidden;
    if (o->input != INPUT_ITEM && model->n_skills == 0)
        return fail(BAD_USER,
                    "model.input = %s, but the data set has no skills; import it with "
                    "--skills or --q-matrix, or use model.input=item",
                    input_kinds[o->input]);
    if (o->task == DKT_FINAL)
        TRY(dkt_check_targets(model));
    if (o->task == DKT_TRACE && o->loss != LOSS_CROSS_ENTROPY)
        return fail(BAD_USER,
                    "model.loss = %s needs model.task=final; with model.task=trace use "
                    "model.loss=cross_entropy",
                    losses[o->loss]);
    if (o->task == DKT_FINAL && (o->reconstruction > 0 || o->waviness > 0 || o->waviness2 > 0))
        return fail(BAD_USER, "model.reconstruction, model.waviness and model.waviness2 need "
                              "model.task=trace; with model.task=final set them to 0");
    static const char *const owners[][2] = {[INPUT_ITEM] = {"item", "item common"},
                                            [INPUT_SKILL] = {"skill", "skill common"},
                                            [INPUT_BOTH] = {"item skill", "item skill common"}};
    const char *of = owners[o->input][o->common];
    struct dkt_shape *shape = model->shape;
    struct recurrent *stack = &shape->stack;
    shape->n_features = n;
    recurrent_declare(stack, (enum recurrent_kind)o->cell, (size_t)o->layers, hidden, p);
    const size_t columns = stack->n_gates * stack->width;
    shape->input = (struct embedding){params_panel_of(p, of, n * N_SEEN, columns), columns};
    recurrent_gate_tensors(stack, p, shape->input.panel, "input", 3,
                           (const uint64_t[]){n, N_SEEN, hidden});
    const bool final = o->task == DKT_FINAL;
    const uint64_t n_out = !final ? n : o->loss == LOSS_GAUSSIAN ? 2 : 1;
    const size_t panel = params_panel_of(p, final ? NULL : of, n_out, stack->width + 1);
    shape->output = (struct embedding){panel, stack->width};
    struct tensor output = {"output", panel, 0, hidden, 2, {n_out, hidden}, true};
    struct tensor bias = {"output_bias", panel, stack->width, 1, 1, {n_out}, false};
    if (final) {
        snprintf(output.name, sizeof output.name, "target");
        snprintf(bias.name, sizeof bias.name, "target_bias");
    }
    params_tensor(p, &output);
    params_tensor(p, &bias);
    return OK;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct dkt_options *o = model->options;
    const struct dkt_shape *shape = dkt_shape(model);
    const struct recurrent *stack = &shape->stack;
    recurrent_init(stack, &model->params, seed);
    const double size = 1 / sqrt((double)stack->hidden);
    params_fill_uniform(&model->params, shape->input.panel, stack->n_gates, stack->hidden, seed,
                        size);
    params_fill_uniform(&model->params, shape->output.panel, 1, stack->hidden, seed, size);
    if (o->task != DKT_TRACE || o->input == INPUT_SKILL)
        return;
    /* Items start at their log-odds, so that the network need not learn them first. */
    const size_t stride = model->params.panels[shape->output.panel].stride;
    double *logit = item_counts_log_odds(counts);
    for (size_t i = 0; i < model->n_items; i++)
        params_rows(&model->params, shape->output.panel)[i * stride + stack->width] =
            (real)logit[i];
    memory_free(logit);
}

size_t dkt_seen(uint8_t mark)
{
    return !mark_is_shown(mark)            ? SEEN_ONLY
           : mark_outcome(mark) == CORRECT ? SEEN_RIGHT
                                           : SEEN_WRONG;
}

void dkt_read_attempt(const struct model *model, const struct dkt_work *work, uint32_t item,
                      uint8_t mark, real *z)
{
    for (uint64_t f = work->feature_first[item]; f < work->feature_first[item + 1]; f++)
        embedding_add(&work->shape->input, &model->params,
                      (size_t)work->feature[f] * N_SEEN + dkt_seen(mark), 1, z);
}

real dkt_logit(const struct model *model, const struct dkt_work *work, uint32_t item,
               const real *h)
{
    real logit = 0;
    for (uint64_t f = work->feature_first[item]; f < work->feature_first[item + 1]; f++)
        logit += embedding_score(&work->shape->output, &model->params, work->feature[f], h);
    return logit;
}

static size_t n_hidden(const struct model *model)
{
    return (size_t)((const struct dkt_options *)model->options)->hidden;
}

static void hidden(const struct model *model, void *memory, size_t s, real *activation)
{
    struct dkt_work *work = memory;
    const struct recurrent *stack = &work->shape->stack;
    dkt_predict(model, memory, s, 0, NULL);
    memcpy(activation, work->h + (stack->n_layers - 1) * PREDICTED_TOGETHER * stack->width,
           stack->hidden * sizeof *activation);
}

/* Rows of the output layer: w of the item's features. */
static size_t loadings(const struct model *model, void *memory, uint32_t item, real *row)
{
    const struct dkt_options *o = model->options;
    const struct dkt_work *work = memory;
    const struct dkt_shape *shape = dkt_shape(model);
    const size_t n = o->task == DKT_TRACE ? shape->stack.hidden : 0;
    if (row == NULL || n == 0)
        return n;
    memset(row, 0, n * sizeof *row);
    for (uint64_t f = work->feature_first[item]; f < work->feature_first[item + 1]; f++) {
        const real *output = embedding_row(&shape->output, &model->params, work->feature[f]);
        for (size_t j = 0; j < n; j++)
            row[j] += output[j];
    }
    return n;
}

static unsigned uses(const struct model *model)
{
    const struct dkt_options *o = model->options;
    return o->input != INPUT_ITEM ? MODEL_SKILLS : 0;
}

const struct model_kind dkt_kind = {
    .name = "dkt",
    .title = "deep knowledge tracing: a recurrent network over a student's attempts",
    .source = "Piech and others 2015",
    .loss = "cross-entropy of training answers in nats, plus penalties; with task=final, the "
            "loss that model.loss selects",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct dkt_options),
    .shape_size = sizeof(struct dkt_shape),
    .declare = declare,
    .init = init,
    .attach = dkt_attach,
    .detach = dkt_detach,
    .training = dkt_training,
    .accumulate = dkt_accumulate,
    .predict = dkt_predict,
    .setup = {.uses = uses},
    .speed = {.lengths = dkt_lengths, .predict_many = dkt_predict_many},
    .view = {.n_hidden = n_hidden,
             .hidden = hidden,
             .loadings = loadings,
             .relates_items = true},
    .live = {.ready = dkt_live_ready,
             .size = dkt_live_size,
             .begin = dkt_live_begin,
             .tell = dkt_live_tell,
             .ask = dkt_live_ask},
    .target = {.task = dkt_task, .predict = dkt_predict_target},
};
