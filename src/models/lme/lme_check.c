/* Whether Laplace's approximation holds along the students' effects.
 *
 * It replaces the integral over a student's effect u by that of a normal density at its mode:
 *
 *     integral of e^l(u) du / sqrt(2 pi)  ~  e^l(u*) / sqrt(H),   H = -l''(u*)
 *
 * Where nearly all answers are right, almost every student has none wrong. Then l is flat on one
 * side of its mode and steep on the other, and the approximation is far too large if sigma is: it
 * finds effects where there are none. So at the end of the search each student's integral is done
 * by the trapezoidal rule, with all other effects at their modes. If the deviance that this
 * corrects is worse than that of one chance for all answers, the students' sigma is wrong. */
#include "base/memory.h"
#include "kernels/lme_kernels.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>

/* Steps of 1/8 of the standard deviation at the mode; most integrals need less than a hundred. */
enum { MOST_STEPS = 50, PARTS = 8, MOST_POINTS = 1 << 14 };
static const double negligible = -40, error_unit = 0x1p20;

/* The training answers of a student: predictors without its effect, and outcomes. */
struct answers {
    double *eta, spread;
    uint8_t *right;
    size_t n;
};

/* l(u), for u ~ N(0, 1). */
static double log_joint(const struct answers *answers, double u)
{
    double sum = -u * u / 2;
    for (size_t k = 0; k < answers->n; k++) {
        const double eta = answers->eta[k] + answers->spread * u;
        const double x = answers->right[k] ? eta : -eta;
        sum += fmin(x, 0) - Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x)));
    }
    return sum;
}

/* The mode, and H there. */
static double mode_of(const struct answers *answers, double *curve)
{
    double u = 0;
    for (int step = 0; step < MOST_STEPS; step++) {
        double sums[2];
        lme_kernels->slope(answers->eta, answers->right, answers->n, answers->spread * u, sums);
        *curve = 1 + answers->spread * answers->spread * sums[1];
        const double change = (u + answers->spread * sums[0]) / *curve;
        u -= fmax(-1, fmin(1, change));
        if (fabs(change) < 1e-8)
            break;
    }
    return u;
}

/* What the approximation lacks of -2 log L. */
static double error_of(const struct answers *answers)
{
    double curve, sum = 1;
    const double mode = mode_of(answers, &curve), most = log_joint(answers, mode);
    const double step = 1 / (PARTS * sqrt(curve));
    for (int side = -1; side <= 1; side += 2)
        for (int k = 1; k <= MOST_POINTS; k++) {
            const double below = log_joint(answers, mode + side * k * step) - most;
            if (!(below > negligible))
                break;
            sum += Sleef_cinz_expd1_u10purec(below);
        }
    return -2 * Sleef_cinz_logd1_u10purec(sum / (PARTS * sqrt(2 * M_PI)));
}

void lme_check(const struct model *model, struct lme_work *work, const struct comm *comm,
               struct lme_check *check)
{
    const struct shard *shard = work->shard;
    const size_t n_x = work->shape->n_fixed - 1;
    size_t longest = 1;
    for (size_t s = 0; s < shard->n_students; s++)
        longest = size_max(longest, shard->first[s + 1] - shard->first[s]);
    struct answers answers = {
        .eta = NEW(double, longest),
        .right = NEW(uint8_t, longest),
        .spread = (double)params_rows(&model->params, work->shape->spread_panel)[0]};
    int64_t sums[3] = {0}; /* wrong, right, error */
    for (size_t s = 0; s < shard->n_students; s++) {
        answers.n = 0;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            if (!mark_trains(shard->mark[t]))
                continue;
            answers.eta[answers.n] = lme_predictor(model, work, shard->item[t],
                                                   work->x + t * n_x, lme_covariates(shard, t));
            answers.right[answers.n] = mark_outcome(shard->mark[t]) == CORRECT;
            sums[answers.right[answers.n++]]++;
        }
        sums[2] += (int64_t)rint(error_unit * error_of(&answers));
    }
    memory_free(answers.eta);
    memory_free(answers.right);
    comm_sum_i64(comm, sums, COUNT(sums));
    check->wrong = (double)sums[0];
    check->right = (double)sums[1];
    check->error = (double)sums[2] / error_unit;
    check->alike = 0;
    for (int k = 0; k < 2; k++)
        if (sums[k] > 0)
            check->alike -=
                2 * (double)sums[k] *
                Sleef_cinz_logd1_u10purec((double)sums[k] / (double)(sums[0] + sums[1]));
}
