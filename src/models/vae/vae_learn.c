/* The bound and its gradient; symbols as in vae.c.
 *
 * For a history of n answers, theta_s = m + L epsilon_s, s = 1 .. S, and beta = 1 (less while
 * the divergence warms up):
 *
 *     S = 1:  sum_j log P(y_j | theta) - beta KL(q | prior), the divergence in closed form
 *     S > 1:  log 1/S sum_s w_s,  log w_s = sum_j log P(y_j | theta_s)
 *                                           + beta (log p(theta_s) - log q(theta_s))
 *
 * With v_s = w_s / sum w and g_s the derivative of log w_s by theta_s, the gradients are
 *
 *     items              sum_s v_s d log P / d(a, b)
 *     encoder, plain     sum_s v_s g_s, through m and L; log q moves with its parameters
 *     encoder, double    sum_s v_s^2 g_s, with q held fixed in log q (Tucker and others)
 *
 * The double one has the same mean and a variance that falls with S instead of rising. It is
 * not the derivative of the bound at these epsilon.
 *
 * The encoder also learns from `prefixes` prefixes of random length of each student, so that it
 * knows the posterior after a few answers; items are fitted to complete students only. The loss
 * is that of complete students.
 *
 * Cost: S x answers exponentials and logarithms; for S = 1 the encoder's products. The weak
 * priors are spread over an item's answers, 1 / (number of answers) each. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/irt.h"
#include "kernels/vec.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { PART_EPSILON = 0, PART_PREFIX = 1 << 12 };

void *vae_attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    const struct vae_options *o = model->options;
    struct vae_work *work = NEW(struct vae_work, 1);
    const struct vae_shape *shape = work->shape = vae_shape(model);
    work->shard = shard;
    /* a bad prior was refused by declare */
    if (vae_prior_create(&work->prior, o->prior_correlation, shape->n_dims) != OK)
        fail_abort(OUR_BUG, "the prior of the vae failed after it was checked: %s",
                   fail_sentence());
    if (use == TO_TRAIN) {
        work->first = NEW(uint64_t, shard->n_students + 1);
        work->unit = NEW(uint32_t, shard->n_attempts);
    }
    uint64_t n = 0;
    for (size_t s = 0; use == TO_TRAIN && s < shard->n_students; s++) {
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            if (mark_trains(shard->mark[t]))
                work->unit[n++] =
                    2 * shard->item[t] + (mark_outcome(shard->mark[t]) == CORRECT);
        work->first[s + 1] = n;
    }
    row_sums_create(&work->inputs, &model->params.panels[shape->input.panel]);
    row_sums_create(&work->items, &model->params.panels[shape->decoder]);
    work->posterior.root = NEW(real, shape->n_dims * shape->n_dims);
    work->sum = NEW(real, shape->width);
    work->gradient = NEW(real, (shape->hidden + 1) * size_max(shape->width, shape->n_out));
    return work;
}

void vae_detach(void *memory)
{
    struct vae_work *work = memory;
    vae_prior_free(&work->prior);
    row_sums_free(&work->inputs);
    row_sums_free(&work->items);
    for (size_t l = 0; l < VAE_MOST_LAYERS; l++)
        memory_free(work->h[l]);
    for (size_t l = 0; l <= VAE_MOST_LAYERS; l++) {
        dense_unpack(&work->packed[l]);
    }
    void *const all[] = {work->first,    work->unit,       work->rows,
                         work->dh,       work->out,        work->d_out,
                         work->gradient, work->a,          work->b,
                         work->y,        work->e,          work->da,
                         work->db,       work->epsilon,    work->theta,
                         work->sum,      work->log_weight, work->posterior.root};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
    memory_free(work);
}

void vae_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct vae_work *work = memory;
    for (size_t s = 0; s < work->shard->n_students; s++)
        has_training[s] = work->first[s + 1] > work->first[s];
    *n_attempts = (int64_t)work->first[work->shard->n_students];
}

