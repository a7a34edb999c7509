/* If the log-odds x of a correct answer are normal, the chance sigma(x) is a logistic-normal
 * number. Its moments have no closed form. The integrands are smooth and vanish at both ends, so
 * the trapezoid rule in z converges faster than any power of the step:
 *
 *     E f(sigma)  =  integral of phi(z) f(sigma(mean + sd z)) dz,    z from -8 to 8
 *
 * The poles of sigma are pi away from the real line, so the steps must be short in x: up to
 * sd = WIDE they are at most 1. Beyond that sigma is almost a step in z, and with sigma^2 =
 * sigma - sigma' both moments are those of the sum of a normal and a logistic number, which is
 * almost normal with variance v = sd^2 + pi^2 / 3:
 *
 *     E sigma = Phi(mean / sqrt v),    E sigma^2 = E sigma - phi(mean / sqrt v) / sqrt v */
#include "learn/logistic_normal.h"
#include <math.h>
#include <sleef.h>

enum { WIDE = 8, HALF = 64 };
#define LOGISTIC_VARIANCE 3.28986813369645287294 /* pi^2 / 3 */
#define ROOT_HALF 0.70710678118654752440
#define ROOT_2_PI 2.50662827463100050242

static double sigmoid(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

static double wide(double mean, double sd)
{
    const double root = sqrt(sd * sd + LOGISTIC_VARIANCE), z = mean / root;
    const double p = 0.5 * Sleef_cinz_erfcd1_u15purec(-z * ROOT_HALF);
    const double slope = Sleef_cinz_expd1_u10purec(-0.5 * z * z) / (ROOT_2_PI * root);
    return sqrt(fmax(0, p * (1 - p) - slope));
}

double logistic_normal_deviation(double mean, double sd)
{
    if (!(sd <= WIDE))
        return wide(mean, sd);
    double all = 0, first = 0, second = 0;
    const double centre = sigmoid(mean); /* moments about it lose no digits */
    for (int i = -HALF; i <= HALF; i++) {
        const double z = 8.0 * i / HALF;
        const double weight = Sleef_cinz_expd1_u10purec(-0.5 * z * z);
        const double away = sigmoid(mean + sd * z) - centre;
        all += weight;
        first += weight * away;
        second += weight * away * away;
    }
    return sqrt(fmax(0, second / all - (first / all) * (first / all)));
}
