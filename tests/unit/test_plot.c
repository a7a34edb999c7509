/* Plots and pages: ticks, scales, escaped text, and what is drawn for unusual numbers. */
#include "base/fail.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static void test_ticks(void **state)
{
    (void)state;
    struct plot_ticks ticks;
    plot_ticks_between(&ticks, 0, 1, 7);
    assert_int_equal(ticks.n, 6);
    assert_int_equal(ticks.digits, 1);
    assert_true(ticks.value[0] == 0 && ticks.value[3] == 0.6 && ticks.value[5] == 1);
    plot_ticks_between(&ticks, 0.5512, 0.6067, 7);
    assert_int_equal(ticks.n, 5);
    assert_int_equal(ticks.digits, 2);
    assert_true(ticks.value[0] == 0.56 && ticks.value[4] == 0.6);
    plot_ticks_between(&ticks, -3, 4500, 8);
    assert_true(ticks.value[0] == 0 && !signbit(ticks.value[0]));
    assert_true(ticks.step == 1000 && ticks.digits == 0);
    plot_ticks_between(&ticks, 1e-9, 4e-9, 5);
    assert_true(ticks.n >= 3 && ticks.n <= 5);
}

/* For any range there are neither too many ticks nor too few, all inside and increasing. */
static void test_ticks_anywhere(void **state)
{
    (void)state;
    uint64_t word = 7;
    for (int trial = 0; trial < 2000; trial++) {
        double ends[2];
        for (int e = 0; e < 2; e++) {
            word = word * 6364136223846793005u + 1442695040888963407u;
            const double unit = (double)(word >> 11) / 0x1p53;
            ends[e] = (unit - 0.3) * pow(10, (double)(trial % 13) - 6);
        }
        double low = fmin(ends[0], ends[1]), high = fmax(ends[0], ends[1]);
        struct plot_ticks ticks;
        plot_ticks_between(&ticks, low, high, 7);
        assert_true(ticks.n >= 2 && ticks.n <= 7);
        for (size_t t = 0; t < ticks.n; t++) {
            assert_true(ticks.value[t] >= low - 1e-8 * (high - low));
            assert_true(ticks.value[t] <= high + 1e-8 * (high - low));
            assert_true(t == 0 || ticks.value[t] > ticks.value[t - 1]);
        }
        const double within[2] = {low, high};
        plot_round(&low, &high);
        assert_true(low <= within[0] + 1e-8 * (high - low));
        assert_true(high >= within[1] - 1e-8 * (high - low));
        assert_true(high - low < 3 * (within[1] - within[0]));
        plot_ticks_between(&ticks, low, high, 7);
        assert_true(fabs(ticks.value[0] - low) <= 1e-8 * (high - low));
        assert_true(fabs(ticks.value[ticks.n - 1] - high) <= 1e-8 * (high - low));
    }
}

static void test_scales(void **state)
{
    (void)state;
    struct plot_ticks ticks;
    assert_float_equal(plot_place(3, 1, 5, false), 0.5, 1e-15);
    assert_float_equal(plot_place(10, 1, 100, true), 0.5, 1e-15);
    plot_ticks_log(&ticks, 1, 100);
    assert_int_equal(ticks.n, 7);
    assert_true(ticks.value[1] == 2 && ticks.value[6] == 100);
    plot_ticks_log(&ticks, 1, 1e6);
    assert_int_equal(ticks.n, 7);
    assert_true(ticks.value[1] == 10);
    double low = 5, high = 5;
    plot_round(&low, &high);
    assert_true(low < 5 && high > 5);
    low = high = 0;
    plot_round(&low, &high);
    assert_true(low < 0 && high > 0);
    /* equal except for the last digit: multiples of the step are too large to count by one */
    low = 1;
    high = 1 + 0x1p-52;
    plot_ticks_between(&ticks, low, high, 7);
    assert_true(ticks.n <= 7);
    plot_round(&low, &high);
    assert_true(low < 0.9 && high > 1.1);
}

/* Ranges of any size have ticks, and ends stay finite whatever they were. */
static void test_huge_scales(void **state)
{
    (void)state;
    static const double ends[][2] = {
        {-1e30, 1e30}, {0, 3e38}, {-1e77, 2e60}, {-1e300, 1e300}, {1e30, 1e30}};
    struct plot_ticks ticks;
    for (size_t e = 0; e < COUNT(ends); e++) {
        double low = ends[e][0], high = ends[e][1];
        plot_round(&low, &high);
        assert_true(isfinite(low) && isfinite(high) && low < high);
        plot_ticks_between(&ticks, low, high, 7);
        assert_true(ticks.n >= 2 && ticks.n <= 7 && ticks.step > 0);
    }
    static const double beyond[][2] = {
        {-INFINITY, INFINITY}, {NAN, NAN}, {0, INFINITY}, {-DBL_MAX, DBL_MAX}};
    for (size_t b = 0; b < COUNT(beyond); b++) {
        double low = beyond[b][0], high = beyond[b][1];
        plot_round(&low, &high);
        assert_true(isfinite(high - low) && low < high);
    }
}

