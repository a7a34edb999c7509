/* The arithmetic of the report's curves: information and standard errors of items against cases
 * computed by hand, counts of practice against a plain recount, and lines of long names. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/information.h"
#include "report/practice.h"
#include "report/report_internal.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double expected, double got)
{
    if (!(fabs(expected - got) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g instead of %.17g", got, expected);
}

/* a = 2, b = 1: half right at 0.5, where the information is a^2 / 4 = 1. At theta = 0.5 + ln(3)
 * / 2 the logit is ln 3, so P = 3/4 and the information 4 * 3/16 = 3/4. */
static void test_items(void **state)
{
    (void)state;
    assert_near(0.5, information_place(2, 1));
    assert_near(0.5, information_chance(2, 1, 0.5));
    assert_near(1, information_item(2, 1, 0.5));
    const double up = 0.5 + log(3) / 2, down = 0.5 - log(3) / 2;
    assert_near(0.75, information_chance(2, 1, up));
    assert_near(0.25, information_chance(2, 1, down));
    assert_near(0.75, information_item(2, 1, up));
    assert_near(0.75, information_item(2, 1, down));
    /* An item whose chance falls tells as much, but has no place on the scale. */
    assert_near(0.75, information_item(-2, -1, up));
    assert_true(isnan(information_place(-2, -1)) && isnan(information_place(0, 1)));
    /* Far away there is nothing to learn, and no overflow. */
    assert_true(information_item(2, 1, 1e6) == 0 && information_item(2, 1, -1e6) == 0);
    assert_true(information_chance(2, 1, 1e6) == 1 && information_chance(2, 1, -1e6) == 0);
}

/* At theta = 0: a = 2, b = 0 gives 1; a = 1, b = 0 gives 1/4; a = 1, b = ln 3 gives 3/16. The sum
 * is 23/16, the standard error 4 / sqrt(23). */
static void test_tests(void **state)
{
    (void)state;
    const double a[] = {2, 1, 1}, b[] = {0, 0, log(3)};
    assert_near(23.0 / 16, information_test(a, b, 3, 0));
    assert_near(4 / sqrt(23), information_error(information_test(a, b, 3, 0)));
    assert_true(information_test(a, b, 0, 0) == 0);
    assert_true(isinf(information_error(0)));
}

/* Information is the slope of P squared over its variance. */
static void test_slopes(void **state)
{
    (void)state;
    for (int k = -20; k <= 20; k++) {
        const double a = 0.3 + 0.1 * abs(k), b = 0.2 * k, theta = 0.17 * k, h = 1e-5;
        const double p = information_chance(a, b, theta),
                     slope = (information_chance(a, b, theta + h) -
                              information_chance(a, b, theta - h)) /
                             (2 * h);
        assert_true(fabs(information_item(a, b, theta) - slope * slope / (p * (1 - p))) < 1e-8);
    }
}

/* Items 0 and 1 have skill 0 and skill 1, item 2 has both. */
static const uint32_t skills[] = {0, 1, 0, 1};
static const struct {
    size_t first, n;
} of_item[] = {{0, 1}, {1, 1}, {2, 2}};

static size_t things(const void *arg, uint64_t t, const uint32_t **list)
{
    const struct shard *shard = arg;
    *list = skills + of_item[shard->item[t]].first;
    return of_item[shard->item[t]].n;
}

