/* Items with few answers have extreme fractions of right ones by chance. So each is shrunk
 * towards the fraction of all items, p, as if k more answers had been seen:
 *
 *     log-odds of item i = log((right_i + k p) / (wrong_i + k q)),   q = 1 - p
 *
 * How similar items are follows from the counts themselves. If the fractions of items are drawn
 * from a beta distribution with mean p and strength k, answers to one item correlate by
 * rho = 1 / (k + 1), and with n_i answers to item i and m items that have any,
 *
 *     E sum_i n_i (p_i - p)^2 = p q (m + rho sum_i (n_i - 1))
 *
 * which gives rho, and with it k. An item without answers has the log-odds of all together. */
#include "learn/item_counts.h"
#include "base/comm.h"
#include "base/memory.h"
#include <math.h>
#include <sleef.h>

void item_counts_take(struct item_counts *counts, const struct shard *shard)
{
    counts->n_items = shard->dataset->n_items;
    counts->right = NEW(int64_t, 2 * counts->n_items);
    counts->wrong = counts->right + counts->n_items;
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        const enum outcome outcome = mark_outcome(shard->mark[t]);
        if (mark_trains(shard->mark[t]))
            (outcome == CORRECT ? counts->right : counts->wrong)[shard->item[t]]++;
    }
    comm_sum_i64(shard->dataset->comm, counts->right, 2 * counts->n_items);
}

/* k, given p. Bounded: between answers that say all about an item and those that say little. */
static double strength(const struct item_counts *counts, double p)
{
    enum { LEAST = 1, MOST = 1000 };
    double spread = 0, n_all = 0, n_items = 0;
    for (size_t i = 0; i < counts->n_items; i++) {
        const double n = (double)(counts->right[i] + counts->wrong[i]);
        if (n == 0)
            continue;
        const double difference = (double)counts->right[i] / n - p;
        spread += n * difference * difference;
        n_all += n;
        n_items++;
    }
    const double rho = (spread / (p * (1 - p)) - n_items) / fmax(1, n_all - n_items);
    return fmin(MOST, fmax(LEAST, 1 / fmax(1e-6, rho) - 1));
}

double *item_counts_log_odds(const struct item_counts *counts)
{
    double right = 1, wrong = 1;
    for (size_t i = 0; i < counts->n_items; i++) {
        right += (double)counts->right[i];
        wrong += (double)counts->wrong[i];
    }
    const double p = right / (right + wrong), k = strength(counts, p);
    double *logit = NEW(double, counts->n_items);
    for (size_t i = 0; i < counts->n_items; i++)
        logit[i] = Sleef_cinz_logd1_u10purec(((double)counts->right[i] + k * p) /
                                             ((double)counts->wrong[i] + k * (1 - p)));
    return logit;
}
