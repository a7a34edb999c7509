/* The weights of a blend. Let q_m(t) be the probability that member m gave to the outcome of
 * attempt t. Convex weights minimise
 *
 *     f(w) = -1/n sum_t log sum_m w_m q_m(t) + sum_m w_m,   w_m >= 0
 *
 * The second term replaces the constraint sum_m w_m = 1, which holds at the only minimum.
 * Newton's method minimises the quadratic model of f around w over w >= 0, coordinate by
 * coordinate (at most 16), and halves the step until f falls.
 *
 * Logistic weights come from a logistic regression on the members' logits, also by Newton's
 * method:
 *
 *     logit p(t) = b + sum_m w_m logit p_m(t),   with penalty 1/2 (sum_m (w_m - 1/M)^2 + b^2)
 *
 * The penalty is worth about one answer and pulls the weights towards the plain mean, so
 * members that agree share their weight.
 *
 * All sums over attempts are sums of integers (fixed point): the same bits on any number of
 * ranks. */
#include "base/fail.h"
#include "base/memory.h"
#include "runs/blending.h"
#include <math.h>

enum { SIZE = BLEND_MOST + 1 };
static const double least = 1e-6; /* distance of probabilities from 0 and 1 */

static double inside(double p)
{
    return fmin(fmax(p, least), 1 - least);
}

static double logit(double p)
{
    return log(inside(p) / (1 - inside(p)));
}

/* f or the negative log-likelihood, its gradient, and the lower triangle of its Hessian. */
struct sums {
    double loss, gradient[SIZE], hessian[SIZE * SIZE];
};

/* Sums over attempts are in units of 2^-28. Ratios of probabilities reach 10^6 and their
 * products 10^12, so the units need 128 bits. */
enum { BITS = 28, MOST_UNITS = 1 + SIZE + SIZE * SIZE };

static __int128 to_units(double value)
{
    return (__int128)rint(value * (double)(1 << BITS));
}

static void unpack(const struct comm *comm, __int128 *units, size_t n, struct sums *sums)
{
    comm_sum_i128(comm, units, 1 + n + n * n);
    sums->loss = ldexp((double)units[0], -BITS);
    for (size_t m = 0; m < n; m++)
        sums->gradient[m] = ldexp((double)units[1 + m], -BITS);
    for (size_t m = 0; m < n * n; m++)
        sums->hessian[m] = ldexp((double)units[1 + n + m], -BITS);
}

static void add_convex(const struct blend *blend, const double *q, size_t n, const double *w,
                       struct sums *sums)
{
    __int128 units[MOST_UNITS] = {0};
    for (size_t i = 0; i < blend->parts[0].n; i++) {
        double mixed = 0, ratio[BLEND_MOST];
        for (size_t m = 0; m < n; m++)
            mixed += w[m] * q[i * n + m];
        units[0] += to_units(-log(fmax(mixed, least)));
        for (size_t m = 0; m < n; m++) {
            ratio[m] = q[i * n + m] / fmax(mixed, least);
            units[1 + m] += to_units(ratio[m]);
            for (size_t k = 0; k <= m; k++)
                units[1 + n + m * n + k] += to_units(ratio[m] * ratio[k]);
        }
    }
    unpack(blend->comm, units, n, sums);
    int64_t n_attempts = (int64_t)blend->parts[0].n;
    comm_sum_i64(blend->comm, &n_attempts, 1);
    const double scale = 1 / (double)n_attempts;
    sums->loss *= scale;
    for (size_t m = 0; m < n; m++) {
        sums->loss += w[m];
        sums->gradient[m] = 1 - scale * sums->gradient[m];
        for (size_t k = 0; k < n; k++)
            sums->hessian[m * n + k] = scale * sums->hessian[k <= m ? m * n + k : k * n + m];
    }
}

/* Minimises gradient d + d hessian d / 2 over w + d >= 0. */
static void quadratic_step(const struct sums *sums, size_t n, const double *w, double *d)
{
    for (size_t m = 0; m < n; m++)
        d[m] = 0;
    for (int sweep = 0; sweep < 1000; sweep++)
        for (size_t m = 0; m < n; m++) {
            double slope = sums->gradient[m];
            for (size_t k = 0; k < n; k++)
                slope += sums->hessian[m * n + k] * d[k];
            d[m] = fmax(-w[m], d[m] - slope / sums->hessian[m * n + m]);
        }
}

static void fit_convex(const struct blend *blend, struct blend_weights *w)
{
    const struct blend_part *part = &blend->parts[0];
    const size_t n = w->n;
    double *q = NEW_SCRATCH(double, part->n *n), sum = 0;
    for (size_t i = 0; i < part->n; i++)
        for (size_t m = 0; m < n; m++) {
            const double p = inside((double)part->p[w->members[m]][i]);
            q[i * n + m] = part->list[i].correct ? p : 1 - p;
        }
    for (size_t m = 0; m < n; m++)
        w->weights[m] = 1 / (double)n;
    struct sums sums;
    add_convex(blend, q, n, w->weights, &sums);
    for (int pass = 0; pass < 100; pass++) {
        double step[BLEND_MOST], next[BLEND_MOST], slope = 0, length = 1;
        quadratic_step(&sums, n, w->weights, step);
        for (size_t m = 0; m < n; m++)
            slope += step[m] * sums.gradient[m];
        if (slope > -1e-10) /* nats per attempt */
            break;
        const double before = sums.loss;
        do {
            for (size_t m = 0; m < n; m++)
                next[m] = w->weights[m] + length * step[m];
            add_convex(blend, q, n, next, &sums);
            length /= 2;
        } while (sums.loss > before && length > 1e-6);
        if (sums.loss > before)
            break;
        for (size_t m = 0; m < n; m++)
            w->weights[m] = next[m];
    }
    for (size_t m = 0; m < n; m++)
        sum += w->weights[m];
    for (size_t m = 0; m < n; m++)
        w->weights[m] /= sum;
    memory_free(q);
}

