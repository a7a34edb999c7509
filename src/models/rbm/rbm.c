/* The restricted Boltzmann machine for answers (Soyer and Moellenhoff, "What do you know?";
 * after Salakhutdinov, Mnih and Hinton, 2007, and Hinton, 2010).
 *
 * Each student is a small RBM with one visible unit per answer. All students share the weights.
 * Items without an answer are absent, not zero. For visible unit i with outcome k (1 correct, 0
 * incorrect), hidden unit j, and N copies of each visible unit:
 *
 *     x_j = b_j + sum_i sum_k n_i^k W_ij^k  (+ sum_i r_i D_ij)     input of hidden unit j
 *
 *     binary:    P(h_j = 1) = sigma(x_j)
 *     gaussian:  h_j ~ N(x_j, 1)
 *     relu:      h_j = max(0, x_j + noise),  noise ~ N(0, sigma(x_j))
 *
 *     t_i = a_i^1 - a_i^0 + sum_j h_j (W_ij^1 - W_ij^0)            input of visible unit i
 *     P(a copy of i is correct) = sigma(t_i)
 *
 * n_i^k is N [y_i = k] in the data and a binomial count in a reconstruction. With visible =
 * bernoulli there is only row k = 1. With conditional = yes, r_i = 1 for every item the student
 * saw, whatever the outcome.
 *
 * With factors = C the weights are products, W^k = A^k B, and all work is done in the space of
 * the rows, which has C dimensions:
 *
 *     lift    sum of rows f -> hidden units:  B^T f
 *     lower   hidden units h -> rows:         B h
 *
 * Without factors the two spaces are the same.
 *
 * Training is contrastive divergence: statistics of the data minus those of a reconstruction
 * after cd_steps Gibbs steps. The chain starts at the data or, if persistent, where the
 * student's own chain stopped.
 *
 *     tensor          shape                symbol
 *     weights         items, K, m (or C)   W^k; with factors, A^k  (K = 2)
 *                     items, m (or C)      bernoulli (K = 1)
 *     visible_bias    items, K             a; stored as the last column of the rows of weights
 *     hidden_bias     m                    b
 *     seen            items, m             D
 *     factors         C, m                 B
 *     common          K, m (or C)          added to every item's rows: effect of any answer
 *
 * A Gibbs step costs O(m) per answer and touches 2 rows of weights and 2 of statistics, so it
 * is bound by memory. Prediction is exact by default: x is updated along the student's answers,
 * and for each of the N + 1 states of the unit to predict, the hidden units are summed out in
 * closed form. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_rows.h"
#include "kernels/vec.h"
#include "learn/epoch_values.h"
#include "learn/model.h"
#include "models/rbm/rbm_internal.h"
#include <math.h>
#include <string.h>

enum { MOST_CD_STEPS = 10000 };
static const char *const visible_kinds[] = {"bernoulli", "softmax", NULL};
static const char *const hidden_kinds[] = {"binary", "gaussian", "relu", NULL};
static const char *const repeat_kinds[] = {"each", "last", NULL};
static const char *const start_kinds[] = {"zero", "log_odds", NULL};
static const char *const prediction_kinds[] = {"exact", "mean_field", NULL};

#define AT(field) offsetof(struct rbm_options, field)
static const struct option table[] = {
    {"visible", OPTION_CHOICE, AT(visible), "softmax", 0, 0, visible_kinds,
     "kind of visible unit; softmax: a row of weights for each outcome, bernoulli: a row for "
     "correct answers only"},
    {"copies", OPTION_INTEGER, AT(copies), "2", 1, 15, NULL,
     "number of copies of each visible unit; 2 gives the binomial units of the paper"},
    {"hidden", OPTION_INTEGER, AT(hidden), "15", 1, 4096, NULL, "number of hidden units"},
    {"hidden_kind", OPTION_CHOICE, AT(hidden_kind), "binary", 0, 0, hidden_kinds,
     "kind of hidden unit: binary, gaussian (unit variance) or relu (noisy rectified "
     "linear); the last two are unbounded, so each student's gradient is divided by its "
     "number of visible copies"},
    {"conditional", OPTION_SWITCH, AT(conditional), "no", 0, 0, NULL,
     "conditional RBM: the set of items a student saw influences the hidden units, whatever "
     "the outcomes"},
    {"factors", OPTION_INTEGER, AT(factors), "0", 0, 1024, NULL,
     "factorize the weights into a product with this many factors; 0: no factorization"},
    {"common", OPTION_SWITCH, AT(common), "no", 0, 0, NULL,
     "add a row of weights shared by all items to the row of each item; helps when data are "
     "scarce"},
    {"repeats", OPTION_CHOICE, AT(repeats), "each", 0, 0, repeat_kinds,
     "an item answered more than once has one visible unit per answer (each), or one for the "
     "last answer only (last)"},
    {"window", OPTION_INTEGER, AT(window), "0", 0, 1e9, NULL,
     "train on segments of this many consecutive answers and predict from as many of the "
     "latest; 0: use all answers"},
    {"cd_steps", OPTION_INTEGER, AT(cd_steps), "1", 1, MOST_CD_STEPS, NULL,
     "Gibbs steps of contrastive divergence (the k of CD-k)"},
    {"cd_schedule", OPTION_TEXT, AT(cd_schedule), "", 0, 0, NULL,
     "epoch:steps pairs that change cd_steps during training, for example 10:3 20:5"},
    {"persistent", OPTION_SWITCH, AT(persistent), "no", 0, 0, NULL,
     "persistent contrastive divergence: keep one Gibbs chain per student from epoch to epoch"},
    {"start", OPTION_CHOICE, AT(start), "zero", 0, 0, start_kinds,
     "initial visible biases: zero, or each item's log-odds of a correct answer"},
    {"scale", OPTION_NUMBER, AT(scale), "0.001", 0, 10, NULL,
     "standard deviation of the initial weights"},
    {"prediction", OPTION_CHOICE, AT(prediction), "exact", 0, 0, prediction_kinds,
     "exact: sum the hidden units out in closed form; mean_field: one pass up and down, "
     "always used with relu"},
};

static const struct preset presets[] = {
    {"binomial", "the best model of the paper: 15 hidden units, two copies",
     "model.visible = softmax\nmodel.copies = 2\nmodel.hidden = 15\nmodel.scale = 0.001\n"
     "optimizer.method = sgd\noptimizer.gradient = sum\noptimizer.rate = "
     "0.0002\noptimizer.momentum = 0.9\n"
     "optimizer.decay = 0.1\ntrain.batch = 1000\n"},
    {"softmax", "softmax units of the paper: 15 hidden units, one copy",
     "model.visible = softmax\nmodel.copies = 1\nmodel.hidden = 15\nmodel.scale = 0.001\n"
     "optimizer.method = sgd\noptimizer.gradient = sum\noptimizer.rate = "
     "0.001\noptimizer.momentum = 0.9\n"
     "optimizer.decay = 0.1\ntrain.batch = 1000\n"},
    {"bernoulli", "the first model of the paper: only correct answers have weights",
     "model.visible = bernoulli\nmodel.copies = 1\nmodel.hidden = 15\nmodel.scale = 0.001\n"
     "optimizer.method = sgd\noptimizer.gradient = sum\noptimizer.rate = "
     "0.001\noptimizer.momentum = 0.9\n"
     "optimizer.decay = 0.1\ntrain.batch = 1000\n"},
    {"factored", "the factored model of the paper: 40 hidden units, 10 factors",
     "model.visible = softmax\nmodel.copies = 2\nmodel.hidden = 40\nmodel.factors = 10\n"
     "model.scale = 0.001\noptimizer.method = sgd\noptimizer.gradient = sum\noptimizer.rate = "
     "0.0002\n"
     "optimizer.momentum = 0.9\noptimizer.decay = 0.1\ntrain.batch = 1000\n"},
    {"conditional", "the conditional model of the paper: 15 hidden units, two copies",
     "model.visible = softmax\nmodel.copies = 2\nmodel.hidden = 15\nmodel.conditional = yes\n"
     "model.scale = 0.001\noptimizer.method = sgd\noptimizer.gradient = sum\noptimizer.rate = "
     "0.0002\n"
     "optimizer.momentum = 0.9\noptimizer.decay = 0.1\ntrain.batch = 1000\n"},
};

/* The sizes, from the options and the declared panels. */
static struct rbm_shape derive(const struct model *model)
{
    const struct rbm_options *o = model->options;
    const struct params *p = &model->params;
    return (struct rbm_shape){
        .rows = {.stride = p->panels[PANEL_VISIBLE].stride,
                 .per_item = o->visible == VISIBLE_SOFTMAX ? 2 : 1,
                 .copies = (int)o->copies},
        .m = (size_t)o->hidden,
        .stride = p->panels[PANEL_HIDDEN].stride,
        .dims = (size_t)(o->factors > 0 ? o->factors : o->hidden),
        .n_factors = (size_t)o->factors,
        .hidden_kind = (enum rbm_hidden)o->hidden_kind,
    };
}

