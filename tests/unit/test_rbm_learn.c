/* builds: float double */
/* Contrastive divergence of a tiny RBM, against all samples it could have drawn. Enumeration
 * gives the probabilities of the counts after some Gibbs steps, and from them the mean and the
 * variance of every statistic. The results of accumulate are compared with these over many
 * draws, and number by number where a persistent chain shows which counts were drawn. */
#include "base/h5.h"
#include "rbm_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static double squares, n_squares; /* of the errors of means, in standard errors */

/* Students with up to 4 answers; also items seen but not answered, held out, repeated. */
enum { N_ITEMS = 5, N_STUDENTS = 4 };
static const char *const students[N_STUDENTS] = {
    "a1 b0 c1",
    "d0 a1 d1 b?",
    "e1 c0v b0 a1t.",
    "c1",
};

static const char *const variants[] = {
    "hidden=3, copies=1, visible=bernoulli",
    "hidden=3, copies=2, visible=bernoulli, conditional=yes",
    "hidden=3, copies=1",
    "hidden=3, copies=2",
    "hidden=3, copies=3, conditional=yes",
    "hidden=3, copies=2, conditional=yes, factors=2",
    "hidden=3, copies=1, visible=bernoulli, factors=2",
    "hidden=3, copies=2, repeats=last, conditional=yes",
    "hidden=2, copies=2, hidden_kind=gaussian, conditional=yes",
    "hidden=2, copies=1, hidden_kind=gaussian, factors=2",
    "hidden=2, copies=2, hidden_kind=relu, conditional=yes",
    "hidden=2, copies=1, hidden_kind=relu, visible=bernoulli",
    "hidden=3, copies=2, common=yes, conditional=yes",
    "hidden=3, copies=1, common=yes, visible=bernoulli, factors=2",
    "hidden=3, copies=2, window=2, conditional=yes, common=yes, factors=2",
    "hidden=3, copies=1, window=1",
};

struct bench {
    struct tiny class;
    struct tiny_model tiny;
    struct oracle oracle;
    void *work;
    struct tally tally;
    double *mean, *variance, *sum;
};

static void open_bench(struct bench *bench, const char *options, const char *more,
                       const char *const *texts, size_t n_students)
{
    tiny_begin(&bench->class, N_ITEMS, false);
    for (size_t s = 0; s < n_students; s++)
        tiny_text(&bench->class, texts[s % N_STUDENTS]);
    tiny_finish(&bench->class, &world);
    char *all = memory_text("%s%s", options, more);
    tiny_model_open(&bench->tiny, "rbm", all, &bench->class.dataset);
    memory_free(all);
    tiny_model_scatter(&bench->tiny, 0.5, 11);
    oracle_read(&bench->oracle, &bench->tiny);
    const struct model *model = bench->tiny.model;
    bench->work = model->kind->attach(model, &bench->class.shard, TO_TRAIN);
    bool wide = false;
    int bits = 0;
    model->kind->speed.measure(model, bench->work, &world, n_students, &wide, &bits);
    tally_create(&bench->tally, model->params.n, wide, bits, NULL);
    bench->mean = NEW(double, model->params.n);
    bench->variance = NEW(double, model->params.n);
    bench->sum = NEW(double, model->params.n);
}

static void close_bench(struct bench *bench)
{
    tally_destroy(&bench->tally);
    bench->tiny.model->kind->detach(bench->work);
    tiny_model_close(&bench->tiny);
    tiny_close(&bench->class);
    memory_free(bench->mean);
    memory_free(bench->variance);
    memory_free(bench->sum);
}

static void accumulate(struct bench *bench, const uint32_t *who, size_t n, uint32_t epoch)
{
    const struct draw draw = {.seed = 7, .epoch = epoch};
    tally_clear(&bench->tally);
    bench->tiny.model->kind->accumulate(bench->tiny.model, bench->work, who, n, &draw,
                                        &bench->tally);
    for (size_t i = 0; i < bench->tally.n; i++)
        bench->sum[i] += tiny_statistic(&bench->tally, i);
}

/* Rounding error of a statistic of one student: each hidden value is rounded to the tally's
 * unit, then added copies x answers times, for the data and for the model. */
