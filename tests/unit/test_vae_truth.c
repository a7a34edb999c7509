/* builds: float double */
/* Properties of the ML2P-VAE for any parameters: no gradient at the truth, likelihoods of all
 * answer sheets that add up to one, bounds that approach the likelihood from below, predictions
 * that are means over the posterior, standard errors; and what it refuses. */
#include "base/h5.h"
#include "base/log.h"
#include "kernels/vec.h"
#include "vae_class.h"

/* Where data follow the model exactly (y is the probability itself), the gradients of items and
 * abilities vanish at the truth, and not next to it. */
static void test_truth_is_stationary(void **state)
{
    (void)state;
    enum { K = 2, N = WIDTH };
    _Alignas(64) real a[K * N], b[N], y[N], e[N], da[K * N] = {0}, db[N] = {0};
    const struct rng rng = {.seed = 5, .purpose = RNG_SIMULATE};
    const real theta[K] = {(real)0.7, (real)-1.2}, beside[K] = {(real)0.8, (real)-1.2};
    for (uint32_t j = 0; j < N; j++) {
        a[j] = (real)rng_uniform(&rng, 3 * j);
        a[N + j] = (real)rng_uniform(&rng, 3 * j + 1);
        b[j] = (real)rng_normal(&rng, 3 * j + 2);
        y[j] = (real)(1 / (1 + exp(-(double)(a[j] * theta[0] + a[N + j] * theta[1] - b[j]))));
    }
    real slope[K];
    const double tolerance = is_double ? 1e-14 : 1e-6;
    irt->respond(K, theta, a, b, y, N, e);
    irt->slope(K, a, e, N, slope);
    irt->credit(K, theta, 1, e, N, da, db);
    for (size_t k = 0; k < K; k++)
        assert_true(fabs((double)slope[k]) < tolerance);
    for (size_t j = 0; j < N; j++)
        assert_true(fabs((double)db[j]) < tolerance && fabs((double)da[j]) < tolerance &&
                    fabs((double)da[N + j]) < tolerance);
    irt->respond(K, beside, a, b, y, N, e);
    irt->slope(K, a, e, N, slope);
    assert_true((double)slope[0] < -0.01);
}

/* The kernels against the formula, and the same bits from every instruction set. */
static void test_kernels(void **state)
{
    (void)state;
    enum { K = 3, N = 80 * WIDTH, N_TRUE = 80 * WIDTH - 5 };
    extern const struct irt_table irt_plain;
    real *const a = NEW(real, K * N), *const b = NEW(real, N), *const y = NEW(real, N);
    real *const e = NEW(real, N), *const other = NEW(real, N);
    const struct rng rng = {.seed = 9, .purpose = RNG_SIMULATE};
    const real theta[K] = {(real)1.5, (real)-0.4, (real)0.2};
    double expected = 0;
    for (uint32_t j = 0; j < N; j++) {
        b[j] = j < N_TRUE ? (real)(3 * rng_normal(&rng, 5 * j)) : IRT_CERTAIN;
        y[j] = j < N_TRUE ? (real)(rng_uniform(&rng, 5 * j + 1) < 0.5) : 0;
        double x = -(double)b[j];
        for (uint32_t k = 0; k < K; k++) {
            a[k * N + j] = j < N_TRUE ? (real)rng_normal(&rng, 5 * j + 2 + k) : 0;
            x += (double)a[k * N + j] * (double)theta[k];
        }
        if (j < N_TRUE)
            expected += y[j] > 0 ? -log1p(exp(-x)) : -log1p(exp(x));
    }
    const real got = irt->respond(K, theta, a, b, y, N, e);
    assert_true(fabs((double)got - expected) < (is_double ? 1e-12 : 1e-5) * fabs(expected));
    for (size_t j = N_TRUE; j < N; j++)
        assert_true(e[j] == 0);
    const real plain = irt_plain.respond(K, theta, a, b, y, N, other);
    assert_memory_equal(&plain, &got, sizeof got);
    assert_memory_equal(e, other, N * sizeof *e);

    real *const da = NEW(real, K * N), *const db = NEW(real, N), slope[K];
    irt->slope(K, a, e, N, slope);
    irt->credit(K, theta, (real)0.5, e, N, da, db);
    for (size_t k = 0; k < K; k++) {
        double sum = 0, size = 0;
        for (size_t j = 0; j < N; j++) {
            sum += (double)a[k * N + j] * (double)e[j];
            size += fabs((double)a[k * N + j] * (double)e[j]);
            assert_true(fabs((double)da[k * N + j] - 0.5 * (double)theta[k] * (double)e[j]) <
                        1e-6);
            assert_true(fabs((double)db[j] + 0.5 * (double)e[j]) < 1e-6);
        }
        assert_true(fabs((double)slope[k] - sum) < 1e-6 * size);
    }
    memory_free(da);
    memory_free(db);

    struct moments first = {0}, second = {0}, fourth = {0}, pairs = {0};
    vec->uniform(&rng, e, N);
    memcpy(other, e, N * sizeof *e);
    irt->normal(e, N);
    irt_plain.normal(other, N);
    assert_memory_equal(e, other, N * sizeof *e);
    for (uint32_t part = 0; part < 40; part++) {
        const struct rng more = {.seed = 10, .purpose = RNG_SIMULATE, .part = part};
        vec->uniform(&more, e, N);
        irt->normal(e, N);
        for (size_t j = 0; j < N; j++) {
            const double x = (double)e[j];
            take(&first, x);
            take(&second, x * x);
            take(&fourth, x * x * x * x);
            if (j < N / 2)
                take(&pairs, x * (double)e[j + N / 2]);
        }
    }
    expect_near(&first, 0, 0);
    expect_near(&second, 1, 0);
    expect_near(&fourth, 3, 0);
    expect_near(&pairs, 0, 0);
    real *const all[] = {a, b, y, e, other};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
}