static enum status declare(struct model *model)
{
    struct rbm_options *o = model->options;
    int64_t steps = o->cd_steps;
    if (!epoch_values_at(o->cd_schedule, 0, MOST_CD_STEPS, &steps))
        return fail(BAD_USER,
                    "model.cd_schedule = %s: expected epoch:steps pairs with increasing "
                    "epochs, for example 10:3 20:5",
                    o->cd_schedule);
    if (o->window > 0 && o->repeats == REPEATS_LAST)
        return fail(BAD_USER,
                    "model.window = %lld requires model.repeats = each: with last, a later "
                    "answer may replace one inside the window; set model.window=0 or "
                    "model.repeats=each",
                    (long long)o->window);
    if (o->hidden_kind == HIDDEN_RELU)
        o->prediction = PREDICTION_MEAN_FIELD;
    const uint64_t n = model->n_items, m = (uint64_t)o->hidden, c = (uint64_t)o->factors;
    const uint64_t per_item = o->visible == VISIBLE_SOFTMAX ? 2 : 1, dims = c > 0 ? c : m;
    const bool softmax = per_item == 2;
    struct params *p = &model->params;

    size_t panel = params_panel_of(p, "item", n * per_item, dims + 1);
    ENSURE(panel == PANEL_VISIBLE);
    params_tensor(
        p,
        &(struct tensor){
            "weights", panel, 0, dims, softmax ? 3 : 2, {n, softmax ? 2 : dims, dims}, true});
    params_tensor(
        p, &(struct tensor){"visible_bias", panel, dims, 1, softmax ? 2 : 1, {n, 2}, false});
    panel = params_panel(p, 1, m + 1);
    ENSURE(panel == PANEL_HIDDEN);
    params_tensor(p, &(struct tensor){"hidden_bias", panel, 0, m, 1, {m}, false});
    panel = params_panel_of(p, "item", o->conditional ? n : 0, m + 1);
    ENSURE(panel == PANEL_SEEN);
    if (o->conditional)
        params_tensor(p, &(struct tensor){"seen", panel, 0, m, 2, {n, m}, true});
    panel = params_panel(p, c, m + 1);
    ENSURE(panel == PANEL_FACTORS);
    if (c > 0)
        params_tensor(p, &(struct tensor){"factors", panel, 0, m, 2, {c, m}, true});
    panel = params_panel(p, o->common ? per_item : 0, dims + 1);
    ENSURE(panel == PANEL_COMMON);
    if (o->common)
        params_tensor(
            p,
            &(struct tensor){
                "common", panel, 0, dims, softmax ? 2 : 1, {softmax ? 2 : dims, dims}, true});
    *(struct rbm_shape *)model->shape = derive(model);
    return OK;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct rbm_options *o = model->options;
    const struct rbm_shape *shape = rbm_shape(model);
    const size_t stride = shape->rows.stride, per_item = (size_t)shape->rows.per_item;
    real *visible = params_rows(&model->params, PANEL_VISIBLE);
    for (size_t row = 0; row < model->n_items * per_item; row++) {
        const struct rng rng = {.seed = seed, .purpose = RNG_INIT, .who = (uint32_t)row};
        for (size_t j = 0; j < shape->dims; j++)
            visible[row * stride + j] = (real)(o->scale * rng_normal(&rng, (uint32_t)j));
    }
    double *logit = o->start == START_LOG_ODDS ? item_counts_log_odds(counts) : NULL;
    for (size_t i = 0; logit != NULL && i < model->n_items; i++) {
        real *row = visible + i * per_item * stride;
        if (per_item == 2) {
            row[shape->dims] = (real)(-0.5 * logit[i]);
            row[stride + shape->dims] = (real)(0.5 * logit[i]);
        } else {
            row[shape->dims] = (real)logit[i];
        }
    }
    memory_free(logit);
    real *factors = params_rows(&model->params, PANEL_FACTORS);
    for (size_t c = 0; c < shape->n_factors && c < shape->m; c++)
        factors[c * shape->stride + c] = 1;
}

