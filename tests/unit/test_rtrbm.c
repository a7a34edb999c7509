/* builds: float double */
/* The recurrent temporal RBM against an oracle that sums over all states, against differences
 * of its own loss in double precision, and against itself where two methods must agree. */
#include "base/h5.h"
#include "gradient.h"
#include "models/rtrbm/rtrbm_internal.h"
#include "rtrbm_oracle.h"

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 5 };

/* As tiny_text; a plus before an item puts it in the same step as the previous one. */
static void add_student(struct tiny *class, const char *text)
{
    char plain[256];
    size_t n = 0, at = class->n_attempts;
    bool begins[64] = {0};
    for (size_t a = 0, k = 0; text[k] != '\0'; k++) {
        if (k == 0 || text[k - 1] == ' ')
            begins[a++] = text[k] != '+';
        if (text[k] != '+')
            plain[n++] = text[k];
    }
    plain[n] = '\0';
    tiny_text(class, plain);
    for (size_t a = 0; at < class->n_attempts; at++, a++)
        if (!begins[a])
            class->mark[at] &= (uint8_t)~MARK_STEP;
}

/* Steps of one to five attempts; some are unknown, hidden, or not for training. */
static const char *const texts[] = {
    "a1 b0 c? d1. e0v c1 b1t.",
    "b1",
    "a1 +b0 +c1 d1 +e0v +a? b1 +c0. d0v +e1v a0",
    NULL,
    "",
    "d?",
    "a0 +b0 +c0 +d0 +e0 a1 +b1 a0 +b0 +c0 +d0 +e0 a1 +a0",
};
enum { N_STUDENTS = COUNT(texts) };
static const uint32_t all_students[N_STUDENTS] = {0, 1, 2, 3, 4, 5, 6};

static void open_class(struct tiny *class)
{
    tiny_begin_skills(class, true);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .who = s};
        if (texts[s] == NULL)
            tiny_random(class, &rng, 30, 7);
        else
            add_student(class, texts[s]);
    }
    tiny_finish(class, &world);
}

static void open_bench(struct bench *bench, const struct tiny *class, const char *options)
{
    bench_declare(bench, class, "rtrbm", options);
    const double n_hidden = (double)bench->model->kind->view.n_hidden(bench->model);
    tiny_model_scatter(&bench->tiny, 1.5 / sqrt(n_hidden), 21);
    bench_attach(bench, class, class->n_attempts > 1000 ? 24 : 40);
}

/* Every kind of visible units and structure, with few hidden units and with more than a padded
 * row. */
static const char *const variants[] = {
    "hidden=3",
    "hidden=17",
    "hidden=3, visible=bernoulli",
    "hidden=17, visible=bernoulli",
    "hidden=3, visible=bernoulli, dense=yes",
    "hidden=18, visible=bernoulli, dense=yes",
    "hidden=2, structure=skills, skill_units=2, penalty=0.01, sharpness=3",
    "hidden=0, structure=skills, skill_units=1",
    "hidden=3, structure=items, skill_units=3, penalty=0.1, sharpness=0.5",
    "hidden=1, structure=skills, skill_units=2, visible=bernoulli, dense=yes, penalty=0.02",
};

#ifdef COHORT_REAL_DOUBLE
static char *with_recompute(unsigned v)
{
    return memory_text("%s, recompute=%s", variants[v % COUNT(variants)],
                       v / COUNT(variants) % 2 ? "yes" : "no");
}

static void compare_with_differences(const struct tiny *class, const char *options,
                                     size_t stride)
{
    struct bench bench;
    open_bench(&bench, class, options);
    expect_differences(&bench, options,
                       &(struct comparison){.students = all_students,
                                            .n_students = N_STUDENTS,
                                            .stride = stride,
                                            .least = 0.1,
                                            .slack = 2e-9});
    close_bench(&bench);
}

static void test_gradient_against_differences(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < 2 * COUNT(variants); v++) {
        char *options = with_recompute(v);
        compare_with_differences(&class, options, v < COUNT(variants) ? 3 : 11);
        memory_free(options);
    }
    tiny_close(&class);
}
#endif