static void test_practice(void **state)
{
    (void)state;
    /* Two students. The first: item 0 right, item 2 wrong, item 1 not known, item 0 right but
     * not scored, item 0 wrong. The second: item 1 wrong. */
    uint64_t first[] = {0, 5, 6};
    uint32_t item[] = {0, 2, 1, 0, 0, 1};
    const enum outcome outcome[] = {CORRECT, INCORRECT, UNKNOWN, CORRECT, INCORRECT, INCORRECT};
    uint8_t mark[6];
    for (size_t t = 0; t < 6; t++)
        mark[t] = mark_make(outcome[t], TEST, true, true);
    const float chance[] = {0.5f, 0.25f, 0.5f, NAN, 0.75f, 0.125f};
    struct shard shard = {
        .n_students = 2, .n_attempts = 6, .first = first, .item = item, .mark = mark};
    const struct practice_source source = {
        .shard = &shard, .chance = chance, .n_things = 2, .things = things, .arg = &shard};
    int64_t n[2] = {0};
    practice_answers(&source, n);
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 2);
    struct practice_point points[2][PRACTICE_POINTS] = {0};
    const uint32_t slot[] = {1, UINT32_MAX};
    practice_count(&source, slot, points[0]);
    /* Skill 0: attempt 1 right, 2 wrong, 3 not scored, 4 wrong. */
    static const int expected_n[] = {1, 1, 0, 1}, expected_right[] = {1, 0, 0, 0};
    static const double expected_chance[] = {0.5, 0.25, 0, 0.75};
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(points[1][k].n, expected_n[k]);
        assert_int_equal(points[1][k].right, expected_right[k]);
        assert_int_equal(points[1][k].chance, (int64_t)(expected_chance[k] * 0x1p30));
    }
    /* Skill 1 adds two first attempts, both wrong; its second one is not known. */
    assert_int_equal(points[0][0].n, 3);
    assert_int_equal(points[0][0].right, 1);
    assert_int_equal(points[0][0].chance, (int64_t)(0.875 * 0x1p30));
    assert_int_equal(points[0][1].n, 1);
    assert_int_equal(practice_length(points[1], 1), 2);
    assert_int_equal(practice_length(points[0], 2), 1);
}

static void test_rise(void **state)
{
    (void)state;
    struct practice_point points[PRACTICE_POINTS] = {0};
    for (size_t k = 0; k < PRACTICE_POINTS; k++)
        points[k] = (struct practice_point){.n = 10, .right = (int64_t)(k < 8 ? k : 8)};
    /* Of 7 points, the last three have 4 + 5 + 6 of 30, the first three 0 + 1 + 2. */
    assert_near(0.4, practice_rise(points, 7));
    assert_near(0.2, practice_rise(points, 4));
    assert_true(isnan(practice_rise(points, 1)));
    /* Wilson's interval of 5 of 10 is symmetric; of 0 of 10 it ends at z^2 / (n + z^2). */
    double low = 0, high = 0;
    report_wilson(0.5, 10, &low, &high);
    assert_near(1, low + high);
    assert_true(low > 0.23 && low < 0.24);
    report_wilson(0, 10, &low, &high);
    assert_near(0, low);
    const double z = 1.959964;
    assert_near(z * z / (10 + z * z), high);
}

/* A mastery below a bar is not shown as the bar. */
static void test_percent(void **state)
{
    (void)state;
    const struct report_rule chance = report_rule_of(false), knows = report_rule_of(true);
    static const struct {
        double mastery;
        int percent;
    } cases[] = {{0.7494, 74}, {0.74999, 74}, {0.75, 75},  {0.754, 75},
                 {0.756, 76},  {0.4951, 49},  {0.5, 50},   {0.494, 49},
                 {0, 0},       {1, 100},      {0.8494, 85}};
    for (size_t k = 0; k < COUNT(cases); k++)
        assert_int_equal(report_rule_percent(&chance, cases[k].mastery), cases[k].percent);
    assert_int_equal(report_rule_percent(&knows, 0.8499), 84);
    assert_int_equal(report_rule_percent(&knows, 0.85), 85);
    assert_int_equal(report_rule_percent(&knows, 0.7499), 75);
}

/* A name is broken after spaces, or inside a long word, and never inside a character. */
static void test_break(void **state)
{
    (void)state;
    assert_int_equal(html_break("short", 10), 5);
    assert_int_equal(html_break("two words", 5), 4);
    assert_int_equal(html_break("two words", 9), 9);
    assert_int_equal(html_break("words and more", 5), 6);
    assert_int_equal(html_break("abcdefghij", 4), 4);
    assert_int_equal(html_break("\xc3\xa4\xc3\xb6\xc3\xbc", 2), 4);
    assert_int_equal(html_break("\xe7\xac\xac\xe4\xb8\x80", 1), 3);
    assert_int_equal(html_break("\xff\xfe", 1), 1);
    assert_int_equal(html_break("", 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),  cmocka_unit_test(test_tests),
        cmocka_unit_test(test_slopes), cmocka_unit_test(test_practice),
        cmocka_unit_test(test_rise),   cmocka_unit_test(test_percent),
        cmocka_unit_test(test_break),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
