/* The recurrent temporal restricted Boltzmann machine (Sutskever, Hinton and Taylor, 2008) and
 * its structured variant (Mittelman and others, 2014).
 *
 * A student is a sequence of steps. The answers v_t of a step are an RBM whose hidden biases
 * depend on the steps before:
 *
 *     x_1 = b_init
 *     x_t = b + U r_{t-1}                               input of the hidden units
 *     r_t = sigma(x_t + W v_t)                          state after the step: their mean
 *     P(v_t, h_t | past) ~ exp(h_t . (W v_t + x_t) + c . v_t)
 *
 * Summing out the hidden units,
 *
 *     log P(v | past) = c . v + sum_j log(1 + e^(x_j + W_j v)) - log Z
 *
 * A step of one answer has two states, so Z, the prediction and the gradient of log P are
 * exact. A step of 8 answers has 256 states, which are still summed. Longer steps use
 * contrastive divergence. With e_t = E[h_t | v_t] - E[h_t] and g_t = D_{t+1} r_t (1 - r_t), the
 * derivatives D by r_t run backward through time:
 *
 *     D_{T+1} = 0
 *     D_{t+1} = U^T (g_{t+1} + e_{t+1})
 *
 *     dU      = sum_{t>1} (g_t + e_t) r_{t-1}^T
 *     db      = sum_{t>1} g_t + e_t
 *     db_init = g_1 + e_1
 *     dW      = (data - model of h_t v_t^T) + g_t v_t^T
 *     dc      = data - model of v_t
 *
 *     tensor          shape              symbol
 *     weights         items, K, H        W, a row for each outcome (K = 2; bernoulli: items, H)
 *     visible_bias    items, K           c
 *     hidden_bias     H                  b
 *     first_bias      H                  b_init
 *     recurrent       H, H               U transposed: row = from, column = to
 *     gates           G, G               nu, from group to group (structure)
 *
 * An answer that is not shown to later attempts is not part of v_t. `dense` is for data in
 * which a step is a set of items, such as the keys that sound in a piece of music: every item
 * is a visible unit of every step, and is 0 unless an attempt sets it.
 *
 * U starts as loop * I with b = -loop / 2. At loop = 4 every hidden unit is an integrator,
 * since sigma has slope 1/4 at zero: at first nothing is forgotten. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/epoch_values.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>

enum { MOST_CD_STEPS = 10000 };
static const char *const visible_kinds[] = {"bernoulli", "softmax", NULL};
static const char *const gradient_kinds[] = {"exact", "cd", NULL};
static const char *const structure_kinds[] = {"none", "skills", "items", NULL};

#define AT(field) offsetof(struct rtrbm_options, field)
static const struct option table[] = {
    {"visible", OPTION_CHOICE, AT(visible), "softmax", 0, 0, visible_kinds,
     "kind of visible unit; softmax: a row of weights for each outcome, bernoulli: a row for "
     "correct answers only"},
    {"dense", OPTION_SWITCH, AT(dense), "no", 0, 0, NULL,
     "every item is a visible unit of every step, 0 unless an attempt sets it (bernoulli "
     "only)"},
    {"hidden", OPTION_INTEGER, AT(hidden), "100", 0, 4096, NULL,
     "number of hidden units; with a structure, the number shared by all items"},
    {"gradient", OPTION_CHOICE, AT(gradient), "exact", 0, 0, gradient_kinds,
     "exact: sum over all states of steps with at most 8 answers, longer steps as cd; cd: "
     "contrastive divergence in every step"},
    {"cd_steps", OPTION_INTEGER, AT(cd_steps), "1", 1, MOST_CD_STEPS, NULL,
     "Gibbs steps of contrastive divergence (the k of CD-k)"},
    {"cd_schedule", OPTION_TEXT, AT(cd_schedule), "", 0, 0, NULL,
     "epoch:steps pairs that change cd_steps during training, for example 10:3 20:5"},
    {"chains", OPTION_INTEGER, AT(chains), "16", 1, 1024, NULL,
     "dense: Gibbs chains that estimate the predictions of a step; exact instead with at "
     "most 8 items or hidden units"},
    {"sweeps", OPTION_INTEGER, AT(sweeps), "40", 1, 1e6, NULL,
     "dense: Gibbs steps of each of these chains; the first quarter is discarded as burn-in"},
    {"recompute", OPTION_SWITCH, AT(recompute), "no", 0, 0, NULL,
     "keep few hidden states and recompute the others: memory grows with the square root of "
     "the number of steps, results stay bit-identical"},
    {"loop", OPTION_NUMBER, AT(loop), "4", 0, 100, NULL,
     "initial weight from a hidden unit to itself one step later; at 4 it forgets nothing"},
    {"spread", OPTION_NUMBER, AT(spread), "0", 0, 1, NULL,
     "let the initial weights of hidden units to themselves differ: evenly spaced from loop "
     "down to (1 - spread) * loop"},
    {"scale", OPTION_NUMBER, AT(scale), "0.01", 0, 10, NULL,
     "standard deviation of the other initial weights"},
    {"structure", OPTION_CHOICE, AT(structure), "none", 0, 0, structure_kinds,
     "structured RTRBM: each skill (or item) has its own hidden units, with learned gates "
     "between them"},
    {"skill_units", OPTION_INTEGER, AT(skill_units), "2", 1, 1024, NULL,
     "structure: hidden units per skill or item"},
    {"sharpness", OPTION_NUMBER, AT(sharpness), "1", 1e-6, 1e6, NULL,
     "structure: a gate is sigma(sharpness * its parameter)"},
    {"penalty", OPTION_NUMBER, AT(penalty), "1e-6", 0, 1e6, NULL,
     "structure: penalty on an open gate, in nats per training answer"},
};

static size_t count_groups(const struct model *model)
{
    const struct rtrbm_options *o = model->options;
    return o->structure == STRUCTURE_SKILLS  ? model->n_skills
           : o->structure == STRUCTURE_ITEMS ? model->n_items
                                             : 0;
}

static unsigned uses(const struct model *model)
{
    const struct rtrbm_options *o = model->options;
    return o->structure == STRUCTURE_SKILLS ? MODEL_SKILLS : 0;
}

static struct rtrbm_shape derive(const struct model *model)
{
    const struct rtrbm_options *o = model->options;
    struct rtrbm_shape shape = {.n_groups = count_groups(model),
                                .n_shared = (size_t)o->hidden,
                                .group_size = (size_t)o->skill_units};
    shape.hidden = shape.n_shared + shape.n_groups * shape.group_size;
    shape.width = size_padded(shape.hidden);
    shape.rows = (struct row_shape){
        .stride = shape.width, .per_item = o->visible == VISIBLE_SOFTMAX ? 2 : 1, .copies = 1};
    return shape;
}

int64_t rtrbm_cd_steps(const struct rtrbm_options *options, int64_t epoch)
{
    int64_t steps = options->cd_steps;
    const bool valid = epoch_values_at(options->cd_schedule, epoch, MOST_CD_STEPS, &steps);
    ENSURE(valid);
    return steps;
}

static enum status check(const struct model *model)
{
    const struct rtrbm_options *o = model->options;
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    int64_t steps = 0;
    if (!epoch_values_at(o->cd_schedule, 0, MOST_CD_STEPS, &steps))
        return fail(BAD_USER,
                    "model.cd_schedule = %s: expected epoch:steps pairs with increasing "
                    "epochs, for example 10:3 20:5",
                    o->cd_schedule);
    if (o->dense && o->visible != VISIBLE_BERNOULLI)
        return fail(BAD_USER,
                    "model.dense = yes requires model.visible = bernoulli: items that are 0 "
                    "in most steps must not act on the hidden units when they are 0");
    if (o->structure == STRUCTURE_SKILLS && model->n_skills == 0)
        return fail(BAD_USER,
                    "model.structure = skills, but the data set has no skills; import it "
                    "with --skills or --q-matrix, or use model.structure=items");
    if (shape->hidden == 0)
        return fail(BAD_USER, "model.hidden = 0 leaves no hidden units; set at least 1, or "
                              "use model.structure=skills or items");
    if (shape->hidden > 16384)
        return fail(BAD_USER,
                    "model.structure = %s needs %zu hidden units (%zu times "
                    "model.skill_units = %lld, plus model.hidden = %lld); at most 16384 are "
                    "supported",
                    structure_kinds[o->structure], shape->hidden, shape->n_groups,
                    (long long)o->skill_units, (long long)o->hidden);
    return OK;
}

static enum status declare(struct model *model)
{
    struct rtrbm_shape *shape = model->shape;
    *shape = derive(model);
    TRY(check(model));
    struct params *p = &model->params;
    const uint64_t n = model->n_items, h = shape->hidden, k = (uint64_t)shape->rows.per_item;
    const bool both = k == 2;
    size_t panel = params_panel_of(p, "item", n * k, h);
    ENSURE(panel == PANEL_VISIBLE);
    params_tensor(
        p, &(struct tensor){"weights", panel, 0, h, both ? 3 : 2, {n, both ? 2 : h, h}, true});
    panel = params_panel_of(p, "item", n, k);
    ENSURE(panel == PANEL_VISIBLE_BIAS);
    params_tensor(p,
                  &(struct tensor){"visible_bias", panel, 0, k, both ? 2 : 1, {n, 2}, false});
    panel = params_panel(p, 1, h);
    ENSURE(panel == PANEL_BIAS);
    params_tensor(p, &(struct tensor){"hidden_bias", panel, 0, h, 1, {h}, false});
    panel = params_panel(p, 1, h);
    ENSURE(panel == PANEL_FIRST);
    params_tensor(p, &(struct tensor){"first_bias", panel, 0, h, 1, {h}, false});
    panel = params_panel(p, h, h);
    ENSURE(panel == PANEL_RECURRENT);
    params_tensor(p, &(struct tensor){"recurrent", panel, 0, h, 2, {h, h}, true});
    panel = params_panel(p, shape->n_groups, size_max(1, shape->n_groups));
    ENSURE(panel == PANEL_GATES);
    if (shape->n_groups > 0)
        params_tensor(p, &(struct tensor){"gates",
                                          panel,
                                          0,
                                          shape->n_groups,
                                          2,
                                          {shape->n_groups, shape->n_groups},
                                          false});
    return OK;
}

static void init_normal(struct model *model, size_t panel, uint64_t seed, double scale)
{
    const struct panel *p = &model->params.panels[panel];
    const size_t hidden = rtrbm_shape(model)->hidden;
    for (size_t row = 0; row < p->n_rows; row++) {
        const struct rng rng = {
            .seed = seed, .purpose = RNG_INIT, .part = (uint32_t)panel, .who = (uint32_t)row};
        for (size_t j = 0; j < hidden; j++)
            params_rows(&model->params, panel)[row * p->stride + j] =
                (real)(scale * rng_normal(&rng, (uint32_t)j));
    }
}

/* A part that all items share: each hidden unit counts right against wrong answers, or the
 * reverse, so that from the start it follows how able a student is. */
