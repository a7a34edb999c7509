/* builds: float double */
/* The likelihood of a tiny RBM, by enumeration of all visible and hidden states: its gradient
 * against finite differences, long contrastive divergence and persistent chains; and training
 * increases it. */
#include "base/h5.h"
#include "learn/optimizer.h"
#include "rbm_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 5 };
static const char student[] = "a1 d0 d1 b? c0v";

static const char *const variants[] = {
    "hidden=3, copies=1, visible=bernoulli",
    "hidden=3, copies=3, visible=bernoulli, conditional=yes, factors=2",
    "hidden=3, copies=1",
    "hidden=3, copies=2",
    "hidden=3, copies=3, conditional=yes",
    "hidden=3, copies=2, conditional=yes, factors=2",
    "hidden=3, copies=2, conditional=yes, repeats=last",
    "hidden=2, copies=2, hidden_kind=gaussian, conditional=yes",
    "hidden=2, copies=1, hidden_kind=gaussian, conditional=yes, factors=2",
    "hidden=3, copies=2, common=yes",
    "hidden=3, copies=1, common=yes, visible=bernoulli, factors=2",
};

static void open_class(struct tiny *class, size_t n_students)
{
    tiny_begin(class, N_ITEMS, false);
    for (size_t s = 0; s < n_students; s++)
        tiny_text(class, student);
    tiny_finish(class, &world);
}

/* log P(the student's answers), given which items were answered. */
static double log_likelihood(const struct oracle *o, const struct oracle_units *units)
{
    int count[MOST_UNITS];
    double total = 0;
    for (size_t state = 0; state < oracle_n_states(o, units); state++) {
        oracle_state(o, units, state, count);
        total += oracle_weight(o, units, count);
    }
    oracle_data(o, units, count);
    return log(oracle_weight(o, units, count)) - log(total);
}

/* Data minus model, enumerated, is the slope of the enumerated likelihood, for every tensor;
 * with gaussian units times the student's share. */
static void test_gradient_by_differences(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, 1);
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct tiny_model tiny;
        struct oracle o;
        struct oracle_units units;
        tiny_model_open(&tiny, "rbm", variants[v], &class.dataset);
        tiny_model_scatter(&tiny, 0.5, v);
        struct params *params = &tiny.model->params;
        double chance[MOST_STATES], *mean = NEW(double, params->n),
                                    *variance = NEW(double, params->n);
        oracle_read(&o, &tiny);
        oracle_student(&o, &class.shard, 0, &units);
        oracle_equilibrium(&o, &units, chance);
        oracle_expect(&o, &units, chance, mean, variance);
        size_t n_moved = 0;
        for (size_t i = 0; i < params->n; i++) {
            if (params_find(params, i) == NULL)
                continue;
            const real value = params->value[i], step = is_double ? (real)1e-5 : (real)0x1p-9;
            const real high = value + step, low = value - step;
            params->value[i] = high;
            oracle_read(&o, &tiny);
            double slope = log_likelihood(&o, &units);
            params->value[i] = low;
            oracle_read(&o, &tiny);
            slope = (slope - log_likelihood(&o, &units)) / ((double)high - (double)low);
            if (strcmp(params_find(params, i)->name, "visible_bias") != 0)
                slope *= oracle_share(&o, &units);
            params->value[i] = value;
            if (!(fabs(slope - mean[i]) < (is_double ? 1e-8 : 5e-4) * (1 + fabs(slope))))
                fail_msg("%s: %s: slope %.9g, gradient %.9g", variants[v],
                         params_find(params, i)->name, slope, mean[i]);
            n_moved += fabs(slope) > 1e-3;
        }
        assert_true(n_moved > params_count(params) / 4);
        memory_free(mean);
        memory_free(variance);
        tiny_model_close(&tiny);
    }
    tiny_close(&class);
}

/* A Gibbs step leaves P(counts) unchanged: conditional and joint probabilities are
 * consistent. */
