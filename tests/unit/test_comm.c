/* ranks: 1 2 3 5 */
/* Communication between ranks against the same computation in one process. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static struct comm world;

static void test_ranks(void **state)
{
    (void)state;
    assert_in_range(world.rank, 0, world.size - 1);
    assert_int_equal(log_muted(), world.rank != 0);
    int64_t seen[64] = {0};
    seen[world.rank] = 1;
    comm_sum_i64(&world, seen, COUNT(seen));
    for (int r = 0; r < (int)COUNT(seen); r++)
        assert_int_equal(seen[r], r < world.size);
}

static void test_sum_and_max(void **state)
{
    (void)state;
    enum { N = 100003 };
    int64_t *values = NEW(int64_t, N), *most = NEW(int64_t, N);
    double *high = NEW(double, N);
    for (int64_t j = 0; j < N; j++) {
        values[j] = (j << 40) + world.rank;
        most[j] = (j + world.rank) % world.size - 3;
        high[j] = (double)most[j] / 8;
    }
    comm_sum_i64(&world, values, N);
    comm_max_i64(&world, most, N);
    comm_max_double(&world, high, N);
    const int64_t size = world.size;
    for (int64_t j = 0; j < N; j++) {
        assert_int_equal(values[j], (j << 40) * size + size * (size - 1) / 2);
        assert_int_equal(most[j], size - 4);
        assert_true(high[j] == (double)(size - 4) / 8);
    }
    comm_sum_i64(&world, values, 0);
    int64_t negative = -5;
    comm_sum_i64(&world, &negative, 1);
    assert_int_equal(negative, -5 * size);
    memory_free(values);
    memory_free(most);
    memory_free(high);
}

/* Sums beyond 64 bits, of either sign. */
static void test_wide_sum(void **state)
{
    (void)state;
    const __int128 one = (__int128)1 << 90, size = world.size;
    __int128 values[] = {one + world.rank, -one - world.rank, world.rank % 2 ? one : -one, -1};
    comm_sum_i128(&world, values, COUNT(values));
    assert_true(values[0] == one * size + size * (size - 1) / 2);
    assert_true(values[1] == -values[0]);
    assert_true(values[2] == (size % 2 ? -one : 0));
    assert_true(values[3] == -size);
}

static void test_neighbours(void **state)
{
    (void)state;
    assert_int_equal(comm_neighbours(&world), world.size);
}

static void test_share_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"runs/a", "", NULL};
    for (size_t t = 0; t < COUNT(texts); t++) {
        const bool own = world.rank == 0 && texts[t] != NULL;
        char *text = comm_share_text(&world, own ? memory_text("%s", texts[t]) : NULL);
        if (texts[t] == NULL)
            assert_null(text);
        else
            assert_string_equal(text, texts[t]);
        memory_free(text);
    }
}

static void test_broadcast(void **state)
{
    (void)state;
    for (int root = 0; root < world.size; root++) {
        char words[1000] = "";
        if (world.rank == root)
            snprintf(words, sizeof words, "from rank %d", root);
        comm_broadcast(&world, words, sizeof words, root);
        char expected[32];
        snprintf(expected, sizeof expected, "from rank %d", root);
        assert_string_equal(words, expected);
        comm_broadcast(&world, NULL, 0, root);
    }
}

/* How many bytes rank r sends rank q in round `round`: often zero. */
static size_t n_bytes_to(int round, int r, int q)
{
    const struct rng rng = {.seed = 5,
                            .purpose = RNG_SIMULATE,
                            .part = (uint32_t)round,
                            .when = (uint32_t)r,
                            .who = (uint32_t)q};
    return rng_below(&rng, 0, 3) == 0 ? 0 : (size_t)rng_below(&rng, 1, round < 8 ? 10 : 200000);
}

static char byte_to(int r, int q, size_t b)
{
    return (char)(r * 31 + q * 7 + (int)(b % 101));
}

static void test_exchange(void **state)
{
    (void)state;
    const int size = world.size;
    for (int round = 0; round < 12; round++) {
        size_t *n_to = NEW(size_t, (size_t)size), n_all = 0, n_got = 0;
        for (int q = 0; q < size; q++)
            n_all += n_to[q] = n_bytes_to(round, world.rank, q);
        char *out = NEW_SCRATCH(char, n_all), *next = out;
        for (int q = 0; q < size; q++)
            for (size_t b = 0; b < n_to[q]; b++)
                *next++ = byte_to(world.rank, q, b);
        char *got = comm_exchange(&world, out, n_to, &n_got);
        size_t n = 0;
        for (int r = 0; r < size; r++)
            for (size_t b = 0; b < n_bytes_to(round, r, world.rank); b++, n++)
                assert_int_equal(got[n], byte_to(r, world.rank, b));
        assert_int_equal(n, n_got);
        memory_free(got);
        memory_free(out);
        memory_free(n_to);
    }
}