/* Compare loss, gradient and predictions with the oracle's. */
static void compare_with_oracle(const struct tiny *class, const char *options)
{
    struct bench bench;
    open_bench(&bench, class, options);
    struct oracle o;
    oracle_open(&o, &bench.tiny, &class->shard);
    const double loss = accumulate(&bench, all_students, N_STUDENTS), step = 4e-3;
    const size_t stride = o.hidden > 8 ? 37 : 5;
    double total = 0, *gradient = NEW(double, o.params->n);
    expect_padding(&bench, options);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        double expected[MOST_STEPS];
        real p[MOST_STEPS];
        total += oracle_loss(&o, s, expected);
        bench.model->kind->predict(bench.model, bench.work, s, 7, p);
        for (size_t t = 0; t < class->first[s + 1] - class->first[s]; t++)
            if (!(fabs((double)p[t] - expected[t]) < (is_double ? 1e-13 : 3e-6)))
                fail_msg("%s: student %u, attempt %zu: %.17g instead of %.17g", options, s, t,
                         (double)p[t], expected[t]);
        for (size_t i = 0, n = 0; i < o.params->n; i++) {
            if (params_find(o.params, i) == NULL || n++ % stride != 0)
                continue;
            const double value = o.value[i];
            double f[6];
            for (unsigned k = 0; k < 6; k++) {
                o.value[i] = value + moved(k, step);
                f[k] = oracle_loss(&o, s, expected);
            }
            o.value[i] = value;
            gradient[i] += difference(f, step);
        }
    }
    if (!(fabs(loss - total) < (is_double ? 1e-11 : 1e-4)))
        fail_msg("%s: loss %.12g instead of %.12g", options, loss, total);
    expect_gradient(&bench, options, gradient, stride, is_double ? 1e-7 : 2e-5,
                    is_double ? 1e-9 : 5e-5);
    memory_free(gradient);
    oracle_close(&o);
    close_bench(&bench);
}

static void test_against_oracle(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < COUNT(variants); v++)
        compare_with_oracle(&class, variants[v]);
    tiny_close(&class);
}

/* Contrastive divergence with many Gibbs steps, averaged over many chains, gives the gradient
 * of the likelihood; with few steps it differs. */
static void test_contrastive_divergence(void **state)
{
    (void)state;
    static const char *const kinds[] = {"hidden=3", "hidden=3, visible=bernoulli",
                                        "hidden=3, visible=bernoulli, dense=yes",
                                        "hidden=1, structure=skills, skill_units=1, penalty=0"};
    enum { N_CHAINS = 3000 };
    struct tiny class;
    open_class(&class);
    const uint32_t who[] = {2, 6};
    for (size_t v = 0; v < COUNT(kinds); v++) {
        char *options = memory_text("%s, gradient=cd, cd_steps=12", kinds[v]);
        struct bench exact, cd;
        open_bench(&exact, &class, kinds[v]);
        open_bench(&cd, &class, options);
        accumulate(&exact, who, 2);
        const size_t n = exact.tally.n;
        double *sum = NEW(double, n), *square = NEW(double, n), worst = 0;
        for (uint32_t k = 0; k < N_CHAINS; k++) {
            cd.draw.epoch = k;
            accumulate(&cd, who, 2);
            assert_int_equal(cd.tally.n_scored, exact.tally.n_scored);
            for (size_t i = 0; i < n; i++) {
                const double got = tiny_statistic(&cd.tally, i);
                sum[i] += got;
                square[i] += got * got;
            }
        }
        for (size_t i = 0; i < n; i++) {
            const double mean = sum[i] / N_CHAINS;
            const double error =
                sqrt(fmax(square[i] / N_CHAINS - mean * mean, 0) / N_CHAINS) + 1e-3;
            const double off = (mean - tiny_statistic(&exact.tally, i)) / error;
            if (fabs(off) > 5)
                fail_msg("%s: number %zu: %g instead of %g, %.1f standard errors", options, i,
                         mean, tiny_statistic(&exact.tally, i), off);
            worst = fmax(worst, fabs(off));
        }
        assert_true(worst > 0);
        memory_free(sum);
        memory_free(square);
        close_bench(&exact);
        close_bench(&cd);
        memory_free(options);
    }
    tiny_close(&class);
}

/* A class of one student with n attempts, one with one attempt, and one in between. */
static void open_long(struct tiny *class, size_t n)
{
    tiny_begin(class, 9, false);
    const size_t lengths[] = {n, 1, n / 3};
    for (uint32_t s = 0; s < COUNT(lengths); s++) {
        const struct rng rng = {.seed = 14, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, lengths[s], 9);
    }
    tiny_finish(class, &world);
}

/* Recomputing the steps gives the same bits with memory for only the square root of their
 * number. */