void vae_reserve(struct vae_work *work, size_t n_answers, size_t n_samples, size_t n_residuals)
{
    const size_t k = work->shape->n_dims;
    if (n_answers <= work->capacity && n_samples <= work->n_samples &&
        n_residuals <= work->n_residuals)
        return;
    work->capacity = size_padded(size_max(n_answers, work->capacity));
    work->n_samples = size_max(n_samples, work->n_samples);
    work->n_residuals = size_max(n_residuals, work->n_residuals);
    const size_t n = work->capacity, samples = work->n_samples;
    real **const tables[] = {&work->a, &work->da, &work->b,       &work->db,
                             &work->y, &work->e,  &work->epsilon, &work->theta};
    const size_t sizes[] = {k * n,      k * n, n, n, n, work->n_residuals * n, k * samples + 64,
                            k * samples};
    for (size_t t = 0; t < COUNT(tables); t++) {
        memory_free(*tables[t]);
        *tables[t] = NEW(real, sizes[t]);
    }
    memory_free(work->log_weight);
    work->log_weight = NEW(double, samples);
}

void vae_draw_epsilon(struct vae_work *work, const struct draw *draw, uint32_t part, size_t s,
                      size_t n_samples)
{
    const struct rng rng = {.seed = draw->seed,
                            .purpose = RNG_HIDDEN,
                            .part = PART_EPSILON + part,
                            .when = draw->epoch,
                            .who = (uint32_t)(work->shard->first_student + s)};
    const size_t n = (n_samples * work->shape->n_dims + 63) / 64 * 64;
    vec->uniform(&rng, work->epsilon, n);
    irt->normal(work->epsilon, n);
}

/* The parameters of n answers' items side by side; the padded number of answers. */
size_t vae_collect_items(const struct model *model, struct vae_work *work, const uint32_t *unit,
                         size_t n)
{
    const struct vae_shape *shape = work->shape;
    const size_t stride = model->params.panels[shape->decoder].stride, padded = size_padded(n);
    const real *decoder = params_rows(&model->params, shape->decoder);
    const real *common = params_rows(&model->params, shape->common);
    for (size_t j = 0; j < padded; j++) {
        const real *row = decoder + (j < n ? unit[j] / 2 : 0) * stride;
        for (size_t k = 0; k < shape->n_dims; k++)
            work->a[k * padded + j] =
                j < n ? vae_discrimination(model->options, shape, row, common, k) : 0;
        work->b[j] = j < n ? row[shape->column_b] : IRT_CERTAIN;
        work->y[j] = j < n ? (real)(unit[j] & 1) : 0;
    }
    return padded;
}

/* y -= scale P x */
static void subtract_precision(const struct vae_prior *prior, double scale, const real *x,
                               size_t stride, double *y)
{
    const size_t n = prior->n_dims;
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            y[k] -= scale * prior->precision[k * n + j] * (double)x[j * stride];
}

/* y += scale L^-T epsilon */
static void add_score(const struct vae_posterior *posterior, size_t n, double scale,
                      const real *epsilon, double *y)
{
    double x[VAE_MOST_DIMS];
    for (size_t k = n; k-- > 0;) {
        x[k] = (double)epsilon[k];
        for (size_t j = k + 1; j < n; j++)
            x[k] -= (double)posterior->root[j * n + k] * x[j];
        x[k] /= (double)posterior->root[k * n + k];
        y[k] += scale * x[k];
    }
}

/* Adds the derivative g by theta, times scale, to those by the encoder's output. */
static void add_through(const struct vae_shape *shape, const struct vae_posterior *posterior,
                        const double *g, double scale, const real *epsilon, real *d_out)
{
    const size_t n = shape->n_dims;
    real *rest = d_out + 2 * n;
    for (size_t k = 0; k < n; k++) {
        const double d = scale * g[k];
        d_out[k] += (real)d;
        for (size_t j = 0; shape->full && j < k; j++)
            *rest++ += (real)(d * (double)epsilon[j]);
        d_out[n + k] += (real)(d * (double)epsilon[k] * (double)posterior->root[k * n + k]);
    }
}

