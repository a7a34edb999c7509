/* The mixed model's inner loops: their results, and the same bits on every instruction set. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/lme_kernels.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct lme_kernels_table lme_kernels_plain;
#ifdef __x86_64__
extern const struct lme_kernels_table lme_kernels_avx2, lme_kernels_avx512;
static const struct lme_kernels_table *const tables[N_ISAS] = {
    &lme_kernels_plain, &lme_kernels_avx2, &lme_kernels_avx512};
#else
static const struct lme_kernels_table *const tables[N_ISAS] = {
    &lme_kernels_plain, &lme_kernels_plain, &lme_kernels_plain};
#endif

/* Every length up to three vectors, and some around the places where products are flushed. */
static const size_t lengths[] = {0,  1,  2,  7,  8,  9,   15,  16,  17,   23,
                                 24, 25, 63, 64, 65, 799, 800, 801, 8001, 16003};
enum { MOST = 16003, ROOM = MOST + 8 };

struct numbers {
    double eta[ROOM], weight[ROOM], value[ROOM], matrix[ROOM], product[ROOM];
    uint8_t outcome[ROOM];
    uint32_t at[ROOM];
    int64_t fixed[ROOM];
};

/* Predictors of all magnitudes, ascending places with gaps, values below 1. */
static struct numbers *fill(size_t n)
{
    struct numbers *x = NEW(struct numbers, 1);
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .who = (uint32_t)n};
    for (uint32_t i = 0; i < ROOM; i++) {
        x->eta[i] = rng_normal(&rng, 4 * i) * (i % 7 == 0 ? 300 : 2);
        x->value[i] = rng_normal(&rng, 4 * i + 1);
        x->matrix[i] = rng_normal(&rng, 4 * i + 2);
        x->product[i] = (double)i;
        x->outcome[i] = rng_below(&rng, 4 * i + 3, 2) == 0;
        x->at[i] = n < MOST / 3 ? 3 * i + i % 2 : i;
        x->fixed[i] = (int64_t)i << 40;
    }
    return x;
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void expect_near(double a, double b, double slack)
{
    if (!(fabs(a - b) <= slack))
        fail_msg("%.17g instead of %.17g", a, b);
}

static void test_logistic(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        const size_t n = lengths[k];
        struct numbers *x = fill(n), *y = fill(n);
        const double loss = lme_kernels->logistic(x->eta, x->outcome, x->weight, n);
        double expected = 0;
        for (size_t i = 0; i < n; i++) {
            const double eta = y->eta[i], p = 1 / (1 + exp(-eta));
            expected += softplus(y->outcome[i] ? -eta : eta);
            expect_near(x->eta[i], p - y->outcome[i], 1e-15);
            expect_near(x->weight[i], exp(-fabs(eta)) / pow(1 + exp(-fabs(eta)), 2), 1e-15);
        }
        expect_near(loss, expected, 1e-13 * (1 + expected));
        for (size_t i = n; i < n + 8; i++) /* nothing after the end changes */
            assert_true(x->eta[i] == y->eta[i] && x->weight[i] == 0);
        memory_free(x);
        memory_free(y);
    }
}

static void test_slope(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        const size_t n = lengths[k];
        struct numbers *x = fill(n);
        double sums[2], expected[2] = {0};
        lme_kernels->slope(x->eta, x->outcome, n, 0.7, sums);
        for (size_t i = 0; i < n; i++) {
            const double p = 1 / (1 + exp(-x->eta[i] - 0.7));
            expected[0] += p - x->outcome[i];
            expected[1] += p * (1 - p);
        }
        expect_near(sums[0], expected[0], 1e-14 * (double)(n + 1));
        expect_near(sums[1], expected[1], 1e-14 * (double)(n + 1));
        memory_free(x);
    }
}

/* Half a unit is rounded to even, for either sign. */
static void test_add(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        const size_t n = lengths[k];
        struct numbers *x = fill(n), *y = fill(n);
        for (int sign = -1; sign <= 1; sign += 2) {
            const double scale = sign * (k % 2 == 0 ? 0x1p45 : 0.5);
            for (size_t i = 0; k % 2 == 1 && i < n; i++)
                x->value[i] = (double)(i % 9);
            lme_kernels->add(x->fixed, x->at, x->value, n, scale);
            for (size_t i = 0; i < n; i++)
                y->fixed[x->at[i]] += (int64_t)rint(scale * x->value[i]);
            assert_memory_equal(x->fixed, y->fixed, sizeof x->fixed);
        }
        memory_free(x);
        memory_free(y);
    }
}

static void test_multiply(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        const size_t n = lengths[k];
        struct numbers *x = fill(n), *y = fill(n);
        const double sum =
            lme_kernels->multiply(x->matrix, x->at, x->value, n, 1.5, x->product);
        double expected = 0;
        for (size_t i = 0; i < n; i++) {
            expected += y->matrix[y->at[i]] * y->value[i];
            assert_true(x->product[i] == y->product[i] + 1.5 * y->matrix[y->at[i]]);
        }
        expect_near(sum, expected, 1e-14 * (double)(n + 1));
        assert_memory_equal(x->product + n, y->product + n, (ROOM - n) * sizeof *x->product);
        memory_free(x);
        memory_free(y);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int isa = ISA_PLAIN + 1; isa < N_ISAS; isa++) {
        if (!machine_has((enum isa)isa))
            continue;
        for (size_t k = 0; k < COUNT(lengths); k++) {
            const size_t n = lengths[k];
            double losses[2], dots[2], slopes[2][2];
            struct numbers *x[2];
            for (int side = 0; side < 2; side++) {
                const struct lme_kernels_table *table = tables[side == 0 ? ISA_PLAIN : isa];
                x[side] = fill(n);
                table->slope(x[side]->eta, x[side]->outcome, n, -0.2, slopes[side]);
                losses[side] =
                    table->logistic(x[side]->eta, x[side]->outcome, x[side]->weight, n);
                table->add(x[side]->fixed, x[side]->at, x[side]->value, n, 0x1p47);
                dots[side] = table->multiply(x[side]->matrix, x[side]->at, x[side]->value, n,
                                             0.3, x[side]->product);
            }
            assert_memory_equal(x[0], x[1], sizeof *x[0]);
            assert_memory_equal(slopes[0], slopes[1], sizeof slopes[0]);
            assert_true(losses[0] == losses[1] && dots[0] == dots[1]);
            memory_free(x[0]);
            memory_free(x[1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logistic),  cmocka_unit_test(test_slope),
        cmocka_unit_test(test_add),       cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
