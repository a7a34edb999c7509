/* Simulated classes against the stored truth. */
#include "base/h5.h"
#include "imported.h"
#include <math.h>

static struct class class;

static void simulate_class(const char *line, const char *name)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s -o @/%s", line, name);
    const enum status status = run_line(&command_simulate, whole);
    if (status != OK)
        print_error("%s\n", fail_sentence());
    assert_int_equal(status, OK);
    read_class(name, &class);
}

static double *read_truth(const char *name, uint64_t n_rows, uint64_t n_columns)
{
    char path[64];
    int rank = 0;
    uint64_t shape[4] = {0};
    const hid_t file = h5_open(class.dataset.path, MPI_COMM_SELF, 1);
    assert_true(file >= 0);
    snprintf(path, sizeof path, "/truth/%s", name);
    assert_int_equal(h5_shape(file, path, &rank, shape), OK);
    assert_int_equal(rank, n_columns > 0 ? 2 : 1);
    assert_int_equal(shape[0], n_rows);
    if (n_columns > 0)
        assert_int_equal(shape[1], n_columns);
    const uint64_t n = n_rows * (n_columns > 0 ? n_columns : 1);
    double *values = NEW(double, n);
    assert_int_equal(h5_read(file, path, H5T_NATIVE_DOUBLE, n, values), OK);
    h5_let_go(file);
    return values;
}

/* Log-likelihood minus its expectation if p is the truth, in standard deviations. */
struct judge {
    double surplus, variance, log_loss;
    size_t n;
};

static void judge(struct judge *judge, double p, enum outcome outcome)
{
    const double y = outcome == CORRECT, logit = log(p / (1 - p));
    judge->surplus += (y - p) * logit;
    judge->variance += p * (1 - p) * logit * logit;
    judge->log_loss -= log(outcome == CORRECT ? p : 1 - p);
    judge->n++;
}

