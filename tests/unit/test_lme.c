/* builds: float double
 * ranks: 1 3 */
/* The mixed model against a dense oracle, finite differences, and the closed form of a balanced
 * linear design; and grids of ranks against each other. Every build computes in double
 * precision. */
#include "base/h5.h"
#include "lme_oracle.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

/* A class of which this rank holds its part, and a model ready for training. */
struct bench {
    struct tiny class;
    struct tiny_model tiny;
    struct shard shard;
    struct exact_slices slices;
    struct lme_work *work;
};

static void begin(struct bench *b, size_t n_items)
{
    *b = (struct bench){0};
    tiny_begin(&b->class, n_items, false);
}

static void finish(struct bench *b, const char *options)
{
    tiny_finish(&b->class, &world);
    tiny_model_open(&b->tiny, "lme", options, &b->class.dataset);
    const size_t start = dataset_cut(&b->class.dataset, (size_t)world.rank, (size_t)world.size);
    const size_t end =
        dataset_cut(&b->class.dataset, (size_t)world.rank + 1, (size_t)world.size);
    tiny_must(dataset_read(&b->class.dataset, start, end - start, &b->shard));
    b->work = b->tiny.model->kind->attach(b->tiny.model, &b->shard, TO_TRAIN);
    exact_slices_create(&b->slices, &world, &b->tiny.model->params);
    int64_t *counts = NEW(int64_t, 2 * b->class.dataset.n_items);
    for (size_t i = 0; i < 2 * b->class.dataset.n_items; i++)
        counts[i] = 3;
    const struct item_counts item_counts = {b->class.dataset.n_items, counts,
                                            counts + b->class.dataset.n_items};
    real *flat = NEW(real, b->tiny.model->params.n);
    if (world.rank == 0)
        b->tiny.model->kind->init(b->tiny.model, 1, &item_counts);
    comm_barrier(&world);
    memcpy(flat, b->tiny.model->params.value, b->tiny.model->params.n * sizeof *flat);
    comm_broadcast(&world, flat, b->tiny.model->params.n * sizeof *flat, 0);
    exact_slices_publish(&b->slices, flat);
    memory_free(flat);
    memory_free(counts);
}

static void close_bench(struct bench *b)
{
    b->tiny.model->kind->detach(b->work);
    exact_slices_destroy(&b->slices);
    shard_free(&b->shard);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

enum { N_STUDENTS = 17, N_ITEMS = 6 };

/* A number and a level for every attempt; some have no level, and none has the last level. */
static void bring(struct tiny *class)
{
    struct names teachers = {0};
    static const char *const names[] = {"Ada", "Emmy", "Sonja", "nobody's"};
    for (size_t l = 0; l < COUNT(names); l++)
        names_add(&teachers, names[l], strlen(names[l]));
    covariates_add(&class->draft.head.covariates, "load", NULL);
    covariates_add(&class->draft.head.covariates, "teacher", &teachers);
    names_free(&teachers);
    class->covariate = NEW(double, 2 * class->n_attempts);
    for (uint32_t t = 0; t < class->n_attempts; t++) {
        const struct rng rng = {.seed = 78, .purpose = RNG_SIMULATE, .who = t};
        const uint64_t level = rng_below(&rng, 0, 4);
        class->covariate[2 * t] = (double)rng_below(&rng, 1, 9) / 4 - 1;
        class->covariate[2 * t + 1] = level == 3 ? (double)NAN : (double)level;
    }
}

/* Students with random answers, some of them held out, unknown or repeated. */
static void open_random(struct bench *b, const char *options)
{
    begin(b, N_ITEMS);
    b->class.draft.head.item_group[2] = -1;
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 77, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(&b->class, &rng, s == 3 ? 0 : 4 + s % 9, 8);
    }
    bring(&b->class);
    finish(b, options);
}

/* Deviance and slope at a point, starting from the current effects. */
static struct lme_laplace evaluate(struct bench *b, const double *outer)
{
    struct lme_work *work = b->work;
    if (work->solver == NULL)
        tiny_must(lme_solver_create(work, &world));
    lme_solver_set(work, outer);
    struct lme_laplace found;
    tiny_must(lme_modes_find(work));
    lme_laplace_evaluate(work, &found);
    assert_int_equal(work->n_bad, 0);
    return found;
}

static void expect_near(double a, double b, double slack, const char *what, size_t k)
{
    if (!(fabs(a - b) <= slack * (1 + fabs(b))))
        fail_msg("%s %d: %.12g instead of %.12g", what, (int)k, a, b);
}

