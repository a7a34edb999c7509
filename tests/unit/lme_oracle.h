/* tests: a second implementation of the Laplace deviance of a mixed model: all effects in one
 * dense matrix, without elimination and without fixed point. */
#ifndef COHORT_LME_ORACLE_H
#define COHORT_LME_ORACLE_H

#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <string.h>

enum { ORACLE_MOST = 64 }; /* number of effects */

/* Effects are numbered by factor, whether eliminated or not. */
struct oracle {
    size_t q, first[MOST_FACTORS];
    double h[ORACLE_MOST][ORACLE_MOST], u[ORACLE_MOST], g[ORACLE_MOST];
};

/* Lower Cholesky factor in place; log det. */
static inline double oracle_factor(struct oracle *oracle)
{
    double sum = 0;
    for (size_t i = 0; i < oracle->q; i++)
        for (size_t j = 0; j <= i; j++) {
            double *to = &oracle->h[i][j];
            for (size_t k = 0; k < j; k++)
                *to -= oracle->h[i][k] * oracle->h[j][k];
            *to = i == j ? sqrt(*to) : *to / oracle->h[j][j];
            sum += i == j ? 2 * log(*to) : 0;
        }
    return sum;
}

static inline void oracle_solve(struct oracle *oracle, double *x)
{
    for (size_t i = 0; i < oracle->q; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= oracle->h[i][k] * x[k];
        x[i] /= oracle->h[i][i];
    }
    for (size_t i = oracle->q; i-- > 0;) {
        for (size_t k = i + 1; k < oracle->q; k++)
            x[i] -= oracle->h[k][i] * x[k];
        x[i] /= oracle->h[i][i];
    }
}

/* Standard deviations of the effects at attempt t of student s, zero for all other effects. */
static inline void oracle_effects(const struct oracle *oracle, const struct lme_work *work,
                                  const double *sigma, size_t s, uint64_t t, double *z)
{
    const struct shard *shard = work->shard;
    const struct dataset *dataset = shard->dataset;
    const uint32_t i = shard->item[t];
    for (size_t f = 0; f < work->shape->n_factors; f++) {
        const struct lme_factor *factor = &work->shape->factors[f];
        double *of = z + oracle->first[f];
        if (factor->kind == FACTOR_STUDENT)
            of[s] = sigma[f];
        if (factor->kind == FACTOR_ITEM)
            of[i] = sigma[f];
        if (factor->kind == FACTOR_GROUP && dataset->item_group[i] >= 0)
            of[dataset->item_group[i]] = sigma[f];
        if (factor->kind == FACTOR_SKILL)
            for (uint64_t k = dataset->item_first[i]; k < dataset->item_first[i + 1]; k++)
                of[dataset->item_skills[k]] = sigma[f];
        if (factor->kind == FACTOR_COVARIATE) {
            const double level =
                shard->covariate[t * dataset->covariates.names.n + factor->covariate];
            if (!isnan(level))
                of[(size_t)level] = sigma[f];
        }
    }
}

/* Gradient and curvature at u; returns the penalised deviance. */
static inline double oracle_look(const struct lme_work *work, const double *outer,
                                 struct oracle *oracle)
{
    const struct lme_shape *shape = work->shape;
    const double *sigma = outer + shape->n_fixed;
    const double dispersion = shape->logit ? 1 : exp(2 * outer[shape->n_outer - 1]);
    const size_t n_students = work->shard->n_students, n_x = shape->n_fixed - 1;
    double deviance = 0;
    oracle->q = 0;
    for (size_t f = 0; f < shape->n_factors; f++) {
        oracle->first[f] = oracle->q;
        oracle->q += shape->factors[f].n;
    }
    memset(oracle->h, 0, sizeof oracle->h);
    for (size_t i = 0; i < oracle->q; i++) {
        oracle->h[i][i] = 1;
        oracle->g[i] = oracle->u[i];
        deviance += oracle->u[i] * oracle->u[i];
    }
    for (size_t s = 0; s < n_students; s++)
        for (uint64_t t = work->shard->first[s]; t < work->shard->first[s + 1]; t++) {
            if (!mark_trains(work->shard->mark[t]))
                continue;
            double z[ORACLE_MOST] = {0}, eta = outer[0];
            for (size_t k = 0; k < n_x; k++)
                eta += outer[k + 1] * work->x[t * n_x + k];
            oracle_effects(oracle, work, sigma, s, t, z);
            for (size_t i = 0; i < oracle->q; i++)
                eta += z[i] * oracle->u[i];
            const double y = mark_outcome(work->shard->mark[t]) == CORRECT;
            const double mu = shape->logit ? 1 / (1 + exp(-eta)) : eta;
            const double w = shape->logit ? mu * (1 - mu) : 1 / dispersion;
            deviance += shape->logit
                            ? -2 * log(y > 0.5 ? mu : 1 - mu)
                            : (y - eta) * (y - eta) / dispersion + log(2 * M_PI * dispersion);
            for (size_t i = 0; i < oracle->q; i++) {
                oracle->g[i] += z[i] * (mu - y) / dispersion;
                for (size_t j = 0; j < oracle->q; j++)
                    oracle->h[i][j] += w * z[i] * z[j];
            }
        }
    return deviance;
}

/* -2 log L at `outer` = fixed effects, standard deviations, log of the residual one; leaves u
 * at the mode. */
static inline double oracle_deviance(const struct lme_work *work, const double *outer,
                                     struct oracle *oracle)
{
    memset(oracle, 0, sizeof *oracle);
    double penalised = 0, log_determinant = 0;
    for (int step = 0; step < 60; step++) {
        penalised = oracle_look(work, outer, oracle);
        log_determinant = oracle_factor(oracle);
        oracle_solve(oracle, oracle->g);
        for (size_t i = 0; step < 59 && i < oracle->q; i++)
            oracle->u[i] -= oracle->g[i];
    }
    return penalised + log_determinant;
}

#endif
