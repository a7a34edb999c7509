/* Designs of sweeps: which trials there are, their ids, and the rungs of halving. */
#include "base/fail.h"
#include "base/memory.h"
#include "sweep/sweep.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void open_sweep(struct sweep *sweep, const char *lines)
{
    struct config *config = config_create();
    char *text = memory_text("[data]\nfile = none.h5\n[run]\ndirectory = none\n[model]\n"
                             "kind = rbm\n%s",
                             lines);
    assert_int_equal(config_read_text(config, text, "test"), OK);
    memory_free(text);
    if (sweep_create(sweep, config) != OK)
        fail_msg("%s", fail_sentence());
}

static void test_grid_design(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"5", "0.001"}, {"5", "0.01"}, {"5", "0.1"},
                                              {"7", "0.001"}, {"7", "0.01"}, {"7", "0.1"}};
    struct sweep sweep;
    open_sweep(&sweep, "hidden = {5, 7}\n[optimizer]\nrate = log(0.001, 0.1, 3)\n");
    assert_int_equal(sweep.n_trials, 6);
    for (size_t t = 0; t < 6; t++)
        for (size_t d = 0; d < 2; d++)
            assert_string_equal(sweep.trials[t].values[d], expected[t][d]);
    struct settings settings;
    assert_int_equal(sweep_settings(&sweep, 4, 12, &settings), OK);
    assert_int_equal(settings.train.epochs, 12);
    assert_true(settings.optimizer.rate == 0.01);
    assert_non_null(strstr(settings.run.directory, sweep.trials[4].id));
    settings_destroy(&settings);
    sweep_destroy(&sweep);
}

/* A trial keeps its id when the lists grow, when it is trained longer, and at any position. */
static void test_trial_ids(void **state)
{
    (void)state;
    struct sweep small, large, other;
    open_sweep(&small, "hidden = {5, 7}\n[train]\nepochs = 3\n");
    open_sweep(&large, "hidden = {3, 5, 6, 7}\n[train]\nepochs = 9\n");
    open_sweep(&other, "hidden = {5, 7}\ncopies = 3\n");
    assert_string_equal(small.trials[0].id, large.trials[1].id);
    assert_string_equal(small.trials[1].id, large.trials[3].id);
    assert_string_not_equal(small.trials[0].id, small.trials[1].id);
    assert_string_not_equal(small.trials[0].id, other.trials[0].id);
    sweep_destroy(&small);
    sweep_destroy(&large);
    sweep_destroy(&other);
}

/* Of 64 points, each bin of a coordinate, and each of 2 x 3 cells of both, has its share. */
static void test_halton_design(void **state)
{
    (void)state;
    struct sweep sweep;
    open_sweep(&sweep, "[optimizer]\nrate = uniform(0, 1)\nmomentum = uniform(0, 0.9)\n"
                       "[sweep]\ndesign = halton\ntrials = 64\n");
    int bins[2][8] = {{0}}, fields[2][3] = {{0}};
    for (size_t t = 0; t < 64; t++) {
        const double x = strtod(sweep.trials[t].values[0], NULL),
                     y = strtod(sweep.trials[t].values[1], NULL) / 0.9;
        assert_true(x >= 0 && x < 1 && y >= 0 && y < 1);
        bins[0][(int)(8 * x)]++;
        bins[1][(int)(8 * y)]++;
        fields[(int)(2 * x)][(int)(3 * y)]++;
    }
    for (int b = 0; b < 8; b++)
        for (int d = 0; d < 2; d++)
            assert_true(bins[d][b] >= 7 && bins[d][b] <= 9);
    for (int i = 0; i < 6; i++)
        assert_true(fields[i / 3][i % 3] >= 8 && fields[i / 3][i % 3] <= 14);
    sweep_destroy(&sweep);
}

static void test_random_design(void **state)
{
    (void)state;
    static const char lines[] = "hidden = log(1, 1000)\ncopies = {1, 2}\n[sweep]\n"
                                "design = random\ntrials = 300\nseed = %d\n";
    struct sweep sweeps[3];
    for (int i = 0; i < 3; i++) {
        char *text = memory_text(lines, i < 2 ? 7 : 8);
        open_sweep(&sweeps[i], text);
        memory_free(text);
    }
    assert_int_equal(sweeps[0].n_trials + sweeps[0].n_twins, 300);
    assert_true(sweeps[0].n_twins > 0); /* 1, 2, 3, ... repeat often */
    size_t n_low = 0, n_two = 0;
    for (size_t t = 0; t < sweeps[0].n_trials; t++) {
        char *end = NULL;
        const long hidden = strtol(sweeps[0].trials[t].values[0], &end, 10);
        assert_true(*end == '\0' && hidden >= 1 && hidden <= 1000);
        n_low += hidden < 32;
        n_two += strcmp(sweeps[0].trials[t].values[1], "2") == 0;
        assert_string_equal(sweeps[0].trials[t].id, sweeps[1].trials[t].id);
    }
    assert_true(n_two > 80 && n_two < 220 && n_low > 20 && n_low < 200);
    assert_string_not_equal(sweeps[0].trials[0].id, sweeps[2].trials[0].id);
    for (int i = 0; i < 3; i++)
        sweep_destroy(&sweeps[i]);
}

static void test_rungs(void **state)
{
    (void)state;
    struct sweep sweep;
    open_sweep(&sweep, "[optimizer]\nrate = log(0.001, 0.1, 20)\n[train]\nepochs = 50\n"
                       "[sweep]\nrungs = 3\nfactor = 4\n");
    static const int64_t epochs[] = {3, 12, 50}, width[] = {20, 5, 1};
    for (int64_t r = 1; r <= 3; r++) {
        assert_int_equal(sweep_epochs(&sweep, r), epochs[r - 1]);
        assert_int_equal(sweep_width(&sweep, r), width[r - 1]);
    }
    sweep_destroy(&sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_design),   cmocka_unit_test(test_trial_ids),
        cmocka_unit_test(test_halton_design), cmocka_unit_test(test_random_design),
        cmocka_unit_test(test_rungs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
