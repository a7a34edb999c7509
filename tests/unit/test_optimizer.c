/* ranks: 1 2 3 5 */
/* builds: float double */
/* How sums of statistics move the parameters, against the textbook formulas in double
 * precision, and with the same bits at any number of ranks. */
#include "base/comm.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/learning_rate.h"
#include "learn/optimizer.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;
static const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
static const bool is_double = sizeof(real) == sizeof(double);

/* A table of weights with a bias after each row, and a row of biases. */
static void open_params(struct params *params)
{
    *params = (struct params){0};
    size_t panel = params_panel(params, 23, 6);
    params_tensor(params, &(struct tensor){"weights", panel, 0, 5, 2, {23, 5}, true});
    params_tensor(params, &(struct tensor){"bias", panel, 5, 1, 1, {23}, false});
    panel = params_panel(params, 1, 33);
    params_tensor(params, &(struct tensor){"row", panel, 0, 33, 1, {33}, false});
    params_allocate(params);
    const struct rng rng = {.seed = 1, .purpose = RNG_INIT};
    for (size_t i = 0; i < params->n; i++)
        params->value[i] =
            params_find(params, i) == NULL ? 0 : (real)rng_normal(&rng, (uint32_t)i);
}

/* An optimizer over `comm` with everything it needs. */
struct bench {
    struct params params;
    struct exact_slices slices;
    struct optimizer optimizer;
    struct tally tally;
};

static void open_bench(struct bench *b, const struct comm *comm,
                       const struct optimizer_options *options, bool wide, int64_t n_epochs)
{
    open_params(&b->params);
    exact_slices_create(&b->slices, comm, &b->params);
    optimizer_create(&b->optimizer, options, &b->params, &b->slices, n_epochs, 1);
    tally_create(&b->tally, b->params.n, wide, 10, &b->slices);
}

static void close_bench(struct bench *b)
{
    tally_destroy(&b->tally);
    optimizer_destroy(&b->optimizer);
    exact_slices_destroy(&b->slices);
    params_free(&b->params);
}

/* Statistic i of a step, in units of the tally. */
static int32_t statistic(const struct params *params, int64_t step, size_t i)
{
    const struct rng rng = {.seed = 2, .purpose = RNG_SIMULATE, .when = (uint32_t)step};
    return params_find(params, i) == NULL ? 0 : (int32_t)(3000 * rng_normal(&rng, (uint32_t)i));
}

/* Rank 0 adds all statistics except those that the last rank adds. */
static void take_step(struct bench *b, int64_t step, int64_t n_steps)
{
    const struct comm *comm = b->slices.comm;
    tally_clear(&b->tally);
    for (size_t i = 0; i < b->params.n; i++) {
        if (comm->rank != (i % 3 == 0 ? comm->size - 1 : 0))
            continue;
        if (b->tally.wide)
            ((int64_t *)b->tally.values)[i] = statistic(&b->params, step, i);
        else
            ((int32_t *)b->tally.values)[i] = statistic(&b->params, step, i);
    }
    exact_sum(&b->slices, &b->tally);
    optimizer_step(&b->optimizer, &b->tally, step, n_steps);
}

static double norm_of_step(const struct params *params, int64_t step)
{
    double sum = 0;
    for (size_t i = 0; i < params->n; i++)
        sum += pow(statistic(params, step, i) / 1024., 2);
    return sqrt(sum);
}

