/* Prediction: a student's effect is the mode of its posterior given what was shown before,
 *
 *     u = argmax  sum over shown attempts of log P(outcome | eta + u)  -  u^2 / (2 sigma^2)
 *
 * which depends only on the history. New students start at u = 0. With link = identity the mode
 * is a weighted mean, and its predictions are limited to 0 .. 1.
 *
 * Each answer moves the mode a little. Searching the whole history every time would cost the
 * square of the number of attempts. Instead the derivative of the posterior is kept as a Taylor
 * series about a point near the mode, and each answer adds its own. The history is read again
 * only when the mode leaves the reach of the series, which happens less and less often. (The
 * poles of sigma are pi away, so the error of N_TERMS terms is about (REACH / pi)^N_TERMS per
 * answer: the mode is right to nine digits.) */
#include "kernels/lme_kernels.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>

enum { MOST_STEPS = 50, N_TERMS = 8 };
#define REACH 0.2

/* The state of a student. */
struct belief {
    size_t n;                /* answers shown: work->shown, work->shown_outcome */
    double u;                /* the mode */
    double anchor;           /* the series is in powers of u - anchor */
    double series[N_TERMS];  /* sum over answers of sigma(eta + u) - outcome */
    double residuals;        /* link = identity: sum of outcome - eta */
    double variance, spread; /* of students; of the residual if link = identity */
};

static double sigmoid(double x)
{
    const double e = Sleef_cinz_expd1_u10purec(-fabs(x));
    return (x > 0 ? 1 : e) / (1 + e);
}

/* Adds an answer to the series. sigma' = sigma (1 - sigma) gives the recurrence of its
 * coefficients:
 *
 *     (j + 1) a_{j + 1} = a_j - sum over i of a_i a_{j - i} */
static void series_add(struct belief *belief, double eta, uint8_t outcome)
{
    double a[N_TERMS] = {sigmoid(eta + belief->anchor)};
    for (size_t j = 0; j + 1 < N_TERMS; j++) {
        double next = a[j];
        for (size_t i = 0; i <= j; i++)
            next -= a[i] * a[j - i];
        a[j + 1] = next / (double)(j + 1);
    }
    belief->series[0] -= outcome;
    for (size_t j = 0; j < N_TERMS; j++)
        belief->series[j] += a[j];
}

/* Newton's method in the series; false if it leaves the reach of the series. */
static bool find_near(struct belief *belief)
{
    for (int step = 0; step < MOST_STEPS; step++) {
        const double d = belief->u - belief->anchor;
        double slope = 0, curve = 0;
        for (size_t j = N_TERMS; j-- > 0;) {
            slope = slope * d + belief->series[j];
            if (j > 0)
                curve = curve * d + (double)j * belief->series[j];
        }
        slope += belief->u / belief->variance;
        curve += 1 / belief->variance;
        const double change = slope / curve;
        belief->u -= change;
        if (!(fabs(belief->u - belief->anchor) <= REACH))
            return false;
        if (fabs(change) < 1e-8)
            break;
    }
    return true;
}

/* The same over the whole history; the series then starts again from there. */
static void find_anywhere(struct belief *belief, const struct lme_work *work)
{
    belief->u = belief->anchor;
    for (int step = 0; step < MOST_STEPS; step++) {
        double sums[2];
        lme_kernels->slope(work->shown, work->shown_outcome, belief->n, belief->u, sums);
        const double slope = sums[0] + belief->u / belief->variance,
                     curve = sums[1] + 1 / belief->variance;
        const double change = fmax(-2, fmin(2, slope / curve));
        belief->u -= change;
        if (fabs(change) < 1e-8)
            break;
    }
    belief->anchor = belief->u;
    for (size_t j = 0; j < N_TERMS; j++)
        belief->series[j] = 0;
    for (size_t k = 0; k < belief->n; k++)
        series_add(belief, work->shown[k], work->shown_outcome[k]);
}

/* Shows an answer. */
static void learn(struct belief *belief, struct lme_work *work, double eta, uint8_t outcome)
{
    work->shown[belief->n] = eta;
    work->shown_outcome[belief->n++] = outcome;
    if (belief->variance < 1e-30)
        return;
    if (!work->shape->logit) {
        belief->residuals += outcome - eta;
        belief->u = belief->residuals /
                    ((double)belief->n + belief->spread * belief->spread / belief->variance);
        return;
    }
    series_add(belief, eta, outcome);
    if (!find_near(belief))
        find_anywhere(belief, work);
}

/* The effect of the level of attempt t: 0 if the attempt has none, the model does not know it,
 * or it is a level of a single student (own_levels.h). */
static double level_effect(const struct model *model, const struct lme_factor *factor,
                           const struct shard *shard, uint64_t t)
{
    const double level = lme_covariate(shard, t, factor->covariate);
    return isnan(level) || (factor->own != NULL && factor->own[(size_t)level])
               ? 0
               : (double)params_rows(&model->params, factor->effect_panel)[(size_t)level];
}

/* Fills p unless it is NULL; returns the mode after all attempts. */
static double trace(const struct model *model, struct lme_work *work, size_t s, unsigned splits,
                    real *p)
{
    const struct shard *shard = work->shard;
    const struct lme_shape *shape = work->shape;
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    const real *total = params_rows(&model->params, shape->total_panel);
    const real *spread = params_rows(&model->params, shape->spread_panel);
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    const size_t n_x = shape->n_fixed - 1;
    struct belief belief = {.variance = (double)spread[0] * (double)spread[0],
                            .spread = (double)spread[shape->n_spread - 1]};
    for (uint64_t t = start; t < end; t++) {
        double eta = (double)fixed[0] + (double)total[shard->item[t]];
        for (size_t k = 0; k < n_x; k++)
            eta += (double)fixed[k + 1] * work->x[t * n_x + k];
        for (size_t f = 0; f < shape->n_factors; f++)
            if (shape->factors[f].kind == FACTOR_COVARIATE)
                eta += level_effect(model, &shape->factors[f], shard, t);
        if (p != NULL && splits >> mark_split(shard->mark[t]) & 1)
            p[t - start] = (real)(shape->logit ? sigmoid(eta + belief.u)
                                               : fmin(1, fmax(0, eta + belief.u)));
        if (mark_is_shown(shard->mark[t]))
            learn(&belief, work, eta, mark_outcome(shard->mark[t]) == CORRECT);
    }
    return belief.u;
}

void lme_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p)
{
    trace(model, work, s, splits, p);
}

void lme_hidden(const struct model *model, void *work, size_t s, real *activation)
{
    activation[0] = (real)trace(model, work, s, 0, NULL);
}
