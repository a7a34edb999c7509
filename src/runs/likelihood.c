/* The log-likelihood of students' steps, in nats per step. Sums over students are in fixed
 * point: the same bits on any number of ranks. The mean has two errors: one from sampling, and
 * the standard error over students (of a ratio of sums, by the delta method).
 *
 * Sampling adds a random error, which averages out over steps, and a bias, which does not.
 * Annealing with K temperatures underestimates the sum over states on average, so the
 * likelihood L(K) is too high. All steps are annealed with K / 2 and K temperatures, then with
 * twice as many, until the difference is small:
 *
 *     D(K) = L(K / 2) - L(K),   q = D(K) / D(K / 2)
 *
 *     L(K) - L(infinity) = D(2 K) + D(4 K) + ... = D q + D q^2 + ... = D q / (1 - q)
 *
 * q is near 1/2 if there are enough temperatures; it is kept between 1/2 and 9/10. The bias of
 * using few chains is estimated from halves of them (rtrbm_ais.c) and added.
 *
 * The total must settle, not each step: selecting steps with a small difference would hide the
 * bias of the others. The reported error is the random error plus the bias. */
#include "runs/likelihood.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>

enum { BITS = 28 };
#define SETTLED 0.01 /* nats per step, in addition to twice the random error */

static int64_t fixed(double x)
{
    const double scaled = ldexp(x, BITS);
    return fabs(scaled) < 0x1p60 ? (int64_t)rint(scaled) : (int64_t)copysign(0x1p60, scaled);
}

struct passage {
    const struct comm *comm;
    const struct model *model;
    void *work;
    const struct shard *shard;
    unsigned splits;
};

/* Measures all students by one plan; true if any step was annealed. */
static bool measure_once(const struct passage *p, const struct likelihood_plan *plan,
                         struct likelihood *students, struct likelihood_result *result)
{
    int64_t sums[8] = {0};
    for (size_t s = 0; s < p->shard->n_students; s++) {
        log_live("log-likelihood, at most %lld temperatures: student %zu of %zu",
                 (long long)plan->n_temperatures, s + 1, p->shard->n_students);
        p->model->kind->sequence.likelihood(p->model, p->work, s, p->splits, plan,
                                            &students[s]);
        sums[0] += students[s].n_steps;
        sums[1] += students[s].n_sampled;
        sums[2] += students[s].n_steps > 0;
        sums[3] += fixed(students[s].log_chance);
        sums[4] += fixed(students[s].variance);
        sums[5] += students[s].n_annealed;
        sums[6] += students[s].n_impossible;
        sums[7] += fixed(students[s].bias);
    }
    comm_sum_i64(p->comm, sums, COUNT(sums));
    const double n = (double)sums[0];
    *result =
        (struct likelihood_result){.n_steps = sums[0],
                                   .n_sampled = sums[1],
                                   .n_students = sums[2],
                                   .n_impossible = sums[6],
                                   .settled = true,
                                   .bias = ldexp((double)sums[7], -BITS) / n,
                                   .mean = ldexp((double)sums[3], -BITS) / n,
                                   .standard_error = sqrt(ldexp((double)sums[4], -BITS)) / n};
    return sums[5] > 0;
}

/* Raises the number of temperatures until the mean settles; `result` holds the first
 * measurement. */
static void settle(const struct passage *p, struct likelihood_plan plan,
                   struct likelihood *students, struct likelihood_result *result)
{
    struct likelihood_result coarse;
    struct likelihood_plan half = plan;
    half.n_temperatures = plan.n_temperatures / 2 > 0 ? plan.n_temperatures / 2 : 1;
    struct likelihood *others = NEW(struct likelihood, p->shard->n_students);
    measure_once(p, &half, others, &coarse);
    memory_free(others);
    double before = 0;
    for (;;) {
        const double fall = fmax(coarse.mean - result->mean, 0);
        const double noise = 2 * hypot(coarse.standard_error, result->standard_error);
        const double ratio = before > 0 ? fmin(fmax(fall / before, 0.5), 0.9) : 0.5;
        result->n_temperatures = plan.n_temperatures;
        const double rest = fall * ratio / (1 - ratio);
        result->bias += rest;
        result->settled = rest < SETTLED + noise;
        if (result->settled || 2 * plan.n_temperatures > plan.most_temperatures)
            break;
        plan.n_temperatures *= 2;
        coarse = *result;
        before = fall;
        measure_once(p, &plan, students, result);
    }
    result->standard_error += result->bias;
}

void likelihood_measure(const struct comm *comm, const struct model *model, void *work,
                        const struct shard *shard, unsigned splits,
                        const struct likelihood_plan *plan, struct likelihood_result *result)
{
    struct likelihood *students = NEW(struct likelihood, shard->n_students);
    const struct passage p = {comm, model, work, shard, splits};
    int64_t spread = 0;
    if (measure_once(&p, plan, students, result))
        settle(&p, *plan, students, result);
    const double n = (double)result->n_steps, n_students = (double)result->n_students;
    for (size_t s = 0; s < shard->n_students; s++) {
        const double off = students[s].log_chance - result->mean * (double)students[s].n_steps;
        spread += students[s].n_steps > 0 ? fixed(off * off) : 0;
    }
    comm_sum_i64(comm, &spread, 1);
    result->spread_error =
        n_students > 1 ? sqrt(ldexp((double)spread, -BITS) * n_students / (n_students - 1)) / n
                       : NAN;
    memory_free(students);
}