/* The textbook formulas, for all parameters, from their initial values. */
static void compare_with_textbook(const struct optimizer_options *o, bool wide)
{
    enum { N_STEPS = 12 };
    struct bench b;
    struct params first;
    open_bench(&b, &world, o, wide, 3);
    open_params(&first);
    for (int64_t step = 0; step < N_STEPS; step++)
        take_step(&b, step, 4);
    for (size_t i = 0; i < first.n; i++) {
        const struct tensor *tensor = params_find(&first, i);
        if (tensor == NULL) {
            assert_true(b.params.value[i] == 0);
            continue;
        }
        double w = (double)first.value[i], m = 0, v = 0;
        for (int step = 0; step < N_STEPS; step++) {
            double g = statistic(&first, step, i) / 1024.;
            if (o->clip > 0)
                g *= fmin(1, o->clip / norm_of_step(&first, step));
            const double rate = learning_rate_at(o, b.optimizer.n_epochs, step, 4);
            const double step_rate = tensor->decays ? rate : rate * o->bias_rate;
            const double shrink = tensor->decays ? rate * o->decay * w : 0;
            if (o->method == METHOD_SGD) {
                m = o->momentum * m + g;
                w += step_rate * m - shrink;
            } else {
                m = o->beta1 * m + (1 - o->beta1) * g;
                v = o->beta2 * v + (1 - o->beta2) * g * g;
                const double mean = m / (1 - pow(o->beta1, step + 1));
                const double square = v / (1 - pow(o->beta2, step + 1));
                w += step_rate * mean / (sqrt(square) + o->epsilon) - shrink;
            }
        }
        const double got = (double)b.params.value[i];
        if (!(fabs(got - w) < (is_double ? 1e-11 : 3e-5) * (1 + fabs(w))))
            fail_msg("%s: %.9g instead of %.9g, from %.9g", tensor->name, got, w,
                     (double)first.value[i]);
        assert_true(fabs(got - (double)first.value[i]) > 1e-7); /* it has moved */
    }
    double largest = b.optimizer.largest, expected = 0;
    comm_max_double(&world, &largest, 1);
    for (size_t i = 0; i < b.params.n; i++)
        expected = fmax(expected, fabs((double)b.params.value[i]));
    assert_true(largest == expected);
    params_free(&first);
    close_bench(&b);
}

static const struct optimizer_options settings[] = {
    {.method = METHOD_SGD, .rate = 0.01, .bias_rate = 1},
    {.method = METHOD_SGD, .rate = 0.01, .momentum = 0.9, .decay = 0.3, .bias_rate = 2.5},
    {.method = METHOD_SGD,
     .rate = 0.1,
     .momentum = 0.5,
     .bias_rate = 1,
     .clip = 1.5,
     .schedule = SCHEDULE_COSINE,
     .floor = 0.1},
    {.method = METHOD_ADAM,
     .rate = 0.02,
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-8,
     .bias_rate = 1},
    {.method = METHOD_ADAM,
     .rate = 0.02,
     .beta1 = 0.8,
     .beta2 = 0.95,
     .epsilon = 0.1,
     .decay = 0.2,
     .bias_rate = 0.5,
     .clip = 10,
     .warm_up = 5,
     .average = 0.7},
};

static void test_textbook_formulas(void **state)
{
    (void)state;
    for (size_t o = 0; o < COUNT(settings); o++)
        for (int wide = 0; wide < 2; wide++)
            compare_with_textbook(&settings[o], wide);
}

/* The same bits as one rank alone: parameters, and the collected state. */
static void compare_with_one_rank(void)
{
    for (size_t o = 0; o < COUNT(settings); o++) {
        struct bench together, alone;
        open_bench(&together, &world, &settings[o], true, 3);
        open_bench(&alone, &self, &settings[o], true, 3);
        for (int64_t step = 0; step < 5; step++) {
            take_step(&together, step, 4);
            take_step(&alone, step, 4);
            assert_memory_equal(together.params.value, alone.params.value,
                                alone.params.n * sizeof(real));
            comm_barrier(&world);
        }
        assert_int_equal(together.optimizer.n_slots,
                         (settings[o].method == METHOD_ADAM) + 1 + (settings[o].average > 0));
        optimizer_swap(&together.optimizer);
        optimizer_swap(&alone.optimizer);
        assert_memory_equal(together.params.value, alone.params.value,
                            alone.params.n * sizeof(real));
        comm_barrier(&world);
        for (int k = 0; k < together.optimizer.n_slots; k++) {
            exact_slices_collect(&together.slices, together.optimizer.slot[k]);
            if (world.rank == 0)
                assert_memory_equal(together.optimizer.slot[k], alone.optimizer.slot[k],
                                    alone.params.n * sizeof(real));
            assert_non_null(optimizer_slot_names[settings[o].method][k]);
        }
        close_bench(&together);
        close_bench(&alone);
    }
}

