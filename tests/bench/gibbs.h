/* A Bayesian factorization machine for two classes, trained by Gibbs sampling, from the
 * equations of Rendle (Factorization Machines with libFM, 2012). bench_ktm_gibbs.c compares it
 * with ktm, with which it shares only the features.
 *
 *     z_i ~ normal(f(x_i), 1), answer i is correct where z_i > 0        (probit)
 *     w_j ~ normal(m, 1 / l),  v_jf ~ normal(m_f, 1 / l_f)    m, l for each group of rows
 *     m ~ normal(0, 1 / (g l)),  l ~ gamma(a / 2, b / 2)      a = b = g = 1
 *
 * One iteration draws every z, w_0, and then for the weights and for each factor: l and m of
 * every group, then every number from its conditional. Since f = c + h theta in each number
 * theta (h = x for a weight, x (q - x v) for a factor, q = sum of x v), with e = z - f,
 *
 *     precision = l + sum h^2,   mean = (theta sum h^2 + sum h e + m l) / precision.
 *
 * e and q are stored together and kept up to date; features are stored by column. */
#ifndef COHORT_GIBBS_H
#define COHORT_GIBBS_H

#include "base/fail.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { GIBBS_MOST_GROUPS = 64 };

/* ---- random numbers: a mixed counter; fast, for one thread */

static uint64_t counter = 1;

static double uniform(void)
{
    uint64_t z = counter += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

/* The polar method; the second number is kept for the next call. */
static double normal(void)
{
    static double waiting;
    static bool waits;
    if (waits) {
        waits = false;
        return waiting;
    }
    double a, b, square;
    do {
        a = 2 * uniform() - 1;
        b = 2 * uniform() - 1;
        square = a * a + b * b;
    } while (square >= 1);
    const double stretch = sqrt(-2 * log(square) / square);
    waiting = b * stretch;
    waits = true;
    return a * stretch;
}

/* A standard normal number above `least`: Robert's (1995) exponential proposals in the tail. */
static double normal_above(double least)
{
    double z;
    if (least <= 0) {
        do
            z = normal();
        while (z < least);
        return z;
    }
    const double rate = (least + sqrt(least * least + 4)) / 2;
    do
        z = least - log(uniform()) / rate;
    while (log(uniform()) > -(z - rate) * (z - rate) / 2);
    return z;
}

/* Gamma by Marsaglia and Tsang (2000), shape at least 1. */
static double gamma_draw(double shape, double rate)
{
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = normal(), v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        if (v > 0 && log(uniform()) < x * x / 2 + d - d * v + d * log(v))
            return d * v / rate;
    }
}

/* ---- features of attempts, by attempt and by column */

struct design {
    size_t n, n_columns, n_entries, room, n_groups;
    uint32_t *first, *column; /* entries of attempt i: first[i] .. first[i + 1] */
    float *x;
    uint8_t *correct;
    size_t group_first[GIBBS_MOST_GROUPS + 1]; /* columns of the groups */
    uint32_t *column_first, *row;              /* the same entries by column */
    float *column_x;
};

static void design_add(struct design *d, size_t column, double x)
{
    if (d->n_entries == d->room) {
        d->room = d->room > 0 ? 2 * d->room : 1 << 16;
        d->column = memory_resize(d->column, d->room, sizeof *d->column);
        d->x = memory_resize(d->x, d->room, sizeof *d->x);
    }
    d->column[d->n_entries] = (uint32_t)column;
    d->x[d->n_entries++] = (float)x;
}

static void design_end_attempt(struct design *d, bool correct)
{
    d->correct[d->n++] = correct;
    d->first[d->n] = (uint32_t)d->n_entries;
}

static void design_begin(struct design *d, size_t most, size_t n_columns)
{
    *d = (struct design){.n_columns = n_columns,
                         .first = NEW(uint32_t, most + 1),
                         .correct = NEW(uint8_t, most)};
}

