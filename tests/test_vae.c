/* builds: float double */
/* limit: 200 */
/* The ML2P-VAE against what must be true of it: the gradient against differences of its own
 * loss for every kind of posterior, prior and bound; the divergence against its mean over
 * samples; the reparameterised gradient against the REINFORCE identity; the doubly
 * reparameterised one against the plain one; likelihoods of all answers that add up to one; the
 * bound below the likelihood and nearing it; no gradient at the truth. */
#include "../src/models/vae_parts.h"
#include "h5.h"
#include "irt.h"
#include "rng.h"
#include "tiny.h"
#include "vec.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 5 };

/* Item b has both skills. */
static void begin_class(struct tiny *class)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 1, 3, 4, 5, 6};
    static const uint32_t skills[] = {0, 0, 1, 1, 0, 1};
    tiny_begin(class, N_ITEMS, false);
    struct dataset *head = &class->draft.head;
    head->item_skills = memory_resize(head->item_skills, COUNT(skills), sizeof *skills);
    memcpy(head->item_first, first, sizeof first);
    memcpy(head->item_skills, skills, sizeof skills);
}

static const char *const texts[] = {"a1 b0 c1 d1 e0", "b1", "c0 b1 c1", "e1v d?",
                                    "a0 a1 a0 b1"};
enum { N_STUDENTS = COUNT(texts) };
static const uint32_t all_students[N_STUDENTS] = {0, 1, 2, 3, 4};

static void open_class(struct tiny *class)
{
    begin_class(class);
    for (size_t s = 0; s < N_STUDENTS; s++)
        tiny_text(class, texts[s]);
    tiny_finish(class, &world);
}

struct bench {
    struct tiny_model tiny;
    struct model *model;
    struct vae_work *work;
    struct tally tally;
    struct draw draw;
};

static const struct tensor *find_tensor(const struct bench *bench, const char *name)
{
    const struct params *params = &bench->model->params;
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0)
            return &params->tensors[t];
    return NULL;
}

/* Random parameters, but discriminations away from zero, where |a| has no derivative, and a
 * Q-matrix that is the data's. */
static void open_bench(struct bench *bench, const struct tiny *class, const char *options)
{
    tiny_model_open(&bench->tiny, "vae", options, &class->dataset);
    struct model *model = bench->model = bench->tiny.model;
    int64_t counts[2 * N_ITEMS];
    for (size_t i = 0; i < COUNT(counts); i++)
        counts[i] = (int64_t)(2 + i % 3);
    const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
    model->kind->init(model, 4, &item_counts);
    for (size_t t = 0; t < model->params.n_tensors; t++) {
        const struct tensor *tensor = &model->params.tensors[t];
        const size_t n = params_size(&model->params, tensor);
        const bool is_a = strcmp(tensor->name, "discrimination") == 0;
        if (!is_a && strcmp(tensor->name, "difficulty") != 0 &&
            strncmp(tensor->name, "encoder", 7) != 0)
            continue;
        real *dense = NEW(real, n);
        params_take(&model->params, tensor, model->params.value, dense);
        const struct rng rng = {.seed = 8, .purpose = RNG_INIT, .part = (uint32_t)t};
        for (size_t i = 0; i < n; i++) {
            const double x = rng_normal(&rng, (uint32_t)i);
            if (!is_a)
                dense[i] = (real)(0.4 * x);
            else if (dense[i] != 0)
                dense[i] = (real)(copysign(0.3, x) + x);
        }
        params_put(&model->params, tensor, dense, model->params.value);
        memory_free(dense);
    }
    bench->work = model->kind->attach(model, &class->shard);
    tally_create(&bench->tally, model->params.n, true, 40, NULL);
    bench->draw = (struct draw){.seed = 6, .epoch = 2};
}

static void close_bench(struct bench *bench)
{
    tally_destroy(&bench->tally);
    bench->model->kind->detach(bench->work);
    tiny_model_close(&bench->tiny);
}

