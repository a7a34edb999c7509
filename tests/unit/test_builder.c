/* Rows in any order become students in one order; with their names, numbers and memory. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/builder.h"
#include "data/name_index.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static uint32_t add(struct name_index *index, const char *name)
{
    return name_index_add(index, name, strlen(name));
}

static void test_index(void **state)
{
    (void)state;
    struct name_index index = {0};
    assert_true(name_index_find(&index, "a", 1) == INDEX_NONE);
    /* Names of all lengths, including those that a key of 8 bytes might confuse. */
    char name[64];
    enum { N = 50000 };
    for (uint32_t i = 0; i < N; i++) {
        const int n = snprintf(name, sizeof name, i % 3 ? "%u" : "student number %u", i);
        assert_int_equal(name_index_add(&index, name, (size_t)n), i);
    }
    for (uint32_t i = 0; i < N; i++) {
        const int n = snprintf(name, sizeof name, i % 3 ? "%u" : "student number %u", i);
        assert_int_equal(name_index_add(&index, name, (size_t)n), i);
        assert_int_equal(name_index_find(&index, name, (size_t)n), i);
        assert_string_equal(names_get(&index.names, i), name);
    }
    name_index_free(&index);

    static const char *const alike[] = {"",         "a",         "aa",   "aaa",   "aaaa",
                                        "aaaaa",    "ab",        "aba",  "abab",  "ababab",
                                        "abababab", "ababababa", "abba", "abbaa", "aabba",
                                        "aaaaaaaa", "aaaaaaaaa", "b"};
    for (uint32_t i = 0; i < COUNT(alike); i++)
        assert_int_equal(add(&index, alike[i]), i);
    for (uint32_t i = 0; i < COUNT(alike); i++)
        assert_int_equal(name_index_find(&index, alike[i], strlen(alike[i])), i);
    name_index_free(&index);
}

static void test_index_letters(void **state)
{
    (void)state;
    struct name_index index = {0};
    const uint32_t cafe = add(&index, "caf\xc3\xa9");
    assert_int_equal(add(&index, "caf\xe9"), cafe); /* the same word in Latin-1 */
    assert_int_equal(name_index_find(&index, "caf\xe9", 4), cafe);
    assert_string_equal(names_get(&index.names, cafe), "caf\xc3\xa9");
    static const char *const not_utf8[] = {"\xc3", "\xed\xa0\x80", "\xc0\x80",
                                           "\xf5\x80\x80\x80", "\x80"};
    for (size_t i = 0; i < COUNT(not_utf8); i++) {
        const uint32_t number = add(&index, not_utf8[i]);
        assert_int_equal(strlen(names_get(&index.names, number)), 2 * strlen(not_utf8[i]));
    }
    name_index_free(&index);
}

static void test_index_sort(void **state)
{
    (void)state;
    static const char *const sorted[] = {"",  "7",   "07", "8",    "10",  "A",
                                         "a", "a1b", "a2", "a2b1", "a10", "b"};
    struct names names = {0};
    uint32_t numbers[COUNT(sorted)];
    for (size_t i = 0; i < COUNT(sorted); i++) {
        const size_t j = i * 5 % COUNT(sorted);
        names_add(&names, sorted[j], strlen(sorted[j]));
        numbers[i] = (uint32_t)i;
    }
    name_index_sort(&names, numbers);
    for (size_t i = 0; i < COUNT(sorted); i++) {
        if (i == 1 ||
            i == 2) /* "7" and "07" are one number: either may be first, always the same one */
            continue;
        assert_string_equal(names_get(&names, numbers[i]), sorted[i]);
    }
    assert_string_equal(names_get(&names, numbers[1]), "07");
    names_free(&names);
}

