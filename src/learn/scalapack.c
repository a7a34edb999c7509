/* ScaLAPACK on an R x C grid of ranks. Block (I, J), of GRID_BLOCK rows and columns, is stored
 * on the rank in row I mod R and column J mod C of the grid, so that every rank has work until
 * the end of a factorization. On a 2 x 3 grid of ranks 0 to 5:
 *
 *     0 1 2 0 1 2 ...
 *     3 4 5 3 4 5
 *     0 1 2 0 1 2
 *     ...
 *
 * A grid of one rank calls LAPACK directly, which is faster (order 6000: 1.0 s against 1.6 s).
 *
 * The last bits of a factor depend on the shape of the grid and on the BLAS kernels, and on
 * nothing else: ranks outside the grid only wait, and ranks inside must have the same kernels.
 * Vectors return to all ranks as sums of bit patterns of which all but one are zero, which is
 * exact. */
#define _GNU_SOURCE
#include "learn/scalapack.h"
#include "base/fail.h"
#include "base/machine.h"
#include "base/memory.h"
#include <cblas.h>
#include <dlfcn.h>
#include <sleef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int *context, const char *order, int n_rows, int n_columns);
void Cblacs_gridexit(int context);
void pdpotrf_(const char *part, const int *n, double *a, const int *ia, const int *ja,
              const int *descriptor, int *info);
void pdpotri_(const char *part, const int *n, double *a, const int *ia, const int *ja,
              const int *descriptor, int *info);
void pdpotrs_(const char *part, const int *n, const int *n_right, const double *a,
              const int *ia, const int *ja, const int *descriptor, double *b, const int *ib,
              const int *jb, const int *descriptor_b, int *info);
void pdsymv_(const char *part, const int *n, const double *alpha, const double *a,
             const int *ia, const int *ja, const int *descriptor, const double *x,
             const int *ix, const int *jx, const int *descriptor_x, const int *inc_x,
             const double *beta, double *y, const int *iy, const int *jy,
             const int *descriptor_y, const int *inc_y);
void dpotrf_(const char *part, const int *n, double *a, const int *stride, int *info);
void dpotri_(const char *part, const int *n, double *a, const int *stride, int *info);
void dpotrs_(const char *part, const int *n, const int *n_right, const double *a,
             const int *stride, double *b, const int *stride_b, int *info);
void dgemm_(void);

enum { SMALL_ORDER = 2000 }; /* below it, more than one rank is no faster */
static const int one = 1;

enum status scalapack_parse(const char *text, int *n_rows, int *n_columns)
{
    int length = 0;
    *n_rows = *n_columns = 0;
    if (strcmp(text, "auto") == 0)
        return OK;
    if (sscanf(text, "%6dx%6d%n", n_rows, n_columns, &length) == 2 && text[length] == '\0' &&
        *n_rows > 0 && *n_columns > 0)
        return OK;
    return fail(BAD_USER,
                "model.grid = %s is not a grid of ranks: expected auto, or rows and columns as "
                "in 2x3",
                text);
}

void scalapack_choose(size_t order, int n_ranks, int *n_rows, int *n_columns)
{
    if (*n_rows > 0)
        return;
    *n_rows = *n_columns = 1;
    for (int r = 1; order >= SMALL_ORDER && r * r <= n_ranks; r++)
        if (n_ranks % r == 0) {
            *n_rows = r;
            *n_columns = n_ranks / r;
        }
}

/* Collective: fails unless all ranks of the grid have rank 0's BLAS kernel. */
static enum status agree_on_kernel(const struct comm *comm, int n_rows, int n_columns)
{
    char first[64] = "";
    snprintf(first, sizeof first, "%s", machine_blas_kernel());
    comm_broadcast(comm, first, sizeof first, 0);
    enum status status = OK;
    if (comm->rank < n_rows * n_columns && strcmp(first, machine_blas_kernel()) != 0)
        status = fail(BAD_USER,
                      "rank 0 has OpenBLAS kernels for %s, rank %d for %s: a matrix on both "
                      "would not be reproducible; set OPENBLAS_CORETYPE=%s on all ranks, or "
                      "model.grid=1x1",
                      first, comm->rank, machine_blas_kernel(), first);
    return comm_agree(comm, status);
}

static bool is_alone(const struct scalapack_grid *grid)
{
    return grid->n_rows * grid->n_columns == 1;
}

