/* ranks: 1 2 3 5 */
/* builds: float double */
/* Exact sums: for any number of ranks and any distribution of the terms, the total has the bits
 * that one rank gets by adding all terms; in shared memory and with messages. */
#include "base/memory.h"
#include "base/rng.h"
#include "learn/exact_sum.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;
static const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};

static void open_params(struct params *params, size_t n_rows)
{
    *params = (struct params){0};
    size_t panel = params_panel(params, n_rows, 20);
    params_tensor(params, &(struct tensor){"table", panel, 0, 20, 2, {n_rows, 20}, true});
    panel = params_panel(params, 1, 3);
    params_tensor(params, &(struct tensor){"row", panel, 0, 3, 1, {3}, false});
    params_allocate(params);
}

/* With COHORT_SHARED=no and without: ranks send messages, whole or in pieces, or read each
 * other's memory. */
static void in_all_ways(void (*test)(void))
{
    setenv("COHORT_SHARED", "no", 1);
    test();
    const size_t piece = exact_sum_piece;
    exact_sum_piece = 7;
    test();
    exact_sum_piece = piece;
    unsetenv("COHORT_SHARED");
    test();
}

/* Term k of place i: magnitudes so different that floating-point addition would lose some. */
static double term(uint32_t k, size_t i)
{
    const struct rng rng = {.seed = 5, .purpose = RNG_SIMULATE, .part = k};
    const double size = pow(10, (double)rng_below(&rng, (uint32_t)(2 * i), 12) - 5);
    return size * rng_normal(&rng, (uint32_t)(2 * i + 1));
}

/* The rank that holds term k in a round: one rank for all, round robin, or random. */
static int owner(int round, uint32_t k)
{
    const struct rng rng = {.seed = 6, .purpose = RNG_SIMULATE, .part = (uint32_t)round};
    return round == 0   ? world.size - 1
           : round == 1 ? (int)(k % (uint32_t)world.size)
                        : (int)rng_below(&rng, k, (uint64_t)world.size);
}

static void sum_wide(void)
{
    enum { N_TERMS = 40 };
    struct params params;
    open_params(&params, 7);
    struct exact_slices slices;
    exact_slices_create(&slices, &world, &params);
    struct tally tally, alone;
    tally_create(&tally, params.n, true, 20, &slices);
    tally_create(&alone, params.n, true, 20, NULL);
    real *values = NEW(real, params.n);
    for (int round = 0; round < 5; round++) {
        tally_clear(&tally);
        tally_clear(&alone);
        for (uint32_t k = 0; k < N_TERMS; k++) {
            for (size_t i = 0; i < params.n; i++)
                values[i] = (real)term(k, i);
            tally_add(&alone, 0, values, params.n);
            if (owner(round, k) != world.rank)
                continue;
            tally_add(&tally, 0, values, 48); /* in two parts */
            tally_add(&tally, 48, values + 48, params.n - 48);
        }
        exact_sum(&slices, &tally);
        for (size_t i = slices.cuts[world.rank]; i < slices.cuts[world.rank + 1]; i++)
            assert_int_equal(((int64_t *)tally.values)[i], ((int64_t *)alone.values)[i]);
        comm_barrier(&world); /* no rank clears what another still reads */
    }
    /* The total is the sum, to half a unit per term. */
    for (size_t i = 0; i < params.n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < N_TERMS; k++)
            sum += (double)(real)term(k, i);
        assert_true(fabs((double)((int64_t *)alone.values)[i] * tally_unit(&alone) - sum) <=
                    N_TERMS * (0.5 * tally_unit(&alone) + 1e-9));
    }
    assert_int_equal(alone.out_of_range, 0);
    memory_free(values);
    tally_destroy(&tally);
    tally_destroy(&alone);
    exact_slices_destroy(&slices);
    params_free(&params);
}

static void test_sum_64_bits(void **state)
{
    (void)state;
    in_all_ways(sum_wide);
}

