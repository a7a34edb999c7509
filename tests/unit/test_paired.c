/* ranks: 1 2 3 5 */
/* Paired differences against a plain recount with the same weights; exactly 0 for a model and
 * itself; the same bits however the attempts are distributed; how often the interval of two
 * equally good models excludes 0; and no interval from one student. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "runs/paired.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;
static const struct comm alone = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};

enum { N = 300, N_STUDENTS = 25, N_MODELS = 3, N_REPLICATES = 130 };

/* Attempts of students of different ability; model m adds noise to the true chance. */
static void simulate(struct prediction *all, size_t n, uint32_t n_students, uint64_t seed,
                     uint32_t m, double noise)
{
    for (size_t t = 0; t < n; t++) {
        const uint32_t student = (uint32_t)(t % n_students);
        const struct rng one = {.seed = seed, .purpose = RNG_SIMULATE, .who = student};
        const struct rng attempt = {
            .seed = seed, .purpose = RNG_SIMULATE, .when = 1, .who = (uint32_t)t};
        const double chance = 0.2 + 0.6 * rng_uniform(&one, 0);
        const double p = chance + noise * (rng_uniform(&attempt, 1 + m) - 0.5);
        all[t] = (struct prediction){.probability = (float)fmin(fmax(p, 0.001), 0.999),
                                     .student = student,
                                     .group = -1,
                                     .correct = rng_uniform(&attempt, 0) < chance};
    }
}

static size_t deal(const struct prediction *all, size_t n, int way, struct prediction *own)
{
    size_t n_own = 0;
    for (size_t t = 0; t < n; t++)
        if ((int)(way == 0 ? t * (size_t)world.size / n : t % (size_t)world.size) == world.rank)
            own[n_own++] = all[t];
    return n_own;
}

/* The weight of a student in a replicate: Poisson(1) by inversion of a 32-bit word. */
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

static double plain_log_loss(const struct prediction *all, size_t n, const int *weights)
{
    double sum = 0, loss = 0;
    for (size_t t = 0; t < n; t++) {
        const double p = (double)all[t].probability;
        sum += weights[all[t].student];
        loss -= weights[all[t].student] * log(all[t].correct ? p : 1 - p);
    }
    return loss / sum;
}

