/* ranks: 1 3 */
/* Defaults that follow from the data: the shape of a data set counted by hand, what the rules
 * yield to, and that every rule gives a setting that its kinds accept. */
#include "base/h5.h"
#include "data/data_shape.h"
#include "learn/item_counts.h"
#include "runs/defaults.h"
#include "runs/settings.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

static struct config *config_of(const char *text)
{
    struct config *config = config_create();
    tiny_must(config_read_text(config, text, "test"));
    return config;
}

static const struct data_shape usual = {.n_items = 100,
                                        .n_students = 500,
                                        .n_answers = 30000,
                                        .per_student = 60,
                                        .per_item = 300,
                                        .per_step = 1,
                                        .has_valid = true};

static const char *suggested_for(const struct data_shape *shape, const char *text,
                                 const char *section, const char *key)
{
    static char value[1024];
    struct config *config = config_of(text);
    const struct model_kind *kind = NULL;
    tiny_must(model_choose(config, &kind));
    tiny_must(defaults_suggest(config, shape, NULL));
    const char *got = config_get(config, section, key);
    snprintf(value, sizeof value, "%s", got != NULL ? got : "");
    config_destroy(config);
    return value;
}

static void test_shape(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 4, false); /* skills: items 0 and 2, items 1 and 3 */
    const uint8_t right = mark_make(CORRECT, TRAIN, true, true);
    const uint8_t wrong = mark_make(INCORRECT, TRAIN, true, true);
    tiny_student(&class); /* 5 answers, 2 to items and 3 to skills met before */
    tiny_attempt(&class, 0, right);
    tiny_attempt(&class, 0, wrong);
    tiny_attempt(&class, 1, wrong);
    tiny_attempt(&class, 2, right);
    tiny_attempt(&class, 1, right);
    tiny_student(&class); /* 1 answer to learn from; what is met elsewhere counts as met */
    tiny_attempt(&class, 3, mark_make(UNKNOWN, TRAIN, false, true));
    tiny_attempt(&class, 3, right);
    tiny_attempt(&class, 0, mark_make(CORRECT, VALID, true, true));
    tiny_finish(&class, &world);
    struct data_shape shape;
    tiny_must(data_shape_read(&shape, class.path, &world));
    assert_true(shape.n_items == 4 && shape.n_skills == 2 && shape.n_students == 2);
    assert_true(shape.skills_per_item == 1);
    assert_true(shape.n_answers == 6 && shape.per_student == 3 && shape.per_item == 1.5);
    assert_true(shape.per_step == 1 && shape.has_valid && !shape.has_time);
    assert_true(fabs(shape.repeats - 3. / 6) < 1e-12 && shape.recent == shape.repeats);
    assert_true(fabs(shape.practice - 4. / 6) < 1e-12);
    /* 4 of 6 answers are right, 1 of 2 to items 0 and 1, and 2 of 3 to each skill */
    const double item = -2 * log(4. / 9) - 2 * log(2. / 9) - 2 * log(2. / 3);
    const double skill = -4 * log(7. / 12) - 2 * log(1. / 6);
    const double practice =
        -2 * log(7. / 12) - log(1. / 9) - log(13. / 24) - log(1. / 6) - log(7. / 18);
    assert_true(fabs(6 * shape.item_loss - item) < 1e-12);
    assert_true(fabs(6 * shape.skill_loss - skill) < 1e-12);
    assert_true(fabs(6 * shape.practice_loss - practice) < 1e-12);
    tiny_close(&class);
}

/* Validation attempts without a known outcome cannot stop a training. */
static void test_blank_validation(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct tiny class;
        tiny_begin(&class, 2, false);
        tiny_student(&class);
        tiny_attempt(&class, 0, mark_make(CORRECT, TRAIN, true, true));
        tiny_attempt(&class, 1, mark_make(UNKNOWN, VALID, false, true));
        if (known)
            tiny_attempt(&class, 1, mark_make(INCORRECT, VALID, false, true));
        tiny_finish(&class, &world);
        struct data_shape shape;
        tiny_must(data_shape_read(&shape, class.path, &world));
        assert_true(shape.has_valid == known);
        assert_string_equal(suggested_for(&shape, "model.kind = rbm", "train", "patience"),
                            known ? "50" : "");
        tiny_close(&class);
    }
}

