/* builds: float double */
/* Students whose attempts come one by one (src/learn/live.h), for every kind of model: what is
 * asked has the bits of `predict`, however students alternate and whatever else is asked. */
#include "base/h5.h"
#include "learn/live.h"
#include "model_variants.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct live_attempt attempt_of(const struct shard *shard, uint64_t t)
{
    return (struct live_attempt){shard->item[t], shard->mark[t],
                                 shard->time ? shard->time[t] : 0, NULL};
}

/* Asks about the attempts of `split`: about all items, the attempt's own among them. */
static void ask(struct bench *b, struct live *live, uint64_t t, size_t s, real expected)
{
    const struct live_attempt when = attempt_of(&b->class.shard, t);
    uint32_t items[N_ITEMS];
    real p[N_ITEMS], again = 0;
    for (uint32_t i = 0; i < N_ITEMS; i++)
        items[i] = (i + 3) % N_ITEMS;
    live_ask(live, s, &when, items, N_ITEMS, p);
    for (size_t i = 0; i < N_ITEMS; i++) {
        assert_true(p[i] >= 0 && p[i] <= 1);
        if (items[i] == when.item && memcmp(&p[i], &expected, sizeof(real)) != 0)
            fail_msg("%s: %s: attempt %d has chance %.9g, not %.9g", b->kind->name,
                     b->variant->options, (int)t, (double)p[i], (double)expected);
    }
    live_ask(live, s, &when, &when.item, 1, &again);
    assert_memory_equal(&again, &expected, sizeof(real));
}

/* Step by step, all students in turn. */
static void follow(struct bench *b, struct live *live, enum split split, const real *p)
{
    const struct shard *shard = &b->class.shard;
    const size_t together = live_together(live);
    for (uint64_t t = 0; t < LONGEST; t++) {
        size_t n = 0, students[N_STUDENTS];
        struct live_attempt attempts[N_STUDENTS];
        for (size_t s = 0; s < N_STUDENTS; s++) {
            const uint64_t a = shard->first[s] + t;
            if (a >= shard->first[s + 1])
                continue;
            if (mark_split(shard->mark[a]) == split)
                ask(b, live, a, s, p[a]);
            students[n] = s;
            attempts[n++] = attempt_of(shard, a);
            if (together == 1) {
                live_tell(live, 1, students, attempts);
                n = 0;
            }
        }
        live_tell(live, n, students, attempts);
    }
}

static void as_predicted(struct bench *b)
{
    const struct model *model = b->tiny.model;
    const struct shard *shard = &b->class.shard;
    for (enum split split = TRAIN; split < N_SPLITS; split++) {
        void *work = b->kind->attach(model, shard, TO_PREDICT);
        for (size_t s = 0; s < N_STUDENTS; s++)
            b->kind->predict(model, work, s, 1u << split, b->p + shard->first[s]);
        struct live *live = live_create(model, work, shard->dataset);
        for (size_t s = 0; s < N_STUDENTS; s++)
            assert_int_equal(live_add(live), s);
        follow(b, live, split, b->p);
        for (size_t s = 0; s < N_STUDENTS; s++)
            live_restart(live, s);
        follow(b, live, split, b->p);
        assert_true(live_bytes(live) > 0);
        live_destroy(live);
        b->kind->detach(work);
    }
}

static void test_asked_is_predicted(void **state)
{
    (void)state;
    with_all(as_predicted);
}

/* A question about a later time leaves the counts of earlier times as they were. */
static void test_questions_about_later_times(void **state)
{
    (void)state;
    struct bench b = {.kind = model_find("ktm")};
    enum { N = 20 };
    int64_t times[N];
    tiny_begin(&b.class, N_ITEMS, false);
    tiny_student(&b.class);
    for (uint32_t t = 0; t < N; t++) {
        times[t] = 7 * t + t * t % 5;
        tiny_attempt(&b.class, t % 3, mark_make(t % 4 ? CORRECT : INCORRECT, TEST, true, true));
    }
    b.class.draft.time = times;
    b.class.draft.head.has_time = true;
    tiny_finish(&b.class, &world);
    tiny_model_open(&b.tiny, "ktm",
                    "features=item student wins:within=20 attempts_skill:within=60",
                    &b.class.dataset);
    tiny_model_scatter(&b.tiny, 0.5, 3);
    const struct model *model = b.tiny.model;
    real p[N], later[N], now = 0;
    void *work = b.kind->attach(model, &b.class.shard, TO_PREDICT);
    b.kind->predict(model, work, 0, 7, p);
    struct live *live = live_create(model, work, &b.class.dataset);
    const size_t one = live_add(live);
    for (uint64_t t = 0; t < N; t++) {
        struct live_attempt attempt = attempt_of(&b.class.shard, t), question = attempt;
        question.time += 30;
        live_ask(live, one, &question, &question.item, 1, &later[t]);
        live_ask(live, one, &attempt, &attempt.item, 1, &now);
        assert_memory_equal(&now, &p[t], sizeof now);
        live_ask(live, one, &question, &question.item, 1, &now);
        assert_memory_equal(&now, &later[t], sizeof now);
        live_tell(live, 1, &one, &attempt);
    }
    assert_memory_not_equal(later, p, sizeof p);
    live_destroy(live);
    b.kind->detach(work);
    tiny_model_close(&b.tiny);
    tiny_close(&b.class);
}

/* P(known) against the recursion written plainly; items with several skills are evidence for
 * each. */
static void test_knowing(void **state)
{
    (void)state;
    const struct variant variant = {"bkt", "forget=yes, most_odds=0", PLAIN};
    struct bench b;
    open_bench(&b, &variant, false);
    const struct model *model = b.tiny.model;
    const struct shard *shard = &b.class.shard;
    void *work = b.kind->attach(model, shard, TO_PREDICT);
    struct live *live = live_create(model, work, shard->dataset);
    assert_true(live_knows(model) && !b.kind->live.knows_items(model));
    const size_t one = live_add(live);
    double rate[2][5], known[2];
    for (size_t k = 0; k < 2; k++)
        for (size_t c = 0; c < 5; c++) {
            const struct panel *panel = &model->params.panels[0];
            const double x = (double)model->params.value[panel->offset + k * panel->stride + c];
            rate[k][c] = fmin(fmax(1 / (1 + exp(-x)), 1e-5), 1 - 1e-5);
        }
    for (size_t s = 0; s < N_STUDENTS; s++) {
        live_restart(live, one);
        for (size_t k = 0; k < 2; k++)
            known[k] = rate[k][0];
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const struct live_attempt attempt = attempt_of(shard, t);
            const size_t k = shard->item[t] % 2;
            const double learn = rate[k][1], guess = rate[k][2], slip = rate[k][3],
                         forget = rate[k][4];
            const bool right = mark_outcome(shard->mark[t]) == CORRECT;
            const double if_known = right ? 1 - slip : slip, if_not = right ? guess : 1 - guess;
            if (mark_is_shown(shard->mark[t]))
                known[k] =
                    known[k] * if_known / (known[k] * if_known + (1 - known[k]) * if_not);
            known[k] = known[k] * (1 - forget) + (1 - known[k]) * learn;
            live_tell(live, 1, &one, &attempt);
            for (uint32_t j = 0; j < 2; j++) {
                real p = 0;
                live_know(live, one, j, &p);
                assert_true(fabs((double)p - known[j]) < 1e-6);
            }
        }
    }
    live_destroy(live);
    b.kind->detach(work);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_is_predicted),
        cmocka_unit_test(test_questions_about_later_times),
        cmocka_unit_test(test_knowing),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
