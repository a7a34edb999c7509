/* builds: float double */
/* The contract of src/learn/model.h, for every kind of model: predictions do not use the future
 * or held-out outcomes, students are independent, and random numbers depend only on their
 * names. A new kind is tested with its default settings as soon as it is in the list, and with
 * the settings given here. */
#include "base/h5.h"
#include "model_variants.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The tally of some students of a shard, for a model newly attached to it. */
static void accumulate(struct bench *b, const struct shard *shard, const uint32_t *students,
                       size_t n, struct tally *tally)
{
    const struct model *model = b->tiny.model;
    void *work = b->kind->attach(model, &b->class.shard, TO_TRAIN);
    bool wide = true;
    int bits = 32;
    if (b->kind->speed.measure != NULL)
        b->kind->speed.measure(model, work, &world, N_STUDENTS, &wide, &bits);
    b->kind->detach(work);
    tally_create(tally, model->params.n, wide, bits, NULL);
    work = b->kind->attach(model, shard, TO_TRAIN);
    const struct draw draw = {.seed = 31, .epoch = 2};
    b->kind->accumulate(model, work, students, n, &draw, tally);
    b->kind->detach(work);
}

static size_t tally_bytes(const struct tally *tally)
{
    return tally->n * (tally->wide ? sizeof(int64_t) : sizeof(int32_t));
}

static int64_t tally_number(const struct tally *tally, size_t i)
{
    return tally->wide ? ((const int64_t *)tally->values)[i]
                       : ((const int32_t *)tally->values)[i];
}

static void expect_same_tally(const struct tally *a, const struct tally *b)
{
    assert_memory_equal(a->values, b->values, tally_bytes(a));
    assert_int_equal(a->loss, b->loss);
    assert_int_equal(a->n_scored, b->n_scored);
    assert_int_equal(a->out_of_range, b->out_of_range);
}

static void declares(struct bench *b)
{
    const struct params *params = &b->tiny.model->params;
    assert_true(params->n_tensors > 0);
    assert_true(strlen(b->kind->title) > 0 && strlen(b->kind->loss) > 0);
    for (size_t t = 0; t < params->n_tensors; t++)
        for (size_t other = 0; other < t; other++)
            assert_string_not_equal(params->tensors[t].name, params->tensors[other].name);
    for (size_t i = 0; i < params->n; i++)
        if (params_find(params, i) == NULL)
            assert_true(params->value[i] == 0);
}

static void expect_new_name(struct names *names, const char *name, const struct bench *b)
{
    const size_t n = names->n;
    names_add(names, name, strlen(name));
    for (size_t k = 0; k < n; k++)
        if (strcmp(names_get(names, k), name) == 0)
            fail_msg("%s: %s: two columns are called %s", b->kind->name, b->variant->options,
                     name);
}

/* What is exported as CSV has one name per column, that of the rows included. */
static void names_columns(struct bench *b)
{
    const struct model *model = b->tiny.model;
    const struct params *params = &model->params;
    for (size_t k = 0; k < b->kind->view.n_tables; k++) {
        struct table table;
        struct names names = {0};
        b->kind->view.table(model, k, &table);
        expect_new_name(&names, table.row, b);
        for (size_t c = 0; c < table.n_columns; c++)
            expect_new_name(&names, names_get(&table.columns, c), b);
        names_free(&names);
        table_free(&table);
    }
    for (size_t t = 0; t < params->n_tensors; t++) { /* of higher rank: NAME_1, ... */
        const struct tensor *tensor = &params->tensors[t];
        const char *of = params->panels[tensor->panel].of;
        if (tensor->rank == 1)
            assert_string_not_equal(tensor->name, of != NULL ? of : "row");
    }
    struct names names = {0};
    expect_new_name(&names, "student", b);
    for (size_t j = 0; b->kind->view.hidden_name != NULL && j < b->kind->view.n_hidden(model);
         j++) {
        char name[32];
        b->kind->view.hidden_name(model, j, name);
        expect_new_name(&names, name, b);
    }
    names_free(&names);
}