/* One class from three orders of rows, through both functions that add rows. */
static void test_any_order(void **state)
{
    (void)state;
    enum { N_STUDENTS = 3000, N_ROWS = 40000, N_ITEMS = 50 };
    struct builder_result results[3];
    for (int way = 0; way < 3; way++) {
        struct builder *builder =
            builder_create(&(struct builder_plan){.seed = 5, .has_time = true});
        uint32_t *order = NEW(uint32_t, N_ROWS);
        const struct rng rng = {.seed = 1, .part = (uint32_t)way};
        rng_order(&rng, order, N_ROWS);
        for (uint32_t j = 0; j < N_ROWS; j++) {
            const uint32_t r = way == 0 ? j : order[j];
            char student[64], item[32];
            const int n =
                snprintf(student, sizeof student, "%s%u",
                         r % 2 ? "" : "a student with a name of more than forty letters ",
                         r * 7919 % N_STUDENTS);
            const int m = snprintf(item, sizeof item, "item %u", r % N_ITEMS);
            const uint32_t i = builder_item(builder, item, (size_t)m);
            const uint8_t mark = mark_make(r % 3 ? CORRECT : INCORRECT, TRAIN, false, true);
            if (way == 1)
                builder_add(builder, builder_student(builder, student, (size_t)n), i, mark, r);
            else
                builder_add_named(builder, student, (size_t)n, i, mark, r);
        }
        builder_finish(builder, &results[way]);
        builder_destroy(builder);
        memory_free(order);
    }
    const struct dataset *head = &results[0].content.head;
    assert_int_equal(head->n_attempts, N_ROWS);
    assert_int_equal(head->n_items, N_ITEMS);
    for (size_t s = 0; s < head->n_students; s++)
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++) {
            const int64_t r = results[0].content.time[t];
            assert_int_equal(results[0].content.item[t], r % N_ITEMS);
            assert_int_equal(mark_outcome(results[0].mark[t]), r % 3 != 0);
            assert_true(t == head->first[s] || results[0].content.time[t - 1] < r);
            const char *name = names_get(&results[0].content.students, s);
            const char *number = strrchr(name, ' ');
            assert_int_equal(atoi(number ? number + 1 : name), r * 7919 % N_STUDENTS);
        }
    for (int way = 1; way < 3; way++) {
        const struct dataset_content *a = &results[0].content, *b = &results[way].content;
        assert_int_equal(b->head.n_students, head->n_students);
        assert_memory_equal(a->head.first, b->head.first, (head->n_students + 1) * 8);
        assert_memory_equal(a->item, b->item, N_ROWS * sizeof *a->item);
        assert_memory_equal(a->mark, b->mark, N_ROWS);
        assert_memory_equal(a->time, b->time, N_ROWS * sizeof *a->time);
        assert_memory_equal(a->students.bytes, b->students.bytes,
                            a->students.first[head->n_students]);
    }
    /* The order is random, so any range of students is a fair sample: the first tenth has its
     * share of small numbers. */
    size_t n_small = 0;
    for (size_t s = 0; s < 500; s++) {
        const char *name = names_get(&results[0].content.students, s);
        const char *number = strrchr(name, ' ');
        n_small += atoi(number ? number + 1 : name) < N_STUDENTS / 2;
    }
    assert_in_range(n_small, 250 - 56, 250 + 56); /* 5 sigma */
    for (int way = 0; way < 3; way++)
        builder_result_free(&results[way]);
}

static void test_merging_and_steps(void **state)
{
    (void)state;
    static const struct {
        int64_t time;
        const char *item;
        bool kept, new_time, new_session;
    } rows[] = {
        {10, "b", true, true, true},    {10, "a", true, false, false},
        {10, "b", false, false, false}, {11, "b", true, true, false},
        {11, "b", false, false, false}, {61, "a", true, true, false},
        {112, "a", true, true, true},
    };
    for (int step = STEP_EVERY; step <= STEP_SESSION; step++) {
        struct builder *builder =
            builder_create(&(struct builder_plan){.has_time = true,
                                                  .merge = MERGE_ALL,
                                                  .has_rows = true,
                                                  .step = (enum builder_step)step,
                                                  .pause = 50});
        const uint32_t s = builder_student(builder, "s", 1);
        builder_student(builder, "idle", 4);
        for (size_t r = 0; r < COUNT(rows); r++) {
            builder_row(builder, 100 + r);
            builder_add(builder, s, builder_item(builder, rows[r].item, 1), CORRECT,
                        rows[r].time);
        }
        struct builder_result result;
        builder_finish(builder, &result);
        builder_destroy(builder);
        assert_int_equal(result.n_merged, 2);
        assert_int_equal(result.n_idle_students, 1);
        assert_int_equal(result.content.head.n_students, 1);
        size_t t = 0;
        for (size_t r = 0; r < COUNT(rows); r++) {
            if (!rows[r].kept)
                continue;
            const bool expected = step == STEP_EVERY  ? true
                                  : step == STEP_TIME ? rows[r].new_time
                                                      : rows[r].new_session;
            assert_int_equal((result.mark[t] & MARK_STEP) != 0, expected);
            assert_int_equal(result.content.time[t], rows[r].time);
            assert_int_equal(result.row[t], 100 + r);
            t++;
        }
        assert_int_equal(result.content.head.n_attempts, t);
        builder_result_free(&result);
    }
}

