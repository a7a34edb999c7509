/* builds: float double */
/* Knowledge tracing machines against independent computations: the gradient against differences
 * of the loss, logistic regression against Newton's method on a dense matrix and against
 * log-odds, singular designs against smaller ones. */
#include "base/h5.h"
#include "ktm_class.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const bool is_double = sizeof(real) == sizeof(double);

static void learn(struct bench *b, int most_epochs)
{
    for (int epoch = 0; epoch < most_epochs && !b->pass.converged; epoch++) {
        b->pass.loss = b->pass.n_scored = 0;
        b->pass.draw.epoch = (uint32_t)epoch;
        tiny_must(b->model->kind->fit.learn(b->model, b->work, &b->pass));
    }
}

/* ---- derivatives */

static const char *const designs[] = {
    "features=item skill wins:log fails:log wins_skill:log fails_skill:log",
    "features=student item skill wins_skill:l2=3, factors=3",
    "features=student:l2=0:factors_l2=2 attempts fails_skill:shared:log elapsed, factors=17",
    "features=student item previous_skill:by_item, l2=0.3, factors=8",
    ("features=student wins_skill:within=64:log wins_skill:within=700:log attempts:within=8, "
     "factors=2"),
    "features=item teacher:l2=2 load load:log wins:log, factors=3",
};

static void test_gradient(void **state)
{
    (void)state;
    if (!is_double)
        return;
    for (size_t d = 0; d < COUNT(designs); d++) {
        struct tiny class;
        struct bench b;
        open_class(&class, d % 2 == 1);
        open_bench(&b, designs[d], &class);
        tiny_model_scatter(&b.tiny, 0.4, 9 + d);
        const struct params *params = &b.model->params;
        real *gradient = NEW(real, params->n), *other = NEW(real, params->n);
        double loss = 0, up = 0, down = 0;
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss, gradient));
        double largest = 0;
        for (size_t i = 0; i < params->n; i++) {
            if (params_find(params, i) == NULL) {
                assert_true(gradient[i] == 0);
                continue;
            }
            const real kept = params->value[i], step = (real)1e-4;
            params->value[i] = kept + step;
            tiny_must(ktm_gradient(b.model, b.work, &b.pass, &up, other));
            params->value[i] = kept - step;
            tiny_must(ktm_gradient(b.model, b.work, &b.pass, &down, other));
            params->value[i] = kept;
            const double slope = (up - down) / (2 * (double)step);
            largest = fmax(largest, fabs((double)gradient[i]));
            if (!(fabs(slope - (double)gradient[i]) < 1e-6 * fmax(1, fabs(slope))))
                fail_msg("%s: %s: %g by differences, %g", designs[d],
                         params_find(params, i)->name, slope, (double)gradient[i]);
        }
        assert_true(largest > 1);
        memory_free(gradient);
        memory_free(other);
        close_bench(&b);
        tiny_close(&class);
    }
}

/* Outcomes that are hidden or not for training do not affect the gradient. */
static void test_held_out_outcomes_are_not_learned(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, true);
    open_bench(
        &b,
        "features=student item wins:log fails_skill attempts wins_item:within=900, factors=3",
        &class);
    tiny_model_scatter(&b.tiny, 0.4, 3);
    const size_t n = b.model->params.n;
    real *before = NEW(real, n), *after = NEW(real, n);
    double loss = 0, loss_after = 0;
    tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss, before));
    size_t n_flipped = 0;
    for (int train = 0; train < 2; train++) {
        for (size_t t = 0; t < class.n_attempts; t++)
            if ((mark_split(class.shard.mark[t]) == TRAIN) == (train == 1) &&
                mark_outcome(class.shard.mark[t]) != UNKNOWN) {
                class.shard.mark[t] ^= 1;
                n_flipped++;
            }
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss_after, after));
        assert_int_equal(memcmp(before, after, n * sizeof *before) == 0, train == 0);
    }
    assert_true(n_flipped > 100);
    memory_free(before);
    memory_free(after);
    close_bench(&b);
    tiny_close(&class);
}

/* ---- logistic regression */

/* Solve a x = y of order n in place by elimination with pivots. */
static void eliminate(double *a, double *y, size_t n)
{
    for (size_t p = 0; p < n; p++) {
        size_t best = p;
        for (size_t r = p + 1; r < n; r++)
            best = fabs(a[r * n + p]) > fabs(a[best * n + p]) ? r : best;
        for (size_t c = 0; c < n; c++) {
            const double kept = a[p * n + c];
            a[p * n + c] = a[best * n + c];
            a[best * n + c] = kept;
        }
        const double kept = y[p];
        y[p] = y[best];
        y[best] = kept;
        for (size_t r = 0; r < n; r++) {
            const double share = r == p ? 0 : a[r * n + p] / a[p * n + p];
            for (size_t c = 0; share != 0 && c < n; c++)
                a[r * n + c] -= share * a[p * n + c];
            y[r] -= share * y[p];
        }
    }
    for (size_t p = 0; p < n; p++)
        y[p] /= a[p * n + p];
}

