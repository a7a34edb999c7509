/* The search for the minimum of the deviance F over fixed effects and standard deviations: BFGS
 * with exact gradients. An epoch is one point. It is accepted, or the next one is closer to the
 * last accepted point. The initial curvature is known well:
 *
 *     fixed effects          2 x their information
 *     standard deviations    4 freedom / sigma^2, with `freedom` effective effects
 *
 * With link = identity the last standard deviation is stored as its logarithm.
 *
 * F is even in sigma, so its derivative at zero is zero whether or not F has a minimum there. A
 * search that ends with a sigma of zero checks it once: if a small sigma is better, the search
 * continues from there.
 *
 * The state of the search is stored in a tensor as pairs of numbers. The second is the rounding
 * error of the first, so a stopped run continues with the same bits. */
#include "models/lme/lme_internal.h"
#include <math.h>
#include <string.h>

enum { N_SCALARS = 6 };
static const double armijo = 1e-4, zero = 1e-4, near_zero = 1e-3, small = 0.05;

size_t lme_search_size(size_t n_outer)
{
    return N_SCALARS + 3 * n_outer + n_outer * n_outer;
}

/* Stores or loads all numbers, in a fixed order. */
static void walk(struct lme_search *search, size_t n, real *pairs, bool store)
{
    double *const parts[] = {&search->phase,      &search->deviance, &search->promise,
                             &search->n_rejected, &search->n_probed, &search->n_attempts,
                             search->x,           search->gradient,  search->trial,
                             search->inverse};
    for (size_t k = 0; k < COUNT(parts); k++) {
        const size_t length = k < N_SCALARS ? 1 : k + 1 < COUNT(parts) ? n : n * n;
        for (size_t i = 0; i < length; i++, pairs += 2)
            if (store) {
                pairs[0] = (real)parts[k][i];
                pairs[1] = (real)(parts[k][i] - (double)pairs[0]);
            } else
                parts[k][i] = (double)pairs[0] + (double)pairs[1];
    }
}

void lme_search_load(struct lme_search *search, size_t n, const real *pairs)
{
    walk(search, n, (real *)pairs, false);
    search->without_students = search->phase >= N_SEARCH_PHASES;
    search->phase -= search->without_students ? N_SEARCH_PHASES : 0;
}

void lme_search_store(const struct lme_search *search, size_t n, real *pairs)
{
    struct lme_search copy = *search;
    copy.phase += search->without_students ? N_SEARCH_PHASES : 0;
    walk(&copy, n, pairs, true);
}

size_t lme_search_factor(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 1e-9 * fabs(a[i * n + i])))
                return i;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    return n;
}

