/* Random numbers: the published vectors of Philox4x32-10, then distributions. The bounds are at
 * least five standard errors wide, and random numbers depend only on their names, so results
 * never vary. */
#include "base/memory.h"
#include "base/rng.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 200000 };

static void test_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t j = 0; j < COUNT(known); j++) {
        const struct rng rng = {.seed = (uint64_t)known[j].key[1] << 32 | known[j].key[0],
                                .purpose = (enum rng_purpose)(known[j].counter[3] >> 24),
                                .part = known[j].counter[3] & 0xffffff,
                                .when = known[j].counter[1],
                                .who = known[j].counter[2]};
        uint32_t words[4] = {0};
        rng_words(&rng, known[j].counter[0], words);
        for (int w = 0; w < 4; w++)
            assert_int_equal(words[w], known[j].words[w]);
    }
}

static int compare_bits(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every part of a name matters: a grid of neighbouring names gives no number twice. */
static void test_names_differ(void **state)
{
    (void)state;
    enum { SIDE = 6, N_NAMES = SIDE * SIDE * SIDE * SIDE * SIDE * SIDE };
    uint64_t *bits = NEW_SCRATCH(uint64_t, N_NAMES);
    for (uint32_t j = 0; j < N_NAMES; j++) {
        uint32_t digit[6], rest = j;
        for (int d = 0; d < 6; d++, rest /= SIDE)
            digit[d] = rest % SIDE;
        const struct rng rng = {.seed = digit[0] % 2 ? (uint64_t)digit[0] << 32 : digit[0],
                                .purpose = (enum rng_purpose)digit[1],
                                .part = digit[2],
                                .when = digit[3],
                                .who = digit[4]};
        bits[j] = rng_bits(&rng, digit[5]);
        assert_int_equal(bits[j], rng_bits(&rng, digit[5]));
    }
    qsort(bits, N_NAMES, sizeof *bits, compare_bits);
    for (uint32_t j = 1; j < N_NAMES; j++)
        assert_true(bits[j] != bits[j - 1]);
    memory_free(bits);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance between the distribution of the sorted values and a known one. */
static double kolmogorov(double *values, double (*distribution)(double))
{
    qsort(values, N, sizeof *values, compare);
    double most = 0;
    for (int j = 0; j < N; j++) {
        const double f = distribution(values[j]);
        most = fmax(most, fmax(f - (double)j / N, (double)(j + 1) / N - f));
    }
    return most;
}

static double uniform_distribution(double x)
{
    return x;
}

static double normal_distribution(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

/* Fill `values` from names that differ in one part only: 0 index, 1 who, 2 when, 3 seed. */
static void fill(double *values, int varying, double (*number)(const struct rng *, uint32_t))
{
    for (uint32_t j = 0; j < N; j++) {
        const struct rng rng = {.seed = varying == 3 ? j : 11,
                                .purpose = RNG_SIMULATE,
                                .when = varying == 2 ? j : 3,
                                .who = varying == 1 ? j : 5};
        values[j] = number(&rng, varying == 0 ? j : 2);
    }
}

static double moment(const double *values, double centre, int power)
{
    double sum = 0;
    for (int j = 0; j < N; j++)
        sum += pow(values[j] - centre, power);
    return sum / N;
}

/* Correlation of neighbours. */
static double lagged(const double *values, double centre)
{
    double sum = 0;
    for (int j = 1; j < N; j++)
        sum += (values[j] - centre) * (values[j - 1] - centre);
    return sum / (N - 1) / moment(values, centre, 2);
}

static void test_uniform(void **state)
{
    (void)state;
    double *values = NEW_SCRATCH(double, N);
    const double error = 1 / sqrt(N);
    for (int varying = 0; varying < 4; varying++) {
        fill(values, varying, rng_uniform);
        for (int j = 0; j < N; j++)
            assert_true(values[j] > 0 && values[j] < 1);
        assert_true(fabs(moment(values, 0.5, 1)) < 5 * error * sqrt(1.0 / 12));
        assert_true(fabs(moment(values, 0.5, 2) - 1.0 / 12) < 5 * error * sqrt(1.0 / 180));
        assert_true(fabs(lagged(values, 0.5)) < 5 * error);
        assert_true(kolmogorov(values, uniform_distribution) < 2.2 * error);
    }
    memory_free(values);
}

static void test_normal(void **state)
{
    (void)state;
    double *values = NEW_SCRATCH(double, N);
    const double error = 1 / sqrt(N);
    for (int varying = 0; varying < 4; varying++) {
        fill(values, varying, rng_normal);
        assert_true(fabs(moment(values, 0, 1)) < 5 * error);
        assert_true(fabs(moment(values, 0, 2) - 1) < 5 * error * sqrt(2));
        assert_true(fabs(moment(values, 0, 3)) < 5 * error * sqrt(15));
        assert_true(fabs(moment(values, 0, 4) - 3) < 5 * error * sqrt(96));
        assert_true(fabs(lagged(values, 0)) < 5 * error);
        assert_true(kolmogorov(values, normal_distribution) < 2.2 * error);
        assert_true(values[0] < -3.9 && values[N - 1] > 3.9 && values[N - 1] < 7);
    }
    memory_free(values);
}

static void test_integers_below_a_limit(void **state)
{
    (void)state;
    const struct rng rng = {.seed = 1, .purpose = RNG_SPLIT};
    const uint64_t limits[] = {1, 2, 3, 10, 1000, UINT64_C(1) << 33, UINT64_MAX};
    for (size_t l = 0; l < COUNT(limits); l++) {
        uint64_t most = 0;
        for (uint32_t j = 0; j < 5000; j++) {
            const uint64_t value = rng_below(&rng, j, limits[l]);
            assert_true(value < limits[l]);
            most = value > most ? value : most;
        }
        assert_true(most >= (limits[l] - 1) / 100 * 99); /* up to the end of the range */
    }
    int64_t seen[7] = {0};
    for (uint32_t j = 0; j < 70000; j++)
        seen[rng_below(&rng, j, 7)]++;
    double chi = 0;
    for (int v = 0; v < 7; v++)
        chi += (double)((seen[v] - 10000) * (seen[v] - 10000)) / 10000;
    assert_true(chi < 35); /* 6 degrees of freedom: once in 200 000 */
}

static void test_order_is_a_permutation(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 2, 3, 1000, 70001};
    for (size_t z = 0; z < COUNT(sizes); z++) {
        const size_t n = sizes[z];
        const struct rng rng = {.seed = 9, .purpose = RNG_ORDER, .when = (uint32_t)z};
        uint32_t *order = NEW_SCRATCH(uint32_t, n), *again = NEW_SCRATCH(uint32_t, n);
        bool *seen = NEW(bool, n);
        rng_order(&rng, order, n);
        rng_order(&rng, again, n);
        size_t n_still = 0;
        for (size_t i = 0; i < n; i++) {
            assert_true(order[i] < n);
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            assert_int_equal(order[i], again[i]);
            n_still += order[i] == i;
        }
        assert_true(n < 10 || n_still < 10); /* on average one stays where it was */
        memory_free(order);
        memory_free(again);
        memory_free(seen);
    }
}

static void test_orders_are_equally_likely(void **state)
{
    (void)state;
    enum { N_ORDERS = 24, N_DRAWS = 48000 };
    int64_t seen[4 * 4 * 4 * 4] = {0};
    for (uint32_t when = 0; when < N_DRAWS; when++) {
        const struct rng rng = {.seed = 2, .purpose = RNG_ORDER, .when = when};
        uint32_t order[4];
        rng_order(&rng, order, 4);
        seen[order[0] + 4 * order[1] + 16 * order[2] + 64 * order[3]]++;
    }
    double chi = 0;
    int n_orders = 0;
    for (size_t v = 0; v < COUNT(seen); v++)
        if (seen[v] > 0) {
            const double gap = (double)seen[v] - (double)N_DRAWS / N_ORDERS;
            chi += gap * gap / ((double)N_DRAWS / N_ORDERS);
            n_orders++;
        }
    assert_int_equal(n_orders, N_ORDERS);
    assert_true(chi < 65); /* 23 degrees of freedom: once in 100 000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_names_differ),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_integers_below_a_limit),
        cmocka_unit_test(test_order_is_a_permutation),
        cmocka_unit_test(test_orders_are_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