static void test_names_of_columns(void **state)
{
    (void)state;
    with_all(names_columns);
}

static void test_declarations(void **state)
{
    (void)state;
    with_all(declares);
}

/* Whether the student attempts the same item again: some kinds treat other items, or items of
 * other skills, as unrelated. */
static bool comes_again(const struct shard *shard, size_t s, uint64_t t)
{
    for (uint64_t later = t + 1; later < shard->first[s + 1]; later++)
        if (shard->item[later] == shard->item[t])
            return true;
    return false;
}

/* Whatever changes at attempt t, predictions up to and including t keep their bits, and a
 * hidden outcome affects no prediction. */
static void no_future(struct bench *b)
{
    struct shard *shard = &b->class.shard;
    real *p = NEW(real, b->class.n_attempts);
    predict(b, shard, b->p);
    size_t n_heard = 0, n_shown = 0;
    for (size_t s = 0; s < N_STUDENTS; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const uint8_t mark = shard->mark[t];
            const uint32_t item = shard->item[t];
            const bool step = mark & MARK_STEP;
            const enum outcome flipped = mark_outcome(mark) == CORRECT ? INCORRECT : CORRECT;
            for (int change = 0; change < 3; change++) {
                const bool known = mark_outcome(mark) != UNKNOWN;
                if (change == 0) /* the other outcome */
                    shard->mark[t] =
                        mark_make(flipped, mark_split(mark), mark_is_shown(mark), step);
                else if (change == 1) /* unknown */
                    shard->mark[t] = mark_make(UNKNOWN, mark_split(mark), false, step);
                else if (t + 1 < shard->first[s + 1]) /* a different next item */
                    shard->item[t + 1] = (shard->item[t + 1] + 1) % N_ITEMS;
                predict(b, shard, p);
                bool heard = false;
                for (uint64_t other = 0; other < b->class.n_attempts; other++) {
                    const bool same = memcmp(&p[other], &b->p[other], sizeof(real)) == 0;
                    const bool later = other > t && other < shard->first[s + 1];
                    if (!same && !(later && (mark_is_shown(mark) || change == 2)))
                        fail_msg("%s: %s: attempt %d depends on attempt %d", b->kind->name,
                                 b->variant->options, (int)other, (int)t);
                    heard |= !same;
                }
                if (change == 0 && known && mark_is_shown(mark) && comes_again(shard, s, t)) {
                    n_heard += heard;
                    n_shown++;
                }
                shard->mark[t] = mark;
                memcpy(shard->item, b->class.item, b->class.n_attempts * sizeof *shard->item);
            }
            assert_int_equal(shard->item[t], item);
        }
    if (n_heard <= n_shown * 8 / 10) /* the past matters */
        fail_msg("%s: %s: only %zu of %zu changes have an effect", b->kind->name,
                 b->variant->options, n_heard, n_shown);
    memory_free(p);
}

static void test_predictions_ignore_the_future(void **state)
{
    (void)state;
    with_all(no_future);
}

