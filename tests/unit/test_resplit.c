/* Changed splits. Folds: every attempt not held out by the import is a test attempt once in k
 * runs, and the others never are. Refits: validation attempts become training attempts, and
 * nothing else changes. */
#include "base/h5.h"
#include "data/resplit.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

enum { N_STUDENTS = 120 };

static void open_class(struct tiny *class, bool withheld)
{
    tiny_begin(class, 5, withheld);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, s % 23, 6);
    }
    for (size_t t = 0; t < class->n_attempts; t += 3) /* some are not the first of their step */
        class->mark[t] &= (uint8_t)~MARK_STEP;
    tiny_finish(class, &world);
}

/* The marks of fold `fold`, derived from the marks of the class. */
static uint8_t *marks_of(struct tiny *class, int64_t n_folds, int64_t fold, uint64_t seed)
{
    memcpy(class->shard.mark, class->mark, class->n_attempts);
    resplit_folds(&class->shard, n_folds, fold, seed);
    uint8_t *marks = NEW(uint8_t, class->n_attempts);
    memcpy(marks, class->shard.mark, class->n_attempts);
    return marks;
}

static void check_folds(bool withheld, int64_t n_folds)
{
    struct tiny class;
    open_class(&class, withheld);
    const size_t n = class.n_attempts;
    int *met = NEW(int, 3 * n);
    uint8_t *before = marks_of(&class, n_folds, n_folds, 9); /* its valid fold is the first */
    for (int64_t fold = 1; fold <= n_folds; fold++) {
        uint8_t *marks = marks_of(&class, n_folds, fold, 9);
        size_t n_test = 0, n_usable = 0;
        for (size_t s = 0; s < class.n_students; s++)
            for (uint64_t t = class.first[s]; t < class.first[s + 1]; t++) {
                const uint8_t old = class.mark[t], new = marks[t];
                const enum split split = mark_split(new);
                assert_int_equal(new &MARK_STEP, old & MARK_STEP);
                if (mark_split(old) == TEST) { /* the import's test attempts are gone */
                    assert_int_equal(split, TRAIN);
                    assert_int_equal(mark_outcome(new), UNKNOWN);
                    assert_false(mark_is_shown(new));
                    continue;
                }
                met[3 * t + split]++;
                n_usable++;
                n_test += split == TEST;
                assert_int_equal(mark_outcome(new), mark_outcome(old));
                assert_int_equal(mark_is_shown(new),
                                 mark_outcome(old) != UNKNOWN && (split == TRAIN || !withheld));
                assert_int_equal(split == TEST, mark_split(before[t]) == VALID);
            }
        const double share = (double)n_test / (double)n_usable;
        assert_true(fabs(share - 1. / (double)n_folds) < 0.05);
        memory_free(before);
        before = marks;
    }
    memory_free(before);
    for (size_t t = 0; t < n; t++) {
        const bool held_out = mark_split(class.mark[t]) == TEST;
        assert_int_equal(met[3 * t + TEST], held_out ? 0 : 1);
        assert_int_equal(met[3 * t + VALID], held_out ? 0 : 1);
        assert_int_equal(met[3 * t + TRAIN], held_out ? 0 : n_folds - 2);
    }
    memory_free(met);
    tiny_close(&class);
}

static void test_every_attempt_in_one_fold(void **state)
{
    (void)state;
    for (int64_t n_folds = 3; n_folds <= 10; n_folds++) {
        check_folds(false, n_folds);
        check_folds(true, n_folds);
    }
}

/* With a split by students, a student is in one fold as a whole; with withheld attempts, most
 * students have some in each. */
static void test_whole_students(void **state)
{
    (void)state;
    for (int withheld = 0; withheld < 2; withheld++) {
        struct tiny class;
        open_class(&class, withheld);
        uint8_t *marks = marks_of(&class, 4, 2, 1);
        size_t n_mixed = 0;
        for (size_t s = 0; s < class.n_students; s++) {
            unsigned splits = 0;
            for (uint64_t t = class.first[s]; t < class.first[s + 1]; t++)
                if (mark_split(class.mark[t]) != TEST)
                    splits |= 1u << mark_split(marks[t]);
            n_mixed += (splits & (splits - 1)) != 0;
        }
        if (withheld)
            assert_true(n_mixed > N_STUDENTS / 2);
        else
            assert_int_equal(n_mixed, 0);
        memory_free(marks);
        tiny_close(&class);
    }
}

/* A shard with some of the students has the same marks for them: ranks need not communicate. */
static void test_shards_agree_with_the_data_set(void **state)
{
    (void)state;
    for (int withheld = 0; withheld < 2; withheld++) {
        struct tiny class;
        open_class(&class, withheld);
        uint8_t *marks = marks_of(&class, 5, 3, 7);
        for (size_t first = 0; first < N_STUDENTS; first += 17) {
            struct shard part;
            const size_t n = size_min(31, N_STUDENTS - first);
            tiny_must(dataset_read(&class.dataset, first, n, &part));
            resplit_folds(&part, 5, 3, 7);
            assert_memory_equal(part.mark, marks + class.first[first], part.n_attempts);
            shard_free(&part);
        }
        uint8_t *other = marks_of(&class, 5, 3, 8);
        if (withheld)
            assert_memory_not_equal(other, marks, class.n_attempts);
        else
            assert_memory_equal(other, marks, class.n_attempts);
        memory_free(other);
        memory_free(marks);
        tiny_close(&class);
    }
}

/* With or without a previous fold. */
static void check_join(bool withheld, int64_t n_folds)
{
    struct tiny class;
    open_class(&class, withheld);
    for (int64_t fold = 1; fold <= (n_folds > 0 ? n_folds : 1); fold++) {
        uint8_t *before = NEW(uint8_t, class.n_attempts);
        memcpy(class.shard.mark, class.mark, class.n_attempts);
        if (n_folds > 0)
            resplit_folds(&class.shard, n_folds, fold, 9);
        memcpy(before, class.shard.mark, class.n_attempts);
        int64_t n_valid = 0, n_unknown = 0;
        for (size_t t = 0; t < class.n_attempts; t++)
            n_valid += mark_split(before[t]) == VALID;
        assert_int_equal(resplit_join(&class.shard), n_valid);
        for (size_t t = 0; t < class.n_attempts; t++) {
            const uint8_t old = before[t], new = class.shard.mark[t];
            if (mark_split(old) != VALID) {
                assert_int_equal(new, old);
                continue;
            }
            n_unknown += mark_outcome(old) == UNKNOWN;
            assert_int_equal(mark_split(new), TRAIN);
            assert_int_equal(mark_outcome(new), mark_outcome(old));
            assert_int_equal(mark_is_shown(new), mark_outcome(old) != UNKNOWN);
            assert_int_equal(new &MARK_STEP, old & MARK_STEP);
        }
        assert_true(n_valid > 0 && n_unknown > 0 && n_unknown < n_valid);
        assert_int_equal(resplit_join(&class.shard), 0); /* none are left */
        memory_free(before);
    }
    tiny_close(&class);
}

static void test_join_validation_and_training(void **state)
{
    (void)state;
    for (int withheld = 0; withheld < 2; withheld++) {
        check_join(withheld, 0);
        check_join(withheld, 4);
    }
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_attempt_in_one_fold),
        cmocka_unit_test(test_whole_students),
        cmocka_unit_test(test_shards_agree_with_the_data_set),
        cmocka_unit_test(test_join_validation_and_training),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