/* The probabilities of all answer sheets add up to one, on the grid and by sampling; that of a
 * single answer is the integral of sigma over the prior. */
static void test_likelihood(void **state)
{
    (void)state;
    static const char *const options[] = {"hidden=3, dimensions=1",
                                          "hidden=3, prior_correlation=1 0.6 / 0.6 1",
                                          "hidden=3, dimensions=3", "hidden=3, dimensions=4"};
    for (size_t o = 0; o < COUNT(options); o++) {
        struct tiny class;
        begin_class(&class);
        for (unsigned pattern = 0; pattern < 1 << N_ITEMS; pattern++) {
            char text[4 * N_ITEMS + 1] = "";
            for (int i = 0; i < N_ITEMS; i++)
                sprintf(text + strlen(text), "%c%c ", 'a' + i, pattern >> i & 1 ? '1' : '0');
            tiny_text(&class, text);
        }
        tiny_finish(&class, &world);
        struct bench bench;
        open_bench(&bench, &class, options[o]);
        const struct likelihood_plan plan = {.seed = 1};
        double sum = 0, variance = 0;
        for (size_t s = 0; s < 1 << N_ITEMS; s++) {
            struct likelihood one;
            vae_likelihood(bench.model, bench.work, s, 7, &plan, &one);
            assert_int_equal(one.n_steps, 1);
            assert_int_equal(one.n_sampled, o == 3);
            sum += exp(one.log_chance);
            variance += exp(2 * one.log_chance) * one.variance;
        }
        const double slack = o == 3 ? 4.5 * sqrt(variance) : is_double ? 1e-7 : 2e-6;
        if (!(fabs(sum - 1) <= slack) || (o == 3 && !(slack < 0.3)))
            fail_msg("%s: probabilities add up to %.9f, tolerance %g", options[o], sum, slack);
        close_bench(&bench);
        tiny_close(&class);
    }
}

/* More samples give a higher bound, and none exceeds the likelihood. */
static void test_bounds(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    double last = -INFINITY, likelihood = 0;
    for (int samples = 1; samples <= 256; samples *= 16) {
        struct bench bench;
        char *options =
            memory_text("hidden=3, prefixes=0, posterior=full, samples=%d", samples);
        open_bench(&bench, &class, options);
        struct moments bound = {0};
        for (uint32_t d = 0; d < 20000 / (uint32_t)samples + 500; d++) {
            bench.draw.epoch = d;
            take(&bound, -accumulate(&bench, all_students, N_STUDENTS));
        }
        likelihood = 0;
        for (size_t s = 0; s < N_STUDENTS; s++) {
            struct likelihood one;
            const struct likelihood_plan plan = {0};
            vae_likelihood(bench.model, bench.work, s, 1, &plan, &one);
            likelihood += one.log_chance;
        }
        const double error = sqrt(variance_of(&bound) / bound.n);
        assert_true(mean_of(&bound) > last + 4 * error);
        assert_true(mean_of(&bound) < likelihood + 4 * error);
        last = mean_of(&bound);
        close_bench(&bench);
        memory_free(options);
    }
    assert_true(likelihood - last < 0.05);
    tiny_close(&class);
}