/* The text that `print` writes; caller frees. */
static char *printed(void (*print)(FILE *, const void *), const void *arg)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    print(out, arg);
    fclose(out);
    char *copy = memory_text("%s", text);
    free(text);
    return copy;
}

static void print_text(FILE *out, const void *arg)
{
    html_text(out, arg);
}

static void print_cut(FILE *out, const void *arg)
{
    html_cut(out, arg, 4);
}

static void check_text(void (*print)(FILE *, const void *), const char *text,
                       const char *expected)
{
    char *got = printed(print, text);
    assert_string_equal(got, expected);
    memory_free(got);
}

static void test_text(void **state)
{
    (void)state;
    check_text(print_text, "<b a=\"1\">'&", "&lt;b a=&quot;1&quot;&gt;&#39;&amp;");
    check_text(print_text, "naïve 学生 🎓", "naïve 学生 🎓");
    check_text(print_text,
               "a\xff\x80"
               "b",
               "a��b");                                       /* invalid UTF-8 */
    check_text(print_text, "\xc0\xaf\xed\xa0\x80", "�����");  /* overlong; lone surrogate */
    check_text(print_text, "\xe5\xad", "��");                 /* truncated */
    check_text(print_text, "a\x01\x7f\tb\xc2\x85", "a�� b�"); /* control characters */
    check_text(print_text,
               "a\u202e"
               "b",
               "a�b"); /* would turn the text after it */
    check_text(print_text, "95 % of 7", "95\u00a0% of 7");
    check_text(print_cut, "abcd", "abcd");
    check_text(print_cut, "abcde", "ab…e");
    check_text(print_cut, "学生学生", "学…");
    check_text(print_cut, "<<<<<", "&lt;…&lt;"); /* signs are wider than letters */
    assert_int_equal(html_columns("学生a"), 5);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(html_whole(9999).text, "9999");
    assert_string_equal(html_whole(10000).text, "10\u202f000");
    assert_string_equal(html_whole(-1234567).text, "−1\u202f234\u202f567");
    assert_string_equal(html_whole(INT64_MIN).text,
                        "−9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f808");
    assert_string_equal(html_short(0.123456).text, "0.1235");
    assert_string_equal(html_short(-2.5).text, "−2.5");
    assert_string_equal(html_short(NAN).text, "");
    assert_string_equal(html_fixed(2, -0.035).text, "−0.04");
    assert_string_equal(html_fixed(5, -0.000004).text, "0.00000");
}

static void print_plot(FILE *out, const void *arg)
{
    plot_draw(out, arg);
}

