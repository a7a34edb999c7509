/* ranks: 1 2 3 5 */
/* Matrices over grids of ranks against plain loops, on every grid the ranks allow. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/scalapack.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct comm world;

enum { N = 2 * GRID_BLOCK + 19 };
static double whole[N][N], lower[N][N];

/* A positive definite matrix, and its Cholesky factor by the textbook method. */
static void make_matrix(void)
{
    const struct rng rng = {.seed = 4, .purpose = RNG_INIT};
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j <= i; j++)
            whole[i][j] = whole[j][i] = 0.3 * rng_normal(&rng, i * N + j) + (i == j ? 12 : 0);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = whole[i][j];
            for (size_t k = 0; k < j; k++)
                sum -= lower[i][k] * lower[j][k];
            lower[i][j] = i == j ? sqrt(sum) : sum / lower[j][j];
        }
}

static void fill(struct scalapack_matrix *matrix)
{
    for (size_t c = 0; c < matrix->n_own_columns; c++)
        for (size_t r = 0; r < matrix->n_own_rows; r++)
            matrix->value[c * matrix->n_own_rows + r] =
                matrix->row_of[r] >= matrix->column_of[c]
                    ? whole[matrix->row_of[r]][matrix->column_of[c]]
                    : 99; /* the upper triangle does not count */
}

static void expect_near(const double *a, const double *b, size_t n, double slack)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= slack))
            fail_msg("number %d: %.15g instead of %.15g", (int)i, a[i], b[i]);
}

static void expect_algebra(struct scalapack_grid *grid)
{
    struct scalapack_matrix matrix;
    scalapack_matrix_create(&matrix, grid, N);
    int64_t n_own = (int64_t)(matrix.n_own_rows * matrix.n_own_columns), most = n_own;
    comm_sum_i64(&world, &n_own, 1);
    comm_max_i64(&world, &most, 1);
    assert_int_equal(n_own, N * N); /* every number is stored once, and distributed */
    if (grid->n_rows * grid->n_columns > 1)
        assert_true(most < N * N);
    fill(&matrix);
    double x[N], product[N], expected[N], diagonal[N];
    for (size_t i = 0; i < N; i++)
        x[i] = sin((double)i);
    for (size_t i = 0; i < N; i++) {
        expected[i] = 0;
        for (size_t j = 0; j < N; j++)
            expected[i] += whole[i][j] * x[j];
    }
    scalapack_multiply(&matrix, x, product);
    expect_near(product, expected, N, 1e-11);
    scalapack_diagonal(&matrix, diagonal);
    for (size_t i = 0; i < N; i++)
        assert_true(diagonal[i] == whole[i][i]);

    double log_determinant = 0, log_expected = 0;
    assert_true(scalapack_factor(&matrix, &log_determinant));
    for (size_t i = 0; i < N; i++)
        log_expected += 2 * log(lower[i][i]);
    assert_true(fabs(log_determinant - log_expected) < 1e-9);
    scalapack_solve(&matrix, product);
    expect_near(product, x, N, 1e-12);
    scalapack_invert(&matrix);
    scalapack_multiply(&matrix, expected, product);
    expect_near(product, x, N, 1e-12);

    fill(&matrix);
    for (size_t c = 0; c < matrix.n_own_columns; c++) /* not positive definite */
        for (size_t r = 0; r < matrix.n_own_rows; r++)
            if (matrix.row_of[r] == N - 3 && matrix.column_of[c] == N - 3)
                matrix.value[c * matrix.n_own_rows + r] = -1;
    assert_false(scalapack_factor(&matrix, &log_determinant));
    scalapack_matrix_destroy(&matrix);
}

static void test_matrix_operations(void **state)
{
    (void)state;
    make_matrix();
    for (int r = 1; r <= world.size; r++)
        for (int c = 1; r * c <= world.size; c++) {
            struct scalapack_grid grid;
            assert_int_equal(scalapack_grid_create(&grid, &world, r, c, N), OK);
            assert_int_equal(grid.row >= 0, world.rank < r * c);
            expect_algebra(&grid);
            scalapack_grid_destroy(&grid);
        }
}

/* The bits of a result depend only on the grid. */
static void test_bits_depend_on_the_grid_alone(void **state)
{
    (void)state;
    make_matrix();
    double results[2][N];
    for (int ranks = 0; ranks < 2; ranks++) { /* all, and at most the first two */
        struct comm team;
        comm_split(&world, ranks == 1 && world.rank >= 2, &team);
        if (ranks == 0 || world.rank < 2) {
            struct scalapack_grid grid;
            struct scalapack_matrix matrix;
            double log_determinant = 0;
            const int n_columns = world.size >= 2 ? 2 : 1;
            assert_int_equal(scalapack_grid_create(&grid, &team, 1, n_columns, N), OK);
            scalapack_matrix_create(&matrix, &grid, N);
            fill(&matrix);
            for (size_t i = 0; i < N; i++)
                results[ranks][i] = cos((double)i);
            assert_true(scalapack_factor(&matrix, &log_determinant));
            scalapack_solve(&matrix, results[ranks]);
            scalapack_matrix_destroy(&matrix);
            scalapack_grid_destroy(&grid);
        }
        comm_leave(&team);
    }
    if (world.rank < 2)
        assert_memory_equal(results[0], results[1], sizeof results[0]);
}

static void test_shapes(void **state)
{
    (void)state;
    int r = 7, c = 7;
    assert_int_equal(scalapack_parse("auto", &r, &c), OK);
    assert_int_equal(r + c, 0);
    assert_int_equal(scalapack_parse("3x14", &r, &c), OK);
    assert_int_equal(r, 3);
    assert_int_equal(c, 14);
    static const char *const bad[] = {"",      "3",    "x",   "3x",   "0x1",
                                      "-1x-1", "2x2 ", "2X2", "1x2x3"};
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_int_equal(scalapack_parse(bad[k], &r, &c), BAD_USER);
        assert_non_null(strstr(fail_sentence(), "expected auto, or rows and columns"));
        fail_clear();
    }
    struct scalapack_grid grid;
    assert_int_equal(scalapack_grid_create(&grid, &world, 2, 3, 100), BAD_USER);
    assert_non_null(strstr(fail_sentence(), "needs 6 ranks"));
    fail_clear();
    scalapack_grid_destroy(&grid);
    assert_int_equal(scalapack_grid_create(&grid, &world, 0, 0, 10), OK);
    assert_int_equal(grid.n_rows * grid.n_columns, 1);
    scalapack_grid_destroy(&grid);
    assert_int_equal(scalapack_grid_create(&grid, &world, 0, 0, 100000), OK);
    assert_int_equal(grid.n_rows * grid.n_columns, world.size);
    scalapack_grid_destroy(&grid);
}

/* ScaLAPACK uses OpenBLAS for its products, and not the slow reference BLAS. */
static void test_blas_is_openblas(void **state)
{
    (void)state;
    const char *library = NULL;
    if (!scalapack_blas_is_fast(&library))
        fail_msg("products come from %s, which is not OpenBLAS", library);
    assert_true(strlen(library) > 0);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix_operations),
        cmocka_unit_test(test_bits_depend_on_the_grid_alone),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_blas_is_openblas),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
