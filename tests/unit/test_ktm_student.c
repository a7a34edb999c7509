/* builds: float double */
/* A student's own weights at prediction, against a plain solver that starts from zero with all
 * answers; and the kernels for their sums, on every instruction set. */
#include "base/h5.h"
#include "base/machine.h"
#include "kernels/logistic_sums.h"
#include "ktm_class.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

extern const struct logistic_sums_table logistic_sums_plain;
#ifdef __x86_64__
extern const struct logistic_sums_table logistic_sums_avx2, logistic_sums_avx512;
static const struct logistic_sums_table *const tables[N_ISAS] = {
    &logistic_sums_plain, &logistic_sums_avx2, &logistic_sums_avx512};
#else
static const struct logistic_sums_table *const tables[N_ISAS] = {
    &logistic_sums_plain, &logistic_sums_plain, &logistic_sums_plain};
#endif

enum { MOST_FACTORS = 20, MOST = 3000 };

/* ---- the plain solver */

struct answers {
    size_t n, k;
    double l2[1 + MOST_FACTORS];
    double c[MOST];
    real sum[MOST][MOST_FACTORS];
    bool correct[MOST];
};

static double score_at(const struct answers *a, size_t i, const double *b)
{
    double score = b[0];
    for (size_t c = 0; c < a->k; c++)
        score += b[1 + c] * (double)a->sum[i][c];
    return score;
}

static double loss_at(const struct answers *a, size_t n, const double *b)
{
    double loss = 0;
    for (size_t c = 0; c <= a->k; c++)
        loss += a->l2[c] * b[c] * b[c] / 2;
    for (size_t i = 0; i < n; i++) {
        const double eta = a->c[i] + score_at(a, i, b), against = a->correct[i] ? -eta : eta;
        loss += fmax(against, 0) + log1p(exp(-fabs(eta)));
    }
    return loss;
}

/* Gaussian elimination without pivots, which a positive definite matrix does not need. */
static void eliminate(double *a, double *y, size_t m)
{
    for (size_t p = 0; p < m; p++)
        for (size_t r = p + 1; r < m; r++) {
            const double share = a[r * m + p] / a[p * m + p];
            for (size_t c = p; c < m; c++)
                a[r * m + c] -= share * a[p * m + c];
            y[r] -= share * y[p];
        }
    for (size_t p = m; p-- > 0;) {
        for (size_t c = p + 1; c < m; c++)
            y[p] -= a[p * m + c] * y[c];
        y[p] /= a[p * m + p];
    }
}

/* The best b for the first n answers: Newton's method from 0, halved until the loss falls. */
static void solve_plainly(const struct answers *a, size_t n, double *b)
{
    const size_t m = 1 + a->k;
    double curve[(1 + MOST_FACTORS) * (1 + MOST_FACTORS)], step[1 + MOST_FACTORS],
        trial[1 + MOST_FACTORS], x[1 + MOST_FACTORS];
    memset(b, 0, m * sizeof *b);
    for (int round = 0; round < 200; round++) {
        memset(curve, 0, m * m * sizeof *curve);
        for (size_t c = 0; c < m; c++) {
            step[c] = -a->l2[c] * b[c];
            curve[c * m + c] = a->l2[c];
        }
        for (size_t i = 0; i < n; i++) {
            const double eta = a->c[i] + score_at(a, i, b), p = 1 / (1 + exp(-eta)),
                         q = 1 / (1 + exp(eta));
            for (size_t c = 0; c < m; c++)
                x[c] = c == 0 ? 1 : (double)a->sum[i][c - 1];
            for (size_t r = 0; r < m; r++) {
                step[r] += x[r] * (a->correct[i] ? q : -p);
                for (size_t c = 0; c < m; c++)
                    curve[r * m + c] += p * q * x[r] * x[c];
            }
        }
        eliminate(curve, step, m);
        double size = 0, share = 1;
        const double before = loss_at(a, n, b);
        for (; share > 1e-12; share /= 2) {
            for (size_t c = 0; c < m; c++)
                trial[c] = b[c] + share * step[c];
            if (loss_at(a, n, trial) <= before + 1e-10 * (1 + before)) /* up to rounding */
                break;
        }
        for (size_t c = 0; c < m; c++) {
            size = fmax(size, fabs(step[c]));
            b[c] += share > 1e-12 ? share * step[c] : 0;
        }
        if (size < 1e-6)
            return;
    }
    fail_msg("the plain solver did not converge");
}