static void init_common(struct model *model, uint64_t seed)
{
    const struct rtrbm_options *o = model->options;
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE];
    const struct rng rng = {.seed = seed, .purpose = RNG_INIT, .part = PANEL_GATES + 1};
    for (size_t row = 0; shape->rows.per_item == 2 && row < panel->n_rows; row++)
        for (size_t j = 0; j < shape->hidden; j++)
            params_rows(&model->params, PANEL_VISIBLE)[row * panel->stride + j] +=
                (real)((row % 2 == 1 ? o->scale : -o->scale) * rng_normal(&rng, (uint32_t)j));
}

/* What the weights of an item add to the log-odds of a right answer when x = 0, as it is at the
 * start: sum_j log(1 + e^(W_j of right)) - log(1 + e^(W_j of wrong)). */
static double added_by_weights(const struct model *model, size_t item)
{
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    const size_t per_item = (size_t)shape->rows.per_item;
    const real *wrong =
        params_rows(&model->params, PANEL_VISIBLE) + item * per_item * shape->width;
    const real *right = wrong + (per_item - 1) * shape->width;
    double sum = 0;
    for (size_t j = 0; j < shape->hidden; j++) {
        const double of_wrong = per_item == 2 ? (double)wrong[j] : 0;
        sum += Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec((double)right[j])) -
               Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(of_wrong));
    }
    return sum;
}

