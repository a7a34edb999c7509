/* What a report shows of the inside of models: principal components against known tables, weights
 * of items against predictions, and influence between skills against `predict`. */
#include "base/h5.h"
#include "learn/components.h"
#include "report/report_inside.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

static void assert_near(double a, double b, double most)
{
    if (!(fabs(a - b) <= most))
        fail_msg("%.12g is not %.12g", a, b);
}

/* Four points of a cross: the long arm is the first component. */
static void test_known_components(void **state)
{
    (void)state;
    const double rows[] = {5, 1, 1, 1, 3, 2, 3, 0}; /* around (3, 1): arms 2 and 1 */
    double score[8], share[2];
    assert_near(components_take(rows, 4, 2, 2, score, share), 2.5, 1e-12);
    const double expected[] = {2, 0, -2, 0, 0, 1, 0, -1};
    for (size_t i = 0; i < 8; i++)
        assert_near(score[i], expected[i], 1e-12);
    assert_near(share[0], 0.8, 1e-12);
    assert_near(share[1], 0.2, 1e-12);
}

/* Scores keep all distances if the rank is two, whichever matrix is the smaller one; the largest
 * score is positive; other components are zero. */
static void try_plane(size_t n, size_t m)
{
    enum { MOST = 40 };
    double rows[MOST * MOST], score[3 * MOST], share[3], directions[2][MOST];
    const struct rng rng = {.seed = 5, .purpose = RNG_INIT, .who = (uint32_t)(n * MOST + m)};
    for (uint32_t j = 0; j < m; j++)
        for (uint32_t d = 0; d < 2; d++)
            directions[d][j] = rng_normal(&rng, 2 * j + d);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            rows[i * m + j] =
                7 + 3 * rng_normal(&rng, (uint32_t)(1000 + 2 * i)) * directions[0][j] +
                rng_normal(&rng, (uint32_t)(1001 + 2 * i)) * directions[1][j];
    components_take(rows, n, m, 3, score, share);
    assert_near(share[0] + share[1], 1, 1e-9);
    assert_true(share[0] >= share[1] && share[2] < 1e-9);
    for (size_t c = 0; c < 2; c++) {
        double low = 0, high = 0;
        for (size_t i = 0; i < n; i++) {
            low = fmin(low, score[3 * i + c]);
            high = fmax(high, score[3 * i + c]);
        }
        assert_true(high >= -low);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < a; b++) {
            double whole = 0, drawn = 0;
            for (size_t j = 0; j < m; j++)
                whole += pow(rows[a * m + j] - rows[b * m + j], 2);
            for (size_t c = 0; c < 2; c++)
                drawn += pow(score[3 * a + c] - score[3 * b + c], 2);
            assert_near(sqrt(drawn), sqrt(whole), 1e-6);
        }
}

static void test_planes(void **state)
{
    (void)state;
    try_plane(30, 5);
    try_plane(6, 40);
    try_plane(20, 20);
}

static void test_rows_without_variance(void **state)
{
    (void)state;
    const double rows[] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    double score[6], share[2];
    assert_true(components_take(rows, 3, 3, 2, score, share) == 0);
    for (size_t i = 0; i < 6; i++)
        assert_true(score[i] == 0);
    assert_true(share[0] == 0 && share[1] == 0);
}

/* A class, a model with random parameters and a view. */
struct bench {
    struct tiny class;
    struct tiny_model tiny;
    struct inference inference;
};

static void open_bench(struct bench *b, const char *kind, const char *options)
{
    tiny_finish(&b->class, &world);
    tiny_model_open(&b->tiny, kind, options, &b->class.dataset);
    tiny_model_scatter(&b->tiny, 0.7, 3);
    const struct model *model = b->tiny.model;
    b->inference = (struct inference){.comm = &world,
                                      .model = b->tiny.model,
                                      .dataset = b->class.dataset,
                                      .shard = b->class.shard};
    b->inference.shard.dataset = &b->class.dataset;
    b->inference.work = model->kind->attach(model, &b->class.shard, TO_PREDICT);
}

