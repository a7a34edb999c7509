/* builds: float double */
/* Predictions of a tiny RBM against the sum over all states of its hidden and visible units. */
#include "base/h5.h"
#include "rbm_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const double tolerance = sizeof(real) == sizeof(double) ? 2e-13 : 3e-6;

enum { N_ITEMS = 4 };
static const char *const students[] = {
    "a1 b0 c1 d1 a0",          /* repeats */
    "a1 b0v c? d1. b1 c0t a?", /* shown, not shown, unknown */
    "d0 d0 d1 d1 d0 a1 d?",    "c?", "b1. b0. b1. a1", "",
};

static void open_class(struct tiny *class)
{
    tiny_begin(class, N_ITEMS, false);
    for (size_t s = 0; s < COUNT(students); s++)
        tiny_text(class, students[s]);
    tiny_finish(class, &world);
}

/* P(requested item is correct | units): the mean count over all N + 1 counts of one more
 * unit. */
static double exact_chance(const struct oracle *o, const struct oracle_units *history,
                           size_t item)
{
    struct oracle_units units = *history;
    int count[MOST_UNITS];
    oracle_data(o, &units, count);
    units.item[units.n++] = item;
    double total = 0, first = 0;
    for (int n = 0; n <= o->copies; n++) {
        count[units.n - 1] = n;
        const double weight = oracle_weight(o, &units, count);
        total += weight;
        first += n * weight;
    }
    return first / (total * o->copies);
}

static double mean_field_chance(const struct oracle *o, const struct oracle_units *history,
                                size_t item)
{
    int count[MOST_UNITS];
    double x[MOST_HIDDEN], h[MOST_HIDDEN], logit = o->a[item][1] - o->a[item][0];
    oracle_data(o, history, count);
    oracle_input(o, history, count, x);
    oracle_hidden_sum(o, x, h);
    for (size_t j = 0; j < o->m; j++)
        logit += h[j] * (o->w[item][1][j] - o->w[item][0][j]);
    return 1 / (1 + exp(-logit));
}

/* Compare predictions and hidden activations of all students; returns their number. */
static size_t compare(const struct tiny *class, const struct tiny_model *tiny, bool exact)
{
    struct oracle o;
    oracle_read(&o, tiny);
    const struct shard *shard = &class->shard;
    const struct model_kind *kind = tiny->model->kind;
    void *work = kind->attach(tiny->model, shard, TO_TRAIN);
    size_t n_compared = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        real p[16], activation[MOST_HIDDEN];
        struct oracle_units units = {0};
        for (size_t t = 0; t < COUNT(p); t++)
            p[t] = -1;
        kind->predict(tiny->model, work, s, 7, p);
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++, n_compared++) {
            const uint8_t mark = shard->mark[t];
            const size_t item = shard->item[t];
            units.seen[item] = true;
            const double expected =
                exact ? exact_chance(&o, &units, item) : mean_field_chance(&o, &units, item);
            const double got = (double)p[t - shard->first[s]];
            if (!(fabs(got - expected) < tolerance))
                fail_msg("student %zu, attempt %d: %.17g instead of %.17g", s,
                         (int)(t - shard->first[s]), got, expected);
            if (mark_is_shown(mark))
                oracle_answer(&o, &units, item, mark_outcome(mark) == CORRECT);
            oracle_forget(&o, &units);
        }
        int count[MOST_UNITS];
        double x[MOST_HIDDEN], h[MOST_HIDDEN];
        oracle_data(&o, &units, count);
        oracle_input(&o, &units, count, x);
        oracle_hidden_sum(&o, x, h);
        kind->view.hidden(tiny->model, work, s, activation);
        for (size_t j = 0; j < o.m; j++)
            assert_true(fabs((double)activation[j] - h[j]) < 10 * tolerance);
    }
    kind->detach(work);
    return n_compared;
}

/* Every combination of visible kind, copies, conditional, factors, common rows, and repeats or
 * a window, for the given hidden kinds. */
