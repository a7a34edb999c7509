/* Dense symmetric systems: the factor multiplied by its transpose is the matrix, solutions
 * solve the system, and a matrix that is not positive definite is detected. */
#include "base/memory.h"
#include "base/rng.h"
#include "learn/cholesky.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* S S^T + 1 for a random S, stored as a matrix of n rows. */
static double *random_matrix(size_t n)
{
    const size_t order = cholesky_order(n);
    double *matrix = NEW(double, order *order), *s = NEW(double, n *n);
    const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .part = (uint32_t)n};
    for (size_t i = 0; i < n * n; i++)
        s[i] = rng_normal(&rng, (uint32_t)i);
    for (size_t i = 0; i < order; i++)
        for (size_t j = 0; j <= i; j++) {
            double x = i == j;
            for (size_t k = 0; i < n && k < n; k++)
                x += s[i * n + k] * s[j * n + k];
            matrix[i * order + j] = x;
        }
    memory_free(s);
    return matrix;
}

static void test_factor(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n += n < 10 ? 1 : 7) {
        const size_t order = cholesky_order(n);
        double *matrix = random_matrix(n), *factor = NEW(double, order *order);
        memcpy(factor, matrix, order * order * sizeof *matrix);
        assert_true(cholesky_factor(factor, order));
        for (size_t i = 0; i < order; i++)
            for (size_t j = 0; j <= i; j++) {
                double x = 0;
                for (size_t k = 0; k <= j; k++)
                    x += factor[i * order + k] * factor[j * order + k];
                assert_true(fabs(x - matrix[i * order + j]) < 1e-12 * (double)n * (double)n);
            }
        double *vector = NEW(double, order);
        for (size_t i = 0; i < n; i++)
            vector[i] = (double)i - 3;
        cholesky_solve(factor, order, vector);
        for (size_t i = 0; i < n; i++) {
            double x = 0;
            for (size_t k = 0; k < n; k++)
                x += matrix[(i > k ? i : k) * order + (i > k ? k : i)] * vector[k];
            assert_true(fabs(x - ((double)i - 3)) < 1e-9);
        }
        for (size_t i = n; i < order; i++)
            assert_true(vector[i] == 0);
        memory_free(matrix);
        memory_free(factor);
        memory_free(vector);
    }
}

static void test_not_positive_definite(void **state)
{
    (void)state;
    enum { N = 11 };
    static const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t k = 0; k < COUNT(bad); k++)
        for (size_t i = 0; i < N; i++) {
            double *matrix = random_matrix(N);
            matrix[i * cholesky_order(N) + i] = bad[k];
            assert_false(cholesky_factor(matrix, cholesky_order(N)));
            memory_free(matrix);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_factor),
                                       cmocka_unit_test(test_not_positive_definite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