static void close_bench(struct bench *b)
{
    b->tiny.model->kind->detach(b->inference.work);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

enum { N_ITEMS = 5 };

static double logit(double p)
{
    return log(p / (1 - p));
}

/* Where the log-odds are linear in the hidden numbers, the weights say by how much two students
 * differ: logit p - logit p' = w . (h - h'). */
static void try_loadings(const char *kind, const char *options)
{
    struct bench b;
    tiny_begin(&b.class, N_ITEMS, false);
    tiny_text(&b.class, "a1 b0 e1");
    tiny_text(&b.class, "d0 c0 a0 b1");
    open_bench(&b, kind, options);
    const struct model *model = b.tiny.model;
    const struct model_view *view = &model->kind->view;
    const size_t m = view->n_hidden(model),
                 n = view->loadings(model, b.inference.work, 0, NULL);
    real *h = NEW(real, 2 * m), *row = NEW(real, m), p[2][N_ITEMS];
    assert_true(n >= 1 && n <= m);
    for (size_t s = 0; s < 2; s++)
        view->hidden(model, b.inference.work, s, h + s * m);
    struct standing standing;
    tiny_must(standing_open(&standing, &b.inference));
    for (size_t s = 0; s < 2; s++) {
        standing_go(&standing, s, b.class.shard.first[s + 1]);
        standing_items(&standing, p[s]);
    }
    standing_close(&standing);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        double expected = 0;
        assert_int_equal(view->loadings(model, b.inference.work, i, row), n);
        for (size_t j = 0; j < n; j++)
            expected += (double)row[j] * (double)(h[j] - h[m + j]);
        assert_near(logit((double)p[0][i]) - logit((double)p[1][i]), expected, 1e-4);
        assert_true(fabs(expected) > 1e-3);
    }
    memory_free(h);
    memory_free(row);
    close_bench(&b);
}

static void test_loadings(void **state)
{
    (void)state;
    try_loadings("rbm", "hidden=4, prediction=mean_field");
    try_loadings("rbm", "hidden=9, prediction=mean_field, factors=3, common=yes");
    try_loadings("rbm", "hidden=3, prediction=mean_field, visible=bernoulli, common=yes");
    try_loadings("dkt", "hidden=6");
    try_loadings("dkt", "hidden=6, input=both, common=yes, layers=2");
    try_loadings("vae", "hidden=4, prediction=plug_in, discrimination=signed");
}

/* The students: every item answered right and wrong, then every item asked about. */
static size_t student_of(uint32_t told, bool right, uint32_t asked)
{
    return (told * 2 + right) * N_ITEMS + asked;
}

static void begin_pairs(struct tiny *class)
{
    tiny_begin(class, N_ITEMS, false);
    for (uint32_t told = 0; told < N_ITEMS; told++)
        for (int right = 0; right < 2; right++)
            for (uint32_t asked = 0; asked < N_ITEMS; asked++) {
                tiny_student(class);
                tiny_attempt(class, told,
                             mark_make(right ? CORRECT : INCORRECT, TRAIN, true, true));
                tiny_attempt(class, asked, mark_make(UNKNOWN, TEST, false, true));
            }
}

/* Even items are skill 0, odd ones skill 1. */
static void count_pairs(const struct bench *b, double effect[4])
{
    const struct model *model = b->tiny.model;
    double sum[4] = {0};
    size_t n[4] = {0};
    for (uint32_t told = 0; told < N_ITEMS; told++)
        for (uint32_t asked = 0; asked < N_ITEMS; asked++) {
            const size_t to = told % 2 * 2 + asked % 2;
            real p[2][2];
            for (int right = 0; right < 2; right++)
                model->kind->predict(model, b->inference.work, student_of(told, right, asked),
                                     1u << TEST, p[right]);
            sum[to] += (double)p[1][1] - (double)p[0][1];
            n[to]++;
        }
    for (size_t e = 0; e < 4; e++)
        effect[e] = sum[e] / (double)n[e];
}

static void try_influence(const char *kind, const char *options, bool moves)
{
    static const uint32_t skills[] = {0, 1};
    struct bench b;
    struct standing standing;
    double expected[4], effect[4], second[2];
    begin_pairs(&b.class);
    open_bench(&b, kind, options);
    count_pairs(&b, expected);
    tiny_must(standing_open(&standing, &b.inference));
    report_influence_rows(&standing, skills, 2, 0, 2, effect);
    report_influence_rows(&standing, skills, 2, 1, 2, second);
    standing_close(&standing);
    for (size_t e = 0; e < 4; e++)
        assert_near(effect[e], expected[e], 1e-6);
    assert_memory_equal(second, effect + 2, sizeof second);
    assert_true((fabs(effect[1]) > 1e-4) == moves && (fabs(effect[2]) > 1e-4) == moves);
    assert_true(fabs(effect[0]) > 1e-4);
    close_bench(&b);
}

static void test_influence(void **state)
{
    (void)state;
    try_influence("dkt", "hidden=6", true);
    try_influence("rtrbm", "hidden=5", true);
    try_influence("rbm", "hidden=4", true);
    try_influence("bkt", "", false);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_components), cmocka_unit_test(test_planes),
        cmocka_unit_test(test_rows_without_variance), cmocka_unit_test(test_loadings),
        cmocka_unit_test(test_influence)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return failed;
}