static double accumulate(struct bench *bench, const uint32_t *students, size_t n)
{
    tally_clear(&bench->tally);
    bench->tally.loss = bench->tally.n_scored = 0;
    bench->model->kind->accumulate(bench->model, bench->work, students, n, &bench->draw,
                                   &bench->tally);
    assert_int_equal(bench->tally.out_of_range, 0);
    return ldexp((double)bench->tally.loss, -LOSS_BITS);
}

#ifdef COHORT_REAL_DOUBLE
static bool is_trained(const struct tensor *tensor)
{
    return strcmp(tensor->name, "discrimination") == 0 ||
           strcmp(tensor->name, "difficulty") == 0 || strncmp(tensor->name, "encoder", 7) == 0;
}

/* f'(0) from f at 1, 2, 3, -1, -2, -3 times `step`, to the sixth order. */
static double difference(const double f[6], double step)
{
    return (45 * (f[0] - f[3]) - 9 * (f[1] - f[4]) + (f[2] - f[5])) / (60 * step);
}

static void compare_with_differences(const struct tiny *class, const char *options)
{
    struct bench bench;
    open_bench(&bench, class, options);
    const struct params *params = &bench.model->params;
    const double step = 4e-3;
    accumulate(&bench, all_students, N_STUDENTS);
    double *gradient = NEW(double, params->n), largest = 0;
    for (size_t i = 0; i < params->n; i++) {
        gradient[i] = -tiny_statistic(&bench.tally, i);
        largest = fmax(largest, fabs(gradient[i]));
        if (params_find(params, i) == NULL || !is_trained(params_find(params, i)))
            assert_true(gradient[i] == 0);
    }
    assert_true(largest > 0.1);
    for (size_t i = 0; i < params->n; i++) {
        const struct tensor *tensor = params_find(params, i);
        if (tensor == NULL || !is_trained(tensor))
            continue;
        const real value = params->value[i];
        double f[6];
        for (unsigned k = 0; k < 6; k++) {
            params->value[i] = value + step * (k < 3 ? (double)k + 1 : 2 - (double)k);
            f[k] = accumulate(&bench, all_students, N_STUDENTS);
        }
        params->value[i] = value;
        const double expected = difference(f, step);
        if (!(fabs(gradient[i] - expected) <= 1e-6 * fabs(expected) + 2e-8))
            fail_msg("%s: %s, number %zu: %.12g instead of %.12g", options, tensor->name, i,
                     gradient[i], expected);
    }
    memory_free(gradient);
    close_bench(&bench);
}

static void test_differences(void **state)
{
    (void)state;
    static const char *const priors[] = {"", "1 0.6 / 0.6 1"};
    static const char *const more[] = {
        "discrimination=nonnegative, prior_a=0.7, prior_b=2", "discrimination=signed",
        "discrimination=equal, layers=3", "discrimination=one, layers=1, kl_warm_up=8",
        "discrimination=nonnegative, kl_warm_up=5"};
    struct tiny class;
    open_class(&class);
    for (int posterior = 0; posterior < 2; posterior++)
        for (size_t prior = 0; prior < COUNT(priors); prior++)
            for (int samples = 1; samples <= 4; samples += 3)
                for (size_t m = 0; m < COUNT(more); m++) {
                    char *options = memory_text(
                        "hidden=3, gradient=plain, prefixes=0, posterior=%s, "
                        "samples=%d, prior_correlation=%s, %s",
                        posterior ? "full" : "independent", samples, priors[prior], more[m]);
                    compare_with_differences(&class, options);
                    memory_free(options);
                }
    compare_with_differences(&class, "hidden=18, prefixes=0, dimensions=3, posterior=full");
    tiny_close(&class);
}
#endif

/* Mean and standard error of numbers that come one after the other. */
struct moments {
    double n, sum, squares;
};

static void take(struct moments *moments, double x)
{
    moments->n++;
    moments->sum += x;
    moments->squares += x * x;
}

static double mean_of(const struct moments *m)
{
    return m->sum / m->n;
}

static double variance_of(const struct moments *m)
{
    return fmax(0, m->squares / m->n - mean_of(m) * mean_of(m));
}

