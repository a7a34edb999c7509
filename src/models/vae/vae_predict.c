/* Predictions, abilities and the marginal likelihood; symbols as in vae.c.
 *
 * Before attempt t the encoder has read what was shown before t: the first layer's sum grows by
 * one row per answer, and the other layers are computed again after each. An item depends on
 * theta through one number,
 *
 *     x = a . theta - b,   normal with mean a . m - b and variance |L^T a|^2,
 *
 * so the mean of sigma(x) over the posterior is a one-dimensional integral whatever K is. It is
 * computed by Gauss-Hermite quadrature at N_NODES points; by equal steps where x is so
 * uncertain that sigma rises steeply between them; in closed form where sigma is almost a step.
 * `plug_in` uses x at its mean. The standard deviation of sigma(x) says how sure the model is.
 *
 * log P(answers) is the integral of p(theta) prod_j P(y_j | theta): on a grid of equal steps in
 * W theta up to K = 3, and by importance sampling from the encoder's posterior, slightly
 * widened, beyond that. */
#include "base/memory.h"
#include "kernels/irt.h"
#include "kernels/rnn_cells.h"
#include "learn/logistic_normal.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { N_NODES = 9, N_DRAWS = 4096, WIDE = 8, N_STEPS = 48 };
#define LOGISTIC_VARIANCE 3.28986813369645287294 /* pi^2 / 3 */
#define ROOT_HALF 0.70710678118654752440
static const double nodes[N_NODES] = {
    -4.512745863399783, -3.205429002856470, -2.076847978677830, -1.023255663789133, 0,
    1.023255663789133,  2.076847978677830,  3.205429002856470,  4.512745863399783};
static const double weights[N_NODES] = {
    2.234584400774664e-05, 2.789141321231769e-03, 4.991640676521780e-02,
    2.440975028949394e-01, 4.063492063492063e-01, 2.440975028949394e-01,
    4.991640676521780e-02, 2.789141321231769e-03, 2.234584400774664e-05};

