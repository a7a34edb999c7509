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
 * poles of sigma are pi away, so the error of LME_TERMS terms is about (REACH / pi)^LME_TERMS per
 * answer: the mode is right to nine digits.) */
#include "base/memory.h"
#include "kernels/lme_kernels.h"
#include "learn/logistic_normal.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>

enum { MOST_STEPS = 50 };
#define REACH 0.2

static double sigmoid(double x)
{
    const double e = Sleef_cinz_expd1_u10purec(-fabs(x));
    return (x > 0 ? 1 : e) / (1 + e);
}

/* Adds an answer to the series. sigma' = sigma (1 - sigma) gives the recurrence of its
 * coefficients:
 *
 *     (j + 1) a_{j + 1} = a_j - sum over i of a_i a_{j - i} */
static void series_add(struct lme_belief *belief, double eta, uint8_t outcome)
{
    double a[LME_TERMS] = {sigmoid(eta + belief->anchor)};
    for (size_t j = 0; j + 1 < LME_TERMS; j++) {
        double next = a[j];
        for (size_t i = 0; i <= j; i++)
            next -= a[i] * a[j - i];
        a[j + 1] = next / (double)(j + 1);
    }
    belief->series[0] -= outcome;
    for (size_t j = 0; j < LME_TERMS; j++)
        belief->series[j] += a[j];
}

