/* ranks: 1 2 3 5 */
/* Scores against plain O(n^2) counting and closed forms; and every result on all ranks has the
 * bits of the same call on one rank with all predictions. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/metrics.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;
static const struct comm alone = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};

/* n predictions with probabilities 0, 1/n_levels, ..., 1, and outcomes that follow them. */
static struct prediction *simulate(size_t n, uint32_t n_levels, uint32_t n_students,
                                   uint64_t seed)
{
    struct prediction *all = NEW(struct prediction, n);
    for (size_t t = 0; t < n; t++) {
        const struct rng rng = {.seed = seed, .purpose = RNG_SIMULATE, .who = (uint32_t)t};
        const uint64_t level = rng_below(&rng, 0, n_levels + 1);
        all[t] = (struct prediction){
            .probability = (float)level / (float)n_levels,
            .student = (uint32_t)rng_below(&rng, 1, n_students) * 3 + 1,
            .group = -1,
            .correct = rng_uniform(&rng, 2) < 0.2 + 0.6 * (double)level / n_levels,
        };
    }
    return all;
}

/* Ways to distribute predictions over ranks. */
enum { EVENLY, BY_STUDENT, ALL_ON_LAST, BACKWARDS, AT_RANDOM, HALF_EMPTY, N_WAYS };

static int owner_of(int way, const struct prediction *all, size_t t, size_t n)
{
    const struct rng rng = {.seed = 1, .purpose = RNG_SIMULATE, .who = (uint32_t)t};
    const int size = world.size;
    switch (way) {
    case EVENLY:
        return (int)(t * (size_t)size / n);
    case BY_STUDENT:
        return (int)(all[t].student % (uint32_t)size);
    case ALL_ON_LAST:
        return size - 1;
    case BACKWARDS:
        return size - 1 - (int)(t * (size_t)size / n);
    case AT_RANDOM:
        return (int)rng_below(&rng, 0, (uint64_t)size);
    default:
        return (int)rng_below(&rng, 0, (uint64_t)size) / 2 * 2;
    }
}

/* This rank's part, in an order of its own. */
static struct prediction *deal(int way, const struct prediction *all, size_t n, size_t *n_own)
{
    struct prediction *own = NEW(struct prediction, n);
    *n_own = 0;
    for (size_t j = 0; j < n; j++) {
        const size_t t = way == BACKWARDS ? n - 1 - j : j;
        if (owner_of(way, all, t, n) == world.rank)
            own[(*n_own)++] = all[t];
    }
    return own;
}

static void expect_bits(const struct score *got, const struct score *expected, const char *what)
{
    struct score a = *got, b = *expected;
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.n_students, b.n_students);
    for (int m = 0; m < N_METRICS; m++)
        if (memcmp(metrics_value(&a, m), metrics_value(&b, m), sizeof(double)) != 0)
            fail_msg("%s, %s: %a on %d ranks, %a on one", what, metrics_names[m],
                     *metrics_value(&a, m), world.size, *metrics_value(&b, m));
    assert_memory_equal(&a.correct, &b.correct, sizeof a.correct);
}

/* Weight of a student in a replicate: Poisson(1) by inversion of a 32-bit word. */
static int weight_of(uint64_t seed, uint32_t student, uint32_t replicate)
{
    const struct rng rng = {
        .seed = seed, .purpose = RNG_RESAMPLE, .when = replicate / 4, .who = student};
    uint32_t words[4];
    rng_words(&rng, 0, words);
    int weight = 0;
    double below = exp(-1), term = below;
    for (; (double)words[replicate % 4] >= rint(below * 0x1p32); below += term)
        term /= ++weight;
    return weight;
}