static double sigmoid(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

/* The mean of sigma(mean + sd z), z ~ N(0, 1), off by less than 5e-4, in at most N_STEPS + 1
 * sigmoids. sigma is the distribution function of a logistic number, so the mean is the chance
 * that this number less sd z stays below `mean`; for a large sd that difference is all but
 * normal, with variance sd^2 + pi^2 / 3. */
static double integral(double mean, double sd)
{
    double p = 0, all = 0;
    if (sd <= 2) {
        for (size_t node = 0; node < N_NODES; node++)
            p += weights[node] * sigmoid(mean + sd * nodes[node]);
        return fmin(1, p);
    }
    if (!(sd <= WIDE))
        return 0.5 * Sleef_cinz_erfcd1_u15purec(-mean * ROOT_HALF /
                                                sqrt(sd * sd + LOGISTIC_VARIANCE));
    for (int i = 0; i <= N_STEPS; i++) {
        const double z = 12.0 * i / N_STEPS - 6;
        const double weight = Sleef_cinz_expd1_u10purec(-0.5 * z * z);
        p += weight * sigmoid(mean + sd * z);
        all += weight;
    }
    return p / all;
}

/* Mean and standard deviation of x for item i. */
static void spread_of(const struct model *model, const struct vae_shape *shape, size_t i,
                      const struct vae_posterior *posterior, double *mean, double *sd)
{
    const struct vae_options *o = model->options;
    const size_t n = shape->n_dims;
    double a[VAE_MOST_DIMS], variance = 0;
    const real *row = params_rows(&model->params, shape->decoder) +
                      i * model->params.panels[shape->decoder].stride;
    const real *common = params_rows(&model->params, shape->common);
    *mean = -(double)row[shape->column_b];
    for (size_t k = 0; k < n; k++) {
        a[k] = (double)vae_discrimination(o, shape, row, common, k);
        *mean += a[k] * (double)posterior->mean[k];
    }
    for (size_t j = 0; j < n; j++) {
        double spread = 0;
        for (size_t k = j; k < n; k++)
            spread += a[k] * (double)posterior->root[k * n + j];
        variance += spread * spread;
    }
    *sd = sqrt(variance);
}

static real probability(const struct model *model, const struct vae_shape *shape, size_t i,
                        const struct vae_posterior *posterior)
{
    const struct vae_options *o = model->options;
    double mean, sd;
    spread_of(model, shape, i, posterior, &mean, &sd);
    return (real)(o->prediction == PREDICTION_PLUG_IN ? sigmoid(mean) : integral(mean, sd));
}

static real deviation_of(const struct model *model, const struct vae_shape *shape, size_t i,
                         const struct vae_posterior *posterior)
{
    double mean, sd;
    spread_of(model, shape, i, posterior, &mean, &sd);
    return (real)logistic_normal_deviation(mean, sd);
}

/* Answers of student s that are shown; room for all attempts of the student. */
static size_t list_shown(const struct vae_work *work, size_t s, uint32_t *unit)
{
    const struct shard *shard = work->shard;
    size_t n = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        if (mark_is_shown(shard->mark[t]))
            unit[n++] = 2 * shard->item[t] + (mark_outcome(shard->mark[t]) == CORRECT);
    return n;
}

/* `value` of each attempt. All histories of the student from which something is predicted go
 * through the encoder together. */
static void predict(const struct model *model, struct vae_work *work, size_t s, unsigned splits,
                    real (*value)(const struct model *, const struct vae_shape *, size_t,
                                  const struct vae_posterior *),
                    real *p)
{
    const struct shard *shard = work->shard;
    const struct vae_shape *shape = work->shape;
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    vae_encoder_reserve(work, end - start);
    for (int pass = 0; pass < 2; pass++) {
        size_t n_read = 0, n_rows = 0;
        bool stale = true;
        memset(work->sum, 0, shape->width * sizeof *work->sum);
        for (uint64_t t = start; t < end; t++) {
            const uint8_t mark = shard->mark[t];
            if (splits >> mark_split(mark) & 1) {
                if (stale && pass == 0)
                    vae_encoder_start(model, work, n_rows, work->sum, n_read);
                else if (stale)
                    vae_posterior_of(shape, work->out + n_rows * shape->n_out,
                                     &work->posterior);
                n_rows += stale;
                stale = false;
                if (pass == 1)
                    p[t - start] = value(model, shape, shard->item[t], &work->posterior);
            }
            if (!mark_is_shown(mark))
                continue;
            const size_t unit = 2 * (size_t)shard->item[t] + (mark_outcome(mark) == CORRECT);
            if (pass == 0)
                embedding_add(&shape->input, &model->params, unit, 1, work->sum);
            n_read++;
            stale = true;
        }
        if (pass == 0)
            vae_encoder_finish(model, work, n_rows);
    }
}

void vae_predict_many(const struct model *model, void *memory, const uint32_t *students,
                      size_t n, unsigned splits, real *p)
{
    struct vae_work *work = memory;
    vae_encoder_pack(model, work, false);
    for (size_t i = 0; i < n; i++)
        predict(model, work, students[i], splits, probability,
                p + work->shard->first[students[i]]);
}

void vae_deviation(const struct model *model, void *memory, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation)
{
    struct vae_work *work = memory;
    vae_encoder_pack(model, work, false);
    for (size_t i = 0; i < n; i++)
        predict(model, work, students[i], splits, deviation_of,
                deviation + work->shard->first[students[i]]);
}

void vae_predict(const struct model *model, void *memory, size_t s, unsigned splits, real *p)
{
    vae_encoder_pack(model, memory, false);
    predict(model, memory, s, splits, probability, p);
}

/* A student whose attempts come one by one: the number of answers and the sum of their rows. */
struct live_state {
    size_t n;
    real sum[] __attribute__((aligned(64)));
};

size_t vae_live_size(const struct model *model)
{
    const struct vae_shape *shape = model->shape;
    return sizeof(struct live_state) + shape->width * sizeof(real);
}

void vae_live_ready(const struct model *model, void *memory)
{
    vae_encoder_reserve(memory, 1);
    vae_encoder_pack(model, memory, false);
}

void vae_live_begin(const struct model *model, void *memory, void *state)
{
    (void)memory;
    memset(state, 0, vae_live_size(model));
}

void vae_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    const struct vae_work *work = memory;
    for (size_t i = 0; i < n; i++) {
        struct live_state *now = state[i];
        const size_t unit =
            2 * (size_t)attempts[i].item + (mark_outcome(attempts[i].mark) == CORRECT);
        if (!mark_is_shown(attempts[i].mark))
            continue;
        embedding_add(&work->shape->input, &model->params, unit, 1, now->sum);
        now->n++;
    }
}

void vae_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)when;
    struct vae_work *work = memory;
    const struct live_state *now = state;
    vae_encoder_start(model, work, 0, now->sum, now->n);
    vae_encoder_finish(model, work, 1);
    vae_posterior_of(work->shape, work->out, &work->posterior);
    for (size_t i = 0; i < n; i++)
        p[i] = probability(model, work->shape, items[i], &work->posterior);
}

void vae_hidden(const struct model *model, void *memory, size_t s, real *activation)
{
    struct vae_work *work = memory;
    const size_t n = work->shape->n_dims;
    uint32_t *unit = NEW(uint32_t, work->shard->first[s + 1] - work->shard->first[s]);
    vae_encoder_read(model, work, unit, list_shown(work, s, unit), &work->posterior);
    memory_free(unit);
    for (size_t k = 0; k < n; k++) {
        double variance = 0;
        for (size_t j = 0; j <= k; j++)
            variance += (double)work->posterior.root[k * n + j] *
                        (double)work->posterior.root[k * n + j];
        activation[k] = work->posterior.mean[k];
        activation[n + k] = (real)sqrt(variance);
    }
}

/* theta with W theta = z */
static void unwhiten(const struct vae_prior *prior, const double *z, real *theta)
{
    const size_t n = prior->n_dims;
    double x[VAE_MOST_DIMS];
    for (size_t k = 0; k < n; k++) {
        x[k] = z[k];
        for (size_t j = 0; j < k; j++)
            x[k] -= prior->whitening[k * n + j] * x[j];
        x[k] /= prior->whitening[k * n + k];
        theta[k] = (real)x[k];
    }
}