void lme_search_invert(double *a, size_t n)
{
    double inverse[MOST_OUTER * MOST_OUTER] = {0};
    for (size_t c = 0; c < n; c++) { /* L z = e_c, L^T x = z */
        double x[MOST_OUTER] = {0};
        for (size_t i = 0; i < n; i++) {
            x[i] = i == c;
            for (size_t k = 0; k < i; k++)
                x[i] -= a[i * n + k] * x[k];
            x[i] /= a[i * n + i];
        }
        for (size_t i = n; i-- > 0;) {
            for (size_t k = i + 1; k < n; k++)
                x[i] -= a[k * n + i] * x[k];
            x[i] /= a[i * n + i];
            inverse[i * n + c] = x[i];
        }
    }
    memcpy(a, inverse, n * n * sizeof *a);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Whether number i is the sigma of a factor, in whose sign F is even. */
static bool is_spread(const struct lme_shape *shape, size_t i)
{
    return i >= shape->n_fixed && (shape->logit || i + 1 < shape->n_outer);
}

static void guess_curvature(struct lme_search *search, const struct lme_shape *shape,
                            const struct lme_laplace *found)
{
    const size_t n = shape->n_outer, n_fixed = shape->n_fixed;
    double fixed[MOST_FIXED * MOST_FIXED];
    for (size_t i = 0; i < n_fixed * n_fixed; i++)
        fixed[i] = 2 * found->information[i];
    lme_search_factor(fixed, n_fixed);
    lme_search_invert(fixed, n_fixed);
    memset(search->inverse, 0, sizeof search->inverse);
    for (size_t i = 0; i < n_fixed; i++)
        for (size_t j = 0; j < n_fixed; j++)
            search->inverse[i * n + j] = fixed[i * n_fixed + j];
    for (size_t i = n_fixed; i < n; i++) {
        const double scale = is_spread(shape, i) ? search->trial[i] * search->trial[i] : 1;
        search->inverse[i * n + i] = scale / (4 * fmax(1, found->freedom[i - n_fixed]));
    }
}

/* BFGS update of the inverse curvature from the last step. */
static void learn_curvature(struct lme_search *search, size_t n,
                            const struct lme_laplace *found)
{
    double step[MOST_OUTER] = {0}, change[MOST_OUTER] = {0}, bent[MOST_OUTER];
    for (size_t i = 0; i < n; i++) {
        step[i] = search->trial[i] - search->x[i];
        change[i] = found->gradient[i] - search->gradient[i];
    }
    const double along = dot(step, change, n);
    if (!(along > 1e-12 * sqrt(dot(step, step, n) * dot(change, change, n))))
        return;
    for (size_t i = 0; i < n; i++)
        bent[i] = dot(search->inverse + i * n, change, n);
    const double factor = (1 + dot(change, bent, n) / along) / along;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            search->inverse[i * n + j] +=
                factor * step[i] * step[j] - (bent[i] * step[j] + step[i] * bent[j]) / along;
}

/* The next point. A sigma that would be zero but for rounding is zero: in units of such a sigma
 * the effects of the last point are huge, and the derivative is made of rounding errors. */
static void set_trial(struct lme_search *search, const struct lme_shape *shape,
                      const double *step)
{
    for (size_t i = 0; i < shape->n_outer; i++) {
        search->trial[i] = search->x[i] + step[i];
        if (is_spread(shape, i) && fabs(search->trial[i]) < zero)
            search->trial[i] = 0;
    }
}

/* The quasi-Newton step, except for a sigma near zero, where F is flat whether it rises or
 * falls. There a sigma that tends to zero is set to zero, and one that tends away is doubled
 * each time. */
static void choose_step(struct lme_search *search, const struct lme_shape *shape,
                        double tolerance)
{
    const size_t n = shape->n_outer;
    double step[MOST_OUTER] = {0}, longest = 1;
    bool is_forced = false;
    for (size_t i = 0; i < n; i++) {
        const double x = search->x[i];
        step[i] = -dot(search->inverse + i * n, search->gradient, n);
        if (is_spread(shape, i) && x == 0)
            step[i] = 0;
        const double most = is_spread(shape, i) ? fmax(0.5, fabs(x)) : 2;
        longest = fmax(longest, fabs(step[i]) / most);
    }
    if (-dot(step, search->gradient, n) / 2 < tolerance)
        search->phase = SEARCH_DONE;
    for (size_t i = 0; i < n; i++) {
        const double x = search->x[i], slope = search->gradient[i];
        step[i] /= longest;
        if (!is_spread(shape, i) || x == 0)
            continue;
        if (fabs(x) < near_zero && slope * x > 0) {
            step[i] = -x;
            is_forced = true;
        } else if (fabs(x) < small && slope * x < 0 && fabs(step[i]) < fabs(x)) {
            step[i] = x;
            is_forced = true;
        }
    }
    if (is_forced)
        search->phase = SEARCH_RUNNING;
    search->promise = dot(step, search->gradient, n);
    set_trial(search, shape, step);
}

/* At the end: the next point sets one of the sigmas that are zero to a small value. */
static void probe_zeros(struct lme_search *search, const struct lme_shape *shape)
{
    for (size_t i = shape->n_fixed + (size_t)search->n_probed; i < shape->n_outer; i++)
        if (is_spread(shape, i) && search->x[i] == 0 &&
            !(search->without_students && i == shape->n_fixed)) {
            memcpy(search->trial, search->x, sizeof search->trial);
            search->trial[i] = small;
            search->n_probed = (double)(i - shape->n_fixed);
            search->phase = SEARCH_PROBING;
            return;
        }
}

/* Judges that point; true if the search continues from it. */
static bool judge_probe(struct lme_search *search, const struct lme_shape *shape,
                        const struct lme_laplace *found, double tolerance)
{
    const size_t n = shape->n_outer, i = shape->n_fixed + (size_t)search->n_probed;
    if (!(found->deviance < search->deviance - tolerance)) {
        search->n_probed++;
        search->phase = SEARCH_DONE;
        probe_zeros(search, shape);
        return false;
    }
    for (size_t k = 0; k < n; k++)
        search->inverse[i * n + k] = search->inverse[k * n + i] = 0;
    search->inverse[i * n + i] = small / fmax(fabs(found->gradient[i]), small); /* doubles it */
    search->n_probed = 0;
    return true;
}

bool lme_search_advance(struct lme_search *search, const struct lme_shape *shape,
                        const struct lme_laplace *found, double tolerance)
{
    const size_t n = shape->n_outer;
    if (search->phase == SEARCH_FRESH) {
        guess_curvature(search, shape, found);
    } else if (search->phase == SEARCH_PROBING) {
        if (!judge_probe(search, shape, found, tolerance))
            return false;
    } else {
        const double rise = found->deviance - search->deviance;
        const double noise = 1e-12 * fabs(search->deviance) + tolerance / 100;
        if (!(rise <= armijo * search->promise + noise)) {
            double shrink = -search->promise / (2 * (rise - search->promise));
            shrink = fmin(0.5, fmax(0.1, shrink));
            double step[MOST_OUTER];
            for (size_t i = 0; i < n; i++)
                step[i] = shrink * (search->trial[i] - search->x[i]);
            set_trial(search, shape, step);
            search->promise *= shrink;
            if (++search->n_rejected > 30)
                search->phase = SEARCH_DONE;
            return false;
        }
        learn_curvature(search, n, found);
    }
    search->phase = SEARCH_RUNNING;
    search->n_rejected = 0;
    search->deviance = found->deviance;
    memcpy(search->x, search->trial, sizeof search->x);
    memcpy(search->gradient, found->gradient, sizeof search->gradient);
    choose_step(search, shape, tolerance);
    if (search->phase == SEARCH_DONE)
        probe_zeros(search, shape);
    return true;
}