static void test_all(const char *const *hidden_kinds, size_t n_hidden_kinds, bool exact)
{
    static const char *const lengths[] = {"repeats=each", "repeats=last", "window=2"};
    const size_t n_variants = 2 * 3 * 2 * 2 * 2 * COUNT(lengths) * n_hidden_kinds;
    struct tiny class;
    open_class(&class);
    size_t n_compared = 0;
    for (unsigned v = 0; v < n_variants; v++) {
        char *options = memory_text("hidden=3, scale=1, visible=%s, copies=%u, conditional=%s, "
                                    "factors=%d, common=%s, %s, "
                                    "hidden_kind=%s, prediction=%s",
                                    v % 2 ? "softmax" : "bernoulli", 1 + v / 2 % 3,
                                    v / 6 % 2 ? "yes" : "no", v / 12 % 2 ? 2 : 0,
                                    v / 24 % 2 ? "yes" : "no", lengths[v / 48 % 3],
                                    hidden_kinds[v / 144], exact ? "exact" : "mean_field");
        struct tiny_model tiny;
        tiny_model_open(&tiny, "rbm", options, &class.dataset);
        tiny_model_scatter(&tiny, 0.5, v);
        n_compared += compare(&class, &tiny, exact);
        tiny_model_close(&tiny);
        memory_free(options);
    }
    assert_int_equal(n_compared, n_variants * class.n_attempts);
    tiny_close(&class);
}

static void test_exact_prediction(void **state)
{
    (void)state;
    static const char *const kinds[] = {"binary", "gaussian"};
    test_all(kinds, COUNT(kinds), true);
}

static void test_mean_field_prediction(void **state)
{
    (void)state;
    static const char *const kinds[] = {"binary", "gaussian", "relu"};
    test_all(kinds, COUNT(kinds), false);
}

/* Many copies, strong weights: nothing overflows, and p stays a probability. */
static void test_extreme_weights(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    static const char *const kinds[] = {"binary", "gaussian"};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        char *options =
            memory_text("hidden=20, copies=15, conditional=yes, hidden_kind=%s", kinds[k]);
        struct tiny_model tiny;
        tiny_model_open(&tiny, "rbm", options, &class.dataset);
        tiny_model_scatter(&tiny, 100, 5);
        void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
        for (size_t s = 0; s < class.n_students; s++) {
            real p[16];
            tiny.model->kind->predict(tiny.model, work, s, 7, p);
            for (size_t t = 0; t < class.first[s + 1] - class.first[s]; t++)
                assert_true(p[t] >= 0 && p[t] <= 1);
        }
        tiny.model->kind->detach(work);
        tiny_model_close(&tiny);
        memory_free(options);
    }
    tiny_close(&class);
}

/* Only the requested splits are predicted, and the places of others stay unchanged. */
static void test_only_requested_splits_are_predicted(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct tiny_model tiny;
    tiny_model_open(&tiny, "rbm", "hidden=3, copies=2", &class.dataset);
    tiny_model_scatter(&tiny, 0.6, 1);
    void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
    real all[16], some[16];
    tiny.model->kind->predict(tiny.model, work, 1, 7, all);
    for (unsigned splits = 0; splits < 8; splits++) {
        for (size_t t = 0; t < COUNT(some); t++)
            some[t] = -1;
        tiny.model->kind->predict(tiny.model, work, 1, splits, some);
        for (uint64_t t = class.first[1]; t < class.first[2]; t++) {
            const bool asked = splits >> mark_split(class.mark[t]) & 1;
            const size_t at = t - class.first[1];
            assert_true(some[at] == (asked ? all[at] : -1));
        }
    }
    tiny.model->kind->detach(work);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

static void test_initial_values(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 2000, false);
    tiny_text(&class, "a1");
    tiny_finish(&class, &world);
    struct item_counts counts = {
        .n_items = 2000, .right = NEW(int64_t, 2000), .wrong = NEW(int64_t, 2000)};
    counts.right[0] = 7;
    counts.wrong[0] = 1;
    counts.wrong[1] = 4;
    struct tiny_model tiny;
    tiny_model_open(&tiny, "rbm",
                    "hidden=6, factors=4, conditional=yes, scale=0.05, start=log_odds",
                    &class.dataset);
    struct model *model = tiny.model;
    struct params *params = &model->params;
    model->kind->init(model, 3, &counts);
    real *once = NEW(real, params->n);
    memcpy(once, params->value, params->n * sizeof(real));

    const size_t n = params_size(params, oracle_tensor(params, "weights"));
    assert_int_equal(n, 2000 * 2 * 4);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double w = (double)once[oracle_place(params, "weights", i)];
        sum += w;
        squares += w * w;
    }
    assert_true(fabs(sum / (double)n) < 5 * 0.05 / sqrt((double)n));
    assert_true(fabs(squares / (double)n / (0.05 * 0.05) - 1) < 5 * sqrt(2 / (double)n));
    for (size_t c = 0; c < 4; c++)
        for (size_t j = 0; j < 6; j++)
            assert_true(once[oracle_place(params, "factors", c * 6 + j)] == (c == j));
    double *logit = item_counts_log_odds(&counts);
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs((double)once[oracle_place(params, "visible_bias", 2 * i + 1)] -
                         logit[i] / 2) < 1e-6);
        assert_true(fabs((double)once[oracle_place(params, "visible_bias", 2 * i)] +
                         logit[i] / 2) < 1e-6);
    }
    memory_free(logit);
    for (size_t j = 0; j < 6; j++)
        assert_true(once[oracle_place(params, "hidden_bias", j)] == 0);
    for (size_t i = 0; i < 2000 * 6; i++)
        assert_true(once[oracle_place(params, "seen", i)] == 0);
    for (size_t i = 0; i < params->n; i++)
        if (params_find(params, i) == NULL)
            assert_true(once[i] == 0);

    memset(params->value, 0, params->n * sizeof(real));
    model->kind->init(model, 3, &counts);
    assert_memory_equal(params->value, once, params->n * sizeof(real));
    memset(params->value, 0, params->n * sizeof(real));
    model->kind->init(model, 4, &counts);
    assert_memory_not_equal(params->value, once, params->n * sizeof(real));
    memory_free(once);
    memory_free(counts.right);
    memory_free(counts.wrong);
    tiny_model_close(&tiny);
    tiny_close(&class);
}