static void design_by_columns(struct design *d)
{
    d->column_first = NEW(uint32_t, d->n_columns + 1);
    d->row = NEW(uint32_t, d->n_entries);
    d->column_x = NEW(float, d->n_entries);
    for (size_t e = 0; e < d->n_entries; e++)
        d->column_first[d->column[e] + 1]++;
    for (size_t j = 0; j < d->n_columns; j++)
        d->column_first[j + 1] += d->column_first[j];
    uint32_t *next = NEW(uint32_t, d->n_columns);
    memcpy(next, d->column_first, d->n_columns * sizeof *next);
    for (size_t i = 0; i < d->n; i++)
        for (size_t e = d->first[i]; e < d->first[i + 1]; e++) {
            const uint32_t at = next[d->column[e]]++;
            d->row[at] = (uint32_t)i;
            d->column_x[at] = d->x[e];
        }
    memory_free(next);
}

static void design_free(struct design *d)
{
    void *const all[] = {d->first,        d->column, d->x,       d->correct,
                         d->column_first, d->row,    d->column_x};
    for (size_t a = 0; a < COUNT(all); a++)
        memory_free(all[a]);
}

/* ---- the sampler */

struct cache {
    double e, q;
};

struct prior {
    double mean, precision;
};

struct gibbs {
    const struct design *design;
    size_t k;
    double bias, *w, *v;  /* v: k times n_columns */
    struct prior *priors; /* of the groups: for weights, then for each factor */
    struct cache *cache;  /* of attempts */
    double *z;
    double *squares; /* of columns: sum x^2 */
};

static void gibbs_free(struct gibbs *g)
{
    memory_free(g->w);
    memory_free(g->v);
    memory_free(g->priors);
    memory_free(g->cache);
    memory_free(g->z);
    memory_free(g->squares);
}

/* f of the attempts of a design, computed from the parameters alone. */
static void gibbs_scores(const struct gibbs *g, const struct design *d, double *score)
{
    const size_t n = d->n_columns, k = g->k;
    double *rows = NEW(double, n *(k + 1)), q[64];
    ENSURE(k <= COUNT(q));
    for (size_t j = 0; j < n; j++) {
        rows[j * (k + 1)] = g->w[j];
        for (size_t f = 0; f < k; f++)
            rows[j * (k + 1) + 1 + f] = g->v[f * n + j];
    }
    for (size_t i = 0; i < d->n; i++) {
        double sum = g->bias, own = 0;
        memset(q, 0, k * sizeof *q);
        for (size_t e = d->first[i]; e < d->first[i + 1]; e++) {
            const double *row = rows + d->column[e] * (k + 1), x = (double)d->x[e];
            sum += x * row[0];
            for (size_t f = 0; f < k; f++) {
                const double part = x * row[1 + f];
                q[f] += part;
                own += part * part;
            }
        }
        double pairs = -own;
        for (size_t f = 0; f < k; f++)
            pairs += q[f] * q[f];
        score[i] = sum + pairs / 2;
    }
    memory_free(rows);
}

static void gibbs_create(struct gibbs *g, const struct design *design, size_t k)
{
    const size_t n = design->n_columns, n_priors = (k + 1) * design->n_groups;
    *g = (struct gibbs){.design = design,
                        .k = k,
                        .w = NEW(double, n),
                        .v = NEW(double, k *n),
                        .priors = NEW(struct prior, n_priors),
                        .cache = NEW(struct cache, design->n),
                        .z = NEW(double, design->n),
                        .squares = NEW(double, n)};
    for (size_t j = 0; j < k * n; j++)
        g->v[j] = 0.1 * normal();
    for (size_t p = 0; p < n_priors; p++)
        g->priors[p] = (struct prior){0, 1};
    for (size_t j = 0; j < n; j++)
        for (size_t c = design->column_first[j]; c < design->column_first[j + 1]; c++)
            g->squares[j] += (double)(design->column_x[c] * design->column_x[c]);
    gibbs_scores(g, design, g->z); /* so that e = 0 */
}

/* Precision and mean of every group of some numbers, one number per column. */
static void draw_priors(const struct gibbs *g, const double *theta, struct prior *priors)
{
    const struct design *d = g->design;
    for (size_t group = 0; group < d->n_groups; group++) {
        const size_t begin = d->group_first[group], end = d->group_first[group + 1];
        struct prior *p = &priors[group];
        double squares = p->mean * p->mean, sum = 0;
        for (size_t j = begin; j < end; j++) {
            squares += (theta[j] - p->mean) * (theta[j] - p->mean);
            sum += theta[j];
        }
        const double n = (double)(end - begin);
        p->precision = gamma_draw((1 + n + 1) / 2, (1 + squares) / 2);
        p->mean = sum / (n + 1) + normal() / sqrt((n + 1) * p->precision);
    }
}