/* Held-out and unknown outcomes do not affect the statistics. */
static void no_leak(struct bench *b)
{
    struct shard *shard = &b->class.shard;
    uint32_t students[N_STUDENTS];
    for (uint32_t s = 0; s < N_STUDENTS; s++)
        students[s] = s;
    struct tally before, after;
    accumulate(b, shard, students, N_STUDENTS, &before);
    assert_true(before.n_scored > 0);
    size_t n_flipped = 0;
    /* these know nothing but training attempts, even of what is shown */
    const bool learns_alone =
        strcmp(b->kind->name, "rbm") == 0 || strcmp(b->kind->name, "vae") == 0;
    for (uint64_t t = 0; t < b->class.n_attempts; t++) {
        const uint8_t mark = shard->mark[t];
        if (mark_split(mark) == TRAIN || mark_outcome(mark) == UNKNOWN)
            continue;
        if (!learns_alone && mark_is_shown(mark))
            continue;        /* to a model of sequences, shown attempts are history */
        shard->mark[t] ^= 1; /* the other outcome */
        n_flipped++;
    }
    assert_true(n_flipped > 20 || !learns_alone);
    accumulate(b, shard, students, N_STUDENTS, &after);
    expect_same_tally(&before, &after);
    tally_destroy(&after);

    memcpy(shard->mark, b->class.mark, b->class.n_attempts);
    for (uint64_t t = 0; t < b->class.n_attempts; t++) /* and training outcomes do */
        if (mark_split(shard->mark[t]) == TRAIN && mark_outcome(shard->mark[t]) != UNKNOWN)
            shard->mark[t] ^= 1;
    accumulate(b, shard, students, N_STUDENTS, &after);
    assert_memory_not_equal(before.values, after.values, tally_bytes(&before));
    tally_destroy(&after);
    tally_destroy(&before);
    memcpy(shard->mark, b->class.mark, b->class.n_attempts);
}

static void test_held_out_outcomes_are_not_learned(void **state)
{
    (void)state;
    with_statistics(no_leak);
}

/* Tolerance of a block's statistics against the sum of its students': one rounding per student,
 * or the rounding of floating-point sums. */
static int64_t slack_of(const struct variant *variant, const int64_t *sum, size_t n)
{
    if (variant->trait == BY_BLOCK)
        return N_STUDENTS;
    if (variant->trait != BY_SUM)
        return 0;
    int64_t largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = llabs(sum[i]) > largest ? llabs(sum[i]) : largest;
    return N_STUDENTS + (largest >> (sizeof(real) == sizeof(float) ? 18 : 40));
}

/* A block's tally is the sum of its students' tallies, in any order; its loss is, to the bit.
 * The tally is the same when repeated, and the model does not change. */
static void adds_up(struct bench *b)
{
    const struct shard *shard = &b->class.shard;
    struct params *params = &b->tiny.model->params;
    uint32_t forth[N_STUDENTS], back[N_STUDENTS];
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        forth[s] = s;
        back[s] = N_STUDENTS - 1 - s;
    }
    real *first = NEW(real, params->n);
    memcpy(first, params->value, params->n * sizeof(real));
    struct tally whole, again, turned, one;
    accumulate(b, shard, forth, N_STUDENTS, &whole);
    accumulate(b, shard, forth, N_STUDENTS, &again);
    accumulate(b, shard, back, N_STUDENTS, &turned);
    expect_same_tally(&whole, &again);
    int64_t *sum = NEW(int64_t, params->n), loss = 0, n_scored = 0;
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        accumulate(b, shard, &s, 1, &one);
        for (size_t i = 0; i < params->n; i++)
            sum[i] += tally_number(&one, i);
        loss += one.loss;
        n_scored += one.n_scored;
        tally_destroy(&one);
    }
    const int64_t slack = slack_of(b->variant, sum, params->n);
    assert_int_equal(whole.n_scored, n_scored);
    /* penalties of a block or of one of its steps are rounded once */
    const char *o = b->variant->options;
    const int64_t loss_slack = strstr(o, "penalty") || strstr(o, "waviness") ? LONGEST : 0;
    if (llabs(whole.loss - loss) > loss_slack || whole.loss != turned.loss)
        fail_msg("%s: %s: the loss of a block is %lld or %lld, of its students %lld",
                 b->kind->name, b->variant->options, (long long)whole.loss,
                 (long long)turned.loss, (long long)loss);
    size_t n_moved = 0;
    for (size_t i = 0; i < params->n; i++) {
        const int64_t off = llabs(tally_number(&whole, i) - sum[i]);
        const int64_t off_turned = llabs(tally_number(&turned, i) - sum[i]);
        if (off > slack || off_turned > slack)
            fail_msg("%s: %s: number %zu of a block is %lld or %lld from its students' %lld",
                     b->kind->name, b->variant->options, i, (long long)off,
                     (long long)off_turned, (long long)sum[i]);
        if (params_find(params, i) == NULL)
            assert_int_equal(sum[i], 0);
        n_moved += sum[i] != 0;
    }
    assert_true(n_moved > params_count(params) / 2);
    assert_memory_equal(params->value, first, params->n * sizeof(real));
    predict(b, shard, b->p);
    assert_memory_equal(params->value, first, params->n * sizeof(real));
    memory_free(sum);
    memory_free(first);
    tally_destroy(&whole);
    tally_destroy(&again);
    tally_destroy(&turned);
}