/* x = base + the input of the hidden units from a sum of rows. */
void rbm_lift(const struct rbm_shape *shape, const struct model *model, const real *f,
              const real *base, real *x)
{
    const real *factors = params_rows(&model->params, PANEL_FACTORS);
    memcpy(x, base, shape->stride * sizeof *x);
    if (shape->n_factors == 0)
        for (size_t j = 0; j < shape->stride; j++)
            x[j] += f[j];
    for (size_t c = 0; c < shape->n_factors; c++)
        for (size_t j = 0; j < shape->stride; j++)
            x[j] += f[c] * factors[c * shape->stride + j];
}

/* f += the common rows of n_right correct and n_wrong incorrect copies. */
void rbm_add_common(const struct rbm_shape *shape, const struct model *model, int64_t n_right,
                    int64_t n_wrong, real *f)
{
    if (model->params.panels[PANEL_COMMON].n_rows == 0)
        return;
    const real *wrong = params_rows(&model->params, PANEL_COMMON);
    const real *right = wrong + (size_t)(shape->rows.per_item - 1) * shape->rows.stride;
    const real n_first = shape->rows.per_item == 2 ? (real)n_wrong : 0;
    for (size_t j = 0; j < shape->rows.stride; j++)
        f[j] += (real)n_right * right[j] + n_first * wrong[j];
}