/* ---- against it */

struct shape {
    size_t k, n;
    double l2, l2_factors;
    double spread, reach; /* of the offsets; of the sums of factors */
    double rate;          /* share correct: 0 and 1 for all the same; -1: by an ability */
};

static void fill(struct answers *a, const struct shape *shape, uint32_t who)
{
    const struct rng rng = {.seed = 12, .purpose = RNG_SIMULATE, .who = who};
    uint32_t next = 0;
    double truth[1 + MOST_FACTORS];
    a->n = shape->n;
    a->k = shape->k;
    for (size_t c = 0; c <= a->k; c++) {
        a->l2[c] = c == 0 ? fmax(1e-12, shape->l2) : fmax(1e-6, shape->l2_factors);
        truth[c] = rng_normal(&rng, next++);
    }
    for (size_t i = 0; i < a->n; i++) {
        a->c[i] = shape->spread * rng_normal(&rng, next++);
        for (size_t c = 0; c < a->k; c++)
            a->sum[i][c] = (real)(shape->reach * rng_normal(&rng, next++));
        const double p =
            shape->rate < 0 ? 1 / (1 + exp(-(a->c[i] + score_at(a, i, truth)))) : shape->rate;
        a->correct[i] = (double)rng_below(&rng, next++, 1 << 20) < p * (1 << 20);
    }
}

static struct ktm_student *open_student(const struct shape *shape)
{
    return ktm_student_create(shape->k, shape->l2, shape->l2_factors, shape->n);
}

static double chance(double score)
{
    return 1 / (1 + exp(-score));
}

/* At every attempt, before its answer is shown: weak and strong penalties, extreme offsets and
 * factors, answers that are all the same. Scores are requested at every attempt, and at every
 * 37th. */
static void test_most_probable_weights(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {0, 300, 1, 0, 1, 0, -1},      {0, 300, 0, 0, 1, 0, 1},
        {0, 300, 0.01, 0, 8, 0, 0.5},  {0, 1000, 1, 0, 2, 0, 0.8},
        {1, 200, 0.3, 1, 1, 1, -1},    {3, 200, 1, 5, 1, 0.5, -1},
        {8, 250, 1, 5, 1, 0.4, 0.7},   {8, 150, 1, 10, 1, 0.3, 1},
        {8, 120, 0, 0, 3, 5, 0.5},     {8, 120, 0, 0, 30, 40, 0},
        {20, 60, 1e3, 1e6, 1, 1, 0.5}, {20, 100, 1, 0.1, 2, 1, -1},
        {0, 200, 1e-3, 0, 1, 0, 1},    {0, 200, 1e-9, 0, 2, 0, 0.9},
        {3, 150, 1e-3, 1e-3, 1, 1, 1}, {3, 150, 1e-9, 1e-5, 1, 1, 0.8},
    };
    struct answers *a = NEW(struct answers, 1);
    double worst = 0, farthest = 0;
    for (size_t d = 0; d < COUNT(shapes); d++) {
        struct ktm_student *often = open_student(&shapes[d]),
                           *rarely = open_student(&shapes[d]);
        for (uint32_t again = 0; again < 2; again++) { /* the first student leaves no trace */
            fill(a, &shapes[d], (uint32_t)(2 * d) + again);
            ktm_student_begin(often);
            ktm_student_begin(rarely);
            for (size_t t = 0; t < a->n; t++) {
                const double score = a->c[t] + ktm_student_score(often, a->sum[t]);
                if (t % 37 == 36 || t < 20 || t + 1 == a->n) {
                    double b[1 + MOST_FACTORS];
                    solve_plainly(a, t, b);
                    const double expected = a->c[t] + score_at(a, t, b);
                    worst = fmax(worst, fabs(chance(score) - chance(expected)));
                    farthest = fmax(farthest, fabs(expected - a->c[t]));
                    if (t % 37 == 36)
                        worst = fmax(
                            worst, fabs(chance(a->c[t] + ktm_student_score(rarely, a->sum[t])) -
                                        chance(expected)));
                    if (!(worst < 1e-6))
                        fail_msg("shape %zu, answer %zu: %.9f instead of %.9f", d, t,
                                 chance(score), chance(expected));
                }
                ktm_student_show(often, a->c[t], a->sum[t], a->correct[t]);
                ktm_student_show(rarely, a->c[t], a->sum[t], a->correct[t]);
            }
        }
        ktm_student_free(often);
        ktm_student_free(rarely);
    }
    print_message("at most %.1e off; scores moved by up to %.0f\n", worst, farthest);
    assert_true(farthest > 20);
    memory_free(a);
}

