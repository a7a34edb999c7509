/* How the learning rate changes over a run. x is the fraction of all steps that is done, from 0 to
 * 1, and f is optimizer.floor:
 *
 *     constant    rate
 *     linear      rate (1 - (1 - f) x)
 *     cosine      rate (f + (1 - f) (1 + cos(pi x)) / 2)
 *     step        rate drop^(epoch / drop_every), rounded down in the exponent
 *
 *     rate |   ________                          warm_up: in the first steps, every schedule
 *          |  /        ----__      cosine        rises from zero along a line
 *          | /               --__
 *        f |/                    ------
 *          +---------------------------- x
 *
 * The rate is a function of the step alone, so a run that is continued has the rates of one that
 * was never stopped. */
#include "learn/learning_rate.h"
#include <math.h>
#include <sleef.h>

const char *const learning_rate_schedules[] = {"constant", "linear", "cosine", "step", NULL};

/* x^n in log2 n products, the same on every machine. */
static double power(double x, int64_t n)
{
    double product = 1;
    for (; n > 0; n /= 2, x *= x)
        if (n % 2 == 1)
            product *= x;
    return product;
}

double learning_rate_at(const struct optimizer_options *o, int64_t n_epochs, int64_t step,
                        int64_t n_steps)
{
    const double all = (double)(n_epochs * n_steps);
    const double done = all > 0 ? fmin(1, (double)step / all) : 0;
    double share = 1;
    switch ((enum learning_rate_schedule)o->schedule) {
    case SCHEDULE_CONSTANT:
        break;
    case SCHEDULE_LINEAR:
        share = 1 - (1 - o->floor) * done;
        break;
    case SCHEDULE_COSINE:
        share = o->floor + (1 - o->floor) * 0.5 * (1 + Sleef_cinz_cospid1_u05purec(done));
        break;
    case SCHEDULE_STEP:
        share = power(o->drop, step / n_steps / o->drop_every);
        break;
    }
    if (step < o->warm_up)
        share *= (double)(step + 1) / (double)o->warm_up;
    return o->rate * share;
}
