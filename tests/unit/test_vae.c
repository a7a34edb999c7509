/* builds: float double */
/* The gradient of the ML2P-VAE: against differences of its own loss for every kind of
 * posterior, prior and bound; the divergence against its mean over samples; the reparameterised
 * gradient against the REINFORCE identity; the doubly reparameterised gradient against the
 * plain one. */
#include "base/h5.h"
#include "vae_class.h"

#ifdef COHORT_REAL_DOUBLE
static bool is_trained(const struct tensor *tensor)
{
    return strcmp(tensor->name, "discrimination") == 0 ||
           strcmp(tensor->name, "difficulty") == 0 || strncmp(tensor->name, "encoder", 7) == 0;
}

static void compare_with_differences(const struct tiny *class, const char *options)
{
    struct bench bench;
    open_bench(&bench, class, options);
    expect_differences(&bench, options,
                       &(struct comparison){.students = all_students,
                                            .n_students = N_STUDENTS,
                                            .stride = 1,
                                            .is_trained = is_trained,
                                            .least = 0.1,
                                            .slack = 2e-8});
    close_bench(&bench);
}

static void test_gradient_against_differences(void **state)
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

/* KL in closed form is the mean of log q - log p. */
static void test_divergence_by_sampling(void **state)
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

/* A student of one answer sheet, and the derivative of its bound by the encoder's outputs,
 * which is the derivative by the biases of the last layer. */
static void output_gradient(struct bench *bench, double *gradient, size_t n)
{
    const struct tensor *tensor = find_tensor(bench, "encoder_output_bias");
    const size_t at = bench->model->params.panels[tensor->panel].offset;
    accumulate(bench, all_students, 1);
    for (size_t j = 0; j < n; j++)
        gradient[j] = tiny_statistic(&bench->tally, at + j);
}

/* The score function gives the same as the reparameterised gradient:
 *
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
    vae_posterior_of(work->shape, work->out, &work->posterior);
    const real *l = work->posterior.root;
    const size_t padded = vae_collect_items(bench.model, work, work->unit, 5);
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE};
    real *e = NEW(real, padded);
    for (uint32_t d = 0; d < 10 * N_DRAWS; d++) {
        const real epsilon[2] = {(real)rng_normal(&rng, 2 * d),
                                 (real)rng_normal(&rng, 2 * d + 1)};
        real theta[2];
        vae_posterior_draw(work->shape, &work->posterior, epsilon, theta);
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

/* The doubly reparameterised gradient has the mean of the plain one and less noise. */
static void test_doubly_reparameterised_gradient(void **state)
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

/* Prefixes train the encoder only. */
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

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
#ifdef COHORT_REAL_DOUBLE
        cmocka_unit_test(test_gradient_against_differences),
#endif
        cmocka_unit_test(test_divergence_by_sampling),
        cmocka_unit_test(test_divergence_by_hand),
        cmocka_unit_test(test_reinforce),
        cmocka_unit_test(test_doubly_reparameterised_gradient),
        cmocka_unit_test(test_prefixes),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