/* The average is over the parameters after each step, the latest with the largest weight.
 * Swapping puts it in place, and swapping again restores the parameters. */
static void test_parameter_average(void **state)
{
    (void)state;
    enum { N_STEPS = 30 };
    struct optimizer_options o = settings[1];
    o.average = 0.6;
    struct bench b;
    open_bench(&b, &world, &o, true, 3);
    double *mean = NEW(double, b.params.n);
    real *last = NEW(real, b.params.n);
    for (int64_t step = 0; step < N_STEPS; step++) {
        take_step(&b, step, 4);
        const double memory = fmin(0.6, (double)step / (double)(step + 10));
        for (size_t i = 0; i < b.params.n; i++)
            mean[i] = memory * mean[i] + (1 - memory) * (double)b.params.value[i];
        comm_barrier(&world);
    }
    memcpy(last, b.params.value, b.params.n * sizeof *last);
    comm_barrier(&world);
    optimizer_swap(&b.optimizer);
    double most = 0;
    for (size_t i = 0; i < b.params.n; i++) {
        assert_true(fabs((double)b.params.value[i] - mean[i]) < (is_double ? 1e-12 : 1e-5));
        most = fmax(most, fabs((double)(b.params.value[i] - last[i])));
    }
    assert_true(most > 1e-3);
    comm_barrier(&world);
    optimizer_swap(&b.optimizer);
    assert_memory_equal(b.params.value, last, b.params.n * sizeof *last);
    memory_free(mean);
    memory_free(last);
    close_bench(&b);
}

static void test_same_bits_as_one_rank(void **state)
{
    (void)state;
    setenv("COHORT_SHARED", "no", 1);
    compare_with_one_rank();
    unsetenv("COHORT_SHARED");
    compare_with_one_rank();
}

static void expect_rate(const struct optimizer_options *options, int64_t step, double share)
{
    const double got = learning_rate_at(options, 10, step, 8); /* 80 steps in all */
    if (!(fabs(got - options->rate * share) < 1e-14))
        fail_msg("step %d: rate %.17g instead of %.17g", (int)step, got, options->rate * share);
}

static void test_schedules(void **state)
{
    (void)state;
    struct optimizer_options o = {.rate = 0.5, .schedule = SCHEDULE_CONSTANT};
    expect_rate(&o, 0, 1);
    expect_rate(&o, 79, 1);
    o.schedule = SCHEDULE_LINEAR;
    expect_rate(&o, 0, 1);
    expect_rate(&o, 20, 0.75);
    expect_rate(&o, 80, 0);
    o.floor = 0.2;
    expect_rate(&o, 40, 0.6);
    expect_rate(&o, 80, 0.2);
    expect_rate(&o, 800, 0.2); /* constant beyond the end */
    o.schedule = SCHEDULE_COSINE;
    expect_rate(&o, 0, 1);
    expect_rate(&o, 40, 0.6);
    expect_rate(&o, 20, 0.2 + 0.8 * 0.5 * (1 + sqrt(0.5)));
    expect_rate(&o, 80, 0.2);
    expect_rate(&o, 800, 0.2);
    o.schedule = SCHEDULE_STEP;
    o.drop = 0.25;
    o.drop_every = 3;
    expect_rate(&o, 0, 1);
    expect_rate(&o, 23, 1);
    expect_rate(&o, 24, 0.25);
    expect_rate(&o, 47, 0.25);
    expect_rate(&o, 48, 0.0625);
    expect_rate(&o, (int64_t)1 << 60, 0); /* at once */
    o.schedule = SCHEDULE_CONSTANT;
    o.warm_up = 4;
    expect_rate(&o, 0, 0.25);
    expect_rate(&o, 2, 0.75);
    expect_rate(&o, 3, 1);
    expect_rate(&o, 4, 1);
}

