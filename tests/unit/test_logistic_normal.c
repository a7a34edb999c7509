/* The deviation of a logistic-normal chance against Simpson's rule with many points. */
#include "learn/logistic_normal.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static double by_simpson(double mean, double sd)
{
    enum { N = 40000 };
    double all = 0, first = 0, second = 0;
    for (int i = 0; i <= N; i++) {
        const double z = 20.0 * i / N - 10;
        const double w = (i == 0 || i == N ? 1 : i % 2 == 1 ? 4 : 2) * exp(-0.5 * z * z);
        const double y = 1 / (1 + exp(-mean - sd * z));
        all += w;
        first += w * y;
        second += w * y * y;
    }
    first /= all;
    return sqrt(fmax(0, second / all - first * first));
}

static void test_against_simpson(void **state)
{
    (void)state;
    static const double means[] = {-30, -6, -2, -0.3, 0, 0.7, 3, 12};
    static const double narrow[] = {0, 1e-3, 0.1, 0.5, 1, 2, 4, 7.9}, wide[] = {8.1, 15, 100};
    for (size_t m = 0; m < sizeof means / sizeof *means; m++) {
        for (size_t s = 0; s < sizeof narrow / sizeof *narrow; s++)
            assert_true(fabs(logistic_normal_deviation(means[m], narrow[s]) -
                             by_simpson(means[m], narrow[s])) < 1e-7);
        for (size_t s = 0; s < sizeof wide / sizeof *wide; s++)
            assert_true(fabs(logistic_normal_deviation(means[m], wide[s]) -
                             by_simpson(means[m], wide[s])) < 2e-3);
    }
}

static void test_limits(void **state)
{
    (void)state;
    assert_true(logistic_normal_deviation(1, 0) < 1e-12);
    assert_true(fabs(logistic_normal_deviation(0, 1e6) - 0.5) < 1e-3);
    assert_true(logistic_normal_deviation(1e4, 3) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_simpson),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