/* No number in a picture is NaN or infinite, and nothing lies outside. */
static void check_plot(const struct plot *plot)
{
    char *text = printed(print_plot, plot);
    assert_non_null(strstr(text, "</svg>"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    for (const char *at = text; (at = strstr(at, "cx=\"")) != NULL; at++) {
        const double x = atof(at + 4);
        assert_true(x >= 0 && x <= PLOT_WIDE);
    }
    memory_free(text);
}

static void test_plots(void **state)
{
    (void)state;
    const double x[] = {1, 2, NAN, 4, 5}, y[] = {0.5, INFINITY, 3, -2, 7},
                 low[] = {0, 0, 0, NAN, -1e300}, high[] = {1, 1, 1, 2, 1e300}, none[] = {NAN};
    const char *const names[] = {"<a>", "b", "c", "d", "e", "f"};
    static const enum plot_style styles[] = {PLOT_LINE, PLOT_POINTS, PLOT_BARS, PLOT_ROWS,
                                             PLOT_GUIDE};
    for (size_t s = 0; s < COUNT(styles); s++)
        for (int with = 0; with < 4; with++) {
            const struct plot_series series[] = {
                {.name = "one & all",
                 .style = styles[s],
                 .n = with == 3 ? 0 : COUNT(x),
                 .x = x,
                 .y = y,
                 .low = with == 1 ? low : NULL,
                 .high = high},
                {.style = styles[s], .colour = 9, .n = 1, .x = none, .y = none}};
            const struct plot plot = {
                .title = "\"quoted\"",
                .x = {.label = "x", .logarithmic = with == 2, .high = with == 1 ? 6 : 0},
                .y = {.label = "y",
                      .names = styles[s] == PLOT_ROWS ? names : NULL,
                      .n_names = COUNT(names),
                      .high = with == 1 ? 1 : 0},
                .series = series,
                .n_series = COUNT(series),
                .mark = 3,
                .mark_name = with == 0 ? "here" : NULL};
            check_plot(&plot);
        }
}

/* A change in the last digits is drawn level; one of a tenth is not. */
static void test_span(void **state)
{
    (void)state;
    const double x[] = {1, 2}, changes[] = {5e-6, 0.1};
    for (size_t c = 0; c < COUNT(changes); c++) {
        const double y[] = {0.6, 0.6 + changes[c]};
        const struct plot_series line = {.style = PLOT_LINE, .n = 2, .x = x, .y = y};
        char *text = printed(print_plot, &(struct plot){.title = "",
                                                        .x = {.label = "x"},
                                                        .y = {.label = "y"},
                                                        .series = &line,
                                                        .n_series = 1});
        double from = 0, to = 0;
        const char *path = strstr(text, "class=\"line\"");
        assert_int_equal(sscanf(strstr(path, " d=\"M"), " d=\"M%*f %lfL%*f %lf", &from, &to),
                         2);
        assert_true(c == 0 ? fabs(from - to) < 1 : from - to > 100);
        memory_free(text);
    }
}

/* A long name of a row is cut and is whole in its tooltip; the plot is no higher for it. */
static void test_long_names(void **state)
{
    (void)state;
    const char *const names[2][2] = {{"one", "two"},
                                     {"one", "a name of more columns than there are"}};
    const double x[] = {1, 2}, y[] = {0, 1};
    double height[2];
    for (size_t k = 0; k < 2; k++) {
        const struct plot_series rows = {.style = PLOT_ROWS, .n = 2, .x = x, .y = y};
        char *text = printed(print_plot, &(struct plot){.title = "",
                                                        .x = {.label = "x"},
                                                        .y = {.names = names[k], .n_names = 2},
                                                        .series = &rows,
                                                        .n_series = 1});
        assert_int_equal(sscanf(text, "<svg viewBox=\"0 0 420 %lf", &height[k]), 1);
        assert_true(
            (strstr(text, "<title>a name of more columns than there are</title>a name") !=
             NULL) == (k == 1));
        memory_free(text);
    }
    assert_true(height[0] == height[1]);
}

static void print_graph(FILE *out, const void *arg)
{
    const char *const names[] = {"a", "b<", "c"};
    plot_graph(out, "a graph", names, 3, arg, 0.5);
}

static void test_graph(void **state)
{
    (void)state;
    const double weight[9] = {1, 0.9, 0.1, 0.6, 1, 0, 0, 0.5, 1};
    char *text = printed(print_graph, weight);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "class=\"arrow\"")) != NULL; at++)
        n++;
    assert_int_equal(n, 3); /* without the loops from a node to itself */
    assert_non_null(strstr(text, "b&lt;"));
    memory_free(text);
}

static void print_ring(FILE *out, const void *arg)
{
    const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    plot_graph(out, "a ring", names, 6, arg, 0.5);
}

/* No edge begins or ends where another one does: their ends at a node are apart. */
static void test_graph_ends(void **state)
{
    (void)state;
    double weight[36] = {0}, x[16], y[16];
    for (size_t i = 0; i < 6;
         i++) /* each to the next but one, and all to b, which leads to a */
        weight[i * 6 + (i + 2) % 6] = weight[i * 6 + 1] = 1;
    weight[6] = 1;
    char *text = printed(print_ring, weight);
    size_t n = 0;
    const char *line = text;
    while ((line = strstr(line + 1, "class=\"line\"")) != NULL && n + 2 <= COUNT(x)) {
        const char *tip = strstr(line, "class=\"arrow\"");
        assert_int_equal(sscanf(strstr(line, " d="), " d=\"M%lf %lf", &x[n], &y[n]), 2);
        assert_int_equal(sscanf(strstr(tip, " d="), " d=\"M%lf %lf", &x[n + 1], &y[n + 1]), 2);
        n += 2;
    }
    assert_int_equal(n, COUNT(x));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hypot(x[i] - x[k], y[i] - y[k]) > 6);
    memory_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),      cmocka_unit_test(test_ticks_anywhere),
        cmocka_unit_test(test_scales),     cmocka_unit_test(test_huge_scales),
        cmocka_unit_test(test_text),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_plots),      cmocka_unit_test(test_graph),
        cmocka_unit_test(test_span),       cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_graph_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