/* An item that comes back after 15 attempts is recent, one after 16 is not. */
static void test_recent(void **state)
{
    (void)state;
    for (int n = 15; n <= 16; n++) {
        struct tiny class;
        tiny_begin(&class, 20, false);
        tiny_student(&class);
        for (uint32_t t = 0; t < 40; t++)
            tiny_attempt(&class, t % (uint32_t)n, mark_make(CORRECT, TRAIN, true, true));
        tiny_finish(&class, &world);
        struct data_shape shape;
        tiny_must(data_shape_read(&shape, class.path, &world));
        assert_true(fabs(shape.repeats - (40. - n) / 40) < 1e-12);
        assert_true(shape.recent == (n == 15 ? shape.repeats : 0));
        assert_string_equal(suggested_for(&shape, "model.kind = rbm", "model", "window"),
                            n == 15 ? "15" : "");
        tiny_close(&class);
    }
}

/* Items drawn from a known beta distribution: the shrunk log-odds are nearer to the truth than
 * the raw ones, and an item without answers has the mean of all. */
static void test_log_odds(void **state)
{
    (void)state;
    enum { N = 2000, FEW = 6 };
    int64_t counts_of[2 * N] = {0};
    double truth[N], raw_error = 0, shrunk_error = 0;
    const struct rng rng = {.seed = 5};
    for (uint32_t i = 0; i < N; i++) {
        truth[i] = 0.8 * rng_normal(&rng, 1000 * i);
        for (uint32_t a = 0; i > 0 && a < FEW; a++)
            counts_of[rng_uniform(&rng, 1000 * i + 500 + a) < 1 / (1 + exp(-truth[i]))
                          ? i
                          : N + i]++;
    }
    const struct item_counts counts = {N, counts_of, counts_of + N};
    double *logit = item_counts_log_odds(&counts);
    for (size_t i = 1; i < N; i++) {
        const double raw =
            log(((double)counts.right[i] + 0.5) / ((double)counts.wrong[i] + 0.5));
        raw_error += (raw - truth[i]) * (raw - truth[i]);
        shrunk_error += (logit[i] - truth[i]) * (logit[i] - truth[i]);
    }
    assert_true(shrunk_error < 0.6 * raw_error);
    assert_true(shrunk_error / N < 0.8 * 0.8); /* better than one value for all */
    assert_true(fabs(logit[0]) < 0.1);         /* no answers: the mean, 0 */
    memory_free(logit);
}

static const char *suggested(const char *text, const char *section, const char *key)
{
    return suggested_for(&usual, text, section, key);
}

static void test_precedence(void **state)
{
    (void)state;
    assert_string_equal(suggested("model.kind = rbm", "optimizer", "method"), "adam");
    assert_string_equal(suggested("model.kind = rbm", "model", "common"), "yes");
    assert_string_equal(suggested("model.kind = rbm\nmodel.hidden = 7", "model", "hidden"),
                        "7");
    /* a preset means what it says */
    const char *preset = "model.kind = rbm\nmodel.preset = binomial";
    assert_string_equal(suggested(preset, "model", "common"), "");
    assert_string_equal(suggested(preset, "optimizer", "rate"), "0.0002");
    assert_string_equal(suggested(preset, "optimizer", "gradient"), "sum");
    assert_string_equal(suggested(preset, "optimizer", "average"), "");
    /* with another method no rate of adam */
    assert_string_equal(
        suggested("model.kind = rbm\noptimizer.method = sgd", "optimizer", "rate"), "");
    /* who asks for epochs gets them */
    assert_string_equal(suggested("model.kind = rbm", "train", "patience"), "50");
    assert_string_equal(suggested("model.kind = rbm\ntrain.epochs = 9", "train", "patience"),
                        "");
    /* batch and block fit each other */
    assert_string_equal(suggested("model.kind = rbm\ntrain.batch = 5", "train", "block"), "1");
    assert_string_equal(suggested("model.kind = rbm\ntrain.block = 200", "train", "batch"),
                        "200");
}

/* ktm has factors where skills are practised and validation can choose a model without them,
 * unless its features are chosen. */
