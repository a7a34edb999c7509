/* Students of a block aligned in time: every attempt has one row, and the students still active
 * at a step are a prefix of the block. */
#include "base/memory.h"
#include "base/rng.h"
#include "data/sequence.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_students(const struct sequence *sequence, const uint32_t *expected, size_t n)
{
    assert_int_equal(sequence->n, n);
    if (n > 0)
        assert_memory_equal(sequence->student, expected, n * sizeof *expected);
}

static void test_rows(void **state)
{
    (void)state;
    static const uint32_t length[] = {2, 4, 0, 1, 4, 2}, who[] = {0, 1, 2, 3, 4, 5};
    static const uint32_t expected[] = {1, 4, 0, 5, 3}; /* ties in the order given */
    static const size_t active[] = {5, 4, 2, 2, 0}, offset[] = {0, 5, 9, 11, 13};
    struct sequence sequence = {0};
    sequence_arrange(&sequence, who, COUNT(who), length);
    expect_students(&sequence, expected, COUNT(expected));
    assert_int_equal(sequence.n_steps, 4);
    assert_int_equal(sequence.n_rows, 13);
    assert_memory_equal(sequence.active, active, sizeof active);
    assert_memory_equal(sequence.offset, offset, sizeof offset);

    static const uint32_t backwards[] = {5, 4, 3, 2, 1, 0}, other[] = {4, 1, 5, 0, 3};
    sequence_arrange(&sequence, backwards, COUNT(backwards), length);
    expect_students(&sequence, other, COUNT(other));
    assert_memory_equal(sequence.active, active, sizeof active);
    sequence_free(&sequence);
    assert_null(sequence.student);
}

static void test_small_blocks(void **state)
{
    (void)state;
    static const uint32_t length[] = {0, 1, 3}, none[] = {0, 0}, one[] = {2}, short_one[] = {1};
    struct sequence sequence = {0};
    sequence_arrange(&sequence, none, 0, length);
    assert_int_equal(sequence.n, 0);
    assert_int_equal(sequence.n_steps, 0);
    assert_int_equal(sequence.n_rows, 0);
    sequence_arrange(&sequence, none, COUNT(none), length);
    assert_int_equal(sequence.n, 0);
    assert_int_equal(sequence.n_rows, 0);
    assert_int_equal(sequence.active[0], 0);
    assert_int_equal(sequence.offset[0], 0);
    sequence_arrange(&sequence, one, 1, length);
    expect_students(&sequence, one, 1);
    assert_int_equal(sequence.n_steps, 3);
    for (size_t t = 0; t <= 3; t++) {
        assert_int_equal(sequence.active[t], t < 3);
        assert_int_equal(sequence.offset[t], t);
    }
    sequence_arrange(&sequence, short_one, 1, length);
    assert_int_equal(sequence.n_steps, 1);
    assert_int_equal(sequence.n_rows, 1);
    assert_int_equal(sequence.active[1], 0);
    sequence_arrange(&sequence, none, 1, length); /* after a block with students */
    assert_int_equal(sequence.n, 0);
    assert_int_equal(sequence.n_steps, 0);
    assert_int_equal(sequence.n_rows, 0);
    assert_int_equal(sequence.active[0], 0);
    sequence_free(&sequence);
    sequence_free(&sequence);
}

/* Random blocks in succession, in the same memory. */
static void test_random_blocks(void **state)
{
    (void)state;
    enum { MOST = 70, CLASS = 1000 };
    struct sequence sequence = {0};
    for (uint32_t round = 0; round < 200; round++) {
        const struct rng rng = {.seed = 2, .purpose = RNG_SIMULATE, .part = round};
        uint32_t who[MOST], length[CLASS], index = 0;
        for (size_t s = 0; s < CLASS; s++)
            length[s] = (uint32_t)rng_below(&rng, index++, 1 + round % 60);
        const size_t n = (size_t)rng_below(&rng, index++, MOST + 1);
        const uint32_t first = (uint32_t)rng_below(&rng, index++, CLASS);
        size_t n_rows = 0, n_there = 0, longest = 0;
        for (size_t i = 0; i < n; i++) { /* distinct, in no order */
            who[i] = (uint32_t)((first + i * 37) % CLASS);
            n_rows += length[who[i]];
            n_there += length[who[i]] > 0;
            longest = size_max(longest, length[who[i]]);
        }
        sequence_arrange(&sequence, who, n, length);
        assert_int_equal(sequence.n, n_there);
        assert_int_equal(sequence.n_rows, n_rows);
        assert_int_equal(sequence.n_steps, longest);
        size_t offset = 0;
        for (size_t t = 0; t < longest; t++) {
            size_t active = 0;
            for (size_t i = 0; i < n; i++)
                active += length[who[i]] > t;
            assert_int_equal(sequence.active[t], active);
            assert_int_equal(sequence.offset[t], offset);
            for (size_t i = 0; i < active; i++)
                assert_true(length[sequence.student[i]] > t);
            offset += active;
        }
        if (n_there > 0)
            assert_int_equal(sequence.active[longest], 0);
        bool met[CLASS] = {false};
        for (size_t i = 0; i < n_there; i++) {
            assert_false(met[sequence.student[i]]);
            met[sequence.student[i]] = true;
        }
        for (size_t i = 0; i < n; i++)
            assert_int_equal(met[who[i]], length[who[i]] > 0);
    }
    sequence_free(&sequence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_random_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