static void test_block_is_the_sum_of_its_students(void **state)
{
    (void)state;
    with_statistics(adds_up);
}

/* A student alone in a shard has the same predictions, statistics and state as among others. */
static void alone(struct bench *b)
{
    const struct shard *whole = &b->class.shard;
    predict(b, whole, b->p);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        struct shard part;
        real p[LONGEST];
        tiny_must(dataset_read(&b->class.dataset, s, 1, &part));
        predict(b, &part, p);
        for (uint64_t t = 0; t < part.n_attempts; t++) {
            assert_true(p[t] >= 0 && p[t] <= 1);
            assert_true(memcmp(&p[t], &b->p[whole->first[s] + t], sizeof(real)) == 0);
        }
        struct tally among, single;
        const uint32_t none = 0;
        accumulate(b, whole, &s, 1, &among);
        accumulate(b, &part, &none, 1, &single);
        expect_same_tally(&among, &single);
        tally_destroy(&among);
        tally_destroy(&single);
        shard_free(&part);
    }
}

static void test_students_are_independent(void **state)
{
    (void)state;
    with_statistics(alone);
}

/* Which students have training attempts, and how many; the others add nothing. */
static void training(struct bench *b)
{
    const struct shard *shard = &b->class.shard;
    void *work = b->kind->attach(b->tiny.model, shard, TO_TRAIN);
    bool has_training[N_STUDENTS];
    int64_t n_attempts = 0, n_scored = 0;
    b->kind->training(work, has_training, &n_attempts);
    b->kind->detach(work);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        struct tally tally;
        accumulate(b, shard, &s, 1, &tally);
        n_scored += tally.n_scored;
        if (!has_training[s])
            for (size_t i = 0; i < tally.n; i++)
                assert_int_equal(tally_number(&tally, i), 0);
        assert_int_equal(has_training[s], tally.n_scored > 0);
        tally_destroy(&tally);
    }
    assert_false(has_training[3]); /* no attempts */
    assert_false(has_training[5]); /* none of them for training */
    assert_true(has_training[4]);
    assert_int_equal(n_scored, n_attempts);
}

static void test_training_attempts(void **state)
{
    (void)state;
    with_statistics(training);
}

/* State exists only where the kind declares it. It is the concatenation of the students'
 * states, and with it a student continues elsewhere as here. */