static const char *const kinds[] = {
    "factors=item",
    "factors=item, fixed=position practice",
    "factors=item group skill, fixed=practice",
    "factors=skill item",
    "link=identity, factors=item group",
    "link=identity, factors=item skill, fixed=position",
    "factors=item teacher",
    "factors=teacher",
    "factors=teacher skill, fixed=load",
    "factors=item, eliminate=item",
    "factors=skill item teacher, fixed=load practice, eliminate=item",
    "link=identity, factors=item group teacher, eliminate=item",
};

/* Points at which everything is checked; the last has a standard deviation of zero. */
static void set_outer(double *outer, const struct lme_shape *shape, int point)
{
    for (size_t k = 0; k < shape->n_outer; k++)
        outer[k] = 0.7 * sin(1.0 + (double)k + 2.3 * point) + (k >= shape->n_fixed ? 1.1 : 0);
    if (point == 2)
        outer[shape->n_fixed + 1] = 0;
    if (!shape->logit)
        outer[shape->n_outer - 1] = -0.8 + 0.2 * point;
}

/* Effects of a factor and their variances: of this rank's units, or of columns. */
static void expect_effects(const struct lme_work *work, struct oracle *oracle, size_t f)
{
    const struct lme_factor *factor = &work->shape->factors[f];
    const bool is_unit = f == work->shape->unit;
    const size_t n = is_unit ? work->n_units : factor->n;
    for (size_t l = 0; l < n; l++) {
        const double *unit = is_unit ? lme_unit(work, l) : NULL;
        const size_t at = oracle->first[f] + l + (is_unit ? work->first_unit : 0);
        double inverse[ORACLE_MOST] = {0};
        inverse[at] = 1;
        oracle_solve(oracle, inverse);
        expect_near(is_unit ? unit[AT_U] : work->solver->u[factor->first + l], oracle->u[at],
                    1e-5, factor->name, l);
        expect_near(is_unit ? unit[AT_VARIANCE] : work->solver->diagonal[factor->first + l],
                    inverse[at], 1e-6, "variance", l);
    }
}

/* Effects at the mode and deviance, against all effects in one dense matrix. */
static void test_against_dense_oracle(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct bench b;
        open_random(&b, kinds[k]);
        void *all = b.tiny.model->kind->attach(b.tiny.model, &b.class.shard, TO_TRAIN);
        struct oracle *oracle = NEW(struct oracle, 1);
        for (int point = 0; point < 3; point++) {
            double outer[MOST_OUTER];
            set_outer(outer, b.work->shape, point);
            const double expected = oracle_deviance(all, outer, oracle);
            const struct lme_laplace found = evaluate(&b, outer);
            expect_near(found.deviance, expected, 1e-9, kinds[k], (size_t)point);
            for (size_t f = 0; f < b.work->shape->n_factors; f++)
                expect_effects(b.work, oracle, f);
        }
        memory_free(oracle);
        b.tiny.model->kind->detach(all);
        close_bench(&b);
    }
}

/* The slope of the deviance, including the part through the modes, by finite differences. */
static void test_slope_against_differences(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct bench b;
        open_random(&b, kinds[k]);
        const size_t n = b.work->shape->n_outer;
        for (int point = 0; point < 3; point++) {
            double outer[MOST_OUTER];
            set_outer(outer, b.work->shape, point);
            const struct lme_laplace found = evaluate(&b, outer);
            for (size_t i = 0; i < n; i++) {
                const double here = outer[i], h = 1e-4;
                double at[2];
                for (int side = 0; side < 2; side++) {
                    outer[i] = here + (side ? h : -h);
                    at[side] = evaluate(&b, outer).deviance;
                }
                outer[i] = here;
                expect_near(found.gradient[i], (at[1] - at[0]) / (2 * h), 2e-5, kinds[k], i);
            }
        }
        close_bench(&b);
    }
}

/* Every student answers every item once: the covariance of all answers has four eigenvalues,
 * for the mean, contrasts of students, contrasts of items, and the rest. */