static void sum_narrow(void)
{
    struct params params;
    open_params(&params, 1000);
    struct exact_slices slices;
    exact_slices_create(&slices, &world, &params);
    struct tally tally;
    tally_create(&tally, params.n, false, 8, &slices);
    for (int round = 0; round < 3; round++) {
        tally_clear(&tally);
        for (size_t i = 0; i < params.n; i++)
            ((int32_t *)tally.values)[i] =
                (world.rank % 2 ? -1 : 1) * (int32_t)(i * 1009 % 400000000u) + world.rank;
        exact_sum(&slices, &tally);
        for (size_t i = slices.cuts[world.rank]; i < slices.cuts[world.rank + 1]; i++) {
            int64_t expected = 0;
            for (int r = 0; r < world.size; r++)
                expected += (r % 2 ? -1 : 1) * (int64_t)(i * 1009 % 400000000u) + r;
            assert_int_equal(((int32_t *)tally.values)[i], expected);
        }
        comm_barrier(&world);
    }
    tally_destroy(&tally);
    exact_slices_destroy(&slices);
    params_free(&params);
}

static void test_sum_32_bits(void **state)
{
    (void)state;
    in_all_ways(sum_narrow);
}

/* If a vector is shorter than the number of ranks, some ranks own nothing. */
static void few_rows(void)
{
    struct params params;
    open_params(&params, 1);
    struct exact_slices slices;
    exact_slices_create(&slices, &world, &params);
    struct tally tally;
    tally_create(&tally, params.n, true, 4, &slices);
    real *ones = NEW(real, params.n);
    for (size_t i = 0; i < params.n; i++)
        ones[i] = 1;
    tally_add(&tally, 0, ones, params.n);
    exact_sum(&slices, &tally);
    for (size_t i = slices.cuts[world.rank]; i < slices.cuts[world.rank + 1]; i++)
        assert_int_equal(((int64_t *)tally.values)[i], 16 * world.size);
    exact_slices_share(&slices);
    memory_free(ones);
    tally_destroy(&tally);
    exact_slices_destroy(&slices);
    params_free(&params);
}

static void test_fewer_rows_than_ranks(void **state)
{
    (void)state;
    in_all_ways(few_rows);
}

static void test_slices_cover_everything(void **state)
{
    (void)state;
    struct params params;
    open_params(&params, 101);
    struct exact_slices slices, alone;
    exact_slices_create(&slices, &world, &params);
    assert_int_equal(slices.cuts[0], 0);
    assert_int_equal(slices.cuts[world.size], params.n);
    for (int r = 0; r < world.size; r++) {
        assert_true(slices.cuts[r] < slices.cuts[r + 1]);
        assert_int_equal(slices.cuts[r] % 32, 0);
    }
    exact_slices_destroy(&slices);
    exact_slices_create(&alone, &self, &params);
    assert_int_equal(alone.cuts[1], params.n);
    exact_slices_destroy(&alone);
    params_free(&params);
}

/* Numbers outside the range of a sum are skipped and counted. */
static void test_out_of_range(void **state)
{
    (void)state;
    struct tally tally;
    tally_create(&tally, WIDTH, true, 32, NULL);
    real values[WIDTH] = {0};
    values[0] = NAN;
    values[1] = INFINITY;
    values[2] = -INFINITY;
    values[3] = (real)0x1p21; /* 2^53 in units of 2^-32 */
    values[4] = (real)-0x1p21;
    values[5] = (real)0x1p20;
    values[6] = (real)-0x1p20;
    values[7] = 1;
    tally_add(&tally, 0, values, WIDTH);
    assert_int_equal(tally.out_of_range, 5);
    const int64_t *sums = tally.values;
    for (int i = 0; i < 5; i++)
        assert_int_equal(sums[i], 0);
    assert_true(sums[5] == INT64_C(1) << 52 && sums[6] == -(INT64_C(1) << 52));
    assert_true(sums[7] == INT64_C(1) << 32);
    for (int k = 1; k < 1000; k++)
        tally_add(&tally, 5, values + 5, 2);
    assert_true(sums[5] == 1000 * (INT64_C(1) << 52) && sums[6] == -sums[5]);
    tally_clear(&tally);
    assert_true(sums[5] == 0 && sums[7] == 0);
    tally_destroy(&tally);
}

/* For any number of expected terms, the largest accepted number can be added that often. */
static void test_many_terms(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 3, 1024, 5000, 70001};
    for (size_t k = 0; k < COUNT(counts); k++) {
        struct tally tally;
        tally_create(&tally, WIDTH, true, 32, NULL);
        tally_expect(&tally, counts[k]);
        const double limit = 0x1p30 / (double)counts[k];
        real values[WIDTH] = {(real)(limit * 0.999), (real)(-limit * 0.999),
                              (real)(limit * 1.001)};
        for (size_t i = 0; i < counts[k]; i++)
            tally_add(&tally, 0, values, WIDTH);
        const int64_t *sums = tally.values;
        const double sum = (double)counts[k] * (double)values[0] * 0x1p32;
        assert_true(sums[0] > 0 && fabs((double)sums[0] / sum - 1) < 1e-9);
        assert_true(sums[1] == -sums[0] && sums[2] == 0);
        assert_int_equal(tally.out_of_range, counts[k]);
        tally_destroy(&tally);
    }
}

