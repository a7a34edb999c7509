/* ML2P-VAE: multidimensional item response theory, fitted by a variational auto-encoder.
 *
 *     decoder    P(student answers item i correctly) = sigma(sum_k a_ik theta_k - b_i)
 *     prior      theta ~ N(0, Sigma), Sigma = 1 or a given matrix of correlations
 *     encoder    q(theta | answers) = N(mean, L L^T), L diagonal or lower triangular, from a
 *                network: a row for each (item, outcome), summed over the n answers and divided
 *                by sqrt(1 + n), plus log(1 + n) times another row; tanh layers; mean, log L_kk
 *                and L_kj are linear in the last layer
 *     bound      ELBO, or with `samples` S > 1 the importance-weighted bound, which is closer
 *                to the marginal likelihood:
 *                log 1/S sum_s p(answers | theta_s) p(theta_s) / q(theta_s)
 *
 *     tensor                shape        symbol
 *     discrimination        items, K     a; not there if all are one, K numbers if equal
 *     q_matrix              items, K     which a are free; not trained
 *     difficulty, answers   items        b; training answers, not trained
 *     error_a, error_b      items, K; items   standard errors, see vae_errors.c; not trained
 *     encoder_*                          the network
 *
 * a >= 0 by a = |tensor|: unlike e^x it can reach 0 and leave it again, and unlike a projection
 * it needs no help from the optimizer. Tensors marked "not trained" have a gradient of zero.
 * Items that a student did not answer are absent, not wrong. An item without a skill has every
 * a free: its answers decide which abilities it requires. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <sleef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const discriminations[] = {"nonnegative", "signed", "equal", "one", NULL};
static const char *const posteriors[] = {"independent", "full", NULL};
static const char *const gradients[] = {"double", "plain", NULL};
static const char *const predictions[] = {"integrated", "plug_in", NULL};

#define AT(field) offsetof(struct vae_options, field)
static const struct option table[] = {
    {"dimensions", OPTION_INTEGER, AT(dimensions), "0", 0, VAE_MOST_DIMS, NULL,
     "number of abilities, each required by all items; 0: one ability per skill, required "
     "by the items of that skill and by items without a skill (a single ability if there are "
     "no skills)"},
    {"discrimination", OPTION_CHOICE, AT(discrimination), "nonnegative", 0, 0, discriminations,
     "discriminations: nonnegative or signed per item (2PL), equal for all items (1PL), or "
     "one (Rasch)"},
    {"posterior", OPTION_CHOICE, AT(posterior), "independent", 0, 0, posteriors,
     "posterior covariance of the abilities of a student: diagonal (independent) or full"},
    {"prior_correlation", OPTION_TEXT, AT(prior_correlation), "", 0, 0, NULL,
     "prior correlations of the abilities: a CSV file, or rows as in 1 0.5 / 0.5 1"},
    {"prior_a", OPTION_NUMBER, AT(prior_a), "0", 0, 1e6, NULL,
     "standard deviation of a normal prior on log discriminations; 0: no prior"},
    {"prior_b", OPTION_NUMBER, AT(prior_b), "0", 0, 1e6, NULL,
     "standard deviation of a normal prior on difficulties; 0: no prior"},
    {"samples", OPTION_INTEGER, AT(samples), "1", 1, 4096, NULL,
     "samples of the posterior per student and step: 1 gives the ELBO, more the "
     "importance-weighted bound"},
    {"gradient", OPTION_CHOICE, AT(gradient), "double", 0, 0, gradients,
     "gradient of the encoder if samples > 1: doubly reparameterized (less noise) or plain"},
    {"prefixes", OPTION_INTEGER, AT(prefixes), "1", 0, 64, NULL,
     "number of random prefixes of each student's answers that the encoder is also trained on, "
     "so that it predicts well from few answers"},
    {"kl_warm_up", OPTION_INTEGER, AT(kl_warm_up), "0", 0, 1e9, NULL,
     "epochs over which the weight of the KL divergence rises from 0 to 1"},
    {"hidden", OPTION_INTEGER, AT(hidden), "64", 1, 4096, NULL,
     "hidden units per layer of the encoder"},
    {"layers", OPTION_INTEGER, AT(layers), "2", 1, VAE_MOST_LAYERS, NULL,
     "tanh layers of the encoder, before the linear output layer"},
    {"prediction", OPTION_CHOICE, AT(prediction), "integrated", 0, 0, predictions,
     "integrated: mean probability over the posterior; plug_in: probability at its mean"},
};

static const struct preset presets[] = {
    {"1pl", "one ability, equal discriminations",
     "[model]\ndimensions = 1\ndiscrimination = equal\n"},
    {"rasch", "one ability, all discriminations equal to one",
     "[model]\ndimensions = 1\ndiscrimination = one\n"},
    {"2pl", "one ability, one discrimination per item",
     "[model]\ndimensions = 1\ndiscrimination = nonnegative\n"},
    {"ml2p", "one ability per skill, full posterior covariance, importance-weighted bound",
     "[model]\nposterior = full\nsamples = 16\n"},
};

static size_t count_dims(const struct model *model)
{
    const struct vae_options *o = model->options;
    return o->dimensions > 0 ? (size_t)o->dimensions : size_max(1, model->n_skills);
}

/* With dimensions = 0 there is one ability per skill, and a Q-matrix. */
static unsigned uses(const struct model *model)
{
    const struct vae_options *o = model->options;
    return o->dimensions == 0 ? MODEL_SKILLS : 0;
}