static void keeps_state(struct bench *b)
{
    const struct model *model = b->tiny.model;
    const struct shard *whole = &b->class.shard;
    void *work = b->kind->attach(model, whole, TO_TRAIN);
    size_t n_whole = 0;
    const void *before = b->kind->fit.state ? b->kind->fit.state(work, &n_whole) : NULL;
    assert_int_equal(before != NULL && n_whole > 0, b->variant->trait == STATE);
    if (b->variant->trait != STATE) {
        b->kind->detach(work);
        return;
    }
    struct tally here, there;
    tally_create(&here, model->params.n, true, 16, NULL);
    uint32_t students[N_STUDENTS];
    for (uint32_t s = 0; s < N_STUDENTS; s++)
        students[s] = s;
    struct draw draw = {.seed = 8, .epoch = 0};
    b->kind->accumulate(model, work, students, N_STUDENTS, &draw, &here);
    size_t n_bytes = 0, place = 0;
    const char *state = b->kind->fit.state(work, &n_bytes);
    assert_int_equal(n_bytes, n_whole);
    char *copy = NEW(char, n_bytes);
    memcpy(copy, state, n_bytes);
    draw.epoch = 1;
    tally_clear(&here);
    b->kind->accumulate(model, work, students, N_STUDENTS, &draw, &here);
    state = b->kind->fit.state(work, &n_bytes);
    assert_memory_not_equal(state, copy, n_bytes);

    tally_create(&there, model->params.n, true, 16, NULL);
    static const size_t cuts[] = {0, 1, 6, 6, N_STUDENTS};
    for (size_t c = 0; c + 1 < COUNT(cuts); c++) {
        struct shard part;
        tiny_must(dataset_read(&b->class.dataset, cuts[c], cuts[c + 1] - cuts[c], &part));
        void *other = b->kind->attach(model, &part, TO_TRAIN);
        size_t n_part = 0;
        char *own = b->kind->fit.state(other, &n_part);
        memcpy(own, copy + place, n_part);
        b->kind->accumulate(model, other, students, part.n_students, &draw, &there);
        assert_memory_equal(b->kind->fit.state(other, &n_part), state + place, n_part);
        place += n_part;
        b->kind->detach(other);
        shard_free(&part);
    }
    assert_int_equal(place, n_bytes);
    assert_memory_equal(here.values, there.values, tally_bytes(&here));
    memory_free(copy);
    tally_destroy(&here);
    tally_destroy(&there);
    b->kind->detach(work);
}

static void test_state(void **state)
{
    (void)state;
    with_statistics(keeps_state);
}

/* Presets are settings that the kind accepts. */
static void test_presets(void **state)
{
    (void)state;
    for (size_t k = 0; k < n_model_kinds; k++)
        for (size_t p = 0; p < model_kinds[k]->n_presets; p++) {
            struct tiny class;
            tiny_begin(&class, N_ITEMS, false);
            tiny_text(&class, "a1");
            const int64_t time = 5; /* some presets need it */
            class.draft.time = &time;
            class.draft.head.has_time = true;
            tiny_finish(&class, &world);
            char *options = memory_text("preset=%s", model_kinds[k]->presets[p].name);
            struct tiny_model tiny;
            tiny_model_open(&tiny, model_kinds[k]->name, options, &class.dataset);
            assert_true(params_count(&tiny.model->params) > 0);
            tiny_model_close(&tiny);
            memory_free(options);
            tiny_close(&class);
        }
}

/* Many students at once are predicted like one after another, to the bit, and no others. */
static void check_many(struct bench *b)
{
    const struct shard *shard = &b->class.shard;
    uint32_t backwards[N_STUDENTS];
    for (uint32_t s = 0; s < N_STUDENTS; s++)
        backwards[s] = N_STUDENTS - 1 - s;
    predict(b, shard, b->p);
    real *many = NEW(real, shard->n_attempts);
    void *work = b->kind->attach(b->tiny.model, shard, TO_TRAIN);
    model_predict(b->tiny.model, work, shard, backwards, N_STUDENTS, 7, many);
    assert_memory_equal(many, b->p, shard->n_attempts * sizeof *many);
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        many[t] = -7;
    model_predict(b->tiny.model, work, shard, backwards + 9, 2, 1u << TEST, many); /* 4 and 3 */
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        const bool asked =
            t >= shard->first[3] && t < shard->first[5] && mark_split(shard->mark[t]) == TEST;
        assert_true(many[t] == (asked ? b->p[t] : -7));
    }
    b->kind->detach(work);
    memory_free(many);
}

static void test_many_students_at_once(void **state)
{
    (void)state;
    with_all(check_many);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_names_of_columns),
        cmocka_unit_test(test_predictions_ignore_the_future),
        cmocka_unit_test(test_held_out_outcomes_are_not_learned),
        cmocka_unit_test(test_block_is_the_sum_of_its_students),
        cmocka_unit_test(test_students_are_independent),
        cmocka_unit_test(test_many_students_at_once),
        cmocka_unit_test(test_training_attempts),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_presets),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
