/* Splits: their proportions, which attempts are shown, and that they depend only on seed and
 * names. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/split.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

/* A class of n students, student number s (whose place is `order[s]`) with 1 + s % 9 attempts;
 * attempt t is unknown if (s + t) % 5 is 0. Times are global: 100 t + s % 100. */
struct class
{
    struct dataset_content content;
    uint8_t *mark;
    int64_t *time;
    uint32_t *number; /* of the student at each place */
};

static void make_class(struct class *class, size_t n, uint64_t order_seed)
{
    *class = (struct class){.number = NEW(uint32_t, n)};
    const struct rng rng = {.seed = order_seed};
    rng_order(&rng, class->number, n);
    struct dataset *head = &class->content.head;
    head->n_students = n;
    head->has_time = true;
    head->first = NEW(uint64_t, n + 1);
    for (size_t p = 0; p < n; p++) {
        char name[32];
        const int length = snprintf(name, sizeof name, "student %u", class->number[p]);
        names_add(&class->content.students, name, (size_t)length);
        head->first[p + 1] = head->first[p] + 1 + class->number[p] % 9;
    }
    head->n_attempts = head->first[n];
    class->mark = NEW(uint8_t, head->n_attempts);
    class->time = NEW(int64_t, head->n_attempts);
    for (size_t p = 0; p < n; p++)
        for (uint64_t t = head->first[p]; t < head->first[p + 1]; t++) {
            const uint64_t s = class->number[p], j = t - head->first[p];
            const enum outcome outcome = (s + j) % 5 == 0 ? UNKNOWN
                                         : j % 2          ? CORRECT
                                                          : INCORRECT;
            class->mark[t] = mark_make(outcome, VALID, false, true);
            class->time[t] = (int64_t)(100 * j + s % 100);
        }
    class->content.mark = class->mark;
    class->content.time = class->time;
}

static void free_class(struct class *class)
{
    memory_free(class->content.head.first);
    names_free(&class->content.students);
    memory_free(class->mark);
    memory_free(class->time);
    memory_free(class->number);
}

static void apply(struct class *class, const char *text, uint64_t seed)
{
    struct split_plan plan = {.seed = seed};
    assert_int_equal(split_parse(text, &plan), OK);
    class->content.head.withheld = split_withholds(&plan);
    assert_int_equal(split_apply(&plan, &class->content, class->mark), OK);
}

static void count(const struct class *class, size_t n[N_SPLITS])
{
    memset(n, 0, N_SPLITS * sizeof *n);
    for (uint64_t t = 0; t < class->content.head.n_attempts; t++)
        n[mark_split(class->mark[t])]++;
}

/* Students whose attempts are all in one split, by split. */
static void count_students(const struct class *class, size_t n[N_SPLITS])
{
    const struct dataset *head = &class->content.head;
    memset(n, 0, N_SPLITS * sizeof *n);
    for (size_t s = 0; s < head->n_students; s++) {
        const enum split split = mark_split(class->mark[head->first[s]]);
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++)
            assert_int_equal(mark_split(class->mark[t]), split);
        n[split]++;
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "by-student=80/10",
                                      "by-student=80/10/5",
                                      "by-student=80/10/10/0",
                                      "by-student=110/-5/-5",
                                      "by-student=a/b/c",
                                      "by-student=2147483647/2147483647/102",
                                      "by-last=3",
                                      "folds",
                                      "folds=1",
                                      "folds=5/0",
                                      "folds=5/6",
                                      "folds=5/2x",
                                      "by-birthday"};
    struct split_plan plan;
    for (size_t b = 0; b < COUNT(bad); b++) {
        fail_clear();
        assert_int_equal(split_parse(bad[b], &plan), BAD_USER);
        assert_true(strlen(fail_sentence()) > 20);
    }
    fail_clear();
    assert_int_equal(split_parse("by-time=70/0/30", &plan), OK);
    assert_int_equal(plan.percent[TEST], 30);
    assert_int_equal(split_parse("folds=7/3", &plan), OK);
    assert_int_equal(plan.n_folds, 7);
    assert_int_equal(plan.fold, 3);
    enum split split = TRAIN;
    assert_true(split_find("Validation", 10, &split) && split == VALID);
    assert_false(split_find("trainer", 7, &split));
    assert_false(split_find("", 0, &split));
}

