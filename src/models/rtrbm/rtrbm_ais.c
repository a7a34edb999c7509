/* The sum over all states of one step of an RTRBM; symbols as in rtrbm.c.
 *
 * The units of the step are bits v with biases c and weights W (row of outcome 1 minus row of
 * outcome 0):
 *
 *     Z = sum_v f(v),   f(v) = exp(c . v) prod_j (1 + e^(x_j + v . W_j))
 *
 * Few visible or few hidden units: the states of the smaller side are enumerated in Gray order,
 * one unit changing at a time, and the other side is summed in closed form.
 *
 * Otherwise annealed importance sampling (Neal 2001; Salakhutdinov and Murray 2008). It starts
 * from independent visible and hidden units, whose sum is known, and turns the weights up
 * through
 *
 *     f_k(v) = exp(c . v) prod_j (1 + e^(x_j + beta_k v . W_j)),   beta_k = k / K
 *
 * with a Gibbs step at each beta_k. The weight of a chain is the product of f_k / f_{k-1} along
 * it. The mean weight times the first sum is an unbiased estimate of Z, and the variance of the
 * weights gives the variance of its logarithm. With too few temperatures the weights vary so
 * widely that the largest are missed: log Z is then too small, and the likelihood too large by
 * more than the variance indicates. likelihood.c raises the number of temperatures until this
 * no longer happens. Three alternatives were tried and were worse: starting the bits at a mean
 * field, starting them at their means over Gibbs steps, and annealing the hidden inputs as
 * well. All chains of a step move together. */
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rnn_cells.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

void rtrbm_bits_fill(const struct model *model, const struct rtrbm_work *work,
                     const uint32_t *unit, size_t n, const real *x, struct rtrbm_bits *bits)
{
    const size_t width = work->shape->width;
    if (bits->x == NULL)
        bits->x = NEW(real, width);
    if (n > bits->capacity) {
        bits->capacity = n;
        bits->own_weight = memory_resize(bits->own_weight, n * width, sizeof(real));
        bits->bias = memory_resize(bits->bias, size_padded(n), sizeof(real));
    }
    bits->n = n;
    bits->stride = size_padded(n);
    bits->first = 0;
    bits->weight = bits->own_weight;
    memcpy(bits->x, x, width * sizeof *x);
    memset(bits->bias, 0, bits->stride * sizeof(real));
    for (size_t a = 0; a < n; a++) {
        const uint32_t wrong = unit[a] & ~1u, right = wrong | 1;
        const real *w0 = rtrbm_row(work, wrong), *w1 = rtrbm_row(work, right);
        for (size_t j = 0; j < width; j++)
            bits->own_weight[a * width + j] = w1[j] - w0[j];
        rnn_cells->add(1, w0, bits->x, width);
        bits->bias[a] = (real)(rtrbm_bias(model, right) - rtrbm_bias(model, wrong));
        bits->first += rtrbm_bias(model, wrong);
    }
}

void rtrbm_bits_free(struct rtrbm_bits *bits)
{
    memory_free(bits->own_weight);
    memory_free(bits->bias);
    memory_free(bits->x);
    *bits = (struct rtrbm_bits){0};
}

static double softplus(double x)
{
    return Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x))) + fmax(x, 0);
}

/* Adds a term to a sum kept as a logarithm. */
static void add_logarithm(double *most, double *total, double term)
{
    if (term > *most) {
        *total = *total * Sleef_cinz_expd1_u10purec(*most - term) + 1;
        *most = term;
    } else {
        *total += Sleef_cinz_expd1_u10purec(term - *most);
    }
}

/* Enumerates the states of `few` units with these biases. Unit k adds weight[k * step_few + i *
 * step_many] to the input of unit i of the `many` others. */
static double walk_states(size_t few, const real *few_bias, size_t many, const real *many_bias,
                          const real *weight, size_t step_few, size_t step_many)
{
    double *input = NEW(double, many), bias = 0, most = -INFINITY, total = 0;
    for (size_t i = 0; i < many; i++)
        input[i] = (double)many_bias[i];
    for (uint64_t state = 0;;) {
        double term = bias;
        for (size_t i = 0; i < many; i++)
            term += softplus(input[i]);
        add_logarithm(&most, &total, term);
        if (++state >> few != 0)
            break;
        const size_t k = (size_t)__builtin_ctzll(state);
        const double sign = (state ^ state >> 1) >> k & 1 ? 1 : -1;
        bias += sign * (double)few_bias[k];
        for (size_t i = 0; i < many; i++)
            input[i] += sign * (double)weight[k * step_few + i * step_many];
    }
    memory_free(input);
    return most + Sleef_cinz_logd1_u10purec(total);
}

struct annealing {
    const struct rtrbm_shape *shape;
    const struct rtrbm_bits *bits;
    size_t n_chains;
    real *v, *logit;             /* n_chains rows of the visible units */
    real *y, *h;                 /* n_chains rows: v W, samples of the hidden units */
    real *low, *high, *s, *none; /* one row */
    real *u;
    double *weight;         /* logarithms */
    struct packed up, down; /* the weights of the bits, and their transpose */
};

/* Samples the visible units of all chains from their logits. */
static void draw_visible(struct annealing *a, const struct rng *rng)
{
    const struct rtrbm_bits *bits = a->bits;
    const size_t n = a->n_chains * bits->stride;
    vec->uniform(rng, a->u, n);
    vec->sigmoid(a->logit, n);
    rbm_marginal->draw(a->logit, a->u, a->v, n);
    for (size_t c = 0; c < a->n_chains; c++)
        for (size_t i = bits->n; i < bits->stride; i++)
            a->v[c * bits->stride + i] = 0;
}