/* The plain way, with weights (NULL: ones). */
static struct score score_plainly(const struct prediction *all, size_t n, const int *weights)
{
    long double sum = 0, correct = 0, cbd = 0, loss = 0, square = 0, accurate = 0;
    long double gaps[N_CALIBRATION_BINS] = {0}, gap = 0;
    int64_t pairs = 0, n_pairs = 0;
    for (size_t t = 0; t < n; t++) {
        const int w = weights ? weights[t] : 1;
        const double p = all[t].probability, y = all[t].correct;
        const double capped = p < 0.01 ? 0.01 : p > 0.99 ? 0.99 : p;
        const double within = p < 1e-15 ? 1e-15 : p > 1 - 1e-15 ? 1 - 1e-15 : p;
        sum += w;
        correct += w * y;
        cbd -= w * (y * log10l(capped) + (1 - y) * log10l(1 - (long double)capped));
        loss -= w * (y * logl(within) + (1 - y) * logl(1 - (long double)within));
        square += w * (p - y) * (p - y);
        accurate += w * ((p >= 0.5) == all[t].correct);
        int bin = 0;
        while (bin < N_CALIBRATION_BINS - 1 && 15 * p >= bin + 1)
            bin++;
        gaps[bin] += w * (p - y);
        for (size_t u = 0; all[t].correct && u < n; u++)
            if (!all[u].correct) {
                const int both = w * (weights ? weights[u] : 1);
                n_pairs += 2 * both;
                if (all[u].probability <= all[t].probability)
                    pairs += both * (all[u].probability < all[t].probability ? 2 : 1);
            }
    }
    for (int b = 0; b < N_CALIBRATION_BINS; b++)
        gap += fabsl(gaps[b]);
    return (struct score){.correct = (double)(correct / sum),
                          .cbd = (double)(cbd / sum),
                          .log_loss = (double)(loss / sum),
                          .auc = n_pairs > 0 ? (double)pairs / (double)n_pairs : NAN,
                          .accuracy = (double)(accurate / sum),
                          .rmse = (double)sqrtl(square / sum),
                          .calibration_error = (double)(gap / sum)};
}

static void expect_near(double got, double expected, double error, const char *what)
{
    if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= error))
        fail_msg("%s: %.17g instead of %.17g", what, got, expected);
}

static const struct {
    size_t n;
    uint32_t n_levels, n_students;
} shapes[] = {{0, 1, 1},    {1, 1, 1},        {2, 1, 2},      {3, 2, 1},
              {10, 1, 3},   {17, 3, 4},       {50, 5, 20},    {100, 1000000, 7},
              {200, 10, 9}, {300, 2, 50},     {333, 50, 333}, {500, 16777216, 100},
              {1000, 7, 3}, {1000, 100, 1000}};

static void test_score(void **state)
{
    (void)state;
    for (size_t j = 0; j < COUNT(shapes); j++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const size_t n = shapes[j].n;
            struct prediction *all =
                simulate(n, shapes[j].n_levels, shapes[j].n_students, seed);
            struct score one, plain = score_plainly(all, n, NULL);
            metrics_score(&alone, all, n, &one);
            assert_int_equal(one.n, n);
            assert_true(isnan(plain.auc) ? isnan(one.auc) : one.auc == plain.auc);
            expect_near(one.correct, plain.correct, 1e-15, "correct");
            for (int m = 0; m < N_METRICS; m++)
                expect_near(*metrics_value(&one, m), *metrics_value(&plain, m), 3e-14,
                            metrics_names[m]);
            for (int way = 0; way < N_WAYS; way++) {
                size_t n_own = 0;
                struct prediction *own = deal(way, all, n, &n_own);
                struct score many;
                metrics_score(&world, own, n_own, &many);
                expect_bits(&many, &one, "score");
                memory_free(own);
            }
            memory_free(all);
        }
}

/* Long enough for several runs of small integers and for ranks that own ranges of a few
 * levels. */
