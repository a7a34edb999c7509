/* ranks: 1 2 5 */
/* Tables that all ranks write together, against the same table printed by one process. */
#include "base/atomic_file.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/parallel_output.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static struct comm world;
static char home[256];

static int settle(void **state)
{
    (void)state;
    snprintf(home, sizeof home, "%s/listing.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (world.rank == 0 && mkdtemp(home) == NULL)
        return -1;
    comm_broadcast(&world, home, sizeof home, 0);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    comm_barrier(&world);
    return world.rank == 0 && rmdir(home) != 0 ? -1 : 0;
}

/* Row r of n: numbers of very different lengths, so that pieces end anywhere. */
static void print_one(FILE *out, size_t r)
{
    fprintf(out, "%zu,%0*zu\n", r, (int)(r * 7919 % 97) + 1, r * r);
}

static void print_row(FILE *out, size_t r, const void *arg)
{
    print_one(out, *(const size_t *)arg + r);
}

/* Ranks own rows roughly in proportion to rank^2: the first of several own none. */
static size_t cut(size_t n, int rank)
{
    const size_t all = (size_t)(world.size * world.size), r = (size_t)rank;
    return world.size == 1      ? (size_t)rank * n
           : rank == world.size ? n
                                : n * (r > 1 ? r * r : 0) / all;
}

static void expect_table(size_t n)
{
    char *path = memory_text("%s/table.csv", home);
    const size_t first = cut(n, world.rank), end = cut(n, world.rank + 1);
    fail_clear();
    assert_int_equal(
        parallel_output_write(&world, path, "a,b\n", end - first, print_row, &first), OK);
    if (world.rank == 0) {
        char *expected = NULL, *got = NULL;
        size_t n_expected = 0, n_got = 0;
        FILE *out = open_memstream(&expected, &n_expected);
        fputs("a,b\n", out);
        for (size_t r = 0; r < n; r++)
            print_one(out, r);
        fclose(out);
        assert_int_equal(file_read(path, &got, &n_got), OK);
        assert_int_equal(n_got, n_expected);
        assert_memory_equal(got, expected, n_got);
        memory_free(got);
        free(expected);
        unlink(path);
    }
    comm_barrier(&world);
    memory_free(path);
}

static void test_text(void **state)
{
    (void)state;
    expect_table(0);
    expect_table(1);
    expect_table(1000);
    expect_table(300000); /* several pieces of 4 MB */
}

static void test_unwritable_place(void **state)
{
    (void)state;
    char *path = memory_text("%s/none/table.csv", home);
    const size_t first = 0;
    fail_clear();
    assert_int_equal(parallel_output_write(&world, path, "", 10, print_row, &first), BAD_IO);
    assert_non_null(strstr(fail_sentence(), "none/table.csv"));
    fail_clear();
    memory_free(path);
}

static void test_cells(void **state)
{
    (void)state;
    static const char *const cells[][2] = {
        {"plain", "plain"},
        {"", ""},
        {"a b", "a b"},
        {"a,b", "\"a,b\""},
        {"say \"x\"", "\"say \"\"x\"\"\""},
        {"\"", "\"\"\"\""},
        {"a\nb", "\"a\nb\""},
        {" a", "\" a\""},
        {"a ", "\"a \""},
        {"a\rb", "\"a\rb\""},
    };
    for (size_t c = 0; c < COUNT(cells); c++) {
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        csv_quote(out, cells[c][0]);
        fclose(out);
        assert_string_equal(text, cells[c][1]);
        free(text);
    }
}

static void test_arrays(void **state)
{
    (void)state;
    enum { ROWS = 1000, COLUMNS = 3 };
    char *path = memory_text("%s/arrays.h5", home);
    struct atomic_file draft = {.file = -1};
    const size_t first = cut(ROWS, world.rank), n = cut(ROWS, world.rank + 1) - first;
    int64_t *values = NEW(int64_t, n * COLUMNS);
    for (size_t i = 0; i < n * COLUMNS; i++)
        values[i] = (int64_t)(first * COLUMNS + i);
    hid_t file = -1;
    fail_clear();
    enum status status = world.rank == 0 ? parallel_output_h5_begin(path, &draft, &file) : OK;
    assert_int_equal(comm_agree(&world, status), OK);
    assert_int_equal(parallel_output_h5_array(&world, file, "table", H5T_STD_I32LE,
                                              H5T_NATIVE_INT64, n, COLUMNS, values),
                     OK);
    assert_int_equal(parallel_output_h5_array(&world, file, "vector", H5T_STD_I64LE,
                                              H5T_NATIVE_INT64, n, 0, values),
                     OK);
    if (world.rank == 0) {
        struct names names = {0};
        names_add(&names, "one", 3);
        names_add(&names, "two", 3);
        assert_int_equal(names_write(file, "/people", &names), OK);
        names_free(&names);
        assert_int_equal(parallel_output_h5_end(OK, path, &draft, file), OK);
        file = h5_open(path, MPI_COMM_SELF, 1);
        int rank = 0;
        uint64_t shape[4] = {0};
        int64_t back[ROWS * COLUMNS];
        char bytes[9] = "";
        assert_int_equal(h5_shape(file, "table", &rank, shape), OK);
        assert_int_equal(rank, 2);
        assert_int_equal(shape[0], ROWS);
        assert_int_equal(shape[1], COLUMNS);
        assert_int_equal(h5_read(file, "table", H5T_NATIVE_INT64, ROWS * COLUMNS, back), OK);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            assert_int_equal(back[i], i);
        assert_int_equal(h5_shape(file, "vector", &rank, shape), OK);
        assert_int_equal(rank, 1);
        assert_int_equal(shape[0], ROWS);
        assert_int_equal(h5_read(file, "/people/names", H5T_NATIVE_UINT8, 8, bytes), OK);
        assert_memory_equal(bytes, "one\0two", 8);
        H5Fclose(file);

        assert_int_equal(parallel_output_h5_begin(path, &draft, &file), OK);
        fail(BAD_DATA, "something went wrong");
        assert_int_equal(parallel_output_h5_end(BAD_DATA, path, &draft, file), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), "arrays.h5: something went wrong"));
        assert_true(file_exists(path));
        unlink(path);
    }
    fail_clear();
    memory_free(values);
    memory_free(path);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_unwritable_place),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_arrays),
    };
    const int n_failed = cmocka_run_group_tests(tests, settle, leave);
    comm_finish(&world);
    return n_failed;
}