static void test_factors(void **state)
{
    (void)state;
    struct data_shape practised = usual;
    practised.practice = 0.5;
    const char *ktm = "model.kind = ktm";
    assert_string_equal(suggested(ktm, "model", "factors"), "");
    assert_string_equal(suggested(ktm, "train", "epochs"), "1000");
    assert_string_equal(suggested_for(&practised, ktm, "model", "factors"), "16");
    assert_string_equal(suggested_for(&practised, ktm, "train", "epochs"), "50");
    assert_string_equal(suggested_for(&practised, ktm, "train", "patience"), "5");
    assert_string_equal(suggested_for(&practised, ktm, "model", "weights_first"), "yes");
    /* the fewer answers per item, the larger the penalty */
    assert_string_equal(suggested_for(&practised, ktm, "model", "l2_factors"), "10");
    practised.per_item = 125;
    assert_string_equal(suggested_for(&practised, ktm, "model", "l2_factors"), "16");
    practised.per_item = 50;
    assert_string_equal(suggested_for(&practised, ktm, "model", "l2_factors"), "20");
    /* with so few answers, pairs of items would be learned by heart */
    practised.per_item = 49;
    assert_string_equal(suggested_for(&practised, ktm, "model", "factors"), "");
    assert_string_equal(suggested_for(&practised, ktm, "train", "epochs"), "1000");
    practised.per_item = 50;
    practised.has_valid = false;
    assert_string_equal(suggested_for(&practised, ktm, "model", "factors"), "");
    assert_string_equal(suggested_for(&practised, ktm, "train", "epochs"), "1000");
    assert_string_equal(suggested_for(&practised, ktm, "train", "patience"), "");
    practised.has_valid = true;
    struct data_shape few = usual;
    assert_string_equal(suggested_for(&few, ktm, "model", "l2"), "5");
    few.n_answers = 100;
    assert_string_equal(suggested_for(&few, ktm, "model", "l2"), "30");
    static const char *const chosen[] = {"model.kind = ktm\nmodel.features = item skill",
                                         "model.kind = ktm\nmodel.preset = bestlr"};
    for (size_t c = 0; c < COUNT(chosen); c++) {
        const char *factors = suggested_for(&practised, chosen[c], "model", "factors");
        assert_true(factors[0] == '\0' || strcmp(factors, "0") == 0);
        assert_string_equal(suggested_for(&practised, chosen[c], "train", "epochs"), "1000");
    }
}

/* rtrbm learns slowly where items have few answers, and has no more units than items. */
static void test_recurrent_rate(void **state)
{
    (void)state;
    static const struct {
        double per_item;
        const char *rate;
    } cases[] = {{1, "0.0005"}, {60, "0.0012"}, {150, "0.003"}, {5000, "0.003"}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct data_shape shape = usual;
        shape.per_item = cases[c].per_item;
        assert_string_equal(suggested_for(&shape, "model.kind = rtrbm", "optimizer", "rate"),
                            cases[c].rate);
        assert_string_equal(suggested_for(&shape, "model.kind = dkt", "optimizer", "rate"),
                            "0.005");
    }
    struct data_shape few = usual;
    few.n_items = 40;
    assert_string_equal(suggested_for(&few, "model.kind = rtrbm", "model", "hidden"), "40");
    assert_string_equal(suggested("model.kind = rtrbm", "model", "hidden"), "100");
}

/* dkt reads skills unless items have so many that the sum of their rows says nothing. */
static void test_skills_per_item(void **state)
{
    (void)state;
    static const struct {
        double n_skills, per_item;
        const char *input;
    } cases[] = {{0, 0, ""}, {20, 1, "both"}, {20, 5, "both"}, {20, 5.1, ""}, {1000, 300, ""}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct data_shape shape = usual;
        shape.n_skills = cases[c].n_skills;
        shape.skills_per_item = cases[c].per_item;
        assert_string_equal(suggested_for(&shape, "model.kind = dkt", "model", "input"),
                            cases[c].input);
    }
}

/* bkt gives items their own rates if they differ, and traces items if they have several skills
 * whose practice says less. */
static void test_bkt_items(void **state)
{
    (void)state;
    static const struct {
        double skills_per_item, per_item, item_loss, skill_loss, practice_loss;
        const char *items, *trace;
    } cases[] = {
        {1, 300, 0.60, 0.65, 0.66, "yes", ""}, /* items of a skill differ */
        {1, 300, 0.66, 0.65, 0.66, "", ""},    /* or do not */
        {1, 4, 0.60, 0.65, 0.66, "", ""},      /* or nobody can say */
        {3, 300, 0.60, 0.65, 0.61, "", "item"},  {3, 300, 0.60, 0.65, 0.59, "yes", ""},
        {1.5, 300, 0.60, 0.65, 0.61, "yes", ""},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct data_shape shape = usual;
        shape.n_skills = 20;
        shape.skills_per_item = cases[c].skills_per_item;
        shape.per_item = cases[c].per_item;
        shape.item_loss = cases[c].item_loss;
        shape.skill_loss = cases[c].skill_loss;
        shape.practice_loss = cases[c].practice_loss;
        const char *bkt = "model.kind = bkt";
        assert_string_equal(suggested_for(&shape, bkt, "model", "items"), cases[c].items);
        assert_string_equal(suggested_for(&shape, bkt, "model", "trace"), cases[c].trace);
        assert_string_equal(
            suggested_for(&shape, "model.kind = bkt\nmodel.items = yes", "model", "trace"), "");
    }
}