static void test_score_of_many(void **state)
{
    (void)state;
    static const uint32_t n_levels[] = {1, 30, 1 << 24};
    for (size_t j = 0; j < COUNT(n_levels); j++) {
        const size_t n = 13000;
        struct prediction *all = simulate(n, n_levels[j], 200, 77);
        struct score one, many;
        size_t n_own = 0;
        struct prediction *own = deal(AT_RANDOM, all, n, &n_own);
        metrics_score(&alone, all, n, &one);
        metrics_score(&world, own, n_own, &many);
        expect_bits(&many, &one, "score");
        const struct score plain = score_plainly(all, n, NULL);
        assert_true(one.auc == plain.auc);
        assert_int_equal(one.n_students, 200);
        memory_free(own);
        memory_free(all);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, size_t n, double q)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare);
    const double at = q * (double)(n - 1), below = floor(at);
    const double a = values[(size_t)below], b = values[(size_t)ceil(at)];
    return a + (at - below) * (b - a);
}

/* Every replicate computed the plain way; none of a single student. More replicates than are
 * computed at once. */
static void test_interval(void **state)
{
    (void)state;
    enum { N_REPLICATES = 71 };
    static const size_t chosen[] = {1, 3, 5, 6, 8, 9, 12};
    for (size_t j = 0; j < COUNT(chosen); j++) {
        const size_t n = shapes[chosen[j]].n;
        const uint64_t seed = 100 + j;
        struct prediction *all =
            simulate(n, shapes[chosen[j]].n_levels, shapes[chosen[j]].n_students, 50 + j);
        double values[N_METRICS + 1][N_REPLICATES];
        size_t n_values[N_METRICS + 1] = {0};
        int *weights = NEW(int, n);
        size_t n_other = 0; /* answers of others than the first student */
        for (size_t t = 0; t < n; t++)
            n_other += all[t].student != all[0].student;
        for (uint32_t r = 0; n_other > 0 && r < N_REPLICATES; r++) {
            for (size_t t = 0; t < n; t++)
                weights[t] = weight_of(seed, all[t].student, r);
            struct score plain = score_plainly(all, n, weights);
            for (int m = 0; m <= N_METRICS; m++) {
                const double value = m < N_METRICS ? *metrics_value(&plain, m) : plain.correct;
                if (!isnan(value))
                    values[m][n_values[m]++] = value;
            }
        }
        struct score low, high;
        metrics_interval(&alone, all, n, N_REPLICATES, seed, &low, &high);
        assert_int_equal(low.n, n);
        assert_int_equal(high.n, n);
        for (int m = 0; m < N_METRICS; m++) {
            expect_near(*metrics_value(&low, m), quantile(values[m], n_values[m], 0.025), 3e-14,
                        metrics_names[m]);
            expect_near(*metrics_value(&high, m), quantile(values[m], n_values[m], 0.975),
                        3e-14, metrics_names[m]);
        }
        expect_near(low.correct, quantile(values[N_METRICS], n_values[N_METRICS], 0.025), 1e-15,
                    "correct");
        for (int way = 0; way < N_WAYS; way++) {
            size_t n_own = 0;
            struct prediction *own = deal(way, all, n, &n_own);
            struct score low_many, high_many;
            metrics_interval(&world, own, n_own, N_REPLICATES, seed, &low_many, &high_many);
            expect_bits(&low_many, &low, "low");
            expect_bits(&high_many, &high, "high");
            memory_free(own);
        }
        memory_free(weights);
        memory_free(all);
    }
}

static void test_interval_needs_its_seed(void **state)
{
    (void)state;
    struct prediction *all = simulate(500, 100, 60, 3);
    struct score low[3], high[3];
    for (int j = 0; j < 3; j++)
        metrics_interval(&alone, all, 500, 100, j == 2 ? 10 : 9, &low[j], &high[j]);
    expect_bits(&low[0], &low[1], "the same seed");
    expect_bits(&high[0], &high[1], "the same seed");
    assert_true(low[0].auc != low[2].auc && high[0].cbd != high[2].cbd);
    memory_free(all);
}

/* Students of differing ability, predictions that know nothing: the true AUC is 0.5. */
static struct prediction *simulate_ignorance(uint32_t n_students, uint32_t n_attempts,
                                             uint64_t seed)
{
    struct prediction *all = NEW(struct prediction, (size_t)n_students * n_attempts);
    for (uint32_t s = 0; s < n_students; s++) {
        const struct rng rng = {.seed = seed, .purpose = RNG_SIMULATE, .who = s};
        const double ability = rng_uniform(&rng, 0);
        for (uint32_t t = 0; t < n_attempts; t++)
            all[s * n_attempts + t] =
                (struct prediction){.probability = (float)rng_uniform(&rng, 3 * t + 1),
                                    .student = s,
                                    .group = -1,
                                    .correct = rng_uniform(&rng, 3 * t + 2) < ability};
    }
    return all;
}

