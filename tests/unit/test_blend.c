/* ranks: 1 2 3 5 */
/* The weights of a blend against a grid search and the conditions of a minimum; and the fit on
 * all ranks against the same fit on one. */
#include "base/memory.h"
#include "base/rng.h"
#include "runs/blending.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;
static const struct comm alone = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
enum { N = 3000, MEMBERS = 4 };

/* Members that each know a part of the truth: member m sees the log-odds through noise, member
 * 2 repeats member 1, member 3 knows nothing. */
static void fill(struct blend *blend, const struct comm *comm)
{
    *blend = (struct blend){.comm = comm, .n_members = MEMBERS};
    struct blend_part *part = &blend->parts[0];
    const size_t start = size_cut(N, (size_t)comm->rank, (size_t)comm->size);
    part->n = size_cut(N, (size_t)comm->rank + 1, (size_t)comm->size) - start;
    part->list = NEW(struct prediction, part->n);
    for (size_t m = 0; m < MEMBERS; m++)
        part->p[m] = NEW(float, part->n);
    for (size_t i = 0; i < part->n; i++) {
        const struct rng rng = {
            .seed = 3, .purpose = RNG_SIMULATE, .who = (uint32_t)(start + i)};
        const double truth = rng_normal(&rng, 0);
        part->list[i].correct = rng_uniform(&rng, 9) < 1 / (1 + exp(-truth));
        part->list[i].is_first = (start + i) % 7 == 0;
        for (uint32_t m = 0; m < MEMBERS; m++) {
            const double seen = m == 3 ? rng_normal(&rng, 5)
                                       : truth + 0.8 * rng_normal(&rng, m == 2 ? 2 : 1 + m);
            part->p[m][i] = (float)(1 / (1 + exp(-seen)));
        }
    }
}

static double loss(const struct blend *blend, const struct blend_weights *w)
{
    const struct blend_part *part = &blend->parts[0];
    double sum = 0;
    for (size_t i = 0; i < part->n; i++) {
        double at = w->intercept, p = 0;
        for (size_t m = 0; m < w->n; m++) {
            const double own = (double)part->p[w->members[m]][i];
            p += w->weights[m] * own;
            at += w->weights[m] * log(own / (1 - own));
        }
        if (w->method == BLEND_LOGISTIC)
            p = 1 / (1 + exp(-at));
        sum -= log(part->list[i].correct ? p : 1 - p);
    }
    return sum;
}

static void test_weights_of_two_members(void **state)
{
    (void)state;
    struct blend blend;
    fill(&blend, &alone);
    struct blend_weights w = {.method = BLEND_CONVEX, .n = 2, .members = {0, 1}};
    blend_fit(&blend, &w);
    assert_true(fabs(w.weights[0] + w.weights[1] - 1) < 1e-12);
    const double least = loss(&blend, &w);
    for (int i = 0; i <= 1000; i++) {
        const struct blend_weights other = {
            .n = 2, .members = {0, 1}, .weights = {i / 1000.0, 1 - i / 1000.0}};
        assert_true(loss(&blend, &other) >= least - 1e-5);
    }
    assert_true(w.weights[0] > 0.2 && w.weights[0] < 0.8);
    blend_destroy(&blend);
}

/* At the minimum, moving weight from a member with some weight to any other never helps. */
static void test_weights_of_all_members(void **state)
{
    (void)state;
    struct blend blend;
    fill(&blend, &alone);
    struct blend_weights w = {.method = BLEND_CONVEX, .n = MEMBERS, .members = {0, 1, 2, 3}};
    blend_fit(&blend, &w);
    const double least = loss(&blend, &w);
    assert_true(w.weights[3] < 0.2 * w.weights[0]); /* knows nothing */
    for (size_t a = 0; a < MEMBERS; a++)
        for (size_t b = 0; b < MEMBERS; b++) {
            struct blend_weights other = w;
            const double moved = fmin(0.01, w.weights[a]);
            other.weights[a] -= moved;
            other.weights[b] += moved;
            assert_true(loss(&blend, &other) >= least - 1e-4);
        }
    blend_destroy(&blend);
}

/* One member is nearly always certain and rarely wrong: a second one that knows nothing gets a
 * small weight, determined by those few attempts. */
static void test_overconfident_member(void **state)
{
    (void)state;
    struct blend blend;
    fill(&blend, &alone);
    for (size_t i = 0; i < blend.parts[0].n; i++) {
        blend.parts[0].list[i].correct = i % 200 != 0;
        blend.parts[0].p[0][i] = 0.9999f;
        blend.parts[0].p[1][i] = 0.5f;
    }
    struct blend_weights w = {.method = BLEND_CONVEX, .n = 2, .members = {0, 1}};
    blend_fit(&blend, &w);
    const double least = loss(&blend, &w);
    for (int i = 0; i <= 10000; i++) {
        const struct blend_weights other = {
            .n = 2, .members = {0, 1}, .weights = {1 - i / 10000.0, i / 10000.0}};
        assert_true(loss(&blend, &other) >= least - 1e-4);
    }
    blend_destroy(&blend);
}

static void test_logistic_stack(void **state)
{
    (void)state;
    struct blend blend;
    fill(&blend, &alone);
    struct blend_weights w = {.method = BLEND_LOGISTIC, .n = MEMBERS, .members = {0, 1, 2, 3}};
    blend_fit(&blend, &w);
    assert_true(fabs(w.weights[1] - w.weights[2]) < 1e-6); /* the same member twice */
    const double least = loss(&blend, &w);
    for (size_t m = 0; m <= MEMBERS; m++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct blend_weights other = w;
            if (m < MEMBERS)
                other.weights[m] += sign * 0.02;
            else
                other.intercept += sign * 0.02;
            assert_true(loss(&blend, &other) > least - 0.05); /* the cost of the penalty */
        }
    /* On the data it is fitted to, a stack is at least as good as the best convex weights. */
    struct blend_weights convex = {.method = BLEND_CONVEX, .n = 3, .members = {0, 1, 3}};
    blend_fit(&blend, &convex);
    assert_true(least < loss(&blend, &convex) + 0.5);
    blend_destroy(&blend);
}

static void test_same_bits_at_any_rank_count(void **state)
{
    (void)state;
    struct blend whole, part;
    fill(&whole, &alone);
    fill(&part, &world);
    for (int method = 0; method < 2; method++) {
        struct blend_weights a = {.method = (enum blend_method)method,
                                  .n = MEMBERS,
                                  .members = {0, 1, 2, 3}},
                             b = a;
        blend_fit(&whole, &a);
        blend_fit(&part, &b);
        assert_memory_equal(a.weights, b.weights, sizeof a.weights);
        assert_memory_equal(&a.intercept, &b.intercept, sizeof a.intercept);
        struct score one, all;
        blend_score(&whole, &a, 0, true, &one);
        blend_score(&part, &b, 0, true, &all);
        assert_int_equal(one.n, all.n);
        assert_memory_equal(&one.log_loss, &all.log_loss, sizeof one.log_loss);
        assert_memory_equal(&one.auc, &all.auc, sizeof one.auc);
    }
    blend_destroy(&whole);
    blend_destroy(&part);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_of_two_members),
        cmocka_unit_test(test_weights_of_all_members),
        cmocka_unit_test(test_overconfident_member),
        cmocka_unit_test(test_logistic_stack),
        cmocka_unit_test(test_same_bits_at_any_rank_count),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