static enum status check(const struct model *model)
{
    const struct vae_options *o = model->options;
    const size_t n_dims = count_dims(model);
    if (n_dims > VAE_MOST_DIMS)
        return fail(BAD_USER,
                    "the data set has %zu skills, but a vae has at most %d abilities; set "
                    "model.dimensions to 1 or a few",
                    model->n_skills, VAE_MOST_DIMS);
    if (o->prior_a > 0 && o->discrimination != A_NONNEGATIVE)
        return fail(BAD_USER,
                    "model.prior_a = %g is a prior on log discriminations; it needs "
                    "model.discrimination=nonnegative, not %s",
                    o->prior_a, discriminations[o->discrimination]);
    struct vae_prior prior;
    TRY(vae_prior_create(&prior, o->prior_correlation, n_dims));
    vae_prior_free(&prior);
    return OK;
}

/* Declares all panels and remembers where they are. */
static void lay_out(struct model *model)
{
    struct params *p = &model->params;
    struct vae_shape *shape = model->shape;
    const struct vae_options *o = model->options;
    const uint64_t k = count_dims(model), n = model->n_items, h = (uint64_t)o->hidden;
    const size_t n_roots = o->posterior == POSTERIOR_FULL ? k * (k + 1) / 2 : k;
    *shape = (struct vae_shape){.n_dims = k,
                                .hidden = h,
                                .width = size_padded(h),
                                .n_layers = (size_t)o->layers,
                                .n_out = size_padded(k + n_roots),
                                .full = o->posterior == POSTERIOR_FULL};
    const bool own_a = o->discrimination == A_NONNEGATIVE || o->discrimination == A_SIGNED;
    const size_t n_a = own_a ? k : 0;
    shape->column_q = n_a;
    shape->column_b = n_a + k;
    shape->column_n = n_a + k + 1;
    shape->column_error = n_a + k + 2;
    const size_t panel = shape->decoder =
        params_panel_of(p, "item", n, shape->column_error + n_a + 1);
    const struct tensor of_items[] = {
        {"discrimination", panel, 0, n_a, 2, {n, k}, true},
        {"q_matrix", panel, shape->column_q, k, 2, {n, k}, false},
        {"difficulty", panel, shape->column_b, 1, 1, {n}, false},
        {"answers", panel, shape->column_n, 1, 1, {n}, false},
        {"error_a", panel, shape->column_error, n_a, 2, {n, k}, false},
        {"error_b", panel, shape->column_error + n_a, 1, 1, {n}, false},
    };
    for (size_t t = 0; t < COUNT(of_items); t++)
        if (of_items[t].n_columns > 0)
            (of_items[t].first_column < shape->column_error ? params_tensor
                                                            : params_examined)(p, &of_items[t]);
    if (o->discrimination == A_EQUAL) {
        shape->common = params_panel(p, 1, k);
        params_tensor(p, &(struct tensor){"discrimination", shape->common, 0, k, 1, {k}, true});
    }
    shape->input = (struct embedding){params_panel_of(p, "item", 2 * n, h), shape->width};
    params_tensor(
        p, &(struct tensor){"encoder_input", shape->input.panel, 0, h, 3, {n, 2, h}, true});
    shape->bias = params_panel(p, 1, h);
    params_tensor(p, &(struct tensor){"encoder_bias1", shape->bias, 0, h, 1, {h}, false});
    shape->count = params_panel(p, 1, h);
    params_tensor(p, &(struct tensor){"encoder_count", shape->count, 0, h, 1, {h}, false});
    for (size_t l = 1; l < shape->n_layers; l++) {
        char weight[32], bias[32];
        snprintf(weight, sizeof weight, "encoder_weight%zu", l + 1);
        snprintf(bias, sizeof bias, "encoder_bias%zu", l + 1);
        dense_declare(&shape->layer[l], p, h, h, weight, bias);
    }
    dense_declare(&shape->layer[shape->n_layers], p, h, k + n_roots, "encoder_output",
                  "encoder_output_bias");
}