static void test_interval_coverage(void **state)
{
    (void)state;
    enum { N_CLASSES = 100, N_STUDENTS = 80, N_ATTEMPTS = 12 };
    int n_auc = 0, n_correct = 0;
    for (uint64_t c = 0; c < N_CLASSES; c++) {
        struct prediction *all = simulate_ignorance(N_STUDENTS, N_ATTEMPTS, c);
        struct score low, high;
        metrics_interval(&alone, all, N_STUDENTS * N_ATTEMPTS, 200, c, &low, &high);
        n_auc += low.auc <= 0.5 && 0.5 <= high.auc;
        n_correct += low.correct <= 0.5 && 0.5 <= high.correct;
        memory_free(all);
    }
    assert_in_range(n_auc, 88, 99); /* 95 is expected; too narrow or too wide is wrong */
    assert_in_range(n_correct, 88, 99);
}

static void test_interval_shrinks_with_students(void **state)
{
    (void)state;
    double widths[2];
    for (int j = 0; j < 2; j++) {
        const uint32_t n_students = j == 0 ? 100 : 1600;
        struct prediction *all = simulate_ignorance(n_students, 10, 5);
        struct score score, low, high;
        metrics_score(&alone, all, n_students * 10, &score);
        metrics_interval(&alone, all, n_students * 10, 400, 1, &low, &high);
        for (int m = 0; m < N_METRICS - 1; m++) {
            assert_true(*metrics_value(&low, m) < *metrics_value(&score, m));
            assert_true(*metrics_value(&high, m) > *metrics_value(&score, m));
        }
        widths[j] = high.auc - low.auc;
        memory_free(all);
    }
    assert_true(widths[0] / widths[1] > 3 && widths[0] / widths[1] < 5.3); /* about sqrt(16) */
}

/* Copies of attempts within their students add no information: the interval stays the same. */
static void test_interval_resamples_students(void **state)
{
    (void)state;
    enum { N = 300, COPIES = 5 };
    struct prediction *all = simulate(N, 50, 40, 8),
                      *copies = NEW(struct prediction, N * COPIES);
    for (size_t t = 0; t < N * COPIES; t++)
        copies[t] = all[t % N];
    struct score low, high, low_copies, high_copies;
    metrics_interval(&alone, all, N, 100, 2, &low, &high);
    metrics_interval(&alone, copies, N * COPIES, 100, 2, &low_copies, &high_copies);
    for (int m = 0; m < N_METRICS; m++) {
        expect_near(*metrics_value(&low_copies, m), *metrics_value(&low, m), 1e-14, "low");
        expect_near(*metrics_value(&high_copies, m), *metrics_value(&high, m), 1e-14, "high");
    }
    memory_free(all);
    memory_free(copies);
}

/* Some predictions of one student. */
static struct score score_few(const float *p, const bool *correct, size_t n)
{
    struct prediction *all = NEW(struct prediction, n);
    for (size_t t = 0; t < n; t++)
        all[t] = (struct prediction){.probability = p[t], .correct = correct[t]};
    struct score score;
    metrics_score(&alone, all, n, &score);
    memory_free(all);
    return score;
}

static void test_constant_half(void **state)
{
    (void)state;
    const struct score score =
        score_few((const float[]){0.5f, 0.5f, 0.5f, 0.5f}, (const bool[]){1, 0, 1, 1}, 4);
    assert_int_equal(score.n, 4);
    assert_int_equal(score.n_students, 1);
    assert_true(score.correct == 0.75);
    expect_near(score.cbd, 0.301030, 5e-7, "cbd");
    expect_near(score.cbd, 0.30102999566398119521, 1e-15, "cbd");
    expect_near(score.log_loss, 0.69314718055994530942, 1e-15, "log_loss");
    assert_true(score.auc == 0.5);
    assert_true(score.accuracy == 0.75); /* 0.5 predicts a correct answer */
    assert_true(score.rmse == 0.5);
    assert_true(score.calibration_error == 0.25);
}