/* The penalty is that of training, however small. One right answer: l2 w = 1 - p. Without a
 * penalty: the share of right answers, once there are both. */
static void test_small_penalties(void **state)
{
    (void)state;
    static const struct {
        double l2, p;
    } cases[] = {{1, 0.598942}, {1e-3, 0.994755}, {1e-6, 0.999989}, {0, 1}};
    for (size_t j = 0; j < COUNT(cases); j++) {
        struct ktm_student *student = ktm_student_create(0, cases[j].l2, 0, KTM_EXACT);
        ktm_student_begin(student);
        ktm_student_show(student, 0, NULL, true);
        const double p = chance(ktm_student_score(student, NULL));
        if (!(fabs(p - cases[j].p) < 1e-6))
            fail_msg("l2 %g: %.9f instead of %.9f", cases[j].l2, p, cases[j].p);
        ktm_student_show(student, 0, NULL, true);
        ktm_student_show(student, 0, NULL, false);
        const double both = chance(ktm_student_score(student, NULL));
        assert_true(cases[j].l2 > 1e-6 || fabs(both - 2.0 / 3) < 1e-6);
        ktm_student_free(student);
    }
}

/* Courses of long students: how the log-odds of right answers change. */
enum course { STEADY, ALL_RIGHT, FLIP, REVERSAL, DRIFT, BURSTS, N_COURSES };
static const char *const courses[] = {"steady",   "all right", "right, then wrong",
                                      "reversal", "drift",     "bursts"};

static void change(struct answers *a, enum course course, uint32_t who)
{
    const struct rng rng = {.seed = 13, .purpose = RNG_SIMULATE, .who = who};
    for (size_t i = 0; i < a->n; i++) {
        const double time = (double)i / (double)a->n;
        const double added = course == REVERSAL ? (time < 0.4 ? 3 : -3)
                             : course == DRIFT  ? 6 * time - 3
                                                : (i / 700 % 2 == 0 ? 4 : -4);
        const double p = course == ALL_RIGHT ? 1
                         : course == FLIP    ? (double)(time < 0.4)
                                             : chance(a->c[i] + added);
        a->correct[i] = course == STEADY
                            ? a->correct[i]
                            : (double)rng_below(&rng, (uint32_t)i, 1 << 20) < p * (1 << 20);
    }
}

/* Beyond KTM_EXACT answers old ones count as expanded around a point from which no score is
 * farther than 0.05. So the score is at most 0.05^2 / 2 exp(0.05) = 0.0013 off without factors,
 * and not much more with them. With very long factors of one answer b is always far, and the old
 * ones are expanded as often as the work allows. */