static void test_balanced_design(void **state)
{
    (void)state;
    enum { S = 9, I = 5 };
    struct bench b;
    begin(&b, I);
    double y[S][I], by_student[S] = {0}, by_item[I] = {0}, mean = 0;
    for (uint32_t s = 0; s < S; s++) {
        const struct rng rng = {.seed = 5, .purpose = RNG_SIMULATE, .who = s};
        tiny_student(&b.class);
        for (uint32_t i = 0; i < I; i++) {
            const bool right = rng_below(&rng, i, 10) < (s + i) % 9 + 1u;
            tiny_attempt(&b.class, i,
                         mark_make(right ? CORRECT : INCORRECT, TRAIN, true, true));
            y[s][i] = right;
            by_student[s] += y[s][i] / I;
            by_item[i] += y[s][i] / S;
            mean += y[s][i] / (S * I);
        }
    }
    finish(&b, "link=identity");
    double between_students = 0, between_items = 0, rest = 0;
    for (size_t s = 0; s < S; s++)
        between_students += I * (by_student[s] - mean) * (by_student[s] - mean);
    for (size_t i = 0; i < I; i++)
        between_items += S * (by_item[i] - mean) * (by_item[i] - mean);
    for (size_t s = 0; s < S; s++)
        for (size_t i = 0; i < I; i++)
            rest += pow(y[s][i] - by_student[s] - by_item[i] + mean, 2);
    for (int point = 0; point < 3; point++) {
        double outer[MOST_OUTER];
        set_outer(outer, b.work->shape, point);
        const double e = exp(2 * outer[3]), v_s = outer[1] * outer[1],
                     v_i = outer[2] * outer[2];
        const double l_s = e + I * v_s, l_i = e + S * v_i, l_0 = e + I * v_s + S * v_i;
        const double expected = S * I * log(2 * M_PI) + log(l_0) + (S - 1) * log(l_s) +
                                (I - 1) * log(l_i) + (S - 1) * (I - 1) * log(e) +
                                S * I * pow(mean - outer[0], 2) / l_0 + between_students / l_s +
                                between_items / l_i + rest / e;
        const struct lme_laplace found = evaluate(&b, outer);
        expect_near(found.deviance, expected, 1e-10, "balanced", (size_t)point);
        /* the information on the mean, likewise */
        expect_near(found.information[0], S * I / l_0, 1e-8, "information", (size_t)point);
    }
    close_bench(&b);
}

static void train(struct bench *b, struct lme_search *search)
{
    const struct lme_shape *shape = b->work->shape;
    struct pass pass = {.comm = &world, .slices = &b->slices};
    for (int epoch = 0; epoch < 60 && !pass.converged; epoch++)
        tiny_must(b->tiny.model->kind->fit.learn(b->tiny.model, b->work, &pass));
    assert_true(pass.converged);
    lme_search_load(search, shape->n_outer,
                    params_rows(&b->tiny.model->params, shape->search_panel));
}

/* The search ends at a minimum of the oracle's deviance. */
static void test_search_ends_at_a_minimum(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct bench b;
        open_random(&b, kinds[k]);
        void *all = b.tiny.model->kind->attach(b.tiny.model, &b.class.shard, TO_TRAIN);
        struct oracle *oracle = NEW(struct oracle, 1);
        struct lme_search search;
        train(&b, &search);
        const double least = oracle_deviance(all, search.x, oracle);
        expect_near(search.deviance, least, 1e-9, kinds[k], 0);
        for (size_t i = 0; i < b.work->shape->n_outer; i++)
            for (int side = -1; side <= 1; side += 2) {
                double outer[MOST_OUTER];
                memcpy(outer, search.x, sizeof outer);
                outer[i] += 0.03 * side;
                const double beside = oracle_deviance(all, outer, oracle);
                if (!(beside > least))
                    fail_msg("%s: %.9g next to %.9g at %.9g of number %d", kinds[k], beside,
                             least, search.x[i], (int)i);
            }
        memory_free(oracle);
        b.tiny.model->kind->detach(all);
        close_bench(&b);
    }
}

/* Students who do not differ: a standard deviation of zero is a valid result, and exactly
 * zero. */
static void test_zero_standard_deviation(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 4);
    for (int s = 0; s < 24; s++)
        tiny_text(&b.class, s % 2 ? "a1 b0 c1 d0 a0 b1" : "a1 b1 c0 d0 b0 a1");
    finish(&b, "factors=item");
    struct lme_search search;
    train(&b, &search);
    const real *sd = params_rows(&b.tiny.model->params, b.work->shape->spread_panel);
    assert_true(sd[0] == 0);
    real p[6];
    b.tiny.model->kind->predict(b.tiny.model, b.work, 0, 7, p);
    for (int t = 0; t < 6; t++)
        assert_true(p[t] > 0 && p[t] < 1);
    close_bench(&b);
}