/* The sums of a logistic regression at the coefficients `beta` (intercept last). */
static void add_logistic(const struct blend *blend, const struct blend_weights *w,
                         const double *beta, const double *logits, struct sums *sums)
{
    const struct blend_part *part = &blend->parts[0];
    const size_t n = w->n + 1;
    __int128 units[MOST_UNITS] = {0};
    for (size_t i = 0; i < part->n; i++) {
        const double *x = logits + i * n;
        double at = 0;
        for (size_t m = 0; m < n; m++)
            at += beta[m] * x[m];
        const double p = 1 / (1 + exp(-at)), y = part->list[i].correct;
        const double loss = fmax(at, 0) - y * at + log1p(exp(-fabs(at)));
        units[0] += to_units(fmin(loss, 60));
        for (size_t m = 0; m < n; m++) {
            units[1 + m] += to_units((y - p) * x[m]);
            for (size_t k = 0; k <= m; k++)
                units[1 + n + m * n + k] += to_units(p * (1 - p) * x[m] * x[k]);
        }
    }
    unpack(blend->comm, units, n, sums);
    for (size_t m = 0; m < n; m++) {
        const double pull = m < w->n ? beta[m] - 1 / (double)w->n : beta[m];
        sums->loss += 0.5 * pull * pull;
        sums->gradient[m] -= pull;
        sums->hessian[m * n + m] += 1;
    }
}

/* Solves a symmetric positive definite system (lower triangle given) in place, by Cholesky. */
static void solve(double *a, double *b, size_t n)
{
    for (size_t m = 0; m < n; m++)
        for (size_t k = 0; k <= m; k++) {
            double sum = a[m * n + k];
            for (size_t l = 0; l < k; l++)
                sum -= a[m * n + l] * a[k * n + l];
            a[m * n + k] = m == k ? sqrt(sum) : sum / a[k * n + k];
        }
    for (size_t m = 0; m < n; m++) {
        for (size_t k = 0; k < m; k++)
            b[m] -= a[m * n + k] * b[k];
        b[m] /= a[m * n + m];
    }
    for (size_t m = n; m-- > 0;) {
        for (size_t k = m + 1; k < n; k++)
            b[m] -= a[k * n + m] * b[k];
        b[m] /= a[m * n + m];
    }
}

static void fit_logistic(const struct blend *blend, struct blend_weights *w)
{
    const struct blend_part *part = &blend->parts[0];
    const size_t n = w->n + 1;
    double *logits = NEW_SCRATCH(double, part->n *n), beta[SIZE] = {0};
    for (size_t i = 0; i < part->n; i++) {
        for (size_t m = 0; m < w->n; m++)
            logits[i * n + m] = logit((double)part->p[w->members[m]][i]);
        logits[i * n + w->n] = 1;
    }
    for (size_t m = 0; m < w->n; m++)
        beta[m] = 1 / (double)w->n;
    struct sums sums;
    add_logistic(blend, w, beta, logits, &sums);
    for (int pass = 0; pass < 100; pass++) {
        double step[SIZE], next[SIZE], slope = 0;
        for (size_t m = 0; m < n; m++)
            step[m] = sums.gradient[m];
        solve(sums.hessian, step, n);
        for (size_t m = 0; m < n; m++)
            slope += step[m] * sums.gradient[m];
        if (slope < 1e-6) /* nats over all attempts: twice the remaining gain */
            break;
        const double before = sums.loss;
        double length = 1;
        do {
            for (size_t m = 0; m < n; m++)
                next[m] = beta[m] + length * step[m];
            add_logistic(blend, w, next, logits, &sums);
            length /= 2;
        } while (sums.loss > before && length > 1e-6);
        if (sums.loss > before)
            break;
        for (size_t m = 0; m < n; m++)
            beta[m] = next[m];
    }
    for (size_t m = 0; m < w->n; m++)
        w->weights[m] = beta[m];
    w->intercept = beta[w->n];
    memory_free(logits);
}

void blend_fit(const struct blend *blend, struct blend_weights *weights)
{
    if (weights->method == BLEND_CONVEX)
        fit_convex(blend, weights);
    else
        fit_logistic(blend, weights);
}

void blend_score(const struct blend *blend, const struct blend_weights *w, int part_number,
                 bool skip_first, struct score *score)
{
    const struct blend_part *part = &blend->parts[part_number];
    struct prediction *list = NEW_SCRATCH(struct prediction, part->n);
    size_t n = 0;
    for (size_t i = 0; i < part->n; i++) {
        if (skip_first && part->list[i].is_first)
            continue;
        double sum = w->method == BLEND_LOGISTIC ? w->intercept : 0;
        for (size_t m = 0; m < w->n; m++) {
            const double p = (double)part->p[w->members[m]][i];
            sum += w->weights[m] * (w->method == BLEND_LOGISTIC ? logit(p) : p);
        }
        list[n] = part->list[i];
        list[n++].probability =
            (float)(w->method == BLEND_LOGISTIC ? 1 / (1 + exp(-sum)) : sum);
    }
    metrics_score(blend->comm, list, n, score);
    memory_free(list);
}
