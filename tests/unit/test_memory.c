/* Memory: alignment, content, growth, and the error message when none is left. */
#include "base/h5.h"
#include "base/machine.h"
#include "base/memory.h"
#include "forked.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static const size_t sizes[] = {0,       1,      7, 63, 64, 65, 1000, 4096, (2 << 20) - 1,
                               2 << 20, 5000001};

static void test_aligned_and_zeroed(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) /* the second time in memory that was used before */
        for (size_t j = 0; j < COUNT(sizes); j++) {
            unsigned char *bytes = memory_zeroed(sizes[j], 1);
            assert_non_null(bytes);
            assert_int_equal((uintptr_t)bytes % 64, 0);
            for (size_t b = 0; b < sizes[j]; b++)
                if (bytes[b] != 0)
                    fail_msg("byte %zu of %zu is not zero", b, sizes[j]);
            memset(bytes, 0xa5, sizes[j]);
            memory_free(bytes);
        }
}

static void test_scratch(void **state)
{
    (void)state;
    for (size_t j = 0; j < COUNT(sizes); j++) {
        unsigned char *bytes = memory_scratch(sizes[j], 1);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 64, 0);
#ifndef NDEBUG
        for (size_t b = 0; b < sizes[j]; b++)
            if (bytes[b] != 0xff)
                fail_msg("byte %zu of %zu is not marked", b, sizes[j]);
#endif
        memset(bytes, 1, sizes[j]);
        memory_free(bytes);
    }
    memory_free(NULL);
}

static void test_append(void **state)
{
    (void)state;
    char *text = memory_text("%s", "");
    for (int j = 0; j < 100; j++)
        memory_append(&text, "%s%d", j > 0 ? "," : "", j);
    assert_int_equal(strlen(text), 10 + 90 * 2 + 99);
    assert_memory_equal(text, "0,1,2,", 6);
    assert_string_equal(text + strlen(text) - 6, ",98,99");
    memory_append(&text, "%s", text); /* itself */
    assert_int_equal(strlen(text), 2 * (10 + 90 * 2 + 99));
    memory_free(text);
}

static void test_resize_keeps_content(void **state)
{
    (void)state;
    uint32_t *values = NULL;
    size_t n = 0;
    const size_t steps[] = {1, 100, 1000000, 3000000, 500, 501, 0, 20};
    for (size_t j = 0; j < COUNT(steps); j++) {
        values = memory_resize(values, steps[j], sizeof *values);
        assert_int_equal((uintptr_t)values % 64, 0);
        for (size_t i = 0; i < size_min(n, steps[j]); i++)
            if (values[i] != i * 7)
                fail_msg("value %zu was lost from %zu to %zu", i, n, steps[j]);
        n = steps[j];
        for (size_t i = 0; i < n; i++)
            values[i] = (uint32_t)i * 7;
    }
    memory_free(values);
}

static void test_grow(void **state)
{
    (void)state;
    double *values = NULL;
    size_t n = 0, capacity = 0;
    for (int i = 0; i < 100000; i++) {
        GROW(values, n, capacity);
        values[n++] = i;
        assert_true(n <= capacity);
    }
    assert_true(capacity <= 2 * n);
    for (int i = 0; i < 100000; i++)
        assert_true(values[i] == i);
    memory_free(values);
}

static void test_formatted_text(void **state)
{
    (void)state;
    char *empty = memory_text("%s", ""), *text = memory_text("%s/%d.h5", "runs", 12);
    assert_string_equal(empty, "");
    assert_string_equal(text, "runs/12.h5");
    char *big = memory_text("%*d", 100000, 5);
    assert_int_equal(strlen(big), 100000);
    assert_int_equal(big[99999], '5');
    memory_free(empty);
    memory_free(text);
    memory_free(big);
}

static void test_peak_memory(void **state)
{
    (void)state;
    const size_t n_bytes = 96 << 20;
    char *bytes = memory_scratch(n_bytes, 1);
    memset(bytes, 1, n_bytes);
    assert_int_equal(bytes[n_bytes - 1], 1);
    memory_free(bytes);
    assert_in_range(memory_peak(), n_bytes, SIZE_MAX / 2);
}

/* The usable memory is positive and at most the total; a missing file sets no limit. */
static void test_memory_of_the_machine(void **state)
{
    (void)state;
    assert_true(machine_memory() > 1e6);
    assert_true(machine_memory() <= 1024 * machine_number("/proc/meminfo", "MemTotal: %lf"));
    assert_true(isinf(machine_number("/nowhere", "%lf")));
}

/* Under the address sanitizer too, memory.c reports a failed allocation. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void ask_for_too_many(void)
{
    memory_zeroed(SIZE_MAX / 4, 8);
}

static void ask_for_too_much(void)
{
    memory_resize(NULL, SIZE_MAX / 4, 1);
}

static void test_no_memory_left(void **state)
{
    (void)state;
    char words[4096];
    assert_int_equal(forked_end(ask_for_too_many, words, sizeof words), BAD_IO);
    assert_non_null(strstr(words, "out of memory"));
    assert_int_equal(forked_end(ask_for_too_much, words, sizeof words), BAD_IO);
    assert_non_null(strstr(words, "out of memory"));
}

/* Leaves less than a page of addresses, as many small arrays do. HDF5 is in use, and its handler
 * of exit needs memory. */
static void use_all(void)
{
    double n_pages = machine_number("/proc/self/statm", "%lf");
    h5_start();
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0)
        return;
    const rlim_t n_bytes = (rlim_t)n_pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16 << 20);
    const struct rlimit limit = {n_bytes, n_bytes};
    if (setrlimit(RLIMIT_AS, &limit) == 0)
        for (;;)
            memory_zeroed(1, 1);
}

static void test_no_memory_for_a_sentence(void **state)
{
    (void)state;
    char words[4096];
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    assert_int_equal(forked_end(use_all, words, sizeof words), BAD_IO);
    assert_non_null(strstr(words, "cohort: out of memory: 0.0 MB more were requested"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_resize_keeps_content),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_formatted_text),
        cmocka_unit_test(test_peak_memory),
        cmocka_unit_test(test_memory_of_the_machine),
        cmocka_unit_test(test_no_memory_left),
        cmocka_unit_test(test_no_memory_for_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