/* A step as long as a standard deviation ends at exactly zero, whatever the rounding: a tiny one
 * instead has no derivative but rounding errors, and effects in its units are huge. */
static void test_step_to_zero(void **state)
{
    (void)state;
    const struct lme_shape shape = {
        .logit = true, .n_factors = 2, .n_fixed = 1, .n_spread = 2, .n_outer = 3};
    for (int k = 0; k < 500; k++) {
        const double sigma = 0.5 + k / 700.0;
        struct lme_search search = {.trial = {0, 1, sigma}};
        const struct lme_laplace found = {.deviance = 9,
                                          .gradient = {0, 0.1, 8 * (1 + k % 7 / 3.0) / sigma},
                                          .information = {2},
                                          .freedom = {1, 1}};
        assert_true(lme_search_advance(&search, &shape, &found, 1e-6));
        assert_true(search.trial[2] == 0 && search.trial[1] > 0.9);
        /* rejected: zero lies within half of this step too */
        search.trial[2] = -sigma;
        const struct lme_laplace worse = {.deviance = 9 - search.promise};
        assert_false(lme_search_advance(&search, &shape, &worse, 1e-6));
        assert_true(search.trial[2] == 0 || fabs(search.trial[2]) > 1e-5);
    }
}

/* Small classes, in which the search often passes a standard deviation of zero: students answer
 * items that all share and one of their own. */
static void test_small_classes(void **state)
{
    (void)state;
    enum { CLASSES = 40, STUDENTS = 40, SHARED = 8, ANSWERS = 6 };
    for (uint32_t c = 0; c < CLASSES; c++) {
        struct bench b;
        begin(&b, SHARED + STUDENTS);
        for (uint32_t s = 0; s < STUDENTS; s++) {
            const struct rng rng = {.seed = 80 + c, .purpose = RNG_SIMULATE, .who = s};
            const double chance = 0.27 + 0.46 * rng_uniform(&rng, 0);
            tiny_student(&b.class);
            for (uint32_t t = 0; t < ANSWERS; t++) {
                const uint32_t shared = (uint32_t)rng_below(&rng, 2 * t + 1, SHARED);
                const bool right = rng_uniform(&rng, 2 * t + 2) < chance;
                tiny_attempt(&b.class, t % 2 ? SHARED + s : shared,
                             mark_make(right ? CORRECT : INCORRECT, TRAIN, true, true));
            }
        }
        finish(&b, c % 2 ? "factors=item" : "factors=item, eliminate=student");
        struct lme_search search;
        train(&b, &search);
        close_bench(&b);
    }
}

/* Nearly all answers are right, and Laplace's deviance is least with effects of students that
 * their integrals refute. Whether students or items are eliminated, the search ends without. */
static void test_nearly_all_right(void **state)
{
    (void)state;
    static const char *const options[] = {"factors=item, eliminate=student",
                                          "factors=item, eliminate=item"};
    for (size_t k = 0; k < COUNT(options); k++) {
        struct bench b;
        begin(&b, 8);
        for (int s = 0; s < 240; s++) {
            char text[] = "a1 b1 c1 d1 e1 f1 g1 h1 a1 b1 c1 d1";
            if (s % 20 == 3)
                text[3 * (s / 20 * 5 % 12) + 1] = '0';
            tiny_text(&b.class, text);
        }
        finish(&b, options[k]);
        struct lme_search search;
        train(&b, &search);
        const real *sd = params_rows(&b.tiny.model->params, b.work->shape->spread_panel);
        assert_true(sd[0] == 0 && search.without_students);
        real p[12];
        b.tiny.model->kind->predict(b.tiny.model, b.work, 0, 7, p);
        assert_true(p[0] > 0.98 && p[0] < 0.9999);
        close_bench(&b);
    }
}

/* The same search on every grid the ranks allow, and with students or items eliminated. Sums
 * then have a different order, so the search may end nearby, but not lower. */