/* From hidden units to rows: g . row is the input of a visible unit, bias included. */
void rbm_lower(const struct rbm_shape *shape, const struct model *model, const real *h, real *g)
{
    const real *factors = params_rows(&model->params, PANEL_FACTORS);
    memset(g, 0, shape->rows.stride * sizeof *g);
    if (shape->n_factors == 0)
        memcpy(g, h, shape->m * sizeof *g);
    for (size_t c = 0; c < shape->n_factors; c++)
        for (size_t j = 0; j < shape->m; j++)
            g[c] += factors[c * shape->stride + j] * h[j];
    g[shape->dims] = 1;
}

/* logit = the input of visible units, from the g of rbm_lower. */
void rbm_visible_input(const struct rbm_shape *shape, const struct model *model,
                       const uint32_t *unit, size_t n, const real *g, real *logit)
{
    const struct params *p = &model->params;
    rbm_rows->dot(&shape->rows, params_rows(p, PANEL_VISIBLE), unit, n, g, logit);
    if (p->panels[PANEL_COMMON].n_rows == 0)
        return;
    const uint32_t first = 0; /* the common rows have the layout of one item's rows */
    real common[WIDTH] __attribute__((aligned(64)));
    rbm_rows->dot(&shape->rows, params_rows(p, PANEL_COMMON), &first, 1, g, common);
    for (size_t a = 0; a < n; a++)
        logit[a] += common[0];
}