static void test_gibbs_step_keeps_the_distribution(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, 1);
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct tiny_model tiny;
        struct oracle o;
        struct oracle_units units;
        double before[MOST_STATES] = {0}, after[MOST_STATES] = {0};
        tiny_model_open(&tiny, "rbm", variants[v], &class.dataset);
        tiny_model_scatter(&tiny, 0.5, v);
        oracle_read(&o, &tiny);
        oracle_student(&o, &class.shard, 0, &units);
        oracle_equilibrium(&o, &units, before);
        memcpy(after, before, sizeof after);
        oracle_gibbs(&o, &units, after);
        for (size_t c = 0; c < oracle_n_states(&o, &units); c++)
            assert_true(fabs(after[c] - before[c]) < 1e-8);
        tiny_model_close(&tiny);
    }
    tiny_close(&class);
}

/* Compare the mean statistics of `n` independent chains in equilibrium (in `sum`) with the
 * gradient. */
static void compare_with_gradient(const struct oracle *o, const struct oracle_units *units,
                                  const double *sum, double n, double unit, const char *what)
{
    const struct params *params = o->params;
    double chance[MOST_STATES], *mean = NEW(double, params->n),
                                *variance = NEW(double, params->n);
    oracle_equilibrium(o, units, chance);
    oracle_expect(o, units, chance, mean, variance);
    for (size_t i = 0; i < params->n; i++) {
        const double error = sqrt(variance[i] / n);
        const double slack = 2e-5 + unit * o->copies * (double)units->n;
        const struct tensor *tensor = params_find(params, i);
        if (!(fabs(sum[i] / n - mean[i]) <= 5 * error + slack))
            fail_msg("%s: number %zu (%s): %.7g, the gradient is %.7g +- %.2g", what, i,
                     tensor ? tensor->name : "padding", sum[i] / n, mean[i], error);
    }
    memory_free(mean);
    memory_free(variance);
}

/* `n` draws of one student with long chains, or of n students with persistent ones. */
static void compare_chains(const char *more, size_t n_students, uint32_t n_draws, bool add_up)
{
    struct tiny class;
    open_class(&class, n_students);
    uint32_t *who = NEW(uint32_t, n_students);
    for (uint32_t s = 0; s < n_students; s++)
        who[s] = s;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct tiny_model tiny;
        struct oracle o;
        struct oracle_units units;
        char *options = memory_text("%s, %s", variants[v], more);
        tiny_model_open(&tiny, "rbm", options, &class.dataset);
        oracle_read(&o, &tiny);
        tiny_model_scatter(&tiny, o.kind == GAUSSIAN ? 0.2 : 0.4, v); /* more mixes slowly */
        oracle_read(&o, &tiny);
        oracle_student(&o, &class.shard, 0, &units);
        const struct model *model = tiny.model;
        void *work = model->kind->attach(model, &class.shard, TO_TRAIN);
        bool wide = false;
        int bits = 0;
        model->kind->speed.measure(model, work, &world, n_students, &wide, &bits);
        struct tally tally;
        tally_create(&tally, model->params.n, wide, bits, NULL);
        double *sum = NEW(double, tally.n);
        for (uint32_t d = 0; d < n_draws; d++) {
            const struct draw draw = {.seed = 3, .epoch = d};
            tally_clear(&tally);
            model->kind->accumulate(model, work, who, n_students, &draw, &tally);
            for (size_t i = 0; i < tally.n; i++)
                sum[i] = tiny_statistic(&tally, i) + (add_up ? sum[i] : 0);
        }
        compare_with_gradient(&o, &units, sum, add_up ? n_draws : (double)n_students,
                              tally_unit(&tally), options);
        memory_free(sum);
        tally_destroy(&tally);
        model->kind->detach(work);
        tiny_model_close(&tiny);
        memory_free(options);
    }
    memory_free(who);
    tiny_close(&class);
}

static void test_long_chains(void **state)
{
    (void)state;
    compare_chains("cd_steps=200", 1, oracle_draws(2000), true);
}

static void test_persistent_chains(void **state)
{
    (void)state;
    compare_chains("cd_steps=4, persistent=yes", oracle_draws(4000), 30, false);
}