/* Iteratively reweighted least squares over a dense matrix, built from the features of the
 * walk. */
static void regress(struct bench *b, const struct shard *shard, double l2, double *w, size_t n)
{
    struct ktm_work *work = b->work;
    double *a = NEW(double, n *n), *y = NEW(double, n), *x = NEW(double, n);
    for (int round = 0; round < 30; round++) {
        memset(a, 0, n * n * sizeof *a);
        for (size_t j = 0; j < n; j++) {
            y[j] = j > 0 ? -l2 * w[j] : 0;
            a[j * n + j] = j > 0 ? l2 : 0;
        }
        for (size_t s = 0; s < shard->n_students; s++) {
            ktm_walk_student(&work->walk, shard, s, 1u << TRAIN, true,
                             work->design->n_common + s);
            for (size_t t = 0; t < work->walk.attempts.n; t++) {
                const uint8_t mark = shard->mark[shard->first[s] + work->walk.place[t]];
                double score = 0;
                for (size_t j = 0; j < n; j++) {
                    x[j] = j == 0 ? 1 : sum_of(&work->walk.attempts, t, j);
                    score += x[j] * w[j];
                }
                const double p = 1 / (1 + exp(-score));
                for (size_t j = 0; j < n; j++) {
                    y[j] += x[j] * ((mark_outcome(mark) == CORRECT) - p);
                    for (size_t k = 0; k < n; k++)
                        a[j * n + k] += p * (1 - p) * x[j] * x[k];
                }
            }
        }
        eliminate(a, y, n);
        for (size_t j = 0; j < n; j++)
            w[j] += y[j];
    }
    memory_free(a);
    memory_free(y);
    memory_free(x);
}

static void test_logistic_regression(void **state)
{
    (void)state;
    static const char *const features[] = {
        "features=student item, l2=0.7, tolerance=1e-14",
        "features=item skill wins:log fails:log wins_skill:log fails_skill, l2=0.7, "
        "tolerance=1e-14",
        "features=item attempts_skill:log wins_skill:within=100:log wins_skill:within=1000:log "
        "fails:within=1000, l2=0.7, tolerance=1e-14",
        "features=student teacher load wins:log, l2=0.7, tolerance=1e-14",
    };
    for (size_t d = 0; d < COUNT(features); d++) {
        struct tiny class;
        struct bench b;
        open_class(&class, false);
        open_bench(&b, features[d], &class);
        const size_t n = ((struct ktm_work *)b.work)->design->n_rows;
        double *w = NEW(double, n);
        regress(&b, &class.shard, 0.7, w, n);
        learn(&b, 40);
        assert_true((b.pass.converged || !is_double) && b.pass.n_scored > 150);
        const real *found = ktm_point(b.model).w;
        double spread = 0;
        for (size_t j = 0; j < n; j++) {
            assert_true(fabs((double)found[j] - w[j]) < (is_double ? 1e-6 : 2e-3));
            spread = fmax(spread, fabs(w[j]));
        }
        assert_true(spread > 0.3);
        memory_free(w);
        close_bench(&b);
        tiny_close(&class);
    }
}

/* With only the item and no penalty, p is the item's share of correct answers; the bias makes
 * this design singular. */
static void test_items_alone_give_their_log_odds(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=item, l2=0, tolerance=1e-12", &class);
    learn(&b, 40);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        double right = 0, all = 0;
        for (size_t t = 0; t < class.n_attempts; t++)
            if (class.shard.item[t] == i && mark_split(class.shard.mark[t]) == TRAIN &&
                mark_outcome(class.shard.mark[t]) != UNKNOWN) {
                right += mark_outcome(class.shard.mark[t]) == CORRECT;
                all++;
            }
        const real *w = ktm_point(b.model).w;
        assert_true(fabs((double)(w[0] + w[1 + i]) - log(right / (all - right))) <
                    (is_double ? 1e-6 : 1e-3));
    }
    close_bench(&b);
    tiny_close(&class);
}