static void expect_near(const struct moments *m, double expected, double slack)
{
    const double error = sqrt(variance_of(m) / m->n);
    if (!(fabs(mean_of(m) - expected) <= 4.5 * error + slack))
        fail_msg("%g +- %g instead of %g", mean_of(m), error, expected);
}

/* KL in closed form is the mean of log q - log p. */
static void test_divergence(void **state)
{
    (void)state;
    static const char *const priors[] = {"", "1 0.5 0.2 / 0.5 1 -0.3 / 0.2 -0.3 1"};
    const struct rng rng = {.seed = 2, .purpose = RNG_SIMULATE};
    for (size_t p = 0; p < COUNT(priors); p++)
        for (int full = 0; full < 2; full++) {
            struct vae_prior prior;
            tiny_must(vae_prior_create(&prior, priors[p], 3));
            real root[9] = {(real)0.5, 0, 0, 0, (real)1.3, 0, 0, 0, (real)0.8};
            if (full) {
                root[3] = (real)0.4;
                root[6] = (real)-0.6;
                root[7] = (real)0.3;
            }
            struct vae_posterior posterior = {.mean = {(real)0.3, (real)-1, (real)0.6},
                                              .root = root};
            posterior.log_det = log(0.5 * 1.3 * 0.8);
            const struct vae_shape shape = {.n_dims = 3, .full = full};
            struct moments moments = {0};
            for (uint32_t d = 0; d < 40000; d++) {
                real epsilon[3], theta[3];
                for (uint32_t k = 0; k < 3; k++)
                    epsilon[k] = (real)rng_normal(&rng, 3 * d + k);
                vae_posterior_draw(&shape, &posterior, epsilon, theta);
                take(&moments, -vae_log_ratio(&prior, &posterior, epsilon, theta));
            }
            const double kl = vae_prior_kl(&prior, &posterior);
            assert_true(kl > 0.3);
            expect_near(&moments, kl, 0);
            vae_prior_free(&prior);
        }
}

/* The prior of one dimension by hand: KL of N(m, s^2) from N(0, 1), equation 8 of the note. */
static void test_divergence_by_hand(void **state)
{
    (void)state;
    struct vae_prior prior;
    tiny_must(vae_prior_create(&prior, "", 1));
    real root = (real)0.7;
    const struct vae_posterior posterior = {
        .mean = {(real)1.1}, .root = &root, .log_det = log(0.7)};
    const double expected = -0.5 * (1 + log(0.49) - 1.21 - 0.49);
    assert_true(fabs(vae_prior_kl(&prior, &posterior) - expected) < 1e-6);
    vae_prior_free(&prior);
}

/* A student of one answer sheet, and the derivative of its bound by the encoder's outputs: that
 * by the biases of the last layer. */
static void output_gradient(struct bench *bench, double *gradient, size_t n)
{
    const struct tensor *tensor = find_tensor(bench, "encoder_output_bias");
    const size_t at = bench->model->params.panels[tensor->panel].offset;
    accumulate(bench, all_students, 1);
    for (size_t j = 0; j < n; j++)
        gradient[j] = tiny_statistic(&bench->tally, at + j);
}

/* The score function says the same as the reparameterised gradient:
 *     d/d phi E_q[log p(x, theta) - log q] = E_q[(log p(x, theta) - log q) d log q / d phi] */