static double verdict(const struct judge *judge)
{
    return judge->surplus / sqrt(judge->variance);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double irt_p(const double *theta, const double *a, double b, size_t n_skills)
{
    double logit = -b;
    for (size_t k = 0; k < n_skills; k++)
        logit += a[k] * theta[k];
    return sigmoid(logit);
}

static void test_irt(void **state)
{
    (void)state;
    enum { N = 2000, M = 50, K = 3 };
    simulate_class("irt --students 2000 --items 50 --skills 3 --seed 1 --correlation 0.6",
                   "irt.h5");
    const struct dataset *dataset = &class.dataset;
    assert_int_equal(dataset->n_students, N);
    assert_int_equal(dataset->n_items, M);
    assert_int_equal(dataset->n_skills, K);
    assert_int_equal(dataset->n_attempts, N * M);
    double *theta = read_truth("theta", N, K), *a = read_truth("a", M, K);
    double *b = read_truth("b", M, 0), *q = read_truth("q", M, K);
    for (size_t i = 0; i < M; i++)
        for (size_t k = 0, j = dataset->item_first[i]; k < K; k++) {
            const bool needs = j < dataset->item_first[i + 1] && dataset->item_skills[j] == k;
            j += needs;
            assert_true(q[i * K + k] == (double)needs);
            assert_true(needs ? a[i * K + k] > 0 : a[i * K + k] == 0);
        }
    /* With the truth the outcomes have the expected likelihood; with another student's, or
     * without discriminations, they do not. */
    struct judge truth = {0}, other = {0}, plain = {0};
    for (size_t s = 0; s < N; s++)
        for (uint64_t t = class.shard.first[s]; t < class.shard.first[s + 1]; t++) {
            const size_t i = class.shard.item[t];
            const enum outcome outcome = mark_outcome(class.shard.mark[t]);
            judge(&truth, irt_p(theta + s * K, a + i * K, b[i], K), outcome);
            judge(&other, irt_p(theta + (s + 1) % N * K, a + i * K, b[i], K), outcome);
            judge(&plain, irt_p(theta + s * K, q + i * K, b[i], K), outcome);
        }
    assert_true(fabs(verdict(&truth)) < 4.5);
    assert_true(verdict(&other) < -20);
    assert_true(plain.log_loss > truth.log_loss + 100);
    double sum = 0;
    for (size_t s = 0; s < N; s++)
        sum += theta[s * K] * theta[s * K + 1];
    assert_true(fabs(sum / N - 0.6) < 0.12);
    memory_free(theta);
    memory_free(a);
    memory_free(b);
    memory_free(q);
    free_class(&class);

    simulate_class("irt --students 300 --items 20 --model 1pl --missing 0.5", "one.h5");
    double *ones = read_truth("a", 20, 1);
    for (size_t i = 0; i < 20; i++)
        assert_true(ones[i] == 1);
    assert_in_range(class.dataset.n_attempts, 3000 - 200, 3000 + 200);
    memory_free(ones);
    free_class(&class);
}

static void test_bkt(void **state)
{
    (void)state;
    enum { K = 4, N = 3000 };
    simulate_class("bkt --students 3000 --skills 4 --items 10 --attempts 40 --seed 3",
                   "bkt.h5");
    assert_int_equal(class.dataset.n_attempts, 40 * N);
    assert_int_equal(class.dataset.n_items, 10);
    double *p0 = read_truth("p0", K, 0), *learn = read_truth("learn", K, 0);
    double *guess = read_truth("guess", K, 0), *slip = read_truth("slip", K, 0);
    double *forget = read_truth("forget", K, 0), *states = read_truth("known", N, K);
    /* The forward algorithm with the truth; and without any learning. */
    struct judge truth = {0}, frozen = {0}, hidden = {0}; /* hidden: P(known) at the end */
    for (size_t s = 0; s < N; s++) {
        double known[2][K];
        for (size_t k = 0; k < K; k++)
            known[0][k] = known[1][k] = p0[k];
        for (uint64_t t = class.shard.first[s]; t < class.shard.first[s + 1]; t++) {
            const size_t i = class.shard.item[t];
            assert_int_equal(class.dataset.item_first[i + 1] - class.dataset.item_first[i], 1);
            const size_t k = class.dataset.item_skills[class.dataset.item_first[i]];
            const enum outcome outcome = mark_outcome(class.shard.mark[t]);
            for (int model = 0; model < 2; model++) {
                const double before = known[model][k];
                const double p = before * (1 - slip[k]) + (1 - before) * guess[k];
                judge(model == 0 ? &truth : &frozen, p, outcome);
                const double after = outcome == CORRECT ? before * (1 - slip[k]) / p
                                                        : before * slip[k] / (1 - p);
                known[model][k] = after + (model == 0 ? (1 - after) * learn[k] : 0);
            }
        }
        for (size_t k = 0; k < K; k++) {
            const double knows = states[s * K + k];
            assert_true(knows == 0 || knows == 1);
            judge(&hidden, fmin(known[0][k], 1 - 1e-12), knows == 1 ? CORRECT : INCORRECT);
        }
    }
    assert_true(fabs(verdict(&hidden)) < 4.5);
    assert_true(hidden.log_loss / (double)hidden.n < 0.3);
    memory_free(states);
    assert_true(fabs(verdict(&truth)) < 4.5);
    assert_true(frozen.log_loss > truth.log_loss + 1000);
    assert_true(forget[0] == 0);
    memory_free(p0);
    memory_free(learn);
    memory_free(guess);
    memory_free(slip);
    memory_free(forget);
    free_class(&class);
    assert_int_equal(run_line(&command_simulate, "bkt --skills 5 --items 3 -o @/x.h5"),
                     BAD_USER);
}

static int compare_counts(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_grockit(void **state)
{
    (void)state;
    enum { N = 16000, M = 1500, N_TRACKS = 9 };
    simulate_class("grockit --students 16000 --items 1500 --seed 2", "grockit.h5");
    const struct dataset *dataset = &class.dataset;
    assert_int_equal(dataset->n_students, N);
    assert_int_equal(dataset->n_items, M);
    assert_int_equal(dataset->n_groups, N_TRACKS);
    assert_int_equal(dataset->n_skills, 281);
    assert_true(dataset->withheld && dataset->has_time);
    const double mean = (double)dataset->n_attempts / N;
    assert_true(mean > 35 && mean < 42);
    uint64_t *counts = NEW(uint64_t, N), *popularity = NEW(uint64_t, M);
    for (size_t s = 0; s < N; s++)
        counts[s] = dataset->first[s + 1] - dataset->first[s];
    qsort(counts, N, sizeof *counts, compare_counts);
    assert_true((double)counts[N / 2] < 0.6 * mean); /* long tails */
    assert_true((double)counts[N * 99 / 100] > 5 * mean);
    for (size_t t = 0; t < class.shard.n_attempts; t++)
        popularity[class.shard.item[t]]++;
    qsort(popularity, M, sizeof *popularity, compare_counts);
    assert_true(popularity[M - 1] > 4 * popularity[M / 2]);

    /* About one in twelve outcomes is unknown; predictions from student and item beat the
     * item's mean. */
    double *ability = read_truth("ability", N, 0),
           *track = read_truth("track_ability", N, N_TRACKS);
    double *a = read_truth("discrimination", M, 0), *b = read_truth("difficulty", M, 0);
    double n_item[M][2] = {{0}};
    size_t n_unknown = 0, n_test = 0;
    for (size_t t = 0; t < class.shard.n_attempts; t++) {
        const enum outcome outcome = mark_outcome(class.shard.mark[t]);
        n_unknown += outcome == UNKNOWN;
        n_test += mark_split(class.shard.mark[t]) == TEST;
        if (outcome != UNKNOWN && mark_split(class.shard.mark[t]) == TRAIN)
            n_item[class.shard.item[t]][outcome]++;
    }
    assert_in_range(n_unknown, 0.05 * mean * N, 0.12 * mean * N);
    assert_in_range(n_test, 0.95 * N, N);
    struct judge by_item = {0}, by_truth = {0};
    for (size_t s = 0; s < N; s++)
        for (uint64_t t = class.shard.first[s]; t < class.shard.first[s + 1]; t++) {
            const size_t i = class.shard.item[t];
            const enum outcome outcome = mark_outcome(class.shard.mark[t]);
            if (mark_split(class.shard.mark[t]) != TEST)
                continue;
            const double logit =
                a[i] * (ability[s] + track[s * N_TRACKS + (size_t)dataset->item_group[i]]) -
                b[i];
            const double p = sigmoid(logit);
            judge(&by_truth, p / (p + 0.8 * (1 - p)),
                  outcome); /* 1 in 5 of the wrong answers is unknown */
            judge(&by_item, (n_item[i][1] + 1) / (n_item[i][0] + n_item[i][1] + 2), outcome);
        }
    print_message("test log loss: item means %.3f, student and item %.3f\n",
                  by_item.log_loss / (double)by_item.n, by_truth.log_loss / (double)by_truth.n);
    assert_true(by_truth.log_loss < 0.9 * by_item.log_loss);
    memory_free(counts);
    memory_free(popularity);
    memory_free(ability);
    memory_free(track);
    memory_free(a);
    memory_free(b);
    free_class(&class);
}

/* The number of attempts can be chosen. */
static void test_grockit_attempts(void **state)
{
    (void)state;
    enum { N = 8000 };
    simulate_class("grockit --students 8000 --items 2000 --attempts 120 --seed 2", "busy.h5");
    assert_int_equal(class.dataset.n_students, N);
    assert_in_range(class.dataset.n_attempts, 110 * N, 130 * N);
    free_class(&class);
    simulate_class("grockit --students 50 --items 20 --attempts 1", "idle.h5");
    assert_int_equal(class.dataset.n_attempts, 50);
    free_class(&class);
}

static void test_seeds(void **state)
{
    (void)state;
    static const char *const lines[] = {"irt --students 200 --seed 7",
                                        "bkt --students 200 --seed 7",
                                        "grockit --students 200 --items 300 --seed 7"};
    for (size_t l = 0; l < COUNT(lines); l++) {
        char other[128], digest[33];
        simulate_class(lines[l], "a.h5");
        memcpy(digest, class.dataset.digest, sizeof digest);
        free_class(&class);
        simulate_class(lines[l], "b.h5");
        assert_string_equal(class.dataset.digest, digest);
        free_class(&class);
        snprintf(other, sizeof other, "%s1", lines[l]);
        simulate_class(other, "b.h5");
        assert_string_not_equal(class.dataset.digest, digest);
        free_class(&class);
        snprintf(other, sizeof other, "%s --shuffle-outcomes", lines[l]);
        simulate_class(other, "b.h5");
        assert_string_not_equal(class.dataset.digest, digest);
        free_class(&class);
    }
}

int main(int argc, char **argv)
{
    settle(&argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_irt),     cmocka_unit_test(test_bkt),
        cmocka_unit_test(test_grockit), cmocka_unit_test(test_grockit_attempts),
        cmocka_unit_test(test_seeds),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    leave();
    return failed;
}