/* Biases that make the first prediction the log-odds of the item: they make up for what the
 * random weights add, which items with few answers would hardly unlearn. */
static void init_visible_bias(struct model *model, const struct item_counts *counts)
{
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE_BIAS];
    double *logit = item_counts_log_odds(counts);
    for (size_t i = 0; i < model->n_items; i++) {
        real *bias = params_rows(&model->params, PANEL_VISIBLE_BIAS) + i * panel->stride;
        const double odds = logit[i] - added_by_weights(model, i);
        if (rtrbm_shape(model)->rows.per_item == 2) {
            bias[0] = (real)(-0.5 * odds);
            bias[1] = (real)(0.5 * odds);
        } else {
            bias[0] = (real)odds;
        }
    }
    memory_free(logit);
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct rtrbm_options *o = model->options;
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    init_normal(model, PANEL_VISIBLE, seed, o->scale);
    init_normal(model, PANEL_RECURRENT, seed, o->scale);
    init_common(model, seed);
    for (size_t row = 0;
         model->dataset != NULL && row < model->params.panels[PANEL_VISIBLE].n_rows; row++)
        rtrbm_mask_row(shape, model, row / (size_t)shape->rows.per_item,
                       params_rows(&model->params, PANEL_VISIBLE) + row * shape->width);
    init_visible_bias(model, counts);
    const double last = (double)size_max(1, shape->hidden - 1);
    for (size_t j = 0; j < shape->hidden; j++) {
        const double loop = o->loop * (1 - o->spread * (double)j / last);
        params_rows(&model->params, PANEL_RECURRENT)[j * shape->width + j] += (real)loop;
        params_rows(&model->params, PANEL_BIAS)[j] = (real)(-loop / 2);
    }
}