static void test_times_round_down(void **state)
{
    (void)state;
    struct builder *builder = builder_create(
        &(struct builder_plan){.has_time = true, .time_divisor = 1000, .time_rest = 1000});
    static const int64_t times[] = {-1001, -1000, -1, 0, 999, 1000};
    static const int64_t stored[] = {-2, -1, -1, 0, 0, 1};
    static const uint32_t rests[] = {999000, 0, 999000, 0, 999000, 0};
    for (size_t r = 0; r < COUNT(times); r++)
        builder_add_named(builder, "s", 1, builder_item(builder, "i", 1), CORRECT,
                          times[COUNT(times) - 1 - r]);
    struct builder_result result;
    builder_finish(builder, &result);
    builder_destroy(builder);
    for (size_t t = 0; t < COUNT(times); t++) {
        assert_int_equal(result.content.time[t], stored[t]);
        assert_int_equal(result.microsecond[t], rests[t]);
    }
    assert_null(result.row); /* not asked for */
    builder_result_free(&result);
}

static void test_items(void **state)
{
    (void)state;
    struct builder *builder = builder_create(&(struct builder_plan){0});
    const uint32_t b = builder_item(builder, "b", 1), a = builder_item(builder, "a", 1);
    const uint32_t y = builder_skill(builder, "y", 1), x = builder_skill(builder, "x", 1);
    const uint32_t g = builder_group(builder, "g", 1), h = builder_group(builder, "h", 1);
    for (int again = 0; again < 3; again++) {
        builder_item_skill(builder, b, y);
        builder_item_skill(builder, b, x);
        builder_item_skill(builder, a, y);
        builder_item_group(builder, b, h);
    }
    builder_item_group(builder, b, g);
    assert_true(builder_title_skill(builder, "x", 1, "the unknown", 11));
    assert_false(builder_title_skill(builder, "z", 1, "nobody", 6));
    builder_add_named(builder, "s", 1, b, CORRECT, 0);
    struct builder_result result;
    builder_finish(builder, &result);
    builder_destroy(builder);
    const struct dataset *head = &result.content.head;
    assert_int_equal(result.n_regrouped, 1);
    assert_int_equal(head->n_items, 2);
    assert_string_equal(names_get(&head->items, 0), "a");
    assert_string_equal(names_get(&head->skills, 0), "the unknown");
    assert_string_equal(names_get(&head->skills, 1), "y");
    assert_int_equal(head->item_first[1], 1);
    assert_int_equal(head->item_first[2], 3);
    assert_int_equal(head->item_skills[0], 1);
    assert_int_equal(head->item_skills[1], 0);
    assert_int_equal(head->item_skills[2], 1);
    assert_int_equal(head->item_group[0], -1);
    assert_string_equal(names_get(&head->groups, (size_t)head->item_group[1]), "h");
    assert_null(result.content.time);
    builder_result_free(&result);
}

/* About 22 bytes per row at the peak, 28 allowed; the rest is for names. */
static void test_memory(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it needs memory of its own */
#endif
    enum { N = 12000000 };
    const size_t before = memory_peak();
    struct builder *builder =
        builder_create(&(struct builder_plan){.seed = 1, .has_time = true, .has_rows = true});
    const uint32_t i = builder_item(builder, "i", 1);
    for (uint32_t r = 0; r < N; r++) {
        char name[16];
        const int n = snprintf(name, sizeof name, "%u", r * 2654435761u % 20000);
        builder_add_named(builder, name, (size_t)n, i, CORRECT, (int64_t)N - r);
    }
    struct builder_result result;
    builder_finish(builder, &result);
    builder_destroy(builder);
    assert_int_equal(result.content.head.n_attempts, N);
    builder_result_free(&result);
    const double bytes = (double)(memory_peak() - before) / N;
    print_message("%.1f bytes per row\n", bytes);
    assert_true(bytes < 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_index_letters),
        cmocka_unit_test(test_index_sort),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_merging_and_steps),
        cmocka_unit_test(test_times_round_down),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