static void test_perfect_and_inverted(void **state)
{
    (void)state;
    const bool correct[] = {1, 0, 0, 1, 1};
    const struct score perfect = score_few((const float[]){1, 0, 0, 1, 1}, correct, 5);
    assert_true(perfect.auc == 1);
    assert_true(perfect.accuracy == 1);
    assert_true(perfect.rmse == 0);
    assert_true(perfect.calibration_error == 0);
    expect_near(perfect.cbd, -log10(0.99), 1e-15, "cbd");
    expect_near(perfect.log_loss, 0, 1.2e-15, "log_loss");
    const struct score inverted = score_few((const float[]){0, 1, 1, 0, 0}, correct, 5);
    assert_true(inverted.auc == 0);
    assert_true(inverted.accuracy == 0);
    assert_true(inverted.rmse == 1);
    assert_true(inverted.calibration_error == 1);
    expect_near(inverted.cbd, 2, 1e-14, "cbd");
    expect_near(inverted.log_loss, -log(1e-15), 0.01, "log_loss");
    const struct score better = score_few((const float[]){.4f, .3f, .3f, .5f, .4f}, correct, 5);
    assert_true(better.auc == 1); /* only the order counts */
}

static void test_capped_probabilities(void **state)
{
    (void)state;
    const struct score low = score_few((const float[]){0.001f}, (const bool[]){1}, 1);
    expect_near(low.cbd, 2, 1e-14, "cbd");
    expect_near(low.log_loss, -log((double)0.001f), 1e-14, "log_loss");
    const struct score high = score_few((const float[]){0.999f}, (const bool[]){1}, 1);
    expect_near(high.cbd, -log10(0.99), 1e-15, "cbd");
    const struct score tiny = score_few((const float[]){1e-42f}, (const bool[]){1}, 1);
    expect_near(tiny.log_loss, -log(1e-15), 1e-13, "log_loss");
}

static void test_nothing_to_compare(void **state)
{
    (void)state;
    for (int y = 0; y < 2; y++) {
        const struct score same =
            score_few((const float[]){0.25f, 0.75f}, (const bool[]){y == 1, y == 1}, 2);
        assert_true(isnan(same.auc));
        assert_true(same.accuracy == 0.5 && same.correct == y);
    }
    struct score score, low, high;
    struct calibration_bin bins[N_CALIBRATION_BINS];
    metrics_score(&world, NULL, 0, &score);
    metrics_interval(&world, NULL, 0, 10, 1, &low, &high);
    metrics_calibration(&world, NULL, 0, bins);
    assert_int_equal(score.n, 0);
    assert_int_equal(score.n_students, 0);
    assert_true(isnan(score.correct));
    for (int m = 0; m < N_METRICS; m++)
        assert_true(isnan(*metrics_value(&score, m)) && isnan(*metrics_value(&low, m)) &&
                    isnan(*metrics_value(&high, m)));
    for (int b = 0; b < N_CALIBRATION_BINS; b++)
        assert_true(bins[b].n == 0 && isnan(bins[b].probability) && isnan(bins[b].correct));
}

static void test_zeros_of_both_signs_are_ties(void **state)
{
    (void)state;
    const struct score score =
        score_few((const float[]){-0.0f, 0.0f, 0.0f, -0.0f}, (const bool[]){1, 0, 1, 0}, 4);
    assert_true(score.auc == 0.5);
}

/* A student whose attempts lie on several ranks counts as one student. */
static void test_students_are_counted_once(void **state)
{
    (void)state;
    const struct prediction own[] = {
        {.probability = 0.5f, .student = 7},
        {.probability = 0.5f, .student = 100 + (uint32_t)world.rank},
        {.probability = 0.5f, .student = 7},
    };
    struct score score;
    metrics_score(&world, own, COUNT(own), &score);
    assert_int_equal(score.n, 3 * world.size);
    assert_int_equal(score.n_students, 1 + world.size);
}