enum status scalapack_grid_create(struct scalapack_grid *grid, const struct comm *comm,
                                  int n_rows, int n_columns, size_t order)
{
    *grid = (struct scalapack_grid){.comm = comm, .row = -1, .column = -1};
    scalapack_choose(order, comm->size, &n_rows, &n_columns);
    if ((int64_t)n_rows * n_columns > comm->size)
        return fail(BAD_USER,
                    "model.grid = %dx%d needs %lld ranks, but there %s %d: use a smaller grid, "
                    "model.grid=auto, or more ranks",
                    n_rows, n_columns, (long long)n_rows * n_columns,
                    comm->size == 1 ? "is" : "are", comm->size);
    TRY(agree_on_kernel(comm, n_rows, n_columns));
    grid->n_rows = n_rows;
    grid->n_columns = n_columns;
    const bool inside = comm->rank < n_rows * n_columns;
    comm_split(comm, inside, &grid->team);
    if (!inside)
        return OK;
    machine_prepare_blas();
    grid->row = comm->rank / n_columns;
    grid->column = comm->rank % n_columns;
    if (is_alone(grid)) /* MPI may not be running */
        return OK;
    grid->context = Csys2blacs_handle(grid->team.mpi);
    Cblacs_gridinit(&grid->context, "Row", n_rows, n_columns);
    return OK;
}

void scalapack_grid_destroy(struct scalapack_grid *grid)
{
    if (grid->comm == NULL)
        return;
    if (grid->n_rows > 0) {
        if (grid->row >= 0 && !is_alone(grid))
            Cblacs_gridexit(grid->context);
        comm_leave(&grid->team);
    }
    *grid = (struct scalapack_grid){0};
}

/* The indices that belong to worker w of n_workers: local from global ones, and the inverse. */
static size_t deal(size_t n, int w, int n_workers, uint32_t *own, uint32_t *global)
{
    size_t n_own = 0;
    for (size_t i = 0; i < n; i++) {
        const bool mine = w >= 0 && (int)(i / GRID_BLOCK % (size_t)n_workers) == w;
        own[i] = mine ? (uint32_t)n_own : GRID_ELSEWHERE;
        if (mine)
            global[n_own++] = (uint32_t)i;
    }
    return n_own;
}

static void describe(const struct scalapack_grid *grid, size_t n_rows, size_t n_columns,
                     size_t stride, int descriptor[9])
{
    const int dense = 1;
    const int filled[9] = {dense,      grid->context, (int)n_rows, (int)n_columns,
                           GRID_BLOCK, GRID_BLOCK,    0,           0,
                           (int)stride};
    memcpy(descriptor, filled, sizeof filled);
}

void scalapack_matrix_create(struct scalapack_matrix *matrix, const struct scalapack_grid *grid,
                             size_t n)
{
    ENSURE(n < INT32_MAX);
    *matrix = (struct scalapack_matrix){.grid = grid, .n = n};
    matrix->own_row = NEW(uint32_t, 4 * n);
    matrix->own_column = matrix->own_row + n;
    matrix->row_of = matrix->own_row + 2 * n;
    matrix->column_of = matrix->own_row + 3 * n;
    matrix->n_own_rows = deal(n, grid->row, grid->n_rows, matrix->own_row, matrix->row_of);
    matrix->n_own_columns =
        deal(n, grid->column, grid->n_columns, matrix->own_column, matrix->column_of);
    describe(grid, n, n, size_max(1, matrix->n_own_rows), matrix->descriptor);
    matrix->value = NEW(double, matrix->n_own_rows * matrix->n_own_columns);
}

void scalapack_matrix_destroy(struct scalapack_matrix *matrix)
{
    memory_free(matrix->own_row);
    memory_free(matrix->value);
    *matrix = (struct scalapack_matrix){0};
}

void scalapack_matrix_clear(struct scalapack_matrix *matrix)
{
    memset(matrix->value, 0,
           matrix->n_own_rows * matrix->n_own_columns * sizeof *matrix->value);
}

/* Collective: gives all ranks a vector of which each element is on one rank and 0 elsewhere. */
static void gather(const struct scalapack_grid *grid, double *vector, size_t n)
{
    int64_t *bits = NEW_SCRATCH(int64_t, n);
    memcpy(bits, vector, n * sizeof *bits);
    comm_sum_i64(grid->comm, bits, n);
    memcpy(vector, bits, n * sizeof *bits);
    memory_free(bits);
}