/* The derivative of -beta KL by the encoder's output. */
static void subtract_kl(const struct vae_shape *shape, const struct vae_prior *prior,
                        const struct vae_posterior *posterior, double beta, real *d_out)
{
    const size_t n = shape->n_dims;
    double y[VAE_MOST_DIMS] = {0};
    subtract_precision(prior, beta, posterior->mean, 1, y);
    for (size_t k = 0; k < n; k++)
        d_out[k] += (real)y[k];
    for (size_t j = 0; j < n; j++) { /* column j of L */
        memset(y, 0, sizeof y);
        subtract_precision(prior, beta, posterior->root + j, n, y);
        d_out[n + j] += (real)(y[j] * (double)posterior->root[j * n + j] + beta);
        for (size_t k = j + 1; shape->full && k < n; k++)
            d_out[2 * n + k * (k - 1) / 2 + j] += (real)y[k];
    }
}

/* The bound of one history; leaves the derivatives by the encoder's output in d_out and, if the
 * history is whole, those by its items in da and db. */
static double bound_of(const struct model *model, struct vae_work *work, size_t padded,
                       double beta, bool whole, real *d_out)
{
    const struct vae_options *o = model->options;
    const struct vae_shape *shape = work->shape;
    const struct vae_posterior *posterior = &work->posterior;
    const size_t n_dims = shape->n_dims, n_samples = (size_t)o->samples;
    const bool importance = n_samples > 1, doubly = o->gradient == GRADIENT_DOUBLE;
    for (size_t s = 0; s < n_samples; s++) {
        const real *epsilon = work->epsilon + s * n_dims;
        real *theta = work->theta + s * n_dims;
        vae_posterior_draw(shape, posterior, epsilon, theta);
        work->log_weight[s] = (double)irt->respond(n_dims, theta, work->a, work->b, work->y,
                                                   padded, work->e + s * padded);
        if (importance)
            work->log_weight[s] +=
                beta * vae_log_ratio(&work->prior, posterior, epsilon, theta);
    }
    double bound = work->log_weight[0] - beta * vae_prior_kl(&work->prior, posterior);
    if (importance)
        bound = vae_normalize(work->log_weight, n_samples);
    else
        work->log_weight[0] = 1;
    memset(work->da, 0, n_dims * padded * sizeof *work->da);
    memset(work->db, 0, padded * sizeof *work->db);
    for (size_t s = 0; s < n_samples; s++) {
        const real *epsilon = work->epsilon + s * n_dims, *theta = work->theta + s * n_dims;
        const real *e = work->e + s * padded;
        const double v = work->log_weight[s];
        real slope[VAE_MOST_DIMS];
        double g[VAE_MOST_DIMS];
        irt->slope(n_dims, work->a, e, padded, slope);
        for (size_t k = 0; k < n_dims; k++)
            g[k] = (double)slope[k];
        if (importance)
            subtract_precision(&work->prior, beta, theta, 1, g);
        if (importance && doubly)
            add_score(posterior, n_dims, beta, epsilon, g);
        add_through(shape, posterior, g, importance && doubly ? v * v : v, epsilon, d_out);
        if (whole)
            irt->credit(n_dims, theta, (real)v, e, padded, work->da, work->db);
    }
    if (!importance)
        subtract_kl(shape, &work->prior, posterior, beta, d_out);
    else if (!doubly)
        for (size_t k = 0; k < n_dims; k++)
            d_out[n_dims + k] += (real)beta;
    return bound;
}

/* An answer's share of the weak priors: its derivatives are added to the item's, its logarithm
 * is returned. */
static double add_priors(const struct vae_options *o, const struct vae_shape *shape,
                         const real *row, real *sum)
{
    const double share = row[shape->column_n] > 0 ? 1 / (double)row[shape->column_n] : 0;
    const double b = (double)row[shape->column_b];
    double log_p = 0;
    if (o->prior_b > 0) {
        const double precision = 1 / (o->prior_b * o->prior_b);
        log_p -= 0.5 * share * precision * b * b;
        sum[shape->column_b] -= (real)(share * precision * b);
    }
    for (size_t k = 0; o->prior_a > 0 && k < shape->n_dims; k++)
        if (row[shape->column_q + k] != 0 && row[k] != 0) {
            const double precision = 1 / (o->prior_a * o->prior_a);
            const double log_a = Sleef_cinz_logd1_u10purec(fabs((double)row[k]));
            log_p -= 0.5 * share * precision * log_a * log_a;
            sum[k] -= (real)(share * precision * log_a / (double)row[k]);
        }
    return log_p;
}

