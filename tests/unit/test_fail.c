/* Failures: messages, which of several is kept, and how the program ends. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5_guard.h"
#include "forked.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static int forget(void **state)
{
    (void)state;
    fail_clear();
    return 0;
}

static void test_message(void **state)
{
    (void)state;
    assert_string_equal(fail_sentence(), "");
    assert_int_equal(fail(BAD_USER, "%s:%d: expected %.1f", "a.ini", 7, 0.5), BAD_USER);
    assert_string_equal(fail_sentence(), "a.ini:7: expected 0.5");
    fail_clear();
    assert_string_equal(fail_sentence(), "");
}

static void test_first_message_is_kept(void **state)
{
    (void)state;
    assert_int_equal(fail(BAD_DATA, "the cause"), BAD_DATA);
    assert_int_equal(fail(BAD_IO, "a consequence"), BAD_IO);
    assert_string_equal(fail_sentence(), "the cause");
    fail_clear();
    assert_int_equal(fail(BAD_IO, "another day"), BAD_IO);
    assert_string_equal(fail_sentence(), "another day");
}

static void test_context(void **state)
{
    (void)state;
    assert_int_equal(fail(BAD_DATA, "line %d", 3), BAD_DATA);
    assert_int_equal(fail_context(BAD_DATA, "while reading %s", "b.csv"), BAD_DATA);
    assert_string_equal(fail_sentence(), "while reading b.csv: line 3");
}

static void test_percent_signs_are_not_formats(void **state)
{
    (void)state;
    assert_int_equal(fail(BAD_USER, "%s", "100%s %n %d"), BAD_USER);
    assert_int_equal(fail_context(BAD_USER, "%s", "50%"), BAD_USER);
    assert_string_equal(fail_sentence(), "50%: 100%s %n %d");
}

static void test_long_messages_are_truncated(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    assert_int_equal(fail(BAD_USER, "%s", text), BAD_USER);
    const size_t n = strlen(fail_sentence());
    assert_in_range(n, 500, LONG - 1);
    assert_int_equal(fail_context(BAD_USER, "here"), BAD_USER);
    assert_memory_equal(fail_sentence(), "here: xxx", 9);
    assert_in_range(strlen(fail_sentence()), n - 10, n);
    assert_int_equal(fail_context(BAD_USER, "%s", text), BAD_USER);
    assert_in_range(strlen(fail_sentence()), 500, n);
    free(text);
}

static enum status step(enum status status, int *n_steps)
{
    ++*n_steps;
    return status;
}

static enum status three_steps(enum status second, int *n_steps)
{
    TRY(step(OK, n_steps));
    TRY(step(second, n_steps));
    return step(OK, n_steps);
}

static void test_try_passes_on(void **state)
{
    (void)state;
    int n_steps = 0;
    assert_int_equal(three_steps(OK, &n_steps), OK);
    assert_int_equal(n_steps, 3);
    n_steps = 0;
    assert_int_equal(three_steps(DIVERGED, &n_steps), DIVERGED);
    assert_int_equal(n_steps, 2);
}

/* Nothing is freed on the way out of fail_abort, in particular not by MPI. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static void end_without_mpi(void)
{
    fail_abort(BAD_IO, "the disk %s", "is full");
}

static void break_a_promise(void)
{
    ENSURE(1 + 1 == 2);
    ENSURE(1 + 1 == 3);
}

static void keep_a_promise(void)
{
    ENSURE(1 + 1 == 2);
}

static void end_with_mpi(void)
{
    struct comm world;
    int argc = 0;
    char **argv = NULL;
    comm_start(&world, &argc, &argv);
    fail_abort(BAD_DATA, "bad rows");
}

static void end_after_mpi(void)
{
    struct comm world;
    int argc = 0;
    char **argv = NULL;
    comm_start(&world, &argc, &argv);
    comm_finish(&world);
    fail_abort(DIVERGED, "too late");
}

static void test_abort(void **state)
{
    (void)state;
    char words[4096];
    assert_int_equal(forked_end(end_without_mpi, words, sizeof words), BAD_IO);
    assert_string_equal(words, "cohort: the disk is full\n");
    assert_int_equal(forked_end(break_a_promise, words, sizeof words), OUR_BUG);
    assert_non_null(strstr(words, "test_fail.c:"));
    assert_non_null(strstr(words, "1 + 1 == 3"));
    assert_int_equal(forked_end(keep_a_promise, words, sizeof words), 0);
    assert_string_equal(words, "");
}

static void test_abort_in_mpi(void **state)
{
    (void)state;
    char words[4096];
    assert_int_equal(forked_end(end_with_mpi, words, sizeof words), BAD_DATA);
    assert_non_null(strstr(words, "cohort: bad rows\n"));
    assert_int_equal(forked_end(end_after_mpi, words, sizeof words), DIVERGED);
    assert_non_null(strstr(words, "cohort: too late\n"));
}

static void fault_in_hdf5(void)
{
    h5_guard_start();
    h5_guard_name("a\x1b[1m.h5");
    H5_GUARD;
    raise(SIGSEGV);
}

static void fault_of_ours(void)
{
    h5_guard_start();
    {
        H5_GUARD;
    }
    raise(SIGSEGV);
    raise(SIGSEGV);
}

/* A fault inside HDF5 becomes an error message about the file; any other ends the program as
 * usual. */
static void test_guard(void **state)
{
    (void)state;
    char words[1024];
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    assert_int_equal(forked_end(fault_in_hdf5, words, sizeof words), BAD_DATA);
    assert_non_null(strstr(words, "cohort: a\\u001b[1m.h5: the HDF5 library crashed on this"));
    assert_int_equal(forked_end(fault_of_ours, words, sizeof words), -1);
    assert_string_equal(words, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_message, forget),
        cmocka_unit_test_setup(test_first_message_is_kept, forget),
        cmocka_unit_test_setup(test_context, forget),
        cmocka_unit_test_setup(test_percent_signs_are_not_formats, forget),
        cmocka_unit_test_setup(test_long_messages_are_truncated, forget),
        cmocka_unit_test_setup(test_try_passes_on, forget),
        cmocka_unit_test_setup(test_abort, forget),
        cmocka_unit_test_setup(test_abort_in_mpi, forget),
        cmocka_unit_test_setup(test_guard, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