/* mean = E[h | x]; the padding after the m hidden units is zero. */
void rbm_mean(const struct rbm_shape *shape, const real *x, real *mean)
{
    memcpy(mean, x, shape->stride * sizeof *mean);
    if (shape->hidden_kind == HIDDEN_BINARY)
        vec->sigmoid(mean, shape->stride);
    else if (shape->hidden_kind == HIDDEN_RELU) /* the stack relu approximates */
        vec->softplus(mean, shape->stride);
    for (size_t j = shape->m; j < shape->stride; j++)
        mean[j] = 0;
}

int64_t rbm_cd_steps(const struct rbm_options *options, int64_t epoch)
{
    int64_t steps = options->cd_steps;
    const bool valid = epoch_values_at(options->cd_schedule, epoch, MOST_CD_STEPS, &steps);
    ENSURE(valid);
    return steps;
}

static size_t n_hidden(const struct model *model)
{
    return rbm_shape(model)->m;
}

static bool hidden_is_chance(const struct model *model)
{
    return rbm_shape(model)->hidden_kind == HIDDEN_BINARY;
}

/* f += the rows of an item for right minus wrong: what a hidden unit adds to t_i. */
static void add_difference(const struct rbm_shape *shape, const real *rows, real *f)
{
    const bool softmax = shape->rows.per_item == 2;
    const real *right = rows + (softmax ? shape->rows.stride : 0);
    for (size_t c = 0; c < shape->dims; c++)
        f[c] += right[c] - (softmax ? rows[c] : 0);
}

static size_t loadings(const struct model *model, void *work, uint32_t item, real *row)
{
    const struct rbm_shape *shape = rbm_shape(model);
    const struct params *p = &model->params;
    (void)work;
    if (row == NULL)
        return shape->m;
    real *f = NEW(real, shape->rows.stride), *zero = NEW(real, shape->stride),
         *x = NEW(real, shape->stride);
    add_difference(shape,
                   params_rows(p, PANEL_VISIBLE) +
                       (size_t)item * (size_t)shape->rows.per_item * shape->rows.stride,
                   f);
    if (p->panels[PANEL_COMMON].n_rows > 0)
        add_difference(shape, params_rows(p, PANEL_COMMON), f);
    rbm_lift(shape, model, f, zero, x);
    memcpy(row, x, shape->m * sizeof *row);
    memory_free(f);
    memory_free(zero);
    memory_free(x);
    return shape->m;
}

const struct model_kind rbm_kind = {
    .name = "rbm",
    .title = "restricted Boltzmann machine over a student's answers",
    .source = "Soyer and Moellenhoff, What do you know?; Salakhutdinov, Mnih and Hinton 2007",
    .loss = "fraction of visible copies reconstructed wrongly",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct rbm_options),
    .shape_size = sizeof(struct rbm_shape),
    .presets = presets,
    .n_presets = COUNT(presets),
    .declare = declare,
    .init = init,
    .attach = rbm_attach,
    .detach = rbm_detach,
    .training = rbm_training,
    .accumulate = rbm_accumulate,
    .predict = rbm_predict,
    .fit = {.state = rbm_state},
    .speed = {.measure = rbm_measure},
    .view = {.n_hidden = n_hidden,
             .hidden = rbm_hidden,
             .hidden_is_chance = hidden_is_chance,
             .loadings = loadings,
             .relates_items = true},
    .live = {.begin = rbm_live_begin, .tell = rbm_live_tell, .ask = rbm_live_ask},
};