/* Rounding is to the nearest unit, and halves to even. */
static void test_rounding(void **state)
{
    (void)state;
    struct tally tally;
    tally_create(&tally, WIDTH, true, 1, NULL);
    real values[WIDTH] = {0.25f, 0.75f, 1.25f, -0.25f, -0.75f, 0.24f, 0.26f, -1.25f};
    static const int64_t expected[WIDTH] = {0, 2, 2, 0, -2, 0, 1, -2};
    tally_add(&tally, 0, values, WIDTH);
    for (size_t i = 0; i < WIDTH; i++)
        assert_int_equal(((int64_t *)tally.values)[i], expected[i]);
    tally_destroy(&tally);
}

/* Each rank updates its slice of the parameters. Then every rank has all parameters, also after
 * the slices are freed. */
static void share(void)
{
    struct params params;
    open_params(&params, 50);
    for (size_t i = 0; i < params.n; i++)
        params.value[i] = (real)i;
    struct exact_slices slices;
    exact_slices_create(&slices, &world, &params);
    for (size_t i = 0; i < params.n; i++)
        assert_true(params.value[i] == (real)i);
    comm_barrier(&world);
    for (int round = 1; round < 4; round++) {
        for (size_t i = slices.cuts[world.rank]; i < slices.cuts[world.rank + 1]; i++)
            params.value[i] += 1000;
        exact_slices_share(&slices);
        for (size_t i = 0; i < params.n; i++)
            assert_true(params.value[i] == (real)(i + 1000 * (size_t)round));
        comm_barrier(&world); /* as exact_sum does before the next update */
    }
    exact_slices_destroy(&slices);
    for (size_t i = 0; i < params.n; i++)
        assert_true(params.value[i] == (real)(i + 3000));
    params_free(&params);
}

static void test_share_parameters(void **state)
{
    (void)state;
    in_all_ways(share);
}

/* Vectors of which each rank holds its slice (momentum): to rank 0 and back. */
static void test_collect_and_hand_out(void **state)
{
    (void)state;
    struct params params;
    open_params(&params, 33);
    struct exact_slices slices;
    exact_slices_create(&slices, &world, &params);
    real *flat = NEW(real, params.n);
    for (size_t i = 0; i < params.n; i++)
        flat[i] =
            i >= slices.cuts[world.rank] && i < slices.cuts[world.rank + 1] ? (real)i : -1;
    exact_slices_collect(&slices, flat);
    for (size_t i = 0; world.rank == 0 && i < params.n; i++) {
        assert_true(flat[i] == (real)i);
        flat[i] += 7;
    }
    exact_slices_hand_out(&slices, flat);
    for (size_t i = slices.cuts[world.rank]; i < slices.cuts[world.rank + 1]; i++)
        assert_true(flat[i] == (real)(i + 7));
    memory_free(flat);
    exact_slices_destroy(&slices);
    params_free(&params);
}

/* Numbers of any magnitude, including NaN, give the same sum in any order. */
static void test_numbers_of_any_magnitude(void **state)
{
    (void)state;
    const double numbers[] = {3, 1e300, -7, INFINITY, -INFINITY, NAN, -1e300, 1e300, 1e300, 5};
    int64_t forth = 0, back = 0, plain = 0;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        exact_sum_add(&forth, numbers[i]);
        exact_sum_add(&back, numbers[COUNT(numbers) - 1 - i]);
    }
    assert_int_equal(forth, back);
    exact_sum_add(&plain, 3);
    exact_sum_add(&plain, -1234567);
    assert_int_equal(plain, -1234564);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_any_magnitude),
        cmocka_unit_test(test_sum_64_bits),
        cmocka_unit_test(test_sum_32_bits),
        cmocka_unit_test(test_fewer_rows_than_ranks),
        cmocka_unit_test(test_slices_cover_everything),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_many_terms),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_share_parameters),
        cmocka_unit_test(test_collect_and_hand_out),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