/* Decay shrinks only weights, by the same factor for both methods. */
static void test_decay_spares_biases(void **state)
{
    (void)state;
    for (int method = METHOD_SGD; method <= METHOD_ADAM; method++) {
        const struct optimizer_options options = {.method = method,
                                                  .rate = 0.1,
                                                  .momentum = 0.9,
                                                  .decay = 0.5,
                                                  .bias_rate = 1,
                                                  .beta1 = 0.9,
                                                  .beta2 = 0.999,
                                                  .epsilon = 1e-8};
        struct bench b;
        struct params first;
        open_bench(&b, &world, &options, false, 1);
        open_params(&first);
        for (int64_t step = 0; step < 2; step++) {
            exact_sum(&b.slices, &b.tally);
            optimizer_step(&b.optimizer, &b.tally, step, 2);
        }
        for (size_t i = 0; i < first.n; i++) {
            const struct tensor *tensor = params_find(&first, i);
            const double share = tensor != NULL && tensor->decays ? 0.95 * 0.95 : 1;
            assert_true(fabs((double)b.params.value[i] - share * (double)first.value[i]) <
                        1e-6);
            if (share == 1)
                assert_true(b.params.value[i] == first.value[i]);
        }
        params_free(&first);
        close_bench(&b);
    }
}

/* Padding has a rate of zero: it stays zero with any statistics. */
static void test_padding_stays_zero(void **state)
{
    (void)state;
    for (int method = METHOD_SGD; method <= METHOD_ADAM; method++) {
        struct optimizer_options options = settings[method == METHOD_SGD ? 1 : 3];
        struct bench b;
        open_bench(&b, &world, &options, false, 1);
        for (size_t i = 0; i < b.tally.n; i++)
            ((int32_t *)b.tally.values)[i] = 1000;
        exact_sum(&b.slices, &b.tally);
        optimizer_step(&b.optimizer, &b.tally, 0, 1);
        for (size_t i = 0; i < b.params.n; i++)
            if (params_find(&b.params, i) == NULL)
                assert_true(b.params.value[i] == 0);
        close_bench(&b);
    }
}

/* A sum within the limit is unchanged; one beyond it is scaled to the limit. */
static void test_clip(void **state)
{
    (void)state;
    const double norm = 100 * 5; /* 3, 4 in two places, times 100 */
    static const double clips[] = {499, 501, 1};
    for (size_t c = 0; c < COUNT(clips); c++) {
        const struct optimizer_options options = {
            .method = METHOD_SGD, .rate = 1, .bias_rate = 1, .clip = clips[c]};
        struct bench b;
        struct params first;
        open_bench(&b, &world, &options, true, 1);
        open_params(&first);
        const size_t places[2] = {1, first.panels[1].offset + 30};
        if (world.rank == 0) {
            ((int64_t *)b.tally.values)[places[0]] = 300 * 1024;
            ((int64_t *)b.tally.values)[places[1]] = -400 * 1024;
        }
        exact_sum(&b.slices, &b.tally);
        optimizer_step(&b.optimizer, &b.tally, 0, 1);
        const double share = fmin(1, clips[c] / norm);
        for (size_t i = 0; i < first.n; i++) {
            const double g = i == places[0] ? 300 : i == places[1] ? -400 : 0;
            assert_true(fabs((double)b.params.value[i] - (double)first.value[i] - share * g) <
                        1e-4);
        }
        params_free(&first);
        close_bench(&b);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook_formulas),
        cmocka_unit_test(test_parameter_average),
        cmocka_unit_test(test_same_bits_as_one_rank),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_decay_spares_biases),
        cmocka_unit_test(test_padding_stays_zero),
        cmocka_unit_test(test_clip),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