static void test_by_student(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n, expected[N_SPLITS];
    } cases[] = {
        {"by-student=80/10/10", 1000, {800, 100, 100}},
        {"by-student", 1000, {800, 100, 100}},
        {"by-student=80/0/20", 997, {798, 0, 199}},
        {"by-student=80/10/10", 4, {2, 1, 1}},
        {"by-student=80/10/10", 2, {2, 0, 0}},
        {"by-student=0/0/100", 10, {0, 0, 10}},
        {"none", 50, {50, 0, 0}},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct class class;
        size_t n[N_SPLITS];
        make_class(&class, cases[c].n, 1);
        apply(&class, cases[c].text, 1);
        count_students(&class, n);
        assert_memory_equal(n, cases[c].expected, sizeof n);
        free_class(&class);
    }
}

/* The first students are for training; numbers of students without attempts may be missing. */
static void test_by_order(void **state)
{
    (void)state;
    enum { N = 50 };
    struct class class;
    make_class(&class, N, 3);
    uint32_t number[N];
    for (size_t p = 0; p < N; p++)
        number[p] = 3 * class.number[p] + 5;
    struct split_plan plan = {.student_number = number};
    assert_int_equal(split_parse("by-order=80/4/16", &plan), OK);
    assert_false(split_withholds(&plan));
    assert_int_equal(split_apply(&plan, &class.content, class.mark), OK);
    for (size_t p = 0; p < N; p++)
        for (uint64_t t = class.content.head.first[p]; t < class.content.head.first[p + 1]; t++)
            assert_int_equal(mark_split(class.mark[t]), class.number[p] < 40   ? TRAIN
                                                        : class.number[p] < 42 ? VALID
                                                                               : TEST);
    free_class(&class);
}

/* The split of an attempt follows its student's name, in any order of students. */
static void test_splits_depend_on_names_and_seed(void **state)
{
    (void)state;
    static const char *const texts[] = {"by-student=60/20/20", "by-attempt=60/20/20",
                                        "folds=3/2", "by-last", "by-time=50/25/25"};
    enum { N = 500 };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct class a, b, c;
        make_class(&a, N, 1);
        make_class(&b, N, 2);
        make_class(&c, N, 1);
        apply(&a, texts[i], 1);
        apply(&b, texts[i], 1);
        apply(&c, texts[i], 2);
        uint64_t first_of[N];
        for (size_t p = 0; p < N; p++)
            first_of[b.number[p]] = b.content.head.first[p];
        for (size_t p = 0; p < N; p++) {
            const uint64_t first = a.content.head.first[p];
            assert_memory_equal(a.mark + first, b.mark + first_of[a.number[p]],
                                a.content.head.first[p + 1] - first);
        }
        const bool same = memcmp(a.mark, c.mark, a.content.head.n_attempts) == 0;
        assert_int_equal(same, i >= 3); /* only the first three are random */
        free_class(&a);
        free_class(&b);
        free_class(&c);
    }
}

static void test_by_last(void **state)
{
    (void)state;
    struct class class;
    make_class(&class, 300, 1);
    apply(&class, "by-last", 1);
    assert_true(class.content.head.withheld);
    const struct dataset *head = &class.content.head;
    for (size_t s = 0; s < head->n_students; s++) {
        size_t n_known = 0, place = 0;
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++)
            n_known += mark_outcome(class.mark[t]) != UNKNOWN;
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++) {
            const uint8_t mark = class.mark[t];
            const bool known = mark_outcome(mark) != UNKNOWN;
            place += known;
            const size_t behind = n_known - place; /* known attempts after this one */
            const enum split expected = !known                        ? TRAIN
                                        : behind == 0 && n_known >= 2 ? TEST
                                        : behind == 1 && n_known >= 3 ? VALID
                                                                      : TRAIN;
            assert_int_equal(mark_split(mark), expected);
            assert_int_equal(mark_is_shown(mark), known && expected == TRAIN);
            assert_true(mark & MARK_STEP);
        }
    }
    free_class(&class);
}

static void test_by_attempt(void **state)
{
    (void)state;
    struct class class;
    make_class(&class, 4000, 1);
    apply(&class, "by-attempt=70/10/20", 1);
    size_t n[N_SPLITS] = {0}, n_known = 0;
    for (uint64_t t = 0; t < class.content.head.n_attempts; t++) {
        const uint8_t mark = class.mark[t];
        if (mark_outcome(mark) == UNKNOWN) {
            assert_int_equal(mark_split(mark), TRAIN);
            assert_false(mark_is_shown(mark));
            continue;
        }
        assert_int_equal(mark_is_shown(mark), mark_split(mark) == TRAIN);
        n[mark_split(mark)]++;
        n_known++;
    }
    assert_in_range(n_known, 15000, 17000);
    for (int i = 0; i < N_SPLITS; i++) { /* 5 sigma of about 58 */
        static const double share[] = {0.7, 0.1, 0.2};
        assert_in_range(n[i], share[i] * (double)n_known - 290,
                        share[i] * (double)n_known + 290);
    }
    free_class(&class);
}