static void test_reinforce(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench bench;
    open_bench(&bench, &class,
               "hidden=3, posterior=full, prefixes=0, prior_correlation=1 0.6 / 0.6 1");
    enum { N_OUT = 5, N_DRAWS = 20000 };
    struct moments path[N_OUT] = {0}, score[N_OUT] = {0};
    accumulate(&bench, all_students, 1);
    struct vae_work *work = bench.work;
    vae_posterior_of(&work->shape, work->out, &work->posterior);
    const real *l = work->posterior.root;
    const size_t padded = vae_collect_items(bench.model, work, work->unit, 5);
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE};
    real *e = NEW(real, padded);
    for (uint32_t d = 0; d < 10 * N_DRAWS; d++) {
        const real epsilon[2] = {(real)rng_normal(&rng, 2 * d),
                                 (real)rng_normal(&rng, 2 * d + 1)};
        real theta[2];
        vae_posterior_draw(&work->shape, &work->posterior, epsilon, theta);
        const double f = (double)irt->respond(2, theta, work->a, work->b, work->y, padded, e) +
                         vae_log_ratio(&work->prior, &work->posterior, epsilon, theta);
        /* d log q by m is L^-T epsilon; by L it is L^-T (epsilon epsilon^T - 1), lower part */
        const double e0 = (double)epsilon[0], e1 = (double)epsilon[1];
        const double u1 = e1 / (double)l[3], u0 = (e0 - (double)l[2] * u1) / (double)l[0];
        const double by_l00 = u0 * e0 - 1 / (double)l[0];
        const double by_l11 = u1 * e1 - 1 / (double)l[3];
        take(&score[0], f * u0);
        take(&score[1], f * u1);
        take(&score[2], f * by_l00 * (double)l[0]);
        take(&score[3], f * by_l11 * (double)l[3]);
        take(&score[4], f * u1 * e0);
    }
    memory_free(e);
    for (uint32_t d = 0; d < N_DRAWS; d++) {
        double gradient[N_OUT];
        bench.draw.epoch = d;
        output_gradient(&bench, gradient, N_OUT);
        for (size_t j = 0; j < N_OUT; j++)
            take(&path[j], gradient[j]);
    }
    for (size_t j = 0; j < N_OUT; j++)
        expect_near(&score[j], mean_of(&path[j]), 4.5 * sqrt(variance_of(&path[j]) / N_DRAWS));
    assert_true(fabs(mean_of(&path[0])) > 20 * sqrt(variance_of(&path[0]) / N_DRAWS));
    close_bench(&bench);
    tiny_close(&class);
}

/* The doubly reparameterised gradient has the plain one's mean and less noise. */
static void test_double_gradient(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    enum { N_OUT = 5, N_DRAWS = 8000 };
    struct moments moments[2][N_OUT] = {0};
    for (int way = 0; way < 2; way++) {
        struct bench bench;
        char *options = memory_text("hidden=3, posterior=full, prefixes=0, samples=6, "
                                    "gradient=%s, prior_correlation=1 0.6 / 0.6 1",
                                    way ? "plain" : "double");
        open_bench(&bench, &class, options);
        for (uint32_t d = 0; d < N_DRAWS; d++) {
            double gradient[N_OUT];
            bench.draw.epoch = d;
            output_gradient(&bench, gradient, N_OUT);
            for (size_t j = 0; j < N_OUT; j++)
                take(&moments[way][j], gradient[j]);
        }
        close_bench(&bench);
        memory_free(options);
    }
    double noise[2] = {0};
    for (size_t j = 0; j < N_OUT; j++) {
        expect_near(&moments[0][j], mean_of(&moments[1][j]),
                    4.5 * sqrt(variance_of(&moments[1][j]) / N_DRAWS));
        for (int way = 0; way < 2; way++)
            noise[way] += variance_of(&moments[way][j]);
    }
    assert_true(noise[0] < noise[1]);
    tiny_close(&class);
}

/* Where data follow the model exactly (y is the probability itself), the items' and abilities'
 * gradients vanish at the truth, and not beside it. */
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

/* The chances of all answer sheets add up to one, on the grid and by sampling; a single
 * answer's is the integral of sigma over the prior. */
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
            fail_msg("%s: chances add up to %.9f, slack %g", options[o], sum, slack);
        close_bench(&bench);
        tiny_close(&class);
    }
}

/* More samples, a higher bound; none above the likelihood. */
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