/* The predicted probability is the mean of sigma over the posterior, or sigma at its mean. */
static void test_predictions(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (int plug_in = 0; plug_in < 2; plug_in++) {
        struct bench bench;
        open_bench(&bench, &class,
                   plug_in ? "hidden=3, posterior=full, prediction=plug_in"
                           : "hidden=3, posterior=full");
        real p[5];
        bench.model->kind->predict(bench.model, bench.work, 0, 7, p);
        struct vae_work *work = bench.work;
        /* student 1 answers item b first: the posterior before it is that before student 0's
         * first answer */
        vae_encoder_read(bench.model, work, NULL, 0, &work->posterior);
        vae_reserve(work, WIDTH, 1, 1);
        const uint32_t unit = 1; /* item a, correct */
        vae_collect_items(bench.model, work, &unit, 1);
        const struct rng rng = {.seed = 11, .purpose = RNG_SIMULATE};
        struct moments moments = {0};
        for (uint32_t d = 0; d < (plug_in ? 1 : 50000); d++) {
            const real epsilon[2] = {plug_in ? 0 : (real)rng_normal(&rng, 2 * d),
                                     plug_in ? 0 : (real)rng_normal(&rng, 2 * d + 1)};
            real theta[2];
            vae_posterior_draw(work->shape, &work->posterior, epsilon, theta);
            take(&moments, exp((double)irt->respond(2, theta, work->a, work->b, work->y, WIDTH,
                                                    work->e)));
        }
        expect_near(&moments, (double)p[0], 1e-5);
        close_bench(&bench);
    }
    tiny_close(&class);
}

/* The same for items so discriminating that the probability rises like a step, by sums over
 * fine steps of the predictor. */
static void test_steep_items(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3, dimensions=1");
    const struct tensor *tensor = find_tensor(&bench, "discrimination");
    for (double a = 0.5; a < 1e20; a *= a < 40 ? 1.5 : 1e6) {
        real dense[N_ITEMS], b[N_ITEMS], p[5];
        for (size_t i = 0; i < N_ITEMS; i++)
            dense[i] = (real)a;
        params_put(&bench.model->params, tensor, dense, bench.model->params.value);
        params_take(&bench.model->params, find_tensor(&bench, "difficulty"),
                    bench.model->params.value, b);
        bench.model->kind->predict(bench.model, bench.work, 0, 7, p);
        const struct vae_posterior *posterior = &((struct vae_work *)bench.work)->posterior;
        vae_encoder_read(bench.model, bench.work, NULL, 0,
                         &((struct vae_work *)bench.work)->posterior);
        double sum = 0, all = 0;
        for (double z = -8; z <= 8; z += 1e-4) {
            const double theta = (double)posterior->mean[0] + (double)posterior->root[0] * z;
            sum += exp(-0.5 * z * z) / (1 + exp((double)b[0] - a * theta));
            all += exp(-0.5 * z * z);
        }
        if (!(fabs((double)p[0] - sum / all) < 5e-4))
            fail_msg("a = %g: %g instead of %g", a, (double)p[0], sum / all);
    }
    close_bench(&bench);
    tiny_close(&class);
}

/* A posterior stays within the range of the prior, for any output of the encoder. */
static void test_posterior_is_bounded(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3, dimensions=1");
    struct vae_posterior *posterior = &((struct vae_work *)bench.work)->posterior;
    for (int sign = -1; sign <= 1; sign += 2) {
        const real out[2] = {0, (real)(sign * 1e30)};
        vae_posterior_of(((struct vae_work *)bench.work)->shape, out, posterior);
        assert_true(posterior->root[0] > 0 && posterior->root[0] < 3);
        assert_true(fabs(exp(posterior->log_det) / (double)posterior->root[0] - 1) < 1e-6);
    }
    close_bench(&bench);
    tiny_close(&class);
}