static void test_long_students(void **state)
{
    (void)state;
    static const struct shape shapes[] = {{0, MOST, 1, 0, 1.5, 0, -1},
                                          {0, MOST, 0.001, 0, 0, 0, -1},
                                          {3, MOST, 1, 2, 1, 0.5, -1},
                                          {3, MOST, 1, 2, 1, 0.5, -1}};
    enum { OUTLIER = 3 };
    struct answers *a = NEW(struct answers, 1);
    for (size_t d = 0; d < COUNT(shapes); d++) {
        struct ktm_student *student = open_student(&shapes[d]);
        for (enum course course = STEADY; course < N_COURSES; course++) {
            double worst = 0, worst_score = 0;
            fill(a, &shapes[d], (uint32_t)(50 + d));
            change(a, course, (uint32_t)(50 + d));
            for (size_t c = 0; c < a->k && d == OUTLIER; c++)
                a->sum[0][c] *= 1000;
            ktm_student_begin(student);
            for (size_t t = 0; t < a->n; t++) {
                const double score = ktm_student_score(student, a->sum[t]);
                if (t % 300 == 299) {
                    double b[1 + MOST_FACTORS];
                    solve_plainly(a, t, b);
                    const double expected = score_at(a, t, b);
                    const double off =
                        fabs(chance(a->c[t] + score) - chance(a->c[t] + expected));
                    worst = fmax(worst, off);
                    worst_score = fmax(worst_score, fabs(score - expected));
                    assert_true(t > KTM_EXACT || off < 1e-6);
                }
                ktm_student_show(student, a->c[t], a->sum[t], a->correct[t]);
            }
            print_message("%zu factors, %s: at most %.1e off, score %.1e\n", a->k,
                          courses[course], worst, worst_score);
            assert_true(worst_score < (a->k == 0 ? 0.00132 : 0.002) && worst < 0.0005);
        }
        ktm_student_free(student);
    }
    memory_free(a);
}

/* No scores are requested for thousands of answers: old answers are still processed before they
 * leave the window. */
static void test_rarely_requested_scores(void **state)
{
    (void)state;
    const struct shape shape = {2, MOST, 1, 2, 1, 0.5, -1};
    struct answers *a = NEW(struct answers, 1);
    fill(a, &shape, 70);
    struct ktm_student *student = open_student(&shape);
    ktm_student_begin(student);
    for (size_t t = 0; t + 1 < a->n; t++)
        ktm_student_show(student, a->c[t], a->sum[t], a->correct[t]);
    double b[1 + MOST_FACTORS];
    solve_plainly(a, a->n - 1, b);
    const double score = ktm_student_score(student, a->sum[a->n - 1]),
                 expected = score_at(a, a->n - 1, b);
    assert_true(fabs(chance(score) - chance(expected)) < 5e-4);
    ktm_student_free(student);
    memory_free(a);
}

/* ---- the complete model */

/* A prediction of the model is the score of all rows except the student's, plus the most
 * probable weights of the student, independent of the trained rows of students. */
static void test_predictions(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    struct answers *a = NEW(struct answers, 1);
    size_t n_checked = 0;
    for (int withheld = 0; withheld < 2; withheld++) {
        open_class(&class, withheld);
        open_bench(&b, "features=student:l2=0.5 item, factors=2, l2_factors=0.7", &class);
        tiny_model_scatter(&b.tiny, 0.8, 4);
        const struct fm_point point = ktm_point(b.model);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            const uint64_t start = class.shard.first[s];
            real p[40], q[40];
            b.model->kind->predict(b.model, b.work, s, 7, p);
            a->n = 0;
            a->k = 2;
            a->l2[0] = 0.5;
            a->l2[1] = a->l2[2] = 0.7;
            for (uint64_t t = start; t < class.shard.first[s + 1]; t++) {
                const size_t row = 1 + class.shard.item[t];
                const uint8_t mark = class.shard.mark[t];
                double own[3];
                solve_plainly(a, a->n, own);
                a->c[a->n] = (double)point.w[0] + (double)point.w[row];
                memcpy(a->sum[a->n], point.v + row * point.stride, 2 * sizeof(real));
                const double expected = a->c[a->n] + score_at(a, a->n, own);
                if (!(fabs((double)p[t - start] - chance(expected)) < 1e-6))
                    fail_msg("student %zu, attempt %d: %.9f instead of %.9f", s,
                             (int)(t - start), (double)p[t - start], chance(expected));
                n_checked++;
                a->correct[a->n] = mark_outcome(mark) == CORRECT;
                a->n += mark_is_shown(mark);
            }
            /* other requested attempts make no difference, nor do the student's own rows */
            for (unsigned split = 0; split < N_SPLITS; split++)
                b.model->kind->predict(b.model, b.work, s, 1u << split, q);
            const size_t n = class.shard.first[s + 1] - start;
            assert_memory_equal(p, q, n * sizeof *p);
            real *own = point.v + (1 + N_ITEMS + s) * point.stride;
            point.w[1 + N_ITEMS + s] = own[0] = own[1] = 3;
            b.model->kind->predict(b.model, b.work, s, 7, q);
            assert_memory_equal(p, q, n * sizeof *p);
        }
        close_bench(&b);
        tiny_close(&class);
    }
    assert_true(n_checked > 500);
    memory_free(a);
}