static double rounding(const struct bench *bench, const struct oracle_units *units)
{
    const double epsilon = sizeof(real) == sizeof(double) ? 1e-12 : 2e-5;
    return epsilon +
           tally_unit(&bench->tally) * (double)size_max(units->n, 1) * bench->oracle.copies;
}

/* The mean of n draws (in `sum`) must be within 5 standard errors. */
static void compare_means(const struct bench *bench, const struct oracle_units *units, double n,
                          const char *what)
{
    const struct params *params = &bench->tiny.model->params;
    for (size_t i = 0; i < params->n; i++) {
        const double got = bench->sum[i] / n, off = got - bench->mean[i];
        const double error = sqrt(bench->variance[i] / n), slack = rounding(bench, units);
        const struct tensor *tensor = params_find(params, i);
        if (!(fabs(off) <= 5 * error + slack))
            fail_msg("%s: number %zu (%s): %.7g, expected %.7g +- %.2g", what, i,
                     tensor ? tensor->name : "padding", got, bench->mean[i], error);
        if (tensor == NULL)
            assert_true(bench->sum[i] == 0);
        if (error > 10 * slack) {
            squares += off * off / (error * error);
            n_squares++;
        }
    }
}

/* Mean and variance of a student's statistics after this many Gibbs steps: the sums over its
 * runs. */
static void expect(struct bench *bench, const struct oracle_units *units, int n_steps)
{
    memset(bench->mean, 0, bench->tally.n * sizeof(double));
    memset(bench->variance, 0, bench->tally.n * sizeof(double));
    struct oracle_units part;
    for (size_t run = 0; oracle_run(&bench->oracle, units, run, &part); run++) {
        double chance[MOST_STATES];
        oracle_chain(&bench->oracle, &part, n_steps, chance);
        oracle_expect(&bench->oracle, &part, chance, bench->mean, bench->variance);
    }
}

/* The mean of many draws of one student against the enumeration of all samples. */
static void test_means(int n_steps, uint32_t n_draws)
{
    squares = n_squares = 0;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench bench;
        char steps[32];
        snprintf(steps, sizeof steps, ", cd_steps=%d", n_steps);
        open_bench(&bench, variants[v], steps, students, N_STUDENTS);
        for (uint32_t s = 0; s < N_STUDENTS; s++) {
            struct oracle_units units;
            oracle_student(&bench.oracle, &bench.class.shard, s, &units);
            expect(&bench, &units, n_steps);
            memset(bench.sum, 0, bench.tally.n * sizeof(double));
            for (uint32_t d = 0; d < n_draws; d++)
                accumulate(&bench, &s, 1, d);
            compare_means(&bench, &units, n_draws, variants[v]);
        }
        assert_int_equal(bench.tally.out_of_range, 0);
        close_bench(&bench);
    }
    /* All errors together are as large as chance makes them, and not smaller. */
    assert_true(n_squares > 500);
    if (!(squares / n_squares > 0.5 && squares / n_squares < 2))
        fail_msg("%g means are off by %.3g standard errors, root mean square", n_squares,
                 sqrt(squares / n_squares));
}

static void test_one_gibbs_step(void **state)
{
    (void)state;
    test_means(1, oracle_draws(20000));
}

static void test_three_gibbs_steps(void **state)
{
    (void)state;
    test_means(3, oracle_draws(10000));
}

/* The persistent chain of a student holds the counts that accumulate drew: this determines
 * every statistic up to rounding, the data's part and the model's. */