static void test_recompute(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 7, 100, 10000, 40000};
    static const char *const kinds[] = {"hidden=20", "hidden=5, structure=skills",
                                        "hidden=20, visible=bernoulli, dense=yes, gradient=cd"};
    size_t n_rows[COUNT(kinds)][COUNT(lengths)];
    for (size_t l = 0; l < COUNT(lengths); l++) {
        struct tiny class;
        open_long(&class, lengths[l]);
        for (size_t v = 0; v < COUNT(kinds); v++) {
            const uint32_t who[] = {0, 1, 2};
            char *options = memory_text("%s, recompute=yes", kinds[v]);
            struct bench all, again;
            open_bench(&all, &class, kinds[v]);
            open_bench(&again, &class, options);
            const double loss = accumulate(&all, who, 3);
            assert_true(loss > 0);
            assert_true(accumulate(&again, who, 3) == loss);
            assert_memory_equal(all.tally.values, again.tally.values,
                                all.tally.n * sizeof(int64_t));
            const struct rtrbm_work *kept = all.work, *recomputed = again.work;
            assert_true(kept->rows.capacity >= lengths[l]);
            n_rows[v][l] = recomputed->rows.capacity +
                           recomputed->border_capacity / recomputed->shape->width;
            close_bench(&all);
            close_bench(&again);
            memory_free(options);
        }
        tiny_close(&class);
    }
    for (size_t v = 0; v < COUNT(kinds); v++) {
        assert_true(n_rows[v][5] < 12 * 100); /* 10 000 steps: a few hundred rows */
        assert_true((double)n_rows[v][6] < 2.1 * (double)n_rows[v][5]);
    }
}

/* A student of 100 000 attempts: gradient and predictions are finite. */
static void test_long_student(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct tiny class;
    open_long(&class, N);
    struct bench bench;
    const uint32_t who[] = {0, 1, 2};
    open_bench(&bench, &class, "hidden=8, recompute=yes");
    const double loss = accumulate(&bench, who, 3);
    assert_true(loss > 0.5 * (double)bench.tally.n_scored &&
                loss < 5 * (double)bench.tally.n_scored);
    real *p = NEW(real, N);
    bench.model->kind->predict(bench.model, bench.work, 0, 7, p);
    for (size_t t = 0; t < N; t++)
        assert_true(p[t] > 0 && p[t] < 1);
    memory_free(p);
    close_bench(&bench);
    tiny_close(&class);
}

/* Weights far too large: probabilities stay probabilities, and the loss stays finite. */
static void test_extreme_weights(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < COUNT(variants); v++) {
        struct bench bench;
        open_bench(&bench, &class, variants[v]);
        tiny_model_scatter(&bench.tiny, 100, 5);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            real p[MOST_STEPS];
            bench.model->kind->predict(bench.model, bench.work, s, 7, p);
            for (size_t t = 0; t < class.first[s + 1] - class.first[s]; t++)
                assert_true(p[t] >= 0 && p[t] <= 1);
        }
        tally_clear(&bench.tally);
        bench.model->kind->accumulate(bench.model, bench.work, all_students, N_STUDENTS,
                                      &bench.draw, &bench.tally);
        assert_true(bench.tally.loss > 0);
        close_bench(&bench);
    }
    tiny_close(&class);
}

/* Initial values: self-loops on the diagonal, log-odds of items as first predictions, zero where
 * nothing connects. */
static void test_initial_values(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct tiny_model tiny;
    tiny_model_open(&tiny, "rtrbm",
                    "hidden=2, structure=skills, skill_units=1, loop=3, spread=0.5",
                    &class.dataset);
    int64_t right[N_ITEMS] = {3, 0, 7, 0, 1}, wrong[N_ITEMS] = {1, 0, 0, 4, 1};
    const struct item_counts counts = {N_ITEMS, right, wrong};
    tiny.model->kind->init(tiny.model, 3, &counts);
    struct oracle o;
    oracle_open(&o, &tiny, &class.shard);
    for (size_t j = 0; j < o.hidden; j++) {
        const double loop = 3 * (1 - 0.5 * (double)j / (double)(o.hidden - 1));
        assert_true(fabs(oracle_at(&o, "recurrent", j, j) - loop) < 0.1);
        assert_true(fabs(oracle_at(&o, "hidden_bias", 0, j) + loop / 2) < 1e-6);
        assert_true(oracle_at(&o, "first_bias", 0, j) == 0);
    }
    double *logit = item_counts_log_odds(&counts);
    for (size_t i = 0; i < N_ITEMS; i++) {
        double odds = oracle_bias(&o, i, 1) - oracle_bias(&o, i, 0);
        for (size_t j = 0; j < o.hidden; j++)
            odds +=
                log1p(exp(oracle_weight(&o, i, 1, j))) - log1p(exp(oracle_weight(&o, i, 0, j)));
        assert_true(fabs(odds - logit[i]) < 1e-6);
        for (size_t j = 0; j < o.hidden; j++)
            for (unsigned k = 0; k < 2; k++)
                assert_true(oracle_at(&o, "weights", 2 * i + k, j) ==
                            oracle_weight(&o, i, k, j));
        assert_true(oracle_weight(&o, i, 1, 0) != 0);
    }
    memory_free(logit);
    oracle_close(&o);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
#ifdef COHORT_REAL_DOUBLE
        cmocka_unit_test(test_gradient_against_differences),
#endif
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_contrastive_divergence),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_long_student),
        cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_initial_values),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