/* A feature that is the sum of others changes no prediction. */
static void test_singular_designs(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 3, false); /* all outcomes known and shown: attempts = wins + fails */
    for (uint32_t s = 0; s < 25; s++) {
        const struct rng rng = {.seed = 8, .purpose = RNG_SIMULATE, .who = s};
        tiny_student(&class);
        for (uint32_t t = 0; t < 12; t++)
            tiny_attempt(
                &class, (uint32_t)rng_below(&rng, 2 * t, 3),
                mark_make((enum outcome)rng_below(&rng, 2 * t + 1, 2), TRAIN, true, true));
    }
    tiny_finish(&class, &world);
    struct bench small, large;
    open_bench(&small, "features=item wins fails, l2=0, tolerance=1e-12", &class);
    open_bench(&large, "features=item wins fails attempts, l2=0, tolerance=1e-12", &class);
    learn(&small, 40);
    learn(&large, 40);
    for (size_t s = 0; s < 25; s++) {
        real p[12], q[12];
        small.model->kind->predict(small.model, small.work, s, 7, p);
        large.model->kind->predict(large.model, large.work, s, 7, q);
        for (size_t t = 0; t < 12; t++)
            assert_true(fabs((double)(p[t] - q[t])) < (is_double ? 1e-6 : 1e-3));
    }
    close_bench(&small);
    close_bench(&large);
    tiny_close(&class);
}

/* Epochs never raise the penalised loss, with factors too, and training ends where the gradient
 * is zero. */
static void test_loss_falls(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, true);
    open_bench(&b, "features=student item skill, factors=3, l2_factors=0.5, scale=0.5", &class);
    const size_t n = b.model->params.n;
    real *gradient = NEW(real, n);
    double before = 0, after = 0, largest = 0;
    tiny_must(ktm_gradient(b.model, b.work, &b.pass, &before, gradient));
    const double start = before;
    for (int epoch = 0; epoch < 200 && !b.pass.converged; epoch++) {
        tiny_must(b.model->kind->fit.learn(b.model, b.work, &b.pass));
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &after, gradient));
        assert_true(after <= before + 1e-4);
        before = after;
    }
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)gradient[i]));
    assert_true(b.pass.converged && after < 0.95 * start && largest < 0.1);
    memory_free(gradient);
    close_bench(&b);
    tiny_close(&class);
}

/* With weights_first, epochs are those of logistic regression until it converges; then factors
 * join, the penalised loss falls below the regression's, and new factors do not replace them. */
static void test_weights_first(void **state)
{
    (void)state;
    struct tiny class;
    struct bench alone, b;
    open_class(&class, true);
    open_bench(&alone, "features=item skill wins:log", &class);
    open_bench(&b, "features=item skill wins:log, factors=3, l2_factors=0.1, weights_first=yes",
               &class);
    const size_t n = alone.model->params.panels[0].stride;
    const struct fm_point point = ktm_point(b.model);
    const size_t n_factors = ((struct ktm_work *)b.work)->design->n_rows * point.stride;
    double regression = 0, joint = 0;
    real *gradient = NEW(real, b.model->params.n);
    bool joined = false;
    for (int epoch = 0; !joined; epoch++) {
        assert_true(epoch < 40);
        learn(&alone, 1);
        learn(&b, 1);
        for (size_t i = 0; i < n_factors; i++)
            joined |= point.v[i] != 0;
        assert_true(joined == alone.pass.converged && !b.pass.converged);
        assert_true(joined || memcmp(point.w, ktm_point(alone.model).w, n * sizeof(real)) == 0);
    }
    tiny_must(ktm_gradient(alone.model, alone.work, &alone.pass, &regression, gradient));
    learn(&b, 200);
    tiny_must(ktm_gradient(b.model, b.work, &b.pass, &joint, gradient));
    assert_true(b.pass.converged && joint < 0.98 * regression);
    memory_free(gradient);
    close_bench(&alone);
    close_bench(&b);
    tiny_close(&class);
}

/* Students without training attempts (4 made none) have no factors. */
static void test_untrained_students(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=student item, factors=2, l2_factors=0", &class);
    const struct fm_point point = ktm_point(b.model);
    const real *factors = point.v + (1 + N_ITEMS) * point.stride; /* of students */
    learn(&b, 2);
    for (size_t c = 0; c < 2; c++)
        assert_true(factors[4 * point.stride + c] == 0 && factors[5 * point.stride + c] != 0);
    close_bench(&b);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_held_out_outcomes_are_not_learned),
        cmocka_unit_test(test_logistic_regression),
        cmocka_unit_test(test_items_alone_give_their_log_odds),
        cmocka_unit_test(test_singular_designs),
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_weights_first),
        cmocka_unit_test(test_untrained_students),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
