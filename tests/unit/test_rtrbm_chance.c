/* builds: float double */
/* Probabilities of steps under a recurrent temporal RBM: sums over the states of either side
 * and annealed importance sampling, against each other and an oracle; and students drawn from
 * it, whose frequencies must match these probabilities. */
#include "base/h5.h"
#include "rtrbm_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 10 };

struct bench {
    struct tiny class;
    struct tiny_model tiny;
    const struct model *model;
    void *work;
    struct oracle oracle;
};

/* Students of `n_steps` steps of `n_units` attempts each, random items and outcomes. */
static void open_bench(struct bench *b, const char *options, size_t n_students, size_t n_steps,
                       size_t n_units, double scale)
{
    tiny_begin(&b->class, N_ITEMS, false);
    for (uint32_t s = 0; s < n_students; s++) {
        const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .who = s};
        tiny_student(&b->class);
        for (uint32_t t = 0; t < n_steps; t++)
            for (uint32_t a = 0; a < n_units; a++)
                tiny_attempt(
                    &b->class, (uint32_t)((s + 3 * t + a) % N_ITEMS),
                    mark_make(rng_below(&rng, 16 * t + a, 3) == 0, TRAIN, true, a == 0));
    }
    tiny_finish(&b->class, &world);
    tiny_model_open(&b->tiny, "rtrbm", options, &b->class.dataset);
    b->model = b->tiny.model;
    tiny_model_scatter(&b->tiny, scale, 9);
    b->work = b->model->kind->attach(b->model, &b->class.shard, TO_TRAIN);
    oracle_open(&b->oracle, &b->tiny, &b->class.shard);
}

static void close_bench(struct bench *b)
{
    oracle_close(&b->oracle);
    b->model->kind->detach(b->work);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

static double log_chance(const struct bench *b, size_t s, const struct likelihood_plan *plan,
                         struct likelihood *sum)
{
    b->model->kind->sequence.likelihood(b->model, b->work, s, 1u << TRAIN, plan, sum);
    return sum->log_chance;
}

/* Sums over the states of the visible units, and over those of the hidden units. */
static void test_enumeration(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "hidden=3",
        "hidden=12",
        "hidden=20",
        "hidden=3, visible=bernoulli",
        "hidden=20, visible=bernoulli",
        "hidden=3, visible=bernoulli, dense=yes",
        "hidden=12, visible=bernoulli, dense=yes",
        "hidden=2, structure=skills, skill_units=3, penalty=0",
    };
    const struct likelihood_plan plan = {.most_bits = 12};
    for (size_t v = 0; v < COUNT(variants); v++)
        for (size_t n_units = 1; n_units <= 6; n_units++) {
            struct bench b;
            open_bench(&b, variants[v], 3, 4, n_units, 0.8);
            for (size_t s = 0; s < 3; s++) {
                double p[64];
                struct likelihood sum;
                const double got = log_chance(&b, s, &plan, &sum);
                const double expected = -oracle_loss(&b.oracle, s, p);
                assert_int_equal(sum.n_steps, 4);
                assert_int_equal(sum.n_sampled, 0);
                assert_true(sum.variance == 0);
                if (!(fabs(got - expected) < (is_double ? 1e-11 : 1e-4)))
                    fail_msg("%s, %zu units: %.12g instead of %.12g", variants[v], n_units, got,
                             expected);
            }
            close_bench(&b);
        }
}

/* Attempts of other splits are conditioned on where they are shown, and are not part of the
 * sum. */
static void test_other_splits_are_not_summed(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "hidden=4", 2, 3, 3, 0.8);
    const struct likelihood_plan plan = {.most_bits = 12};
    struct likelihood all, none;
    for (uint64_t a = 0; a < b.class.n_attempts; a += 3)
        b.class.shard.mark[a] =
            mark_make(mark_outcome(b.class.shard.mark[a]), VALID, a % 2 == 0, true);
    double p[64];
    assert_true(fabs(log_chance(&b, 0, &plan, &all) + oracle_loss(&b.oracle, 0, p)) <
                (is_double ? 1e-11 : 1e-4));
    b.model->kind->sequence.likelihood(b.model, b.work, 0, 1u << TEST, &plan, &none);
    assert_int_equal(none.n_steps, 0);
    assert_true(none.log_chance == 0);
    close_bench(&b);
}

/* Annealed sampling against sums: its error matches its standard error, falls with more chains,
 * and the mean of Z itself is correct. */
static void test_annealed_importance_sampling(void **state)
{
    (void)state;
    static const char *const variants[] = {"hidden=8", "hidden=8, visible=bernoulli, dense=yes",
                                           "hidden=17, visible=bernoulli"};
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench b;
        open_bench(&b, variants[v], 6, 5, 9, 0.7);
        const struct likelihood_plan exact = {.most_bits = 12};
        struct likelihood_plan plan = {
            .most_bits = 0, .n_chains = 50, .n_temperatures = 40, .seed = 1};
        double off = 0, variance = 0, fine = 0, ratio = 0;
        for (size_t s = 0; s < 6; s++) {
            struct likelihood truth, coarse, many;
            const double expected = log_chance(&b, s, &exact, &truth);
            plan.n_chains = 50;
            off += log_chance(&b, s, &plan, &coarse) - expected;
            variance += coarse.variance;
            assert_int_equal(coarse.n_sampled, 5);
            /* the estimate of Z is unbiased, that of its logarithm not quite */
            ratio += exp(expected - coarse.log_chance) - 1;
            plan.n_chains = 400;
            const double close = log_chance(&b, s, &plan, &many);
            fine += many.variance;
            assert_true(fabs(close - expected) < 6 * sqrt(many.variance) + 1e-3);
            assert_true(many.variance < coarse.variance);
        }
        if (!(fabs(off) < 5 * sqrt(variance) + 1e-3))
            fail_msg("%s: off by %g, standard error %g", variants[v], off, sqrt(variance));
        assert_true(fabs(ratio) < 5 * sqrt(variance) + 1e-3);
        assert_true(variance > 1e-8 && fine < variance / 4);
        close_bench(&b);
    }
}