/* Students whose answers to four items come in pairs: the best any model can do is to predict
 * the share of each pattern. Training must come close; a model without hidden units could
 * not. */
enum { N_LEARNERS = 240 };

static double class_likelihood(const struct tiny *class, const struct tiny_model *tiny)
{
    struct oracle o;
    oracle_read(&o, tiny);
    double sum = 0;
    for (size_t s = 0; s < class->n_students; s++) {
        struct oracle_units units;
        oracle_student(&o, &class->shard, s, &units);
        sum += log_likelihood(&o, &units);
    }
    return sum / (double)class->n_students;
}

static void test_training_increases_the_likelihood(void **state)
{
    (void)state;
    static const char *const patterns[] = {"a1 b1 c0 d0", "a0 b0 c1 d1", "a1 b1 c1 d1",
                                           "a0 b0 c0 d0", "a1 b1 c1 d1", "a1 b0 c1 d1"};
    struct tiny class;
    tiny_begin(&class, 4, false);
    for (size_t s = 0; s < N_LEARNERS; s++)
        tiny_text(&class, patterns[s % COUNT(patterns)]);
    tiny_finish(&class, &world);
    const double best = 4. / 6 * log(1. / 6) + 2. / 6 * log(2. / 6);

    static const char *const kinds[] = {
        "hidden=3, copies=1, cd_steps=5, scale=0.1",
        "hidden=3, copies=1, cd_steps=5, scale=0.1, visible=bernoulli",
        "hidden=3, copies=1, cd_steps=2, scale=0.1, persistent=yes",
        "hidden=3, copies=1, cd_steps=5, scale=0.1, factors=3",
    };
    uint32_t who[N_LEARNERS];
    for (uint32_t s = 0; s < N_LEARNERS; s++)
        who[s] = s;
    for (size_t v = 0; v < COUNT(kinds); v++) {
        struct tiny_model tiny;
        tiny_model_open(&tiny, "rbm", kinds[v], &class.dataset);
        struct model *model = tiny.model;
        const struct item_counts counts = {4, (int64_t[4]){0}, (int64_t[4]){0}};
        model->kind->init(model, 1, &counts);
        void *work = model->kind->attach(model, &class.shard, TO_TRAIN);
        struct exact_slices slices;
        struct optimizer optimizer;
        const struct optimizer_options options = {
            .method = METHOD_SGD,
            .rate = 0.001,
            .momentum = v == 2 ? 0 : 0.9, /* chains would lag behind */

            .bias_rate = 1};
        exact_slices_create(&slices, &world, &model->params);
        optimizer_create(&optimizer, &options, &model->params, &slices, 1, 1);
        bool wide = false;
        int bits = 0;
        model->kind->speed.measure(model, work, &world, N_LEARNERS, &wide, &bits);
        struct tally tally;
        tally_create(&tally, model->params.n, wide, bits, &slices);
        const double start = class_likelihood(&class, &tiny);
        for (uint32_t epoch = 0; epoch < 1000; epoch++) {
            const struct draw draw = {.seed = 1, .epoch = epoch};
            tally_clear(&tally);
            model->kind->accumulate(model, work, who, N_LEARNERS, &draw, &tally);
            exact_sum(&slices, &tally);
            optimizer_step(&optimizer, &tally, epoch, 1);
        }
        const double end = class_likelihood(&class, &tiny);
        assert_true(fabs(start - 4 * log(0.5)) < 0.1); /* no information at the start */
        if (!(end < best && end > best - 0.2))
            fail_msg("%s: log-likelihood %.4f, from %.4f; the shares of the patterns give %.4f",
                     kinds[v], end, start, best);
        tally_destroy(&tally);
        optimizer_destroy(&optimizer);
        exact_slices_destroy(&slices);
        model->kind->detach(work);
        tiny_model_close(&tiny);
    }
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_by_differences),
        cmocka_unit_test(test_gibbs_step_keeps_the_distribution),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_persistent_chains),
        cmocka_unit_test(test_training_increases_the_likelihood),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
