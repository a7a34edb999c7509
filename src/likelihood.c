/* Chances of steps, summed over students in fixed point, so that the bits do not depend on the
 * number of ranks. Two errors of the mean are told apart: what sampling adds, which more chains
 * would lower, and the spread between students (of the ratio of sums, by the delta method). */
#include "likelihood.h"
#include "memory.h"
#include <math.h>

enum { BITS = 28 };

static int64_t fixed(double x)
{
    const double scaled = ldexp(x, BITS);
    return fabs(scaled) < 0x1p60 ? (int64_t)rint(scaled) : (int64_t)copysign(0x1p60, scaled);
}

void likelihood_measure(const struct comm *comm, const struct model *model, void *work,
                        const struct shard *shard, unsigned splits,
                        const struct likelihood_plan *plan, struct likelihood_result *result)
{
    struct likelihood *students = NEW(struct likelihood, shard->n_students);
    int64_t sums[5] = {0}, spread = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        model->kind->likelihood(model, work, s, splits, plan, &students[s]);
        sums[0] += students[s].n_steps;
        sums[1] += students[s].n_sampled;
        sums[2] += students[s].n_steps > 0;
        sums[3] += fixed(students[s].log_chance);
        sums[4] += fixed(students[s].variance);
    }
    comm_sum_i64(comm, sums, COUNT(sums));
    const double n = (double)sums[0], n_students = (double)sums[2];
    *result =
        (struct likelihood_result){.n_steps = sums[0],
                                   .n_sampled = sums[1],
                                   .n_students = sums[2],
                                   .mean = ldexp((double)sums[3], -BITS) / n,
                                   .standard_error = sqrt(ldexp((double)sums[4], -BITS)) / n};
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