static enum status declare(struct model *model)
{
    TRY(check(model));
    lay_out(model);
    return OK;
}

/* Whether an item requires every ability: the Q-matrix says nothing of it. */
static bool is_free(const struct model *model, size_t i)
{
    const struct vae_options *o = model->options;
    const uint64_t *first = model->dataset->item_first;
    return o->dimensions > 0 || model->n_skills == 0 || first[i] == first[i + 1];
}

/* Notes items without a skill, if abilities follow skills. */
static void say_free_items(const struct model *model)
{
    const struct vae_options *o = model->options;
    size_t n = 0, item = 0;
    for (size_t i = model->n_items; i-- > 0 && o->dimensions == 0 && model->n_skills > 0;)
        if (is_free(model, i)) {
            n++;
            item = i;
        }
    if (n > 0)
        log_say("note: items without a skill: %zu of %zu, for example '%s'; they require every "
                "ability",
                n, model->n_items, names_get(&model->dataset->items, item));
}

static void init_items(struct model *model, const struct vae_shape *shape, uint64_t seed,
                       const struct item_counts *counts)
{
    const struct vae_options *o = model->options;
    const struct dataset *dataset = model->dataset;
    const size_t stride = model->params.panels[shape->decoder].stride, n_dims = shape->n_dims;
    double right = 1, wrong = 1; /* an item without answers starts at the mean */
    for (size_t i = 0; i < model->n_items; i++) {
        right += (double)counts->right[i];
        wrong += (double)counts->wrong[i];
    }
    for (size_t i = 0; i < model->n_items; i++) {
        real *row = params_rows(&model->params, shape->decoder) + i * stride;
        real *q = row + shape->column_q;
        const bool all = is_free(model, i);
        for (size_t k = 0; k < n_dims; k++)
            q[k] = all ? 1 : 0;
        for (uint64_t j = all ? 0 : dataset->item_first[i];
             j < (all ? 0 : dataset->item_first[i + 1]); j++)
            q[dataset->item_skills[j]] = 1;
        /* Not quite equal, or dimensions that all items share could not separate. */
        const struct rng rng = {.seed = seed, .purpose = RNG_INIT, .who = (uint32_t)i};
        for (size_t k = 0; k < shape->column_q; k++)
            row[k] = q[k] != 0 ? (real)(0.8 + 0.4 * rng_uniform(&rng, (uint32_t)k)) : 0;
        const double odds =
            counts->right[i] + counts->wrong[i] > 0
                ? ((double)counts->right[i] + 1) / ((double)counts->wrong[i] + 1)
                : right / wrong;
        row[shape->column_b] = (real)-Sleef_cinz_logd1_u10purec(odds);
        row[shape->column_n] = (real)(counts->right[i] + counts->wrong[i]);
    }
    for (size_t k = 0; o->discrimination == A_EQUAL && k < n_dims; k++)
        params_rows(&model->params, shape->common)[k] = 1;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct vae_shape *shape = vae_shape(model);
    const double size = sqrt(3 / (double)shape->hidden);
    say_free_items(model);
    init_items(model, shape, seed, counts);
    params_fill_uniform(&model->params, shape->input.panel, 1, shape->hidden, seed, 0.5);
    params_fill_uniform(&model->params, shape->count, 1, shape->hidden, seed, 0.5);
    for (size_t l = 1; l <= shape->n_layers; l++)
        dense_init(&shape->layer[l], &model->params, seed,
                   l < shape->n_layers ? size : 0.3 * size);
}

