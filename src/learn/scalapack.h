/* Dense symmetric matrices distributed over ranks, factored by ScaLAPACK. */
#ifndef COHORT_SCALAPACK_H
#define COHORT_SCALAPACK_H

#include "base/base.h"
#include "base/comm.h"

/* A process grid: n_rows x n_columns of the ranks. The others only wait for results. */
struct scalapack_grid {
    const struct comm *comm;
    int n_rows, n_columns;
    int row, column;  /* of this rank; -1: outside */
    int context;      /* BLACS's handle */
    struct comm team; /* the ranks inside, or those outside */
};

/* Parses "auto", which gives 0 x 0, or "RxC". Anything else is a user error. */
CHECKED enum status scalapack_parse(const char *text, int *n_rows, int *n_columns);

/* Replaces 0 x 0: by one rank for a matrix of small order, otherwise by all ranks, as square as
 * possible. */
void scalapack_choose(size_t order, int n_ranks, int *n_rows, int *n_columns);

/* Collective. Chooses the grid if it is 0 x 0. A grid larger than the number of ranks is a user
 * error, and so are different BLAS kernels on its ranks. Release with scalapack_grid_destroy. */
CHECKED enum status scalapack_grid_create(struct scalapack_grid *grid, const struct comm *comm,
                                          int n_rows, int n_columns, size_t order);
void scalapack_grid_destroy(struct scalapack_grid *grid);

/* A symmetric matrix of order n; only its lower triangle is used. Blocks of GRID_BLOCK rows and
 * columns are distributed cyclically over the grid; no rank holds the whole matrix unless the
 * grid is 1 x 1. While the matrix is being summed, its elements are integers in the same
 * memory. */
enum { GRID_BLOCK = 64 };
#define GRID_ELSEWHERE UINT32_MAX
struct scalapack_matrix {
    const struct scalapack_grid *grid;
    size_t n;
    size_t n_own_rows, n_own_columns; /* of this rank; columns are contiguous */
    uint32_t *own_row, *own_column;   /* n: local from global index, or GRID_ELSEWHERE */
    uint32_t *row_of, *column_of;     /* the inverse */
    int descriptor[9];
    union {
        double *value;
        int64_t *fixed;
    };
};
void scalapack_matrix_create(struct scalapack_matrix *matrix, const struct scalapack_grid *grid,
                             size_t n);
void scalapack_matrix_destroy(struct scalapack_matrix *matrix);
void scalapack_matrix_clear(struct scalapack_matrix *matrix);

/* All collective over the grid's comm; every rank passes and gets complete vectors.
 *
 *     scalapack_factor      replaces a positive definite matrix by its Cholesky factor and
 *                           returns the matrix's log-determinant; false: not positive definite
 *     scalapack_solve       replaces a vector v by the inverse of the matrix times v
 *     scalapack_invert      replaces the factor by the inverse of the matrix
 *     scalapack_multiply    multiplies any symmetric matrix by a vector
 *     scalapack_diagonal    reads the diagonal of any matrix */
CHECKED bool scalapack_factor(struct scalapack_matrix *matrix, double *log_determinant);
void scalapack_solve(const struct scalapack_matrix *factor, double *vector);
void scalapack_invert(struct scalapack_matrix *factor);
void scalapack_multiply(const struct scalapack_matrix *matrix, const double *vector,
                        double *product);
void scalapack_diagonal(const struct scalapack_matrix *matrix, double *diagonal);

/* Whether ScaLAPACK's matrix products come from OpenBLAS, and the file of that library. */
bool scalapack_blas_is_fast(const char **library);

#endif
