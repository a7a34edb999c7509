/* Words and axes for metrics. An axis ends where a coin is, since nobody asks how much worse than
 * a coin a model is, and one model that diverged would press all others into a line:
 *
 *     log-loss                       AUC
 *      0.69 +--x----- coin            0.80 +
 *           |     o                        |   o
 *      0.55 +   o                     0.50 +--x----- coin
 *
 * What is worse than the coin is an open triangle at the edge (x), which the legend explains. */
#include "report/report_internal.h"
#include <math.h>

const enum metric report_metric_shown[N_METRICS] = {METRIC_AUC,  METRIC_LOG_LOSS,
                                                    METRIC_CBD,  METRIC_ACCURACY,
                                                    METRIC_RMSE, METRIC_CALIBRATION_ERROR};

const char report_beyond[] = "worse than the axis";

bool report_is_number(const struct report_run *run)
{
    return run->task == TASK_SCORE || run->task == TASK_DENSITY;
}

const char *report_metric_words(int metric)
{
    static const char *const words[N_METRICS] = {"CBD",      "log-loss", "AUC",
                                                 "accuracy", "RMSE",     "calibration error"};
    return metric < 0 ? "log-likelihood per step" : words[metric];
}

int report_metric_digits(int metric)
{
    static const int digits[N_METRICS] = {5, 5, 4, 4, 4, 4};
    return digits[metric];
}

double report_metric_value(const struct score *score, int metric)
{
    struct score copy = *score;
    return *metrics_value(&copy, metric);
}

double report_metric_coin(int metric)
{
    static const double coins[N_METRICS] = {0.30103, 0.693147, 0.5, NAN, 0.5, NAN};
    return metric < 0 ? NAN : coins[metric];
}

size_t report_metric_axis(struct plot_axis *axis, int metric, bool chances,
                          const double *values, size_t n)
{
    const double coin = chances ? report_metric_coin(metric) : NAN;
    const bool up = metric < 0 || metrics_up(metric);
    double low = INFINITY, high = -INFINITY;
    size_t n_outside = 0, n_inside = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        const bool outside = up ? values[i] < coin : values[i] > coin;
        n_outside += outside;
        n_inside += !outside;
        low = fmin(low, outside ? coin : values[i]);
        high = fmax(high, outside ? coin : values[i]);
    }
    if (n_inside == 0)
        return 0; /* nothing better than the coin: an axis for all */
    plot_widen(&low, &high);
    plot_round(&low, &high);
    axis->low = low;
    axis->high = high;
    return n_outside;
}

/* (r + z^2 / 2n  +-  z sqrt(r (1 - r) / n + z^2 / 4n^2)) / (1 + z^2 / n) */
void report_wilson(double share, int64_t n, double *low, double *high)
{
    const double z = 1.959964, z2 = z * z / (double)n;
    const double middle = share + z2 / 2,
                 half = z * sqrt(share * (1 - share) / (double)n + z2 / (double)n / 4);
    *low = n > 0 ? fmax(0, (middle - half) / (1 + z2)) : NAN;
    *high = n > 0 ? fmin(1, (middle + half) / (1 + z2)) : NAN;
}
