/* Intervals from a bootstrap over students. The answers of one student depend on each other, so
 * it is students that are drawn anew, each with all its attempts. A replicate gives every
 * student a Poisson(1) weight, named by the seed, the replicate and the student (metrics.c). The
 * interval of a score spans the middle 95 % of its values in the replicates:
 *
 *     replicates, sorted   |.2.5 %.|----------- 95 % -----------|.2.5 %.|
 *                                 low                          high
 *
 * From one student there is no interval: all numbers of it are NaN. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "learn/metrics.h"
#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of n > 0 sorted values, linearly interpolated. */
static double quantile(const double *values, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t j = (size_t)at;
    const double above = values[size_min(j + 1, n - 1)];
    return values[j] + (at - (double)j) * (above - values[j]);
}

void metrics_middle(double *values, size_t n, double *low, double *high)
{
    size_t n_known = 0;
    for (size_t r = 0; r < n; r++)
        if (!isnan(values[r])) /* a replicate may have only one outcome, or no student */
            values[n_known++] = values[r];
    qsort(values, n_known, sizeof *values, compare);
    *low = n_known > 0 ? quantile(values, n_known, 0.025) : NAN;
    *high = n_known > 0 ? quantile(values, n_known, 0.975) : NAN;
}

void metrics_say_few(int64_t n_students)
{
    enum { FEW = 10 };
    if (!metrics_has_interval(n_students))
        log_say("note: the attempts are of %s, and intervals need at least 2 students; so no "
                "difference between models is known to be real",
                n_students == 1 ? "1 student" : "no student");
    else if (n_students < FEW)
        log_say("note: intervals from only %lld students are rough", (long long)n_students);
}

void metrics_span(const struct score *replicates, size_t n, struct score *low,
                  struct score *high)
{
    double *values = NEW_SCRATCH(double, n);
    for (int m = -1; m < N_METRICS; m++) {
        for (size_t r = 0; r < n; r++) {
            struct score score = replicates[r];
            values[r] = m < 0 ? score.correct : *metrics_value(&score, m);
        }
        metrics_middle(values, n, m < 0 ? &low->correct : metrics_value(low, m),
                       m < 0 ? &high->correct : metrics_value(high, m));
    }
    memory_free(values);
}

void metrics_interval(const struct comm *comm, const struct prediction *predictions, size_t n,
                      int replicates, uint64_t seed, struct score *low, struct score *high)
{
    ENSURE(replicates > 0);
    struct score *scores = NEW_SCRATCH(struct score, (size_t)replicates);
    metrics_resample(comm, predictions, n, (size_t)replicates, seed, scores);
    metrics_score(comm, predictions, n, low);
    *high = *low;
    metrics_span(scores, (size_t)replicates, low, high);
    memory_free(scores);
}