static void test_statistics_of_known_counts(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench bench;
        open_bench(&bench, variants[v], ", persistent=yes", students, N_STUDENTS);
        const struct model_kind *kind = bench.tiny.model->kind;
        const struct params *params = &bench.tiny.model->params;
        for (uint32_t epoch = 0; epoch < 50; epoch++) {
            size_t n_bytes = 0, first = 0;
            const uint8_t *chain = kind->fit.state(bench.work, &n_bytes);
            for (uint32_t s = 0; s < N_STUDENTS; s++) {
                struct oracle_units units, part;
                oracle_student(&bench.oracle, &bench.class.shard, s, &units);
                const int64_t loss = bench.tally.loss, n_scored = bench.tally.n_scored;
                accumulate(&bench, &s, 1, epoch);
                memset(bench.mean, 0, params->n * sizeof(double));
                int n_wrong = 0;
                for (size_t run = 0; oracle_run(&bench.oracle, &units, run, &part); run++) {
                    int count[MOST_UNITS];
                    oracle_data(&bench.oracle, &part, count);
                    oracle_statistic(&bench.oracle, &part, count, 1, bench.mean);
                    for (size_t u = 0; u < part.n; u++, first++) {
                        n_wrong += abs(count[u] - chain[first]);
                        count[u] = chain[first];
                    }
                    oracle_statistic(&bench.oracle, &part, count, -1, bench.mean);
                }
                for (size_t i = 0; i < params->n; i++)
                    if (!(fabs(tiny_statistic(&bench.tally, i) - bench.mean[i]) <=
                          rounding(&bench, &units)))
                        fail_msg("%s: student %u, number %zu: %.9g instead of %.9g",
                                 variants[v], s, i, tiny_statistic(&bench.tally, i),
                                 bench.mean[i]);
                assert_int_equal(bench.tally.n_scored - n_scored, units.n);
                const double wrong = ldexp((double)(bench.tally.loss - loss), -LOSS_BITS);
                assert_true(fabs(wrong - (double)n_wrong / bench.oracle.copies) < 1e-5);
            }
            assert_int_equal(n_bytes, first);
        }
        close_bench(&bench);
    }
}

/* The probabilities of all counts of a student after this many Gibbs steps: runs are
 * independent. */
static void expect_chances(const struct bench *bench, const struct oracle_units *units,
                           int n_steps, double *chance)
{
    const struct oracle *o = &bench->oracle;
    const size_t n_states = oracle_n_states(o, units);
    struct oracle_units part;
    size_t first = 0;
    for (size_t state = 0; state < n_states; state++)
        chance[state] = 1;
    for (size_t run = 0; oracle_run(o, units, run, &part); run++, first += part.n) {
        double own[MOST_STATES];
        oracle_chain(o, &part, n_steps, own);
        for (size_t state = 0; state < n_states; state++) {
            int count[MOST_UNITS];
            oracle_state(o, units, state, count);
            chance[state] *= own[oracle_state_of(o, &part, count + first)];
        }
    }
}

/* Persistent chains of many identical students: after e epochs of one step each, their counts
 * have the probabilities of e Gibbs steps from the data (chi-square), and so do the
 * statistics. */
static void test_persistent_chains(void **state)
{
    (void)state;
    enum { N_EPOCHS = 5 };
    const uint32_t n_alike = oracle_draws(20000);
    static const char *const alike[N_STUDENTS] = {"d0 a1 d1 b?", "d0 a1 d1 b?", "d0 a1 d1 b?",
                                                  "d0 a1 d1 b?"};
    uint32_t *who = NEW(uint32_t, n_alike);
    for (uint32_t s = 0; s < n_alike; s++)
        who[s] = s;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench bench;
        open_bench(&bench, variants[v], ", persistent=yes", alike, n_alike);
        struct oracle_units units;
        double chance[MOST_STATES];
        oracle_student(&bench.oracle, &bench.class.shard, 0, &units);
        for (uint32_t epoch = 0; epoch < N_EPOCHS; epoch++) {
            memset(bench.sum, 0, bench.tally.n * sizeof(double));
            accumulate(&bench, who, n_alike, epoch);
        }
        expect(&bench, &units, N_EPOCHS);
        compare_means(&bench, &units, n_alike, variants[v]);
        expect_chances(&bench, &units, N_EPOCHS, chance);

        size_t n_bytes = 0;
        const uint8_t *chain = bench.tiny.model->kind->fit.state(bench.work, &n_bytes);
        assert_int_equal(n_bytes, n_alike * units.n);
        double met[MOST_STATES] = {0}, square = 0, freedom = -1, rare = 0, rare_met = 0;
        for (size_t s = 0; s < n_alike; s++) {
            int count[MOST_UNITS];
            for (size_t u = 0; u < units.n; u++)
                count[u] = chain[s * units.n + u];
            met[oracle_state_of(&bench.oracle, &units, count)]++;
        }
        for (size_t c = 0; c < oracle_n_states(&bench.oracle, &units); c++) {
            const double expected = n_alike * chance[c];
            if (expected < 10) { /* too rare for a bin of its own */
                rare += expected;
                rare_met += met[c];
                continue;
            }
            square += (met[c] - expected) * (met[c] - expected) / expected;
            freedom++;
        }
        if (rare >= 10) {
            square += (rare_met - rare) * (rare_met - rare) / rare;
            freedom++;
        }
        if (!(square < freedom + 5 * sqrt(2 * freedom) + 5))
            fail_msg("%s: chi-square %.1f with %g degrees of freedom", variants[v], square,
                     freedom);
        close_bench(&bench);
    }
    memory_free(who);
}