static double draw_number(double theta, double squares, double product, struct prior prior)
{
    const double precision = prior.precision + squares;
    return (theta * squares + product + prior.mean * prior.precision) / precision +
           normal() / sqrt(precision);
}

static void draw_targets(struct gibbs *g)
{
    const struct design *d = g->design;
    for (size_t i = 0; i < d->n; i++) {
        const double f = g->z[i] - g->cache[i].e, side = d->correct[i] ? 1 : -1;
        g->cache[i].e = side * normal_above(-side * f);
        g->z[i] = f + g->cache[i].e;
    }
}

static void draw_bias(struct gibbs *g)
{
    const size_t n = g->design->n;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += g->cache[i].e;
    const double change = sum / (double)n + normal() / sqrt((double)n);
    g->bias += change;
    for (size_t i = 0; i < n; i++)
        g->cache[i].e -= change;
}

static void draw_weights(struct gibbs *g)
{
    const struct design *d = g->design;
    draw_priors(g, g->w, g->priors);
    for (size_t group = 0; group < d->n_groups; group++)
        for (size_t j = d->group_first[group]; j < d->group_first[group + 1]; j++) {
            const size_t begin = d->column_first[j], end = d->column_first[j + 1];
            double product = 0;
            for (size_t c = begin; c < end; c++)
                product += (double)d->column_x[c] * g->cache[d->row[c]].e;
            const double before = g->w[j];
            g->w[j] = draw_number(before, g->squares[j], product, g->priors[group]);
            const double change = g->w[j] - before;
            for (size_t c = begin; c < end; c++)
                g->cache[d->row[c]].e -= change * (double)d->column_x[c];
        }
}

static void draw_factor(struct gibbs *g, size_t f)
{
    const struct design *d = g->design;
    double *v = g->v + f * d->n_columns;
    struct prior *priors = g->priors + (1 + f) * d->n_groups;
    for (size_t i = 0; i < d->n; i++) {
        double q = 0;
        for (size_t e = d->first[i]; e < d->first[i + 1]; e++)
            q += (double)d->x[e] * v[d->column[e]];
        g->cache[i].q = q;
    }
    draw_priors(g, v, priors);
    for (size_t group = 0; group < d->n_groups; group++)
        for (size_t j = d->group_first[group]; j < d->group_first[group + 1]; j++) {
            const size_t begin = d->column_first[j], end = d->column_first[j + 1];
            const double before = v[j];
            double product = 0, squares = 0;
            for (size_t c = begin; c < end; c++) {
                const struct cache *at = &g->cache[d->row[c]];
                const double x = (double)d->column_x[c], h = x * (at->q - x * before);
                squares += h * h;
                product += h * at->e;
            }
            v[j] = draw_number(before, squares, product, priors[group]);
            const double change = v[j] - before;
            for (size_t c = begin; c < end; c++) {
                struct cache *at = &g->cache[d->row[c]];
                const double x = (double)d->column_x[c], h = x * (at->q - x * before);
                at->e -= change * h;
                at->q += change * x;
            }
        }
}

static void gibbs_iterate(struct gibbs *g)
{
    draw_targets(g);
    draw_bias(g);
    draw_weights(g);
    for (size_t f = 0; f < g->k; f++)
        draw_factor(g, f);
}

/* The largest difference between the cached f = z - e and f computed anew. */
static double gibbs_drift(const struct gibbs *g)
{
    double *score = NEW(double, g->design->n), most = 0;
    gibbs_scores(g, g->design, score);
    for (size_t i = 0; i < g->design->n; i++)
        most = fmax(most, fabs(score[i] - (g->z[i] - g->cache[i].e)));
    memory_free(score);
    return most;
}

static double phi(double x)
{
    return erfc(-x * M_SQRT1_2) / 2;
}

#endif