/* Beginnings teach the encoder only. */
static void test_prefixes(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct bench plain, prefixed;
    open_bench(&plain, &class, "hidden=3, samples=3, posterior=full, prefixes=0");
    open_bench(&prefixed, &class, "hidden=3, samples=3, posterior=full, prefixes=2");
    const double loss = accumulate(&plain, all_students, N_STUDENTS);
    const double other = accumulate(&prefixed, all_students, N_STUDENTS);
    const double tolerance = is_double ? 1e-10 : 1e-4;
    assert_true(fabs(loss - other) < tolerance);
    size_t n_moved = 0;
    for (size_t i = 0; i < plain.model->params.n; i++) {
        const struct tensor *tensor = params_find(&plain.model->params, i);
        const double gap = tiny_statistic(&plain.tally, i) - tiny_statistic(&prefixed.tally, i);
        if (tensor != NULL && strncmp(tensor->name, "encoder", 7) == 0)
            n_moved += fabs(gap) > 100 * tolerance;
        else
            assert_true(fabs(gap) < tolerance);
    }
    assert_true(n_moved > 10);
    close_bench(&plain);
    close_bench(&prefixed);
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
        /* student 1 answers item b first: the posterior before it is that of student 0's first
         */
        vae_encoder_read(bench.model, work, NULL, 0, &work->posterior);
        vae_reserve(work, WIDTH, 1);
        const uint32_t unit = 1; /* item a, correct */
        vae_collect_items(bench.model, work, &unit, 1);
        const struct rng rng = {.seed = 11, .purpose = RNG_SIMULATE};
        struct moments moments = {0};
        for (uint32_t d = 0; d < (plug_in ? 1 : 50000); d++) {
            const real epsilon[2] = {plug_in ? 0 : (real)rng_normal(&rng, 2 * d),
                                     plug_in ? 0 : (real)rng_normal(&rng, 2 * d + 1)};
            real theta[2];
            vae_posterior_draw(&work->shape, &work->posterior, epsilon, theta);
            take(&moments, exp((double)irt->respond(2, theta, work->a, work->b, work->y, WIDTH,
                                                    work->e)));
        }
        expect_near(&moments, (double)p[0], 1e-5);
        close_bench(&bench);
    }
    tiny_close(&class);
}

/* Standard errors: of one item and one ability, from the information computed here. */
static void test_errors(void **state)
{
    (void)state;
    struct tiny class;
    begin_class(&class);
    const struct rng rng = {.seed = 12, .purpose = RNG_SIMULATE};
    for (uint32_t s = 0; s < 60; s++) {
        char text[16];
        sprintf(text, "a%d b%d", (int)rng_below(&rng, 2 * s, 2),
                (int)rng_below(&rng, 2 * s + 1, 2));
        tiny_text(&class, text);
    }
    tiny_finish(&class, &world);
    struct bench bench;
    open_bench(&bench, &class, "hidden=3, dimensions=1, discrimination=one");
    tiny_must(vae_examine(bench.model, bench.work, &world));
    const struct tensor *tensor = find_tensor(&bench, "error_b"),
                        *b = find_tensor(&bench, "difficulty");
    real errors[N_ITEMS], difficulty[N_ITEMS];
    params_take(&bench.model->params, tensor, bench.model->params.value, errors);
    params_take(&bench.model->params, b, bench.model->params.value, difficulty);
    double info[2][2] = {{0}};
    for (size_t s = 0; s < 60; s++) { /* scores by a sum over theta, step by step */
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
    const double det = info[0][0] * info[1][1] - info[0][1] * info[1][0];
    assert_true(fabs((double)errors[0] - sqrt(info[1][1] / det)) < 0.03 * (double)errors[0]);
    assert_true(fabs((double)errors[1] - sqrt(info[0][0] / det)) < 0.03 * (double)errors[1]);
    close_bench(&bench);
    tiny_close(&class);
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

static void test_contradictions(void **state)
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

    begin_class(&class);
    class.draft.head.item_first[1] = 0; /* item a in no skill, b in three */
    tiny_text(&class, "a1 b0");
    tiny_finish(&class, &world);
    assert_int_equal(declare(&class, ""), BAD_USER);
    assert_non_null(strstr(fail_sentence(), "'item 0' is in no skill"));
    fail_clear();
    assert_int_equal(declare(&class, "dimensions = 2"), OK);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
#ifdef COHORT_REAL_DOUBLE
        cmocka_unit_test(test_differences),
#endif
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_divergence_by_hand),
        cmocka_unit_test(test_reinforce),
        cmocka_unit_test(test_double_gradient),
        cmocka_unit_test(test_truth_is_stationary),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_contradictions),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