static void test_by_time(void **state)
{
    (void)state;
    struct class class;
    make_class(&class, 3000, 1);
    apply(&class, "by-time=80/10/10", 1);
    size_t n[N_SPLITS];
    count(&class, n);
    const double all = (double)class.content.head.n_attempts;
    assert_in_range(n[TRAIN], 0.795 * all, 0.8 * all); /* equal times go to one side together */
    assert_in_range(n[TEST], 0.1 * all, 0.105 * all);
    int64_t last[N_SPLITS] = {INT64_MIN, INT64_MIN, INT64_MIN};
    int64_t first[N_SPLITS] = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (uint64_t t = 0; t < class.content.head.n_attempts; t++) {
        const enum split split = mark_split(class.mark[t]);
        last[split] = class.time[t] > last[split] ? class.time[t] : last[split];
        first[split] = class.time[t] < first[split] ? class.time[t] : first[split];
        assert_int_equal(mark_is_shown(class.mark[t]), mark_outcome(class.mark[t]) != UNKNOWN);
    }
    assert_true(last[TRAIN] < first[VALID] && last[VALID] < first[TEST]);

    /* A wide range of times is split as well as a narrow one. */
    for (uint64_t t = 0; t < class.content.head.n_attempts; t++)
        class.time[t] = class.time[t] * 9000000000000000 - INT64_MAX / 2;
    apply(&class, "by-time=80/10/10", 1);
    size_t again[N_SPLITS];
    count(&class, again);
    assert_memory_equal(n, again, sizeof n);

    apply(&class, "by-time=100/0/0", 1);
    count(&class, n);
    assert_int_equal(n[TRAIN], class.content.head.n_attempts);

    struct split_plan plan = {.way = SPLIT_BY_TIME, .percent = {80, 10, 10}};
    memset(class.time, 0, class.content.head.n_attempts * sizeof *class.time);
    assert_int_equal(split_apply(&plan, &class.content, class.mark), BAD_USER);
    class.content.head.has_time = false;
    assert_int_equal(split_apply(&plan, &class.content, class.mark), BAD_USER);
    fail_clear();
    free_class(&class);
}

/* Every student is in the test fold once, and in the validation fold once. */
static void test_folds(void **state)
{
    (void)state;
    enum { N = 103, K = 5 };
    int n_test[N] = {0}, n_valid[N] = {0};
    for (int fold = 1; fold <= K; fold++) {
        struct class class;
        char text[32];
        size_t n[N_SPLITS];
        snprintf(text, sizeof text, "folds=%d/%d", K, fold);
        make_class(&class, N, 1);
        apply(&class, text, 1);
        count_students(&class, n);
        assert_in_range(n[TEST], N / K, N / K + 1);
        assert_in_range(n[VALID], N / K, N / K + 1);
        for (size_t s = 0; s < N; s++) {
            const enum split split = mark_split(class.mark[class.content.head.first[s]]);
            n_test[s] += split == TEST;
            n_valid[s] += split == VALID;
        }
        free_class(&class);
    }
    for (size_t s = 0; s < N; s++) {
        assert_int_equal(n_test[s], 1);
        assert_int_equal(n_valid[s], 1);
    }
    struct class class;
    struct split_plan plan = {.way = SPLIT_FOLDS, .n_folds = 5, .fold = 1};
    make_class(&class, 4, 1);
    assert_int_equal(split_apply(&plan, &class.content, class.mark), BAD_USER);
    fail_clear();
    free_class(&class);
}

static void test_given_splits(void **state)
{
    (void)state;
    struct class class;
    make_class(&class, 30, 1);
    const struct split_plan plan = {.way = SPLIT_GIVEN};
    for (int withheld = 0; withheld < 2; withheld++) {
        class.content.head.withheld = withheld;
        assert_int_equal(split_apply(&plan, &class.content, class.mark), OK);
        for (uint64_t t = 0; t < class.content.head.n_attempts; t++) {
            assert_int_equal(mark_split(class.mark[t]), VALID);
            assert_int_equal(mark_is_shown(class.mark[t]),
                             !withheld && mark_outcome(class.mark[t]) != UNKNOWN);
        }
    }
    free_class(&class);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_by_student),
        cmocka_unit_test(test_splits_depend_on_names_and_seed),
        cmocka_unit_test(test_by_last),
        cmocka_unit_test(test_by_attempt),
        cmocka_unit_test(test_by_time),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_given_splits),
        cmocka_unit_test(test_by_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