/* Derivatives by the items' effective parameters become statistics of the tensors. */
static double add_items(const struct model *model, struct vae_work *work, const uint32_t *unit,
                        size_t n, size_t padded, real *d_common)
{
    const struct vae_options *o = model->options;
    const struct vae_shape *shape = work->shape;
    const real *decoder = params_rows(&model->params, shape->decoder);
    const size_t stride = model->params.panels[shape->decoder].stride;
    double log_p = 0;
    for (size_t j = 0; j < n; j++) {
        const real *row = decoder + unit[j] / 2 * stride;
        real *sum = row_sums_at(&work->items, unit[j] / 2);
        sum[shape->column_b] += work->db[j];
        for (size_t k = 0; o->discrimination != A_ONE && k < shape->n_dims; k++) {
            if (row[shape->column_q + k] == 0)
                continue;
            const real *tensor =
                o->discrimination == A_EQUAL ? params_rows(&model->params, shape->common) : row;
            const real sign = o->discrimination == A_SIGNED || tensor[k] > 0 ? 1 : -1;
            (o->discrimination == A_EQUAL ? d_common : sum)[k] +=
                sign * work->da[k * padded + j];
        }
        log_p += add_priors(o, shape, row, sum);
    }
    return log_p;
}

/* All answers of each student, and beginnings of random length. */
static void list_rows(const struct model *model, struct vae_work *work,
                      const uint32_t *students, size_t n, const struct draw *draw)
{
    const struct vae_options *o = model->options;
    vae_encoder_reserve(work, n * (1 + (size_t)o->prefixes));
    work->n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = students[i],
                       n_answers = (uint32_t)(work->first[s + 1] - work->first[s]);
        if (n_answers == 0)
            continue;
        work->rows[work->n_rows++] = (struct vae_row){s, n_answers, true};
        const struct rng rng = {.seed = draw->seed,
                                .purpose = RNG_HIDDEN,
                                .part = PART_PREFIX,
                                .when = draw->epoch,
                                .who = (uint32_t)(work->shard->first_student + s)};
        for (uint32_t p = 0; p < o->prefixes; p++)
            work->rows[work->n_rows++] =
                (struct vae_row){s, (uint32_t)rng_below(&rng, p, n_answers), false};
    }
}

void vae_accumulate(const struct model *model, void *memory, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally)
{
    struct vae_work *work = memory;
    const struct vae_options *o = model->options;
    const struct vae_shape *shape = work->shape;
    list_rows(model, work, students, n, draw);
    if (work->n_rows == 0)
        return;
    vae_encoder_forward(model, work);
    memset(work->d_out, 0, work->n_rows * shape->n_out * sizeof *work->d_out);
    const double beta =
        o->kl_warm_up > 0 ? fmin(1, (double)(draw->epoch + 1) / (double)o->kl_warm_up) : 1;
    real d_common[VAE_MOST_DIMS] = {0};
    uint32_t part = 0; /* rows of a student have random numbers of their own */
    for (size_t r = 0; r < work->n_rows; r++) {
        const struct vae_row *row = &work->rows[r];
        const uint32_t *unit = work->unit + work->first[row->student];
        part = row->whole ? 0 : part + 1;
        vae_reserve(work, size_padded(row->n), (size_t)o->samples, (size_t)o->samples);
        vae_draw_epsilon(work, draw, part, row->student, (size_t)o->samples);
        vae_posterior_of(shape, work->out + r * shape->n_out, &work->posterior);
        const size_t padded = vae_collect_items(model, work, unit, row->n);
        double bound =
            bound_of(model, work, padded, beta, row->whole, work->d_out + r * shape->n_out);
        if (!row->whole)
            continue;
        bound += add_items(model, work, unit, row->n, padded, d_common);
        tally_add_loss(tally, -bound);
        tally->n_scored += row->n;
    }
    vae_encoder_backward(model, work, tally);
    row_sums_flush(&work->items, &model->params.panels[shape->decoder], tally);
    if (o->discrimination == A_EQUAL)
        tally_add(tally, model->params.panels[shape->common].offset, d_common, shape->n_dims);
}