/* Every kind resolves with the defaults of data of any shape. */
static void test_all_kinds(void **state)
{
    (void)state;
    static const double items[] = {1, 5, 300, 20000}, students[] = {1, 30, 1e6};
    static const double lengths[] = {1, 60, 3000}, shares[] = {0, 0.5, 1};
    for (size_t k = 0; k < n_model_kinds; k++)
        for (size_t v = 0; model_kinds[k]->made_by == NULL && v < 4 * 3 * 3 * 3 * 2; v++) {
            const double n_items = items[v % 4], n_students = students[v / 4 % 3];
            const double length = lengths[v / 12 % 3], share = shares[v / 36 % 3];
            const struct data_shape shape = {.n_items = n_items,
                                             .n_skills = floor(share * n_items),
                                             .n_students = n_students,
                                             .n_answers = n_students * length,
                                             .per_student = length,
                                             .per_item = n_students * length / n_items,
                                             .per_step = 1,
                                             .repeats = share,
                                             .recent = share,
                                             .practice = share,
                                             .has_valid = v / 108 == 0};
            char *text = memory_text("data.file = x\nrun.directory = y\nmodel.kind = %s\n",
                                     model_kinds[k]->name);
            struct settings settings;
            if (settings_create(&settings, config_of(text), &shape) != OK)
                fail_msg("%s: %s", model_kinds[k]->name, fail_sentence());
            assert_true(settings.train.batch >= settings.train.block);
            assert_true(settings.train.patience == 0 || shape.has_valid);
            settings_destroy(&settings);
            memory_free(text);
        }
}

static enum status declare(const char *text, const struct data_shape *shape,
                           const struct dataset *dataset)
{
    struct settings settings;
    enum status status = settings_create(&settings, config_of(text), shape);
    if (status == OK)
        status = model_declare(settings.model, dataset, dataset->n_students, dataset->n_items,
                               dataset->n_skills);
    settings_destroy(&settings);
    return status;
}

/* No rule contradicts a choice that the user makes: what is accepted without rules is accepted
 * with them. */
static void test_choices(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 4, false);
    tiny_text(&class, "a1 b0 c1 d0 a1 b1");
    tiny_finish(&class, &world);
    struct data_shape shape;
    tiny_must(data_shape_read(&shape, class.path, &world));
    size_t n_tried = 0;
    for (size_t k = 0; k < n_model_kinds; k++)
        for (size_t o = 0; model_kinds[k]->made_by == NULL && o < model_kinds[k]->n_options;
             o++) {
            static const char *const switches[] = {"no", "yes", NULL};
            const struct option *option = &model_kinds[k]->options[o];
            const char *const *values = option->type == OPTION_CHOICE   ? option->choices
                                        : option->type == OPTION_SWITCH ? switches
                                                                        : switches + 2;
            for (size_t v = 0; values[v] != NULL; v++) {
                char *text = memory_text(
                    "data.file = x\nrun.directory = y\nmodel.kind = %s\nmodel.%s = %s\n",
                    model_kinds[k]->name, option->key, values[v]);
                if (declare(text, NULL, &class.dataset) == OK &&
                    declare(text, &shape, &class.dataset) != OK)
                    fail_msg("%s.%s = %s: %s", model_kinds[k]->name, option->key, values[v],
                             fail_sentence());
                fail_clear();
                memory_free(text);
                n_tried++;
            }
        }
    assert_true(n_tried > 60);
    tiny_close(&class);
}

/* The config.ini of an earlier version has all settings except optimizer.gradient: its rates
 * are for sums. */
static void test_earlier(void **state)
{
    (void)state;
    const char *earlier = "data.file = x\nrun.directory = y\nmodel.kind = rbm\n"
                          "optimizer.method = sgd\noptimizer.rate = 0.001\n"
                          "optimizer.floor = 0\noptimizer.drop_every = 10\n"
                          "optimizer.warm_up = 0\n";
    for (int now = 0; now < 2; now++) {
        char *text = memory_text("%s%s", earlier, now ? "optimizer.gradient = mean\n" : "");
        struct settings settings;
        tiny_must(settings_create(&settings, config_of(text), NULL));
        assert_int_equal(settings.optimizer.gradient, now ? GRADIENT_MEAN : GRADIENT_SUM);
        settings_destroy(&settings);
        memory_free(text);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_log_odds),
        cmocka_unit_test(test_blank_validation),
        cmocka_unit_test(test_recent),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_recurrent_rate),
        cmocka_unit_test(test_skills_per_item),
        cmocka_unit_test(test_bkt_items),
        cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_earlier),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