static void take(void *arg, uint32_t item, bool correct, bool begins_step)
{
    uint32_t **end = arg;
    *(*end)++ = 4 * item + 2 * correct + begins_step;
}

/* Compare how often each sequence of outcomes is drawn with its probability. */
static void test_samples(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "hidden=3", "hidden=3, visible=bernoulli",
        "hidden=1, structure=skills, skill_units=1, penalty=0"};
    enum { N = 8000, UNITS = 2, STEPS = 2, STATES = 16 };
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench b;
        open_bench(&b, variants[v], 1, STEPS, UNITS, 1);
        int64_t count[STATES] = {0};
        for (uint32_t k = 0; k < N; k++) {
            uint32_t got[UNITS * STEPS], *end = got;
            const struct sample_sink sink = {take, &end};
            b.model->kind->sequence.sample(b.model, b.work, 0, 7, k, 10, &sink);
            assert_int_equal(end - got, UNITS * STEPS);
            unsigned drawn = 0;
            for (unsigned a = 0; a < UNITS * STEPS; a++) {
                assert_int_equal(got[a] >> 2, b.class.item[a]);
                assert_int_equal(got[a] & 1, a % UNITS == 0);
                drawn |= (got[a] >> 1 & 1) << a;
            }
            count[drawn]++;
        }
        double total = 0, distance = 0, p[64];
        for (unsigned k = 0; k < STATES; k++) {
            for (unsigned a = 0; a < UNITS * STEPS; a++)
                b.class.shard.mark[a] =
                    mark_make((enum outcome)(k >> a & 1), TRAIN, true, a % UNITS == 0);
            const double chance = exp(-oracle_loss(&b.oracle, 0, p));
            total += chance;
            distance += pow((double)count[k] - N * chance, 2) / (N * chance);
        }
        assert_true(fabs(total - 1) < 1e-9);
        if (!(distance < 45)) /* chi-square with 15 degrees of freedom: one in ten thousand */
            fail_msg("%s: chi-square %g", variants[v], distance);
        close_bench(&b);
    }
}

/* Steps of many units come from a Gibbs chain; each unit is on with the right frequency. */
static void test_gibbs_chains(void **state)
{
    (void)state;
    enum { N = 3000, UNITS = 10 };
    struct bench b;
    open_bench(&b, "hidden=4, visible=bernoulli, dense=yes", 1, 1, UNITS, 0.7);
    double mean[UNITS] = {0}, expected[UNITS] = {0}, p[64];
    for (uint32_t k = 0; k < N; k++) {
        uint32_t got[UNITS], *end = got;
        const struct sample_sink sink = {take, &end};
        b.model->kind->sequence.sample(b.model, b.work, 0, 7, k, 60, &sink);
        for (unsigned a = 0; a < UNITS; a++) {
            assert_int_equal(got[a] >> 2, a);
            mean[a] += (double)(got[a] >> 1 & 1) / N;
        }
    }
    for (unsigned k = 0; k < 1u << UNITS; k++) {
        for (unsigned a = 0; a < UNITS; a++)
            b.class.shard.mark[a] =
                mark_make((enum outcome)(k >> b.class.item[a] & 1), TRAIN, true, a == 0);
        const double chance = exp(-oracle_loss(&b.oracle, 0, p));
        for (unsigned i = 0; i < UNITS; i++)
            expected[i] += (k >> i & 1) * chance;
    }
    for (unsigned i = 0; i < UNITS; i++)
        assert_true(fabs(mean[i] - expected[i]) <
                    5 * sqrt(expected[i] * (1 - expected[i]) / N) + 1e-3);
    close_bench(&b);
}

/* Frames too large for sums are predicted with Gibbs chains: close to the sums over states,
 * also for sharp distributions, and independent of the student's number. */
static void test_dense_predictions(void **state)
{
    (void)state;
    static const double scales[] = {0.5, 1.5};
    for (size_t v = 0; v < COUNT(scales); v++) {
        struct bench b;
        open_bench(&b, "hidden=12, visible=bernoulli, dense=yes, chains=32, sweeps=160", 2, 3,
                   N_ITEMS, scales[v]);
        real p[2][3 * N_ITEMS];
        double expected[3 * N_ITEMS], most = 0, mean = 0;
        for (size_t s = 0; s < 2; s++) {
            oracle_loss(&b.oracle, s, expected);
            b.model->kind->predict(b.model, b.work, s, 1u << TRAIN, p[s]);
            for (size_t a = 0; a < 3 * N_ITEMS; a++) {
                const double off = fabs((double)p[s][a] - expected[a]);
                most = fmax(most, off);
                mean += off / (2 * 3 * N_ITEMS);
            }
        }
        if (!(most < 0.06 && mean < 0.015))
            fail_msg("scale %g: off by up to %g, %g on average", scales[v], most, mean);
        for (size_t a = 0; a < N_ITEMS;
             a++) /* in the first step student 1 begins one item later */
            assert_true(p[0][(a + 1) % N_ITEMS] == p[1][a]);
        close_bench(&b);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumeration),
        cmocka_unit_test(test_other_splits_are_not_summed),
        cmocka_unit_test(test_annealed_importance_sampling),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_gibbs_chains),
        cmocka_unit_test(test_dense_predictions),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