/* From one temperature to the next: update the weights, then a Gibbs step. */
static void cool(struct annealing *a, double before, double now, struct rng *rng)
{
    const struct rtrbm_bits *bits = a->bits;
    const size_t width = a->shape->width, n = a->n_chains;
    memset(a->y, 0, n * width * sizeof(real));
    matmul->add(n, a->v, bits->stride, &a->up, a->y, width);
    rng->purpose = RNG_HIDDEN;
    vec->uniform(rng, a->u, n * width);
    for (size_t c = 0; c < n; c++) {
        memcpy(a->low, bits->x, width * sizeof(real));
        memcpy(a->high, bits->x, width * sizeof(real));
        rnn_cells->add((real)before, a->y + c * width, a->low, width);
        rnn_cells->add((real)now, a->y + c * width, a->high, width);
        a->weight[c] +=
            (double)rbm_marginal->pair(a->none, a->low, a->high, width, a->s, a->high);
        rbm_marginal->draw(a->high, a->u + c * width, a->h + c * width, width);
    }
    memset(a->logit, 0, n * bits->stride * sizeof(real));
    matmul->add(n, a->h, width, &a->down, a->logit, bits->stride);
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < bits->stride; i++)
            a->logit[c * bits->stride + i] =
                bits->bias[i] + (real)now * a->logit[c * bits->stride + i];
    rng->purpose = RNG_VISIBLE;
    draw_visible(a, rng);
}

/* The logarithm of the mean weight, its variance, and by how much it exceeds the average of the
 * same logarithm over the two halves of the chains: about as much as it is too small itself. */
static double mean_weight(const struct annealing *a, double *variance, double *lack)
{
    double most = -INFINITY, sum = 0, square = 0, half[2] = {0};
    const double n = (double)a->n_chains;
    for (size_t c = 0; c < a->n_chains; c++)
        most = fmax(most, a->weight[c]);
    for (size_t c = 0; c < a->n_chains; c++) {
        const double w = Sleef_cinz_expd1_u10purec(a->weight[c] - most);
        sum += w;
        square += w * w;
        half[c % 2] += w;
    }
    const double mean = sum / n;
    *variance = n > 1 ? fmax(square / n - mean * mean, 0) / (n - 1) / (mean * mean) : INFINITY;
    *lack = 0;
    for (size_t k = 0; k < 2; k++) /* clamped where a half has no weight */
        *lack += 0.5 * Sleef_cinz_logd1_u10purec(sum / fmax(2 * half[k], 1e-30 * sum));
    return most + Sleef_cinz_logd1_u10purec(mean);
}

static double anneal(const struct rtrbm_shape *shape, const struct rtrbm_bits *bits,
                     const struct likelihood_plan *plan, uint32_t who, uint32_t when,
                     double *variance, double *lack)
{
    const size_t n = (size_t)plan->n_chains, width = shape->width, stride = bits->stride;
    struct annealing a = {.shape = shape,
                          .bits = bits,
                          .n_chains = n,
                          .v = NEW(real, n * stride),
                          .logit = NEW(real, n * stride),
                          .y = NEW(real, n * width),
                          .h = NEW(real, n * width),
                          .low = NEW(real, width),
                          .high = NEW(real, width),
                          .s = NEW(real, width),
                          .none = NEW(real, width),
                          .u = NEW(real, n * size_max(width, stride) + 4 * WIDTH),
                          .weight = NEW(double, n)};
    matmul_pack(&a.up, bits->n, shape->hidden, bits->weight, width, false);
    matmul_pack(&a.down, shape->hidden, bits->n, bits->weight, width, true);
    double first = 0;
    for (size_t i = 0; i < bits->n; i++)
        first += softplus((double)bits->bias[i]);
    for (size_t j = 0; j < shape->hidden; j++)
        first += softplus((double)bits->x[j]);
    struct rng rng = {
        .seed = plan->seed, .purpose = RNG_VISIBLE, .part = 0, .when = when, .who = who};
    for (size_t c = 0; c < n; c++)
        memcpy(a.logit + c * stride, bits->bias, stride * sizeof(real));
    draw_visible(&a, &rng);
    for (int64_t k = 1; k <= plan->n_temperatures; k++) {
        rng.part = (uint32_t)((plan->n_temperatures + k) & 0xffffff); /* new in each plan */
        cool(&a, (double)(k - 1) / (double)plan->n_temperatures,
             (double)k / (double)plan->n_temperatures, &rng);
    }
    const double result = first + mean_weight(&a, variance, lack);
    void *const all[] = {a.v, a.logit, a.y, a.h, a.low, a.high, a.s, a.none, a.u, a.weight};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
    matmul_free(&a.up);
    matmul_free(&a.down);
    return result;
}

double rtrbm_log_sum(const struct rtrbm_shape *shape, const struct rtrbm_bits *bits,
                     const struct likelihood_plan *plan, uint32_t who, uint32_t when,
                     double *variance, double *lack)
{
    const size_t most = (size_t)plan->most_bits;
    *variance = *lack = 0;
    if (bits->n <= shape->hidden && bits->n <= most)
        return bits->first + walk_states(bits->n, bits->bias, shape->hidden, bits->x,
                                         bits->weight, shape->width, 1);
    if (bits->n > shape->hidden && shape->hidden <= most)
        return bits->first + walk_states(shape->hidden, bits->x, bits->n, bits->bias,
                                         bits->weight, 1, shape->width);
    return bits->first + anneal(shape, bits, plan, who, when, variance, lack);
}