/* log of the sum over a grid of (2 half + 1)^K points, z from -6 to 6. */
static double integrate(struct vae_work *work, size_t padded)
{
    static const int halves[] = {0, 60, 30, 15};
    const size_t n = work->shape->n_dims;
    const int half = halves[n];
    const double step = 6.0 / half,
                 log_unit = Sleef_cinz_logd1_u10purec(step * 0.39894228040143267794);
    int at[3] = {-half, n > 1 ? -half : 0, n > 2 ? -half : 0};
    double most = -INFINITY, sum = 0;
    for (;;) {
        double z[3], squares = 0;
        real theta[3];
        for (size_t k = 0; k < n; k++) {
            z[k] = step * at[k];
            squares += z[k] * z[k];
        }
        if (squares <= 36) {
            unwhiten(&work->prior, z, theta);
            const double log_p =
                (double)irt->respond(n, theta, work->a, work->b, work->y, padded, work->e) -
                0.5 * squares;
            if (log_p > most) {
                sum = sum * Sleef_cinz_expd1_u10purec(most - log_p) + 1;
                most = log_p;
            } else {
                sum += Sleef_cinz_expd1_u10purec(log_p - most);
            }
        }
        size_t k = 0;
        while (k < n && ++at[k] > half)
            at[k++] = -half;
        if (k == n)
            return most + Sleef_cinz_logd1_u10purec(sum) + (double)n * log_unit;
    }
}

/* The same by importance sampling; also the variance of the logarithm. */
static double sample(const struct model *model, struct vae_work *work, size_t s,
                     const uint32_t *unit, size_t n_answers, size_t padded, uint64_t seed,
                     double *variance)
{
    const struct vae_shape *shape = work->shape;
    struct vae_posterior *posterior = &work->posterior;
    const size_t n = shape->n_dims;
    const double wider = 1.2;
    vae_encoder_read(model, work, unit, n_answers, posterior);
    for (size_t i = 0; i < n * n; i++)
        posterior->root[i] *= (real)wider;
    posterior->log_det += (double)n * Sleef_cinz_logd1_u10purec(wider);
    const struct draw draw = {.seed = seed};
    vae_draw_epsilon(work, &draw, 0, s, N_DRAWS);
    for (size_t d = 0; d < N_DRAWS; d++) {
        const real *epsilon = work->epsilon + d * n;
        vae_posterior_draw(shape, posterior, epsilon, work->theta);
        work->log_weight[d] =
            (double)irt->respond(n, work->theta, work->a, work->b, work->y, padded, work->e) +
            vae_log_ratio(&work->prior, posterior, epsilon, work->theta);
    }
    const double log_p = vae_normalize(work->log_weight, N_DRAWS);
    double squares = 0;
    for (size_t d = 0; d < N_DRAWS; d++)
        squares += work->log_weight[d] * work->log_weight[d];
    *variance += fmax(0, squares - 1.0 / N_DRAWS);
    return log_p;
}

/* log P(answers) of n answers. */
static double chance_of(const struct model *model, struct vae_work *work, size_t s,
                        const uint32_t *unit, size_t n, uint64_t seed, double *variance)
{
    if (n == 0)
        return 0;
    const bool on_grid = work->shape->n_dims <= 3;
    vae_reserve(work, size_padded(n), on_grid ? 1 : N_DRAWS, 1);
    const size_t padded = vae_collect_items(model, work, unit, n);
    return on_grid ? integrate(work, padded)
                   : sample(model, work, s, unit, n, padded, seed, variance);
}

/* A student's answers have no order here: all that are in `splits` are one step, given those
 * shown that are not. */
void vae_likelihood(const struct model *model, void *memory, size_t s, unsigned splits,
                    const struct likelihood_plan *plan, struct likelihood *sum)
{
    struct vae_work *work = memory;
    const struct shard *shard = work->shard;
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    uint32_t *unit = NEW(uint32_t, end - start);
    size_t n = 0;
    *sum = (struct likelihood){0};
    for (int asked = 0; asked < 2; asked++) {
        if (asked == 1)
            sum->log_chance -= chance_of(model, work, s, unit, n, plan->seed, &sum->variance);
        const size_t n_given = n;
        for (uint64_t t = start; t < end; t++) {
            const uint8_t mark = shard->mark[t];
            const bool inside = splits >> mark_split(mark) & 1;
            if (inside == asked &&
                (asked ? mark_outcome(mark) != UNKNOWN : mark_is_shown(mark)))
                unit[n++] = 2 * shard->item[t] + (mark_outcome(mark) == CORRECT);
        }
        sum->n_steps = asked && n > n_given;
    }
    if (sum->n_steps > 0)
        sum->log_chance += chance_of(model, work, s, unit, n, plan->seed, &sum->variance);
    else
        *sum = (struct likelihood){0};
    sum->n_sampled = work->shape->n_dims <= 3 ? 0 : sum->n_steps;
    memory_free(unit);
}