static void name_columns(FILE *out, const char *name, size_t n)
{
    if (n == 1)
        fprintf(out, " %s", name);
    for (size_t k = 0; n > 1 && k < n; k++)
        fprintf(out, " %s_%zu", name, k + 1);
}

/* Columns a_1 .. a_K (a if K = 1), b, the same with error_ before them, answers. */
static void items_table(const struct model *model, size_t which, struct table *items)
{
    (void)which;
    const struct vae_shape *shape = vae_shape(model);
    const size_t n_dims = shape->n_dims, stride = model->params.panels[shape->decoder].stride;
    const size_t n_errors = shape->column_q;
    char *words = NULL;
    size_t n_bytes = 0;
    FILE *out = memory_stream(&words, &n_bytes);
    name_columns(out, "a", n_dims);
    name_columns(out, "b", 1);
    name_columns(out, "error_a", n_errors);
    name_columns(out, "error_b", 1);
    name_columns(out, "answers", 1);
    fclose(out);
    table_create(items, "items", "item", model->n_items, words + 1);
    items->caption =
        "Items by item response theory: the log-odds of a correct answer are the sum "
        "of a × ability, minus b. So a is how well an item separates students, and b "
        "is how hard it is.";
    free(words);
    const real *common = params_rows(&model->params, shape->common);
    for (size_t i = 0; i < model->n_items; i++) {
        const real *row = params_rows(&model->params, shape->decoder) + i * stride;
        const real *errors = row + shape->column_error;
        double *to = table_row(items, i);
        for (size_t k = 0; k < n_dims; k++)
            to[k] = (double)vae_discrimination(model->options, shape, row, common, k);
        to[n_dims] = (double)row[shape->column_b];
        for (size_t k = 0; k <= n_errors; k++)
            to[n_dims + 1 + k] = errors[k] > 0 ? (double)errors[k] : NAN;
        to[n_dims + n_errors + 2] = (double)row[shape->column_n];
    }
}

static size_t n_hidden(const struct model *model)
{
    return 2 * count_dims(model);
}

static void hidden_name(const struct model *model, size_t j, char name[32])
{
    const size_t n_dims = count_dims(model);
    const char *word = j < n_dims ? "theta" : "sigma";
    if (n_dims == 1)
        snprintf(name, 32, "%s", word);
    else
        snprintf(name, 32, "%s_%zu", word, j % n_dims + 1);
}

/* Discriminations; the deviations among the hidden numbers have none. */
static size_t loadings(const struct model *model, void *work, uint32_t item, real *row)
{
    const struct vae_shape *shape = vae_shape(model);
    const size_t stride = model->params.panels[shape->decoder].stride;
    (void)work;
    for (size_t k = 0; k < shape->n_dims && row != NULL; k++)
        row[k] = vae_discrimination(model->options, shape,
                                    params_rows(&model->params, shape->decoder) + item * stride,
                                    params_rows(&model->params, shape->common), k);
    return shape->n_dims;
}

const struct model_kind vae_kind = {
    .name = "vae",
    .title = "ML2P-VAE: multidimensional item response theory by a variational auto-encoder",
    .source = "Converse, Curi and Oliveira 2019; Burda and others 2016; Tucker and others 2019",
    .loss = "minus the bound on the log-likelihood, nats per answer",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct vae_options),
    .shape_size = sizeof(struct vae_shape),
    .presets = presets,
    .n_presets = COUNT(presets),
    .declare = declare,
    .init = init,
    .attach = vae_attach,
    .detach = vae_detach,
    .training = vae_training,
    .accumulate = vae_accumulate,
    .predict = vae_predict,
    .setup = {.prepare = vae_prior_prepare, .uses = uses},
    .speed = {.predict_many = vae_predict_many},
    .view = {.n_hidden = n_hidden,
             .hidden_name = hidden_name,
             .hidden = vae_hidden,
             .loadings = loadings,
             .deviation = vae_deviation,
             .examine = vae_examine,
             .n_tables = 1,
             .table = items_table},
    .sequence = {.likelihood = vae_likelihood},
    .live = {.ready = vae_live_ready,
             .size = vae_live_size,
             .begin = vae_live_begin,
             .tell = vae_live_tell,
             .ask = vae_live_ask},
};