/* ---- kernels */

static void test_kernels(void **state)
{
    (void)state;
    enum { ROWS = 72, K = 7, M = 1 + K };
    double *x = NEW(double, K *ROWS), *offset = NEW(double, ROWS), *outcome = NEW(double, ROWS),
           *scratch = NEW(double, ROWS);
    const struct rng rng = {.seed = 5, .purpose = RNG_SIMULATE};
    double b[M];
    for (uint32_t i = 0; i < K * ROWS; i++)
        x[i] = rng_normal(&rng, i);
    for (uint32_t i = 0; i < ROWS; i++) {
        offset[i] = rng_normal(&rng, 1000 + i) * (i % 9 == 0 ? 300 : 2);
        outcome[i] = i % 3 == 0;
    }
    for (uint32_t c = 0; c < M; c++)
        b[c] = rng_normal(&rng, 2000 + c);
    for (size_t n = 0; n <= ROWS; n += 8)
        for (size_t k = 0; k <= K; k++) {
            struct sums {
                double r[ROWS], d[ROWS], slope[M], curve[M * M];
            } *first = NEW(struct sums, 1), *other = NEW(struct sums, 1);
            const struct logistic_rows rows = {x, ROWS, k, n};
            for (int isa = 0; isa <= (int)machine_isa(); isa++) {
                struct sums *found = isa == 0 ? first : other;
                tables[isa]->look(&rows, offset, outcome, b, found->r, found->d);
                tables[isa]->sums(&rows, found->r, found->d, scratch, found->slope,
                                  found->curve);
                if (isa > 0)
                    assert_memory_equal(first, other, sizeof *first);
            }
            for (size_t i = 0; i < n; i++) {
                double eta = offset[i] + b[0];
                for (size_t c = 0; c < k; c++)
                    eta += b[1 + c] * x[c * ROWS + i];
                assert_true(fabs(first->r[i] - (chance(eta) - outcome[i])) < 1e-14);
                assert_true(fabs(first->d[i] - chance(eta) * chance(-eta)) < 1e-14);
            }
            for (size_t r = 0; r <= k; r++)
                for (size_t c = 0; c <= r; c++) {
                    double slope = 0, curve = 0;
                    for (size_t i = 0; i < n; i++) {
                        const double xr = r > 0 ? x[(r - 1) * ROWS + i] : 1;
                        slope += first->r[i] * xr;
                        curve += first->d[i] * xr * (c > 0 ? x[(c - 1) * ROWS + i] : 1);
                    }
                    assert_true(fabs(first->slope[r] - slope) < 1e-12);
                    assert_true(fabs(first->curve[r * (1 + k) + c] - curve) < 1e-12);
                }
            memory_free(first);
            memory_free(other);
        }
    memory_free(x);
    memory_free(offset);
    memory_free(outcome);
    memory_free(scratch);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_probable_weights),
        cmocka_unit_test(test_small_penalties),
        cmocka_unit_test(test_long_students),
        cmocka_unit_test(test_rarely_requested_scores),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_kernels),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
