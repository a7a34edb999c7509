/* Ticks of an axis, round ends, and the place of a value on it. Steps are 1, 2 or 5 times a power
 * of ten: the smallest step with few enough ticks is used. */
#include "base/fail.h"
#include "plot/plot.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>

/* The range of two numbers within +-MOST, and so every step, is finite. */
enum { MOST_POWER = 301 };
static const double MOST = 1e300;

/* 1, 2 or 5 times a power of ten, as a fraction, so that multiples are rounded only once. */
static double step_of(int rank, double *divisor)
{
    static const double first[] = {1, 2, 5};
    const int power = rank >= 0 ? rank / 3 : -((2 - rank) / 3);
    double ten = 1;
    for (int k = 0; k < abs(power); k++)
        ten *= 10;
    *divisor = power < 0 ? ten : 1;
    return first[rank - 3 * power] * (power < 0 ? 1 : ten);
}

bool plot_is_drawable(double value)
{
    return fabs(value) <= MOST; /* false for NaN */
}

void plot_ticks_between(struct plot_ticks *ticks, double low, double high, size_t most)
{
    ENSURE(most >= 2 && most <= PLOT_MOST_TICKS);
    *ticks = (struct plot_ticks){0};
    for (int rank = -60; rank <= 3 * MOST_POWER; rank++) {
        double divisor = 1;
        const double step = step_of(rank, &divisor);
        const double slack = 1e-9 * (high - low);
        const double first = ceil((low - slack) * divisor / step),
                     last = floor((high + slack) * divisor / step);
        if (last - first + 1 > (double)most)
            continue;
        for (; (double)ticks->n <= last - first; ticks->n++)
            ticks->value[ticks->n] = (first + (double)ticks->n) * step / divisor + 0.0;
        for (double d = divisor; d > 1; d /= 10)
            ticks->digits++;
        ticks->step = step / divisor;
        return;
    }
}

void plot_ticks_log(struct plot_ticks *ticks, double low, double high)
{
    *ticks = (struct plot_ticks){0};
    for (int every = 1; every <= 27; every = every == 1 ? 3 : every + 3) {
        ticks->n = 0;
        bool fits = true;
        for (int rank = -60; rank <= 60 && fits; rank++) {
            double divisor = 1;
            const double step = step_of(rank, &divisor), value = step / divisor;
            if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9) || rank % every != 0)
                continue;
            fits = ticks->n < 8;
            if (fits)
                ticks->value[ticks->n++] = value;
        }
        if (fits)
            return;
    }
}

void plot_widen(double *low, double *high)
{
    const double least = 0.02 * fmax(fabs(*low), fabs(*high)), missing = least - (*high - *low);
    if (missing <= 0)
        return;
    *low -= missing / 2;
    *high += missing / 2;
}

void plot_round(double *low, double *high)
{
    *low = fmax(*low, -MOST); /* NaN too becomes a number */
    *high = fmin(*high, MOST);
    /* Ends that differ only in their last digits count as equal: no tick could separate
     * them. */
    if (!(*high - *low > 1e-9 * fmax(fabs(*low), fabs(*high)))) {
        const double away = *low != 0 ? fabs(*low) / 2 : 1;
        *low -= away;
        *high += away;
    }
    /* Rounding may make room for one tick too many, which makes the step coarser. */
    struct plot_ticks ticks = {0};
    for (double step = -1; step != ticks.step;) {
        step = ticks.step;
        plot_ticks_between(&ticks, *low, *high, 7);
        *low = floor(*low / ticks.step + 1e-9) * ticks.step;
        *high = ceil(*high / ticks.step - 1e-9) * ticks.step;
    }
}

double plot_place(double value, double low, double high, bool logarithmic)
{
    if (logarithmic)
        return Sleef_cinz_logd1_u10purec(value / low) / Sleef_cinz_logd1_u10purec(high / low);
    return (value - low) / (high - low);
}

bool plot_clip(double a, double b, double *from, double *to)
{
    *from = 0;
    *to = 1;
    if (a != b) {
        const double zero = (0 - a) / (b - a), one = (1 - a) / (b - a);
        *from = fmax(0, fmin(zero, one));
        *to = fmin(1, fmax(zero, one));
    } else if (a < 0 || a > 1) {
        return false;
    }
    return *from < *to;
}
