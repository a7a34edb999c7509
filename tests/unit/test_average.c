/* builds: float double */
/* The running average of answers: predictions against plain code for the equations, over all
 * earlier attempts; initial values; and the gradient against differences of the loss. */
#include "base/h5.h"
#include "gradient.h"

static struct comm world;

enum { N_STUDENTS = 8 };
static const uint32_t students[N_STUDENTS] = {4, 0, 7, 1, 2, 3, 6, 5};

/* Items with no, one, three, one and two skills; or a data set without skills. */
static void open_class(struct tiny *class, struct bench *bench, bool withheld, bool skills)
{
    tiny_begin_skills(class, withheld);
    if (!skills) {
        struct dataset *head = &class->draft.head;
        memset(head->item_first, 0, (head->n_items + 1) * sizeof *head->item_first);
        names_free(&head->skills);
        head->n_skills = 0;
    }
    tiny_text(class, "a1 b0 c1 c1 e0 b1 d? e1 b1 a0");
    for (uint32_t s = 1; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, 7 * s, 6);
    }
    tiny_finish(class, &world);
    bench_declare(bench, class, "average", "");
    tiny_model_scatter(&bench->tiny, 0.7, 9);
    bench_attach(bench, class, 40);
}

static double number(const struct model *model, const char *name, size_t i)
{
    const struct params *params = &model->params;
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0) {
            real dense[16];
            params_take(params, &params->tensors[t], params->value, dense);
            return dense[i];
        }
    fail_msg("unknown tensor '%s'", name);
    return NAN;
}

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

static bool has_skill(const struct dataset *dataset, uint32_t item, size_t k)
{
    if (dataset->n_skills == 0)
        return item == k;
    for (uint64_t j = dataset->item_first[item]; j < dataset->item_first[item + 1]; j++)
        if (dataset->item_skills[j] == k)
            return true;
    return false;
}

/* p of attempt t of student s: sums over the earlier attempts m, the latest with weight 1. */
static double oracle(const struct model *model, const struct shard *shard, size_t s, uint64_t t)
{
    const struct dataset *dataset = shard->dataset;
    const double f = sigma(number(model, "memory", 0));
    const double a = exp(number(model, "log_strength", 0));
    const size_t n_skills = dataset->n_skills > 0 ? dataset->n_skills : dataset->n_items;
    const double start = sigma(number(model, "start", shard->item[t]));
    double sum = 0;
    size_t n = 0;
    for (size_t k = 0; k < n_skills; k++) {
        if (!has_skill(dataset, shard->item[t], k))
            continue;
        double right = 0, all = 0, weight = 1;
        for (uint64_t m = t; m-- > shard->first[s];)
            if (mark_is_shown(shard->mark[m]) && has_skill(dataset, shard->item[m], k)) {
                right += weight * (mark_outcome(shard->mark[m]) == CORRECT);
                all += weight;
                weight *= f;
            }
        sum += (a * start + right) / (a + all);
        n++;
    }
    return n > 0 ? sum / (double)n : start;
}

static void test_predictions(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++) {
        struct tiny class;
        struct bench bench;
        open_class(&class, &bench, c & 1, c & 2);
        const struct shard *shard = &class.shard;
        double loss = 0;
        int64_t n_scored = 0;
        for (size_t s = 0; s < N_STUDENTS; s++) {
            real p[7 * N_STUDENTS];
            bench.model->kind->predict(bench.model, bench.work, s, 7, p);
            for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
                const double expected = oracle(bench.model, shard, s, t);
                assert_true(fabs((double)p[t - shard->first[s]] - expected) < 1e-7);
                if (!mark_trains(shard->mark[t]))
                    continue;
                const bool right = mark_outcome(shard->mark[t]) == CORRECT;
                loss -= log(right ? expected : 1 - expected);
                n_scored++;
            }
        }
        assert_true(n_scored > 50);
        assert_true(fabs(accumulate(&bench, students, N_STUDENTS) - loss) < 1e-4);
        assert_int_equal(bench.tally.n_scored, n_scored);
        close_bench(&bench);
        tiny_close(&class);
    }
}

static void test_initial_values(void **state)
{
    (void)state;
    int64_t right[] = {1, 2, 3, 0, 9}, wrong[] = {0, 7, 1, 4, 0};
    const struct item_counts counts = {5, right, wrong};
    for (int with_skills = 0; with_skills < 2; with_skills++) {
        struct tiny class;
        struct bench bench;
        open_class(&class, &bench, false, with_skills);
        bench.model->kind->init(bench.model, 1, &counts);
        assert_true(fabs(sigma(number(bench.model, "memory", 0)) - 0.9) < 1e-6);
        assert_true(fabs(exp(number(bench.model, "log_strength", 0)) - 5) < 1e-5);
        double *logit = item_counts_log_odds(&counts);
        for (size_t i = 0; i < 5; i++)
            assert_true(fabs(number(bench.model, "start", i) - logit[i]) < 1e-6);
        memory_free(logit);
        close_bench(&bench);
        tiny_close(&class);
    }
}

static void test_gradient_against_differences(void **state)
{
    (void)state;
    if (sizeof(real) < sizeof(double))
        skip(); /* differences need more digits */
    for (int c = 0; c < 4; c++) {
        struct tiny class;
        struct bench bench;
        open_class(&class, &bench, c & 1, c & 2);
        expect_differences(&bench, c & 2 ? "skills" : "items",
                           &(struct comparison){.students = students,
                                                .n_students = N_STUDENTS,
                                                .stride = 1,
                                                .least = 0.5,
                                                .slack = 1e-7});
        close_bench(&bench);
        tiny_close(&class);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_gradient_against_differences),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