static size_t n_hidden(const struct model *model)
{
    return rtrbm_shape(model)->hidden;
}

static bool hidden_is_chance(const struct model *model)
{
    (void)model;
    return true;
}

/* Rows for right minus wrong: what a hidden unit adds to the log-odds of an answer. */
static size_t loadings(const struct model *model, void *work, uint32_t item, real *row)
{
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    const bool softmax = shape->rows.per_item == 2;
    (void)work;
    if (row == NULL)
        return shape->hidden;
    const real *rows = params_rows(&model->params, PANEL_VISIBLE) +
                       (size_t)item * (size_t)shape->rows.per_item * shape->width;
    for (size_t j = 0; j < shape->hidden; j++)
        row[j] = softmax ? rows[shape->width + j] - rows[j] : rows[j];
    rtrbm_mask_row(shape, model, item, row);
    return shape->hidden;
}

const struct model_kind rtrbm_kind = {
    .name = "rtrbm",
    .title = "recurrent temporal restricted Boltzmann machine over a student's steps",
    .source = "Sutskever, Hinton and Taylor 2008; Mittelman and others 2014",
    .loss = "negative log-likelihood in nats per training answer; for steps trained by cd, of "
            "their reconstruction",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct rtrbm_options),
    .shape_size = sizeof(struct rtrbm_shape),
    .declare = declare,
    .init = init,
    .attach = rtrbm_attach,
    .detach = rtrbm_detach,
    .training = rtrbm_training,
    .accumulate = rtrbm_accumulate,
    .predict = rtrbm_predict,
    .setup = {.uses = uses},
    .speed = {.lengths = rtrbm_lengths},
    .view = {.n_hidden = n_hidden,
             .hidden = rtrbm_hidden,
             .hidden_is_chance = hidden_is_chance,
             .loadings = loadings,
             .relates_items = true,
             .n_nodes = rtrbm_n_nodes,
             .graph = rtrbm_graph},
    .sequence = {.likelihood = rtrbm_likelihood, .sample = rtrbm_sample},
    .live = {.ready = rtrbm_live_ready,
             .size = rtrbm_live_size,
             .begin = rtrbm_live_begin,
             .tell = rtrbm_live_tell,
             .ask = rtrbm_live_ask},
};