/* Extreme abilities give scores whose squares overflow a sum: then there are no standard
 * errors, and no overflow. */
static void test_extreme_abilities(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3, dimensions=1");
    struct params *params = &bench.model->params;
    const struct tensor *bias = find_tensor(&bench, "encoder_output_bias");
    const struct tensor *a = find_tensor(&bench, "discrimination");
    params->value[params->panels[bias->panel].offset] = (real)1e25;
    for (size_t i = 0; i < N_ITEMS; i++)
        params->value[params->panels[a->panel].offset + i * params->panels[a->panel].stride] =
            0;
    log_mute(true);
    assert_int_equal(bench.model->kind->view.examine(bench.model, &class.shard, &world), OK);
    log_mute(false);
    real error[N_ITEMS];
    params_take(params, find_tensor(&bench, "error_b"), params->value, error);
    for (size_t i = 0; i < N_ITEMS; i++)
        assert_true(error[i] == 0);
    close_bench(&bench);
    tiny_close(&class);
}

/* An item without answers starts, and stays, at the difficulty of all others together. */
static void test_item_without_answers(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3");
    const int64_t right[N_ITEMS] = {9, 5, 0, 14, 2}, wrong[N_ITEMS] = {1, 2, 0, 3, 4};
    int64_t counts[2 * N_ITEMS];
    memcpy(counts, right, sizeof right);
    memcpy(counts + N_ITEMS, wrong, sizeof wrong);
    const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
    bench.model->kind->init(bench.model, 4, &item_counts);
    real b[N_ITEMS];
    params_take(&bench.model->params, find_tensor(&bench, "difficulty"),
                bench.model->params.value, b);
    assert_true(fabs((double)b[0] + log(10.0 / 2)) < 1e-5);
    assert_true(fabs((double)b[2] + log(31.0 / 11)) < 1e-5);
    close_bench(&bench);
    tiny_close(&class);
}

/* Standard errors of two items and one ability, from the information computed here. With ten
 * students for each parameter, all have one matrix; with fewer, each has its own. */
static void check_standard_errors(uint32_t n_students, double prior_b)
{
    struct tiny class;
    begin_class(&class);
    const struct rng rng = {.seed = 12, .purpose = RNG_SIMULATE};
    for (uint32_t s = 0; s < n_students; s++) {
        char text[16];
        sprintf(text, "a%d b%d", (int)rng_below(&rng, 2 * s, 2),
                (int)rng_below(&rng, 2 * s + 1, 2));
        tiny_text(&class, text);
    }
    tiny_finish(&class, &world);
    struct bench bench;
    char options[80];
    snprintf(options, sizeof options, "hidden=3, dimensions=1, discrimination=one, prior_b=%g",
             prior_b);
    open_bench(&bench, &class, options);
    const real answers[N_ITEMS] = {(real)n_students, (real)n_students};
    params_put(&bench.model->params, find_tensor(&bench, "answers"), answers,
               bench.model->params.value);
    tiny_must(vae_examine(bench.model, &class.shard, &world));
    const struct tensor *tensor = find_tensor(&bench, "error_b"),
                        *b = find_tensor(&bench, "difficulty");
    real errors[N_ITEMS], difficulty[N_ITEMS];
    params_take(&bench.model->params, tensor, bench.model->params.value, errors);
    params_take(&bench.model->params, b, bench.model->params.value, difficulty);
    double info[2][2] = {{0}};
    for (size_t s = 0; s < n_students; s++) { /* scores by a sum over theta */
        double total = 0, score[2] = {0};
        for (double theta = -8; theta <= 8; theta += 0.01) {
            double weight = exp(-theta * theta / 2), d[2];
            for (uint64_t t = 0; t < 2; t++) {
                const bool correct = mark_outcome(class.mark[2 * s + t]) == CORRECT;
                const double p = 1 / (1 + exp(-theta + (double)difficulty[t]));
                weight *= correct ? p : 1 - p;
                d[t] = p - correct;
            }
            total += weight;
            score[0] += weight * d[0];
            score[1] += weight * d[1];
        }
        for (int x = 0; x < 2; x++)
            for (int y = 0; y < 2; y++)
                info[x][y] += score[x] * score[y] / (total * total);
    }
    for (size_t i = 2; i < N_ITEMS; i++)
        assert_true(errors[i] == 0); /* never answered */
    for (int x = 0; x < 2 && prior_b > 0; x++)
        info[x][x] += 1 / (prior_b * prior_b);
    if (n_students < 10 * N_ITEMS)
        info[0][1] = info[1][0] = 0;
    const double det = info[0][0] * info[1][1] - info[0][1] * info[1][0];
    assert_true(fabs((double)errors[0] - sqrt(info[1][1] / det)) < 0.03 * (double)errors[0]);
    assert_true(fabs((double)errors[1] - sqrt(info[0][0] / det)) < 0.03 * (double)errors[1]);
    close_bench(&bench);
    tiny_close(&class);
}