/* Newton's method in the series; false if it leaves the reach of the series. */
static bool find_near(struct lme_belief *belief)
{
    for (int step = 0; step < MOST_STEPS; step++) {
        const double d = belief->u - belief->anchor;
        double slope = 0, curve = 0;
        for (size_t j = LME_TERMS; j-- > 0;) {
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
static void find_anywhere(struct lme_belief *belief, const struct lme_work *work)
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
    for (size_t j = 0; j < LME_TERMS; j++)
        belief->series[j] = 0;
    for (size_t k = 0; k < belief->n; k++)
        series_add(belief, work->shown[k], work->shown_outcome[k]);
}

/* Shows an answer. */
static void learn(struct lme_work *work, double eta, uint8_t outcome)
{
    struct lme_belief *belief = &work->belief;
    if (belief->n == work->shown_room) {
        work->shown_room = work->shown_room > 0 ? 2 * work->shown_room : 64;
        work->shown = memory_resize(work->shown, work->shown_room, sizeof *work->shown);
        work->shown_outcome =
            memory_resize(work->shown_outcome, work->shown_room, sizeof *work->shown_outcome);
    }
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

/* The effect of the level of an attempt: 0 if the attempt has none, the model does not know it,
 * or it is a level of a single student (own_levels.h). */
static double level_effect(const struct model *model, const struct lme_factor *factor,
                           const double *covariates)
{
    const double level = covariates[factor->covariate];
    return isnan(level) || (factor->own != NULL && factor->own[(size_t)level])
               ? 0
               : (double)params_rows(&model->params, factor->effect_panel)[(size_t)level];
}

static void begin(const struct model *model, struct lme_work *work)
{
    const struct lme_shape *shape = work->shape;
    const real *spread = params_rows(&model->params, shape->spread_panel);
    work->belief = (struct lme_belief){.variance = (double)spread[0] * (double)spread[0],
                                       .spread = (double)spread[shape->n_spread - 1]};
}

double lme_predictor(const struct model *model, const struct lme_work *work, uint32_t item,
                     const double *x, const double *covariates)
{
    const struct lme_shape *shape = work->shape;
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    double eta =
        (double)fixed[0] + (double)params_rows(&model->params, shape->total_panel)[item];
    for (size_t k = 0; k + 1 < shape->n_fixed; k++)
        eta += (double)fixed[k + 1] * x[k];
    for (size_t f = 0; f < shape->n_factors; f++)
        if (shape->factors[f].kind == FACTOR_COVARIATE)
            eta += level_effect(model, &shape->factors[f], covariates);
    return eta;
}

static real chance(const struct lme_work *work, double eta)
{
    const double u = work->belief.u;
    return (real)(work->shape->logit ? sigmoid(eta + u) : fmin(1, fmax(0, eta + u)));
}

/* The student's effect is about normal, and its variance is 1 / the curvature of the log
 * posterior at the mode. */
double lme_effect_error(const struct lme_work *work)
{
    const struct lme_belief *belief = &work->belief;
    if (belief->variance < 1e-30)
        return 0;
    double curve = 0;
    if (!work->shape->logit)
        curve = (double)belief->n / (belief->spread * belief->spread);
    for (size_t j = LME_TERMS; work->shape->logit && j-- > 1;)
        curve = curve * (belief->u - belief->anchor) + (double)j * belief->series[j];
    return sqrt(1 / (fmax(0, curve) + 1 / belief->variance));
}

/* How uncertain the chance is at predictor eta. */
static double deviation_at(const struct lme_work *work, double eta)
{
    const double error = lme_effect_error(work);
    return work->shape->logit && error > 0
               ? logistic_normal_deviation(eta + work->belief.u, error)
               : error;
}

/* Fills p and `deviation` unless they are NULL; returns the mode after all attempts. */
static double trace(const struct model *model, struct lme_work *work, size_t s, unsigned splits,
                    real *p, real *deviation)
{
    const struct shard *shard = work->shard;
    const uint64_t start = shard->first[s];
    const size_t n_x = work->shape->n_fixed - 1;
    begin(model, work);
    for (uint64_t t = start; t < shard->first[s + 1]; t++) {
        const double eta = lme_predictor(model, work, shard->item[t], work->x + t * n_x,
                                         lme_covariates(shard, t));
        if (p != NULL && splits >> mark_split(shard->mark[t]) & 1)
            p[t - start] = chance(work, eta);
        if (deviation != NULL && splits >> mark_split(shard->mark[t]) & 1)
            deviation[t - start] = (real)deviation_at(work, eta);
        if (mark_is_shown(shard->mark[t]))
            learn(work, eta, mark_outcome(shard->mark[t]) == CORRECT);
    }
    return work->belief.u;
}

void lme_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p)
{
    trace(model, work, s, splits, p, NULL);
}

void lme_deviation(const struct model *model, void *memory, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation)
{
    struct lme_work *work = memory;
    for (size_t i = 0; i < n; i++)
        trace(model, work, students[i], splits, NULL,
              deviation + work->shard->first[students[i]]);
}

void lme_hidden(const struct model *model, void *work, size_t s, real *activation)
{
    activation[0] = (real)trace(model, work, s, 0, NULL, NULL);
}

void lme_live_begin(const struct model *model, void *memory, void *state)
{
    (void)state;
    struct lme_work *work = memory;
    begin(model, work);
    while (work->n_walked > 0)
        work->met[work->walked[--work->n_walked]] = 0;
}

/* The predictor of the next attempt, if it is at `item`. */
static double live_predictor(const struct model *model, const struct lme_work *work,
                             uint32_t item, const double *covariates)
{
    double x[MOST_FIXED];
    for (size_t k = 0; k + 1 < work->shape->n_fixed; k++)
        x[k] = lme_fixed_x(&work->shape->fixed[k + 1], work->n_walked, work->met[item],
                           covariates);
    return lme_predictor(model, work, item, x, covariates);
}

void lme_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    (void)state;
    struct lme_work *work = memory;
    for (size_t i = 0; i < n; i++) {
        const uint32_t item = attempts[i].item;
        const uint8_t mark = attempts[i].mark;
        if (mark_is_shown(mark))
            learn(work, live_predictor(model, work, item, attempts[i].covariate),
                  mark_outcome(mark) == CORRECT);
        work->met[item]++;
        GROW(work->walked, work->n_walked, work->walked_room);
        work->walked[work->n_walked++] = item;
    }
}

void lme_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)state;
    const struct lme_work *work = memory;
    for (size_t i = 0; i < n; i++)
        p[i] = chance(work, live_predictor(model, work, items[i], when->covariate));
}