static void test_calibration(void **state)
{
    (void)state;
    /* bin 3: four at 0.25, half correct; last bin: two at 1, one correct; bin 0: one at 0 */
    const float p[] = {0.25f, 1, 0.25f, 0.25f, 0, 1, 0.25f};
    const bool correct[] = {1, 1, 0, 1, 0, 0, 0};
    struct prediction all[COUNT(p)];
    for (size_t t = 0; t < COUNT(p); t++)
        all[t] = (struct prediction){.probability = p[t], .correct = correct[t]};
    struct calibration_bin bins[N_CALIBRATION_BINS];
    metrics_calibration(&alone, all, COUNT(p), bins);
    int64_t n = 0;
    for (int b = 0; b < N_CALIBRATION_BINS; b++)
        n += bins[b].n;
    assert_int_equal(n, COUNT(p));
    assert_true(bins[3].n == 4 && bins[3].probability == 0.25 && bins[3].correct == 0.5);
    assert_true(bins[14].n == 2 && bins[14].probability == 1 && bins[14].correct == 0.5);
    assert_true(bins[0].n == 1 && bins[0].probability == 0 && bins[0].correct == 0);
    struct score score;
    metrics_score(&alone, all, COUNT(p), &score);
    expect_near(score.calibration_error, (4 * 0.25 + 2 * 0.5 + 0) / 7, 1e-15, "calibration");

    for (size_t j = 0; j < COUNT(shapes); j++) {
        struct prediction *some = simulate(shapes[j].n, shapes[j].n_levels, 5, j);
        struct calibration_bin one[N_CALIBRATION_BINS];
        metrics_calibration(&alone, some, shapes[j].n, one);
        metrics_score(&alone, some, shapes[j].n, &score);
        double error = 0;
        for (int b = 0; b < N_CALIBRATION_BINS; b++) {
            if (one[b].n > 0)
                error += (double)one[b].n * fabs(one[b].probability - one[b].correct);
            assert_true(one[b].n == 0 || (one[b].probability >= b / 15.0 - 1e-7 &&
                                          one[b].probability <= (b + 1) / 15.0 + 1e-7));
        }
        expect_near(score.calibration_error, error / (double)shapes[j].n, 1e-14, "calibration");
        for (int way = 0; way < N_WAYS; way++) {
            size_t n_own = 0;
            struct prediction *own = deal(way, some, shapes[j].n, &n_own);
            metrics_calibration(&world, own, n_own, bins);
            for (int b = 0; b < N_CALIBRATION_BINS; b++)
                assert_memory_equal(&bins[b], &one[b], sizeof *bins);
            memory_free(own);
        }
        memory_free(some);
    }
}

static void test_names(void **state)
{
    (void)state;
    struct score score = {.cbd = 1, .log_loss = 2, .auc = 3, .accuracy = 4, .rmse = 5};
    score.calibration_error = 6;
    static const char *const names[] = {"cbd",      "log_loss", "auc",
                                        "accuracy", "rmse",     "calibration_error"};
    assert_int_equal(COUNT(names), N_METRICS);
    for (int m = 0; m < N_METRICS; m++) {
        assert_string_equal(metrics_names[m], names[m]);
        assert_true(*metrics_value(&score, m) == m + 1);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_score_of_many),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_interval_needs_its_seed),
        cmocka_unit_test(test_interval_coverage),
        cmocka_unit_test(test_interval_shrinks_with_students),
        cmocka_unit_test(test_interval_resamples_students),
        cmocka_unit_test(test_constant_half),
        cmocka_unit_test(test_perfect_and_inverted),
        cmocka_unit_test(test_capped_probabilities),
        cmocka_unit_test(test_nothing_to_compare),
        cmocka_unit_test(test_zeros_of_both_signs_are_ties),
        cmocka_unit_test(test_students_are_counted_once),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_names),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