bool scalapack_factor(struct scalapack_matrix *matrix, double *log_determinant)
{
    const struct scalapack_grid *grid = matrix->grid;
    const int n = (int)matrix->n;
    int info = 0;
    if (grid->row >= 0 && is_alone(grid))
        dpotrf_("L", &n, matrix->value, &matrix->descriptor[8], &info);
    else if (grid->row >= 0)
        pdpotrf_("L", &n, matrix->value, &one, &one, matrix->descriptor, &info);
    int64_t failed = info;
    comm_max_i64(grid->comm, &failed, 1);
    if (failed != 0)
        return false;
    double *diagonal = NEW(double, matrix->n);
    scalapack_diagonal(matrix, diagonal);
    *log_determinant = 0;
    for (size_t i = 0; i < matrix->n; i++)
        *log_determinant += 2 * Sleef_cinz_logd1_u10purec(diagonal[i]);
    memory_free(diagonal);
    return true;
}

/* This rank's part of a vector, which is stored in column 0 of the grid; and the reverse. */
static double *take_part(const struct scalapack_matrix *matrix, const double *vector)
{
    const bool here = matrix->grid->column == 0;
    double *part = NEW(double, matrix->n_own_rows);
    for (size_t r = 0; here && r < matrix->n_own_rows; r++)
        part[r] = vector[matrix->row_of[r]];
    return part;
}

static void give_part(const struct scalapack_matrix *matrix, const double *part, double *vector)
{
    const bool here = matrix->grid->column == 0;
    memset(vector, 0, matrix->n * sizeof *vector);
    for (size_t r = 0; here && r < matrix->n_own_rows; r++)
        vector[matrix->row_of[r]] = part[r];
    gather(matrix->grid, vector, matrix->n);
}

void scalapack_solve(const struct scalapack_matrix *factor, double *vector)
{
    const struct scalapack_grid *grid = factor->grid;
    const int n = (int)factor->n;
    double *part = take_part(factor, vector);
    int info = 0, descriptor[9];
    describe(grid, factor->n, 1, size_max(1, factor->n_own_rows), descriptor);
    if (grid->row >= 0 && is_alone(grid))
        dpotrs_("L", &n, &one, factor->value, &factor->descriptor[8], part, &descriptor[8],
                &info);
    else if (grid->row >= 0)
        pdpotrs_("L", &n, &one, factor->value, &one, &one, factor->descriptor, part, &one, &one,
                 descriptor, &info);
    ENSURE(info == 0);
    give_part(factor, part, vector);
    memory_free(part);
}

void scalapack_invert(struct scalapack_matrix *factor)
{
    const struct scalapack_grid *grid = factor->grid;
    const int n = (int)factor->n;
    int info = 0;
    if (grid->row >= 0 && is_alone(grid))
        dpotri_("L", &n, factor->value, &factor->descriptor[8], &info);
    else if (grid->row >= 0)
        pdpotri_("L", &n, factor->value, &one, &one, factor->descriptor, &info);
    ENSURE(info == 0);
}

void scalapack_multiply(const struct scalapack_matrix *matrix, const double *vector,
                        double *product)
{
    const struct scalapack_grid *grid = matrix->grid;
    const int n = (int)matrix->n;
    double *x = take_part(matrix, vector), *y = NEW(double, matrix->n_own_rows);
    const double plain = 1, nothing = 0;
    int descriptor[9];
    describe(grid, matrix->n, 1, size_max(1, matrix->n_own_rows), descriptor);
    if (grid->row >= 0 && is_alone(grid))
        cblas_dsymv(CblasColMajor, CblasLower, n, 1, matrix->value, matrix->descriptor[8], x, 1,
                    0, y, 1);
    else if (grid->row >= 0)
        pdsymv_("L", &n, &plain, matrix->value, &one, &one, matrix->descriptor, x, &one, &one,
                descriptor, &one, &nothing, y, &one, &one, descriptor, &one);
    give_part(matrix, y, product);
    memory_free(x);
    memory_free(y);
}

void scalapack_diagonal(const struct scalapack_matrix *matrix, double *diagonal)
{
    memset(diagonal, 0, matrix->n * sizeof *diagonal);
    for (size_t c = 0; c < matrix->n_own_columns; c++) {
        const uint32_t i = matrix->column_of[c], r = matrix->own_row[i];
        if (r != GRID_ELSEWHERE)
            diagonal[i] = matrix->value[c * matrix->n_own_rows + r];
    }
    gather(matrix->grid, diagonal, matrix->n);
}

bool scalapack_blas_is_fast(const char **library)
{
    Dl_info products = {0}, fast = {0};
    void (*const product)(void) = dgemm_;
    char *(*const name)(void) = openblas_get_corename;
    void *address[2] = {0};
    memcpy(&address[0], &product, sizeof product);
    memcpy(&address[1], &name, sizeof name);
    const bool found = dladdr(address[0], &products) != 0 && dladdr(address[1], &fast) != 0;
    *library = found ? products.dli_fname : "";
    return found && products.dli_fbase == fast.dli_fbase;
}