/* cd_schedule: an epoch uses the steps of the last pair that has begun. */
static void test_cd_schedule(void **state)
{
    (void)state;
    static const int expected[] = {1, 1, 3, 3, 3, 40, 40};
    struct bench scheduled;
    open_bench(&scheduled, variants[3], ", cd_schedule=2:3 5:40", students, N_STUDENTS);
    for (uint32_t epoch = 0; epoch < COUNT(expected); epoch++) {
        static const uint32_t who[] = {0, 1, 2, 3};
        struct bench fixed;
        char steps[32];
        snprintf(steps, sizeof steps, ", cd_steps=%d", expected[epoch]);
        open_bench(&fixed, variants[3], steps, students, N_STUDENTS);
        accumulate(&scheduled, who, COUNT(who), epoch);
        accumulate(&fixed, who, COUNT(who), epoch);
        assert_memory_equal(scheduled.tally.values, fixed.tally.values,
                            fixed.tally.n * (fixed.tally.wide ? 8 : 4));
        close_bench(&fixed);
    }
    close_bench(&scheduled);
}

/* `measure` guarantees that no sum over most_students students overflows. The worst case is a
 * batch of the students who answered an item most often, with hidden units that are always on
 * and reconstructions that are all wrong. */
static void fill_to_the_brim(int copies, size_t n_heavy, size_t repeats, size_t most_students)
{
    enum { N = 1000 };
    struct tiny class;
    tiny_begin(&class, 2, false);
    for (size_t s = 0; s < N; s++) {
        tiny_student(&class);
        for (size_t t = 0; t < (s < n_heavy ? repeats : 1); t++)
            tiny_attempt(&class, 1, mark_make(INCORRECT, TRAIN, true, true));
    }
    tiny_finish(&class, &world);
    char options[64];
    snprintf(options, sizeof options, "hidden=1, copies=%d", copies);
    struct tiny_model tiny;
    tiny_model_open(&tiny, "rbm", options, &class.dataset);
    struct params *params = &tiny.model->params;
    params->value[oracle_place(params, "visible_bias", 3)] = 100; /* always correct */
    params->value[oracle_place(params, "hidden_bias", 0)] = 100;  /* always on */
    void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
    bool wide = false;
    int bits = 0;
    tiny.model->kind->speed.measure(tiny.model, work, &world, most_students, &wide, &bits);
    struct tally tally;
    tally_create(&tally, params->n, wide, bits, NULL);
    uint32_t who[N];
    for (uint32_t s = 0; s < N; s++)
        who[s] = s;
    const struct draw draw = {.seed = 1};
    tiny.model->kind->accumulate(tiny.model, work, who, most_students, &draw, &tally);
    const size_t heavy = size_min(n_heavy, most_students);
    const int64_t n = (int64_t)(heavy * repeats + (most_students - heavy));
    const double all = (double)n * copies;
    assert_true(tiny_statistic(&tally, oracle_place(params, "weights", 2)) == all);
    assert_true(tiny_statistic(&tally, oracle_place(params, "weights", 3)) == -all);
    assert_true(tiny_statistic(&tally, oracle_place(params, "visible_bias", 2)) == all);
    assert_true(tiny_statistic(&tally, oracle_place(params, "visible_bias", 3)) == -all);
    assert_true(tiny_statistic(&tally, oracle_place(params, "hidden_bias", 0)) == 0);
    assert_true(fabs(ldexp((double)tally.loss, -LOSS_BITS) - (double)n) <= 2e-5 * (double)n);
    assert_int_equal(tally.n_scored, n);
    tally_destroy(&tally);
    tiny.model->kind->detach(work);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

/* With a window every run adds its share to the hidden biases, and to `seen`: hidden units that
 * are on in all data and off in all reconstructions. */
static void test_no_overflow_with_a_window(void **state)
{
    (void)state;
    enum { N = 50, LENGTH = 400 };
    struct tiny class;
    tiny_begin(&class, LENGTH, false);
    for (size_t s = 0; s < N; s++) {
        tiny_student(&class);
        for (uint32_t i = 0; i < LENGTH; i++)
            tiny_attempt(&class, i, mark_make(CORRECT, TRAIN, true, true));
    }
    tiny_finish(&class, &world);
    struct tiny_model tiny;
    tiny_model_open(&tiny, "rbm", "hidden=1, copies=1, window=1, conditional=yes",
                    &class.dataset);
    struct params *params = &tiny.model->params;
    for (size_t i = 0; i < LENGTH; i++) {
        params->value[oracle_place(params, "weights", 2 * i)] = -200;
        params->value[oracle_place(params, "weights", 2 * i + 1)] = 200;
        params->value[oracle_place(params, "visible_bias", 2 * i)] = 1000; /* all incorrect */
    }
    void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
    bool wide = false;
    int bits = 0;
    tiny.model->kind->speed.measure(tiny.model, work, &world, N, &wide, &bits);
    struct tally tally;
    tally_create(&tally, params->n, wide, bits, NULL);
    uint32_t who[N];
    for (uint32_t s = 0; s < N; s++)
        who[s] = s;
    const struct draw draw = {.seed = 1};
    tiny.model->kind->accumulate(tiny.model, work, who, N, &draw, &tally);
    assert_true(tiny_statistic(&tally, oracle_place(params, "hidden_bias", 0)) == N * LENGTH);
    assert_true(tiny_statistic(&tally, oracle_place(params, "seen", 7)) == N * LENGTH);
    assert_true(tiny_statistic(&tally, oracle_place(params, "weights", 1)) == N);
    tally_destroy(&tally);
    tiny.model->kind->detach(work);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

static void test_no_overflow(void **state)
{
    (void)state;
    static const int copies[] = {1, 2, 15};
    for (size_t c = 0; c < COUNT(copies); c++) {
        fill_to_the_brim(copies[c], 0, 0, 1000);
        fill_to_the_brim(copies[c], 1000, 2, 1000);
        fill_to_the_brim(copies[c], 100, 7, 90);
        fill_to_the_brim(copies[c], 50, 7, 90);
        fill_to_the_brim(copies[c], 1, 300, 1);
        fill_to_the_brim(copies[c], 1000, 300, 1000);
    }
}

/* Numbers too large for the tally are counted, so that training can stop with an error
 * message. */
static void test_out_of_range(void **state)
{
    (void)state;
    static const char *const options[] = {
        "hidden=3, copies=2, hidden_kind=gaussian",
        "hidden=3, copies=2, hidden_kind=relu",
        "hidden=3, copies=2, factors=2",
        "hidden=3, copies=2, hidden_kind=gaussian, factors=2",
    };
    static const double sizes[] = {1, 1e5, INFINITY, NAN};
    for (size_t v = 0; v < COUNT(options); v++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            static const uint32_t who[] = {0};
            struct bench bench;
            open_bench(&bench, options[v], "", students, N_STUDENTS);
            struct params *params = &bench.tiny.model->params;
            const char *name = bench.oracle.n_factors > 0 ? "factors" : "hidden_bias";
            for (size_t j = 0; j < bench.oracle.m; j++)
                params->value[oracle_place(params, name, j)] = (real)sizes[i];
            accumulate(&bench, who, 1, 0);
            if (i == 0)
                assert_int_equal(bench.tally.out_of_range, 0);
            else
                assert_true(bench.tally.out_of_range > 0);
            close_bench(&bench);
        }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_gibbs_step),
        cmocka_unit_test(test_three_gibbs_steps),
        cmocka_unit_test(test_statistics_of_known_counts),
        cmocka_unit_test(test_persistent_chains),
        cmocka_unit_test(test_cd_schedule),
        cmocka_unit_test(test_no_overflow),
        cmocka_unit_test(test_no_overflow_with_a_window),
        cmocka_unit_test(test_out_of_range),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
