/* A probability outside 0 to 1 is a bug in cohort, and ends the program as one. */
#include "forked.h"
#include "learn/metrics.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Nothing is freed on the way out. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static float probability;

static void score_it(void)
{
    struct comm world;
    int argc = 0;
    char **argv = NULL;
    comm_start(&world, &argc, &argv);
    const struct prediction one = {.probability = probability, .correct = true};
    struct score score;
    metrics_score(&world, &one, 1, &score);
    comm_finish(&world);
}

static void test_range(void **state)
{
    (void)state;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, -1e-30f, 1.0000001f, 2};
    const float good[] = {0, -0.0f, 1e-45f, 1};
    char words[4096];
    for (size_t j = 0; j < COUNT(bad); j++) {
        probability = bad[j];
        assert_int_equal(forked_end(score_it, words, sizeof words), OUR_BUG);
        assert_non_null(strstr(words, "this should always hold"));
    }
    for (size_t j = 0; j < COUNT(good); j++) {
        probability = good[j];
        assert_int_equal(forked_end(score_it, words, sizeof words), OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