static void test_grids(void **state)
{
    (void)state;
    static const char *const ways[][2] = {
        {"1x1", "student"}, {"1x2", "student"}, {"2x1", "student"}, {"1x3", "student"},
        {"3x1", "student"}, {"1x1", "item"},    {"2x1", "auto"}};
    struct lme_search first = {0};
    for (size_t k = 0; k < COUNT(ways); k++) {
        const int needed = (ways[k][0][0] - '0') * (ways[k][0][2] - '0');
        if (needed > world.size)
            continue;
        struct bench b;
        char *options =
            memory_text("factors=item skill, grid=%s, eliminate=%s", ways[k][0], ways[k][1]);
        begin(&b, 150); /* more columns than a square of the grid */
        for (uint32_t s = 0; s < 60; s++) {
            const struct rng rng = {.seed = 9, .purpose = RNG_SIMULATE, .who = s};
            tiny_random(&b.class, &rng, 30, 9);
        }
        finish(&b, options);
        const bool by_student = strcmp(ways[k][1], "student") == 0;
        assert_int_equal(b.work->shape->unit, by_student ? 0 : 1);
        struct lme_search search;
        train(&b, &search);
        for (size_t i = 0; i < b.work->shape->n_outer; i++) {
            first.x[i] = k == 0 ? search.x[i] : first.x[i];
            expect_near(search.x[i], first.x[i], by_student ? 1e-10 : 1e-6, ways[k][1], i);
        }
        first.deviance = k == 0 ? search.deviance : first.deviance;
        expect_near(search.deviance, first.deviance, 1e-10, ways[k][0], 99);
        close_bench(&b);
        memory_free(options);
    }
}

/* The slope of a student's posterior at u, after the first n attempts; it increases with u. */
static double posterior_slope(const struct lme_work *work, const double *eta, uint64_t first,
                              size_t n, double variance, double u)
{
    double sum = u / variance;
    for (size_t k = 0; k < n; k++) {
        const uint8_t mark = work->shard->mark[first + k];
        if (mark_is_shown(mark))
            sum += 1 / (1 + exp(-eta[k] - u)) - (mark_outcome(mark) == CORRECT);
    }
    return sum;
}

/* For students of any length, every prediction uses the mode given all attempts shown before,
 * whichever attempts are requested. */
static void test_predict(void **state)
{
    (void)state;
    enum { LONGEST = 700 };
    struct bench b;
    begin(&b, N_ITEMS);
    for (uint32_t s = 0; s < 9; s++) {
        const struct rng rng = {.seed = 79, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(&b.class, &rng, s < 6 ? LONGEST : 3 * s, 8);
        for (uint32_t t = 0; t < 60; t++) /* first all correct, then all wrong */
            tiny_attempt(&b.class, t % N_ITEMS,
                         mark_make(t < 40 ? CORRECT : INCORRECT, TRAIN, true, true));
    }
    finish(&b, "factors=item");
    struct model *model = b.tiny.model;
    const struct lme_shape *shape = b.work->shape;
    real *flat = NEW(real, model->params.n);
    flat[model->params.panels[shape->fixed_panel].offset] = (real)0.3;
    flat[model->params.panels[shape->spread_panel].offset] = (real)1.7;
    for (size_t i = 0; i < N_ITEMS; i++)
        flat[model->params.panels[shape->total_panel].offset + i] = (real)(0.9 * (double)i - 2);
    exact_slices_publish(&b.slices, flat);
    const double variance = (double)(real)1.7 * (double)(real)1.7;
    for (size_t s = 0; s < b.shard.n_students; s++) {
        const uint64_t first = b.shard.first[s];
        const size_t n = b.shard.first[s + 1] - first;
        double *eta = NEW(double, n);
        real *p = NEW(real, n), *some = NEW(real, n);
        for (size_t k = 0; k < n; k++)
            eta[k] =
                (double)(real)0.3 + (double)(real)(0.9 * (double)b.shard.item[first + k] - 2);
        model->kind->predict(model, b.work, s, 7, p);
        model->kind->predict(model, b.work, s, 1u << TEST, some);
        for (size_t k = 0; k < n; k++) {
            double low = -40, high = 40;
            for (int halvings = 0; halvings < 60; halvings++) {
                const double u = (low + high) / 2;
                *(posterior_slope(b.work, eta, first, k, variance, u) < 0 ? &low : &high) = u;
            }
            expect_near((double)p[k], 1 / (1 + exp(-eta[k] - low)), 2e-7, "chance", k);
            if (mark_split(b.shard.mark[first + k]) == TEST)
                assert_memory_equal(&p[k], &some[k], sizeof *p);
        }
        memory_free(eta);
        memory_free(p);
        memory_free(some);
    }
    memory_free(flat);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_dense_oracle),
        cmocka_unit_test(test_slope_against_differences),
        cmocka_unit_test(test_balanced_design),
        cmocka_unit_test(test_search_ends_at_a_minimum),
        cmocka_unit_test(test_step_to_zero),
        cmocka_unit_test(test_small_classes),
        cmocka_unit_test(test_nearly_all_right),
        cmocka_unit_test(test_zero_standard_deviation),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_predict),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