/* With log-odds alone the first prediction is the item's share of correct answers, shrunk
 * towards that of all, with the largest strength: one item says nothing about how items
 * differ. */
static void test_log_odds_predict_the_share(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 2, false);
    tiny_text(&class, "a1 b1");
    tiny_finish(&class, &world);
    struct item_counts counts = {
        .n_items = 2, .right = (int64_t[]){2, 0}, .wrong = (int64_t[]){5, 0}};
    static const char *const options[] = {"visible=softmax, copies=1",
                                          "visible=bernoulli, copies=1",
                                          "visible=softmax, copies=2"};
    const double mean = 3. / 9; /* with one imagined answer of each kind */
    for (size_t v = 0; v < COUNT(options); v++) {
        char *text = memory_text("%s, scale=0, start=log_odds", options[v]);
        struct tiny_model tiny;
        tiny_model_open(&tiny, "rbm", text, &class.dataset);
        tiny.model->kind->init(tiny.model, 1, &counts);
        void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
        real p[2];
        tiny.model->kind->predict(tiny.model, work, 0, 7, p);
        assert_true(fabs((double)p[0] - (2 + 1000 * mean) / (7 + 1000)) < 1e-6);
        assert_true(fabs((double)p[1] - mean) < 1e-6);
        tiny.model->kind->detach(work);
        tiny_model_close(&tiny);
        memory_free(text);
    }
    tiny_close(&class);
}

/* Settings that the kind refuses, with a message that names the setting. */
static void test_refused_settings(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "cd_schedule=3",       "cd_schedule=3:",  "cd_schedule=:3",      "cd_schedule=5:2 3:4",
        "cd_schedule=3:0",     "cd_schedule=x:1", "cd_schedule=1:2 1:3", "cd_schedule=-1:2",
        "cd_schedule=3:1;4:2", "cd_schedule=2:3x"};
    struct tiny class;
    open_class(&class);
    for (size_t b = 0; b <= COUNT(bad); b++) {
        struct model *model = model_create(model_find("rbm"));
        const struct option_group group = {"model", model->kind->options,
                                           model->kind->n_options, model->options};
        struct config *config = config_create();
        char *line = memory_text("model.%s", b < COUNT(bad) ? bad[b] : "window=3");
        tiny_must(config_set(config, line, "test"));
        if (b == COUNT(bad))
            tiny_must(config_set(config, "model.repeats=last", "test"));
        tiny_must(config_resolve_some(config, &group, 1));
        assert_int_equal(model_declare(model, &class.dataset, 0, N_ITEMS, 0), BAD_USER);
        *strchr(line, '=') = '\0';
        assert_non_null(strstr(fail_sentence(), line)); /* the key */
        fail_clear();
        memory_free(line);
        config_destroy(config);
        model_destroy(model);
    }
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_prediction),
        cmocka_unit_test(test_mean_field_prediction),
        cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_only_requested_splits_are_predicted),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_log_odds_predict_the_share),
        cmocka_unit_test(test_refused_settings),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