static void test_standard_errors(void **state)
{
    (void)state;
    check_standard_errors(60, 0);
    check_standard_errors(60, 0.5);
    check_standard_errors(20, 0);
    check_standard_errors(20, 0.5);
}

static enum status declare(const struct tiny *class, const char *options)
{
    struct config *config = config_create();
    char *text = memory_text("[model]\nkind = vae\n%s\n", options);
    tiny_must(config_read_text(config, text, "test"));
    struct model *model = model_create(model_find("vae"));
    struct model_names names;
    const struct option_group groups[] = {
        {"model", model_name_options, COUNT(model_name_options), &names},
        {"model", model->kind->options, model->kind->n_options, model->options},
    };
    tiny_must(config_resolve_some(config, groups, COUNT(groups)));
    const enum status status = model_declare(model, &class->dataset, N_STUDENTS, N_ITEMS, 2);
    model_destroy(model);
    config_destroy(config);
    memory_free(text);
    return status;
}

static void test_contradictory_settings(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"prior_correlation = 1 0.5", "rows of 2 numbers"},
        {"prior_correlation = 1 0 0 / 0 1 0 / 0 0 1", "3 rows and 9 numbers"},
        {"prior_correlation = 1 2 / 2 1", "not positive definite"},
        {"prior_correlation = 1 1 / 1 1", "not positive definite"},
        {"prior_correlation = 1 0.5 / 0.4 1", "not symmetric"},
        {"prior_correlation = 2 0 / 0 2", "unit variance"},
        {"prior_correlation = 1 0.5 / x 1", "not a number"},
        {"prior_a = 1\ndiscrimination = equal", "needs model.discrimination=nonnegative"},
    };
    struct tiny class;
    open_class(&class);
    for (size_t b = 0; b < COUNT(bad); b++) {
        assert_int_equal(declare(&class, bad[b][0]), BAD_USER);
        if (strstr(fail_sentence(), bad[b][1]) == NULL)
            fail_msg("%s: %s", bad[b][0], fail_sentence());
        fail_clear();
    }
    assert_int_equal(declare(&class, "prior_correlation = 1 -0.5 / -0.5 1"), OK);
    tiny_close(&class);
}

/* An item without a skill requires every ability. */
static void test_item_without_skill(void **state)
{
    (void)state;
    static const uint64_t first[N_ITEMS + 1] = {0, 0, 2, 3, 4, 5};
    static const uint32_t skills[] = {0, 1, 1, 0, 1}; /* b has both */
    struct tiny class;
    tiny_begin(&class, N_ITEMS, false);
    tiny_q_matrix(&class, first, skills);
    tiny_text(&class, "a1 b0");
    tiny_finish(&class, &world);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3");
    real q[2 * N_ITEMS];
    params_take(&bench.model->params, find_tensor(&bench, "q_matrix"),
                bench.model->params.value, q);
    static const bool is_free[N_ITEMS][2] = {{1, 1}, {1, 1}, {0, 1}, {1, 0}, {0, 1}};
    for (size_t i = 0; i < N_ITEMS; i++)
        for (size_t k = 0; k < 2; k++)
            assert_true((q[2 * i + k] == 1) == is_free[i][k]);
    close_bench(&bench);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth_is_stationary),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_steep_items),
        cmocka_unit_test(test_item_without_answers),
        cmocka_unit_test(test_standard_errors),
        cmocka_unit_test(test_contradictory_settings),
        cmocka_unit_test(test_item_without_skill),
        cmocka_unit_test(test_posterior_is_bounded),
        cmocka_unit_test(test_extreme_abilities),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
