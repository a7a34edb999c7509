/* The logistic model of an item, as cohort writes it (models/vae/vae.c),
 *
 *     P(theta) = sigma(a theta - b)
 *
 * has its middle, P = 1/2, at theta = b / a. An answer tells most about abilities near there.
 * Fisher's information of one answer is
 *
 *     I(theta) = P'^2 / (P (1 - P)) = a^2 P (1 - P)
 *
 * at most a^2 / 4. Answers of one student are independent given theta, so the information of a
 * test is the sum over its items, and the standard error of measurement is
 *
 *     SE(theta) = 1 / sqrt(sum over items of I)
 *
 * (Birnbaum 1968). A Rasch model, logit P = theta - b, has a = 1 for all items. */
#include "report/information.h"
#include <math.h>
#include <sleef.h>

double information_chance(double a, double b, double theta)
{
    const double x = a * theta - b, e = Sleef_cinz_expd1_u10purec(-fabs(x));
    return (x > 0 ? 1 : e) / (1 + e);
}

double information_item(double a, double b, double theta)
{
    const double p = information_chance(a, b, theta);
    return a * a * p * (1 - p);
}

double information_test(const double *a, const double *b, size_t n, double theta)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += information_item(a[i], b[i], theta);
    return sum;
}

double information_error(double information)
{
    return information > 0 ? 1 / sqrt(information) : INFINITY;
}

double information_place(double a, double b)
{
    return a > 0 ? b / a : NAN;
}
