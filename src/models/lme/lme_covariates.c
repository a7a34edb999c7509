/* Covariates in the units of the solver.
 *
 * Covariates come in any unit: seconds, years, milliseconds since 1970. The solver sums in
 * fixed point and limits the length of its steps, so it needs numbers near 1. Any other
 * covariate is replaced by (x - centre) / width: its mean, and a power of 2 near its standard
 * deviation over all training attempts. Only the published effects are in the unit of the data:
 *
 *     beta_k = beta'_k / width_k
 *     beta_0 = beta'_0 - sum over k of beta_k centre_k
 *
 * Sums are sums of integers, so all ranks have the same bits, whichever rank holds which
 * attempts. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>

/* No scaling is needed for numbers up to `most` that differ by more than `least`. */
static const double most = 16, least = 1.0 / 16;

/* Column k of the training attempts minus its centre. */
static double *column(const struct lme_work *work, size_t k, size_t *n, double centre)
{
    const size_t n_x = work->shape->n_fixed - 1;
    *n = work->first[work->n_units];
    double *values = NEW_SCRATCH(double, *n);
    for (size_t a = 0; a < *n; a++)
        values[a] = work->trained_x[a * n_x + k - 1] - centre;
    return values;
}

/* Collective: the largest absolute value over all ranks. */
static double largest(const struct comm *comm, const double *x, size_t n)
{
    double size = 0;
    for (size_t a = 0; a < n; a++)
        size = fmax(size, fabs(x[a]));
    comm_max_double(comm, &size, 1);
    return size;
}

/* Collective: the mean of x^power over all ranks; no number is larger than `size` > 0. */
static double mean(const struct lme_solver *solver, const double *x, size_t n, double size,
                   int power)
{
    const int bits = 61 - ilogb((double)solver->n_training + 1), exponent = ilogb(size) + 1;
    int64_t sum = 0;
    for (size_t a = 0; a < n; a++) {
        const double share = ldexp(x[a], -exponent);
        sum += (int64_t)rint(ldexp(power == 2 ? share * share : share, bits));
    }
    comm_sum_i64(solver->comm, &sum, 1);
    return ldexp((double)sum, power * exponent - bits) / (double)solver->n_training;
}

/* Collective: centre and width of fixed effect k, 0 and 1 if it needs no scaling. */
static void measure(const struct lme_work *work, size_t k)
{
    struct lme_solver *solver = work->solver;
    size_t n = 0;
    double *x = column(work, k, &n, 0);
    const double size = largest(solver->comm, x, n);
    const double centre = size > 0 ? mean(solver, x, n, size, 1) : 0;
    memory_free(x);
    x = column(work, k, &n, centre);
    const double rest = largest(solver->comm, x, n);
    const double spread = rest > 0 ? sqrt(mean(solver, x, n, rest, 2)) : 0;
    memory_free(x);
    solver->centre[k] = 0;
    solver->width[k] = 1;
    if (size <= most && spread >= least)
        return;
    solver->centre[k] = centre;
    solver->width[k] = spread > 0 ? ldexp(1, ilogb(spread)) : 1;
}

void lme_scale_fit(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    const size_t n_x = work->shape->n_fixed - 1, n = work->first[work->n_units];
    solver->width[0] = 1;
    for (size_t k = 1; k <= n_x; k++) {
        solver->width[k] = 1;
        if (work->shape->fixed[k].kind != FIXED_COVARIATE)
            continue;
        measure(work, k);
        for (size_t a = 0; a < n; a++) {
            double *x = &work->trained_x[a * n_x + k - 1];
            *x = (*x - solver->centre[k]) / solver->width[k];
        }
    }
}

/* The coefficient of the solver's fixed effect j in fixed effect k of the data. */
static double share(const struct lme_solver *solver, size_t k, size_t j)
{
    if (j == k)
        return 1 / solver->width[k];
    return k == 0 ? -solver->centre[j] / solver->width[j] : 0;
}

double lme_scale_back(const struct lme_work *work, const double *fixed, size_t k)
{
    double sum = 0;
    for (size_t j = 0; j < work->shape->n_fixed; j++)
        sum += share(work->solver, k, j) * fixed[j];
    return sum;
}

double lme_scale_error(const struct lme_work *work, const double *covariance, size_t k)
{
    const size_t n = work->shape->n_fixed;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            sum +=
                share(work->solver, k, i) * share(work->solver, k, j) * covariance[i * n + j];
    return sqrt(sum);
}