static void test_gather_and_scatter(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        const size_t n = n_bytes_to(round, world.rank, 0);
        char *own = NEW_SCRATCH(char, n), *back = NEW(char, n);
        for (size_t b = 0; b < n; b++)
            own[b] = byte_to(world.rank, 0, b);
        size_t n_all = 1;
        char *all = comm_gather(&world, own, n, &n_all);
        if (world.rank == 0) {
            size_t place = 0;
            for (int r = 0; r < world.size; r++)
                for (size_t b = 0; b < n_bytes_to(round, r, 0); b++, place++)
                    assert_int_equal(all[place], byte_to(r, 0, b));
            assert_int_equal(place, n_all);
        } else {
            assert_null(all);
        }
        comm_scatter(&world, all, back, n);
        assert_memory_equal(back, own, n);
        memory_free(all);
        memory_free(own);
        memory_free(back);
    }
}

static void test_split(void **state)
{
    (void)state;
    struct comm team;
    comm_split(&world, world.rank % 2, &team);
    assert_int_equal(team.rank, world.rank / 2);
    assert_int_equal(team.size, (world.size + 1 - world.rank % 2) / 2);
    int64_t sum = world.rank;
    comm_sum_i64(&team, &sum, 1);
    int64_t expected = 0;
    for (int r = world.rank % 2; r < world.size; r += 2)
        expected += r;
    assert_int_equal(sum, expected);
    comm_leave(&team);
}

static void test_agree_on_success(void **state)
{
    (void)state;
    fail_clear();
    assert_int_equal(comm_agree(&world, OK), OK);
    assert_string_equal(fail_sentence(), "");
}

static void test_agree_on_one_failure(void **state)
{
    (void)state;
    for (int r = 0; r < world.size; r++) {
        fail_clear();
        enum status status = OK;
        if (world.rank == r)
            status = fail(BAD_DATA, "rank %d: 100%% broken", r);
        assert_int_equal(comm_agree(&world, status), BAD_DATA);
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d: 100%% broken", r);
        assert_string_equal(fail_sentence(), expected);
    }
    fail_clear();
}

static void test_agree_on_a_text(void **state)
{
    (void)state;
    fail_clear();
    assert_int_equal(comm_agree_on(&world, "", "it"), OK);
    assert_int_equal(comm_agree_on(&world, "a\nb\n", "it"), OK);
    if (world.size == 1)
        return;
    const bool last = world.rank == world.size - 1;
    assert_int_equal(comm_agree_on(&world, last ? "a\nbee\nc" : "a\nbe\nc", "it"), BAD_IO);
    char expected[64];
    snprintf(expected, sizeof expected, "it: rank %d has 'bee' but rank 0 has 'be'",
             world.size - 1);
    assert_memory_equal(fail_sentence(), expected, strlen(expected));
    fail_clear();
    assert_int_equal(comm_agree_on(&world, last ? "a\n" : "a\nb", "it"), BAD_IO);
    fail_clear();
}

static void test_agree_on_the_lowest_of_many_failures(void **state)
{
    (void)state;
    for (int lowest = 0; lowest < world.size; lowest++) {
        fail_clear();
        enum status status = OK;
        if (world.rank >= lowest)
            status = fail(world.rank == lowest ? BAD_USER : BAD_IO, "from %d", world.rank);
        assert_int_equal(comm_agree(&world, status), BAD_USER);
        char expected[64];
        snprintf(expected, sizeof expected, "from %d", lowest);
        assert_string_equal(fail_sentence(), expected);
    }
    fail_clear();
}

static void test_agree_keeps_a_long_message(void **state)
{
    (void)state;
    fail_clear();
    enum status status = OK;
    if (world.rank == world.size - 1)
        status = fail(BAD_USER, "%01500d", 7);
    assert_int_equal(comm_agree(&world, status), BAD_USER);
    assert_int_equal(strlen(fail_sentence()), 1500);
    assert_int_equal(fail_sentence()[1499], '7');
    fail_clear();
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_sum_and_max),
        cmocka_unit_test(test_wide_sum),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_share_text),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_gather_and_scatter),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_agree_on_success),
        cmocka_unit_test(test_agree_on_one_failure),
        cmocka_unit_test(test_agree_on_a_text),
        cmocka_unit_test(test_agree_on_the_lowest_of_many_failures),
        cmocka_unit_test(test_agree_keeps_a_long_message),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