static double plain_auc(const struct prediction *all, size_t n, const int *weights)
{
    double pairs = 0, n_pairs = 0;
    for (size_t t = 0; t < n; t++)
        for (size_t u = 0; all[t].correct && u < n; u++)
            if (!all[u].correct) {
                const double both = weights[all[t].student] * weights[all[u].student];
                n_pairs += both;
                pairs += both * (all[t].probability > all[u].probability    ? 1
                                 : all[t].probability == all[u].probability ? 0.5
                                                                            : 0);
            }
    return pairs / n_pairs;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numpy's default quantile. */
static double plain_quantile(const double *sorted, size_t n, double q)
{
    const double at = q * (double)(n - 1), below = floor(at);
    const size_t j = (size_t)below;
    return j + 1 < n ? sorted[j] * (1 - (at - below)) + sorted[j + 1] * (at - below)
                     : sorted[n - 1];
}

static void fill(struct paired *paired, const struct comm *comm, int way, uint64_t seed)
{
    struct prediction all[N], own[N];
    paired_start(paired, comm, N_REPLICATES, seed);
    for (uint32_t m = 0; m < N_MODELS; m++) {
        simulate(all, N, N_STUDENTS, 3, m, 0.1 + 0.2 * m);
        const size_t n_own = comm->size == 1 ? N : deal(all, N, way, own);
        assert_int_equal(paired_add(paired, comm->size == 1 ? all : own, n_own), OK);
    }
}

static void differences_are_those_of_a_plain_recount(void **state)
{
    (void)state;
    static const enum metric metrics[] = {METRIC_LOG_LOSS, METRIC_AUC};
    const uint64_t seed = 11;
    struct paired paired;
    fill(&paired, &world, 1, seed);
    struct prediction a[N], b[N];
    simulate(a, N, N_STUDENTS, 3, 0, 0.1);
    simulate(b, N, N_STUDENTS, 3, 2, 0.5);
    for (size_t k = 0; k < COUNT(metrics); k++) {
        double (*const score)(const struct prediction *, size_t, const int *) =
            k == 0 ? plain_log_loss : plain_auc;
        double values[N_REPLICATES];
        int weights[N_STUDENTS];
        for (uint32_t r = 0; r < N_REPLICATES; r++) {
            for (uint32_t s = 0; s < N_STUDENTS; s++)
                weights[s] = weight_of(seed, s, r);
            values[r] = score(a, N, weights) - score(b, N, weights);
        }
        qsort(values, N_REPLICATES, sizeof *values, compare);
        for (uint32_t s = 0; s < N_STUDENTS; s++)
            weights[s] = 1;
        const struct paired_difference d = paired_difference(&paired, 0, 2, metrics[k]);
        assert_true(fabs(d.value - (score(a, N, weights) - score(b, N, weights))) < 1e-12);
        assert_true(fabs(d.low - plain_quantile(values, N_REPLICATES, 0.025)) < 1e-12);
        assert_true(fabs(d.high - plain_quantile(values, N_REPLICATES, 0.975)) < 1e-12);
        const struct paired_difference back = paired_difference(&paired, 2, 0, metrics[k]);
        assert_true(back.value == -d.value);
        assert_int_equal(back.better, -d.better);
    }
    paired_free(&paired);
}

static void bits_do_not_depend_on_ranks(void **state)
{
    (void)state;
    struct paired expected;
    fill(&expected, &alone, 0, 5);
    for (int way = 0; way < 2; way++) {
        struct paired got;
        fill(&got, &world, way, 5);
        for (size_t a = 0; a < N_MODELS; a++)
            for (size_t b = 0; b < N_MODELS; b++)
                for (int m = 0; m < N_METRICS; m++) {
                    const struct paired_difference x =
                        paired_difference(&got, a, b, (enum metric)m);
                    const struct paired_difference y =
                        paired_difference(&expected, a, b, (enum metric)m);
                    assert_memory_equal(&x.value, &y.value, 3 * sizeof x.value);
                    assert_int_equal(x.better, y.better);
                }
        paired_free(&got);
    }
    paired_free(&expected);
}

static void a_model_minus_itself_is_zero(void **state)
{
    (void)state;
    struct paired paired;
    fill(&paired, &world, 0, 1);
    for (int m = 0; m < N_METRICS; m++) {
        const struct paired_difference d = paired_difference(&paired, 1, 1, (enum metric)m);
        assert_true(d.value == 0 && d.low == 0 && d.high == 0 && d.better == 0);
    }
    paired_free(&paired);
}

/* Models with less noise are better, and the ranking has them first. */
static void the_better_model_is_found(void **state)
{
    (void)state;
    struct prediction all[4 * N];
    struct paired paired;
    paired_start(&paired, &alone, 200, 1);
    for (uint32_t m = 0; m < 3; m++) {
        simulate(all, COUNT(all), 100, 3, 0, m == 0 ? 0.9 : m == 1 ? 0 : 0.9);
        assert_int_equal(paired_add(&paired, all, COUNT(all)), OK);
    }
    for (int k = 0; k < 2; k++) {
        const enum metric metric = k == 0 ? METRIC_LOG_LOSS : METRIC_AUC;
        size_t *order = paired_ranking(&paired, metric);
        assert_int_equal(order[0], 1);
        assert_int_equal(order[1], 0); /* equal ones as they were added */
        assert_int_equal(order[2], 2);
        memory_free(order);
        assert_int_equal(paired_difference(&paired, 1, 0, metric).better, -1);
        assert_int_equal(paired_difference(&paired, 0, 1, metric).better, 1);
        assert_int_equal(paired_difference(&paired, 0, 2, metric).better, 0);
    }
    paired_free(&paired);
}

static void other_attempts_are_refused(void **state)
{
    (void)state;
    struct prediction all[N], own[N];
    for (int change = 0; change < 5; change++) {
        struct paired paired;
        paired_start(&paired, &world, 10, 1);
        simulate(all, N, N_STUDENTS, 3, 0, 0.1);
        assert_int_equal(paired_add(&paired, own, deal(all, N, 0, own)), OK);
        if (change == 1)
            all[N / 2].correct = !all[N / 2].correct;
        if (change == 2)
            all[N / 2].student++;
        if (change == 4)
            all[N / 2].group = 7;                 /* another model's number of the same group */
        const size_t n = change == 3 ? N - 1 : N; /* change 0: the same, on other ranks */
        assert_int_equal(paired_add(&paired, own, deal(all, n, 1, own)),
                         change == 0 || change == 4 ? OK : BAD_USER);
        fail_clear();
        paired_free(&paired);
    }
}

/* Two equally good models: of 95 % intervals about 5 % exclude 0. The bounds are those of 200
 * classes, and wider, since intervals from 40 students are somewhat too narrow. */
static void intervals_cover(void **state)
{
    (void)state;
    enum { N_CLASSES = 200, N_HERE = 400 };
    int n_real = 0;
    if (world.rank > 0)
        return;
    for (uint64_t c = 0; c < N_CLASSES; c++) {
        struct prediction all[N_HERE];
        struct paired paired;
        paired_start(&paired, &alone, 200, 1);
        for (uint32_t m = 0; m < 2; m++) {
            simulate(all, N_HERE, 40, 100 + c, m, 0.4);
            assert_int_equal(paired_add(&paired, all, N_HERE), OK);
        }
        n_real += paired_difference(&paired, 0, 1, METRIC_LOG_LOSS).better != 0;
        paired_free(&paired);
    }
    if (n_real < 3 || n_real > 24)
        fail_msg("%d of %d intervals exclude 0, expected about %d", n_real, N_CLASSES,
                 N_CLASSES / 20);
}

/* All samples of one student are alike: there is no interval, and nothing is better. */
static void one_student_gives_no_interval(void **state)
{
    (void)state;
    for (uint32_t n_students = 1; n_students <= 2; n_students++) {
        struct prediction all[N], own[N];
        struct paired paired;
        paired_start(&paired, &world, 50, 3);
        for (uint32_t m = 0; m < 2; m++) {
            simulate(all, N, n_students, 5, m, m * 1.9);
            assert_int_equal(paired_add(&paired, own, deal(all, N, 1, own)), OK);
        }
        const bool has = n_students > 1;
        const struct paired_difference d = paired_difference(&paired, 0, 1, METRIC_LOG_LOSS);
        assert_true(d.value < 0 && isnan(d.low) == !has && isnan(d.high) == !has);
        assert_int_equal(d.better, has ? -1 : 0);
        assert_true(isnan(paired.entries[0].low.auc) == !has &&
                    paired.entries[0].score.auc > 0);
        assert_true(isnan(paired.entries[0].high.correct) == !has);
        paired_free(&paired);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_those_of_a_plain_recount),
        cmocka_unit_test(bits_do_not_depend_on_ranks),
        cmocka_unit_test(a_model_minus_itself_is_zero),
        cmocka_unit_test(the_better_model_is_found),
        cmocka_unit_test(other_attempts_are_refused),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(one_student_gives_no_interval),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
