/* Prediction: a student's effect is the mode of its posterior given what was shown before,
 *
 *     u = argmax  sum over shown attempts of log P(outcome | eta + u)  -  u^2 / (2 sigma^2)
 *
 * found by Newton's method from u = 0, so that it depends on nothing but the history; new
 * students begin at u = 0. With link = identity the mode is a weighted mean, and what it
 * predicts is limited to 0 .. 1. */
#include "lme_parts.h"
#include "mixed.h"
#include <math.h>
#include <sleef.h>

enum { MOST_STEPS = 50 };

struct history {
    const double *eta;
    const uint8_t *outcome;
    size_t n;
};

static double sigmoid(double x)
{
    const double e = Sleef_cinz_expd1_u10purec(-fabs(x));
    return (x > 0 ? 1 : e) / (1 + e);
}

static double mode(const struct model *model, const struct lme_shape *shape,
                   const struct history *history)
{
    const real *spread = params_rows(&model->params, shape->spread_panel);
    const double variance = (double)spread[0] * (double)spread[0];
    if (variance < 1e-30 || history->n == 0)
        return 0;
    double u = 0;
    if (!shape->logit) {
        const double residual = (double)spread[shape->n_spread - 1];
        for (size_t k = 0; k < history->n; k++)
            u += history->outcome[k] - history->eta[k];
        return u / ((double)history->n + residual * residual / variance);
    }
    for (int step = 0; step < MOST_STEPS; step++) {
        double sums[2];
        mixed->slope(history->eta, history->outcome, history->n, u, sums);
        const double slope = sums[0] + u / variance, curve = sums[1] + 1 / variance;
        const double change = fmax(-2, fmin(2, slope / curve));
        u -= change;
        if (fabs(change) < 1e-8)
            break;
    }
    return u;
}

/* Of the level that attempt t brings; 0 where it brings none that the model knows. */
static double level_effect(const struct model *model, const struct lme_factor *factor,
                           const struct shard *shard, uint64_t t)
{
    const double level = lme_covariate(shard, t, factor->covariate);
    return isnan(level)
               ? 0
               : (double)params_rows(&model->params, factor->effect_panel)[(size_t)level];
}

/* Fills p, where it is not NULL; else returns the mode after all attempts. */
static double trace(const struct model *model, struct lme_work *work, size_t s, unsigned splits,
                    real *p)
{
    const struct shard *shard = work->shard;
    const struct lme_shape *shape = &work->shape;
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    const real *total = params_rows(&model->params, shape->total_panel);
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    const size_t n_x = shape->n_fixed - 1;
    struct history history = {.eta = work->shown, .outcome = work->shown_outcome};
    double u = 0;
    size_t n_known = 0; /* of the history, when u was found */
    for (uint64_t t = start; t < end; t++) {
        double eta = (double)fixed[0] + (double)total[shard->item[t]];
        for (size_t k = 0; k < n_x; k++)
            eta += (double)fixed[k + 1] * work->x[t * n_x + k];
        for (size_t f = 0; f < shape->n_factors; f++)
            if (shape->factors[f].kind == FACTOR_COVARIATE)
                eta += level_effect(model, &shape->factors[f], shard, t);
        if (p != NULL && splits >> mark_split(shard->mark[t]) & 1) {
            if (n_known != history.n)
                u = mode(model, shape, &history);
            n_known = history.n;
            p[t - start] = (real)(shape->logit ? sigmoid(eta + u) : fmin(1, fmax(0, eta + u)));
        }
        if (mark_is_shown(shard->mark[t])) {
            work->shown[history.n] = eta;
            work->shown_outcome[history.n++] = mark_outcome(shard->mark[t]) == CORRECT;
        }
    }
    return p != NULL ? u : mode(model, shape, &history);
}

void lme_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p)
{
    trace(model, work, s, splits, p);
}

void lme_hidden(const struct model *model, void *work, size_t s, real *activation)
{
    activation[0] = (real)trace(model, work, s, 0, NULL);
}
