/* A dense symmetric matrix in pieces on many ranks, factored by ScaLAPACK. */
#ifndef COHORT_SCALAPACK_H
#define COHORT_SCALAPACK_H

#include "base/base.h"
#include "base/comm.h"

/* Some of the ranks as a rectangle of n_rows x n_columns; the others only wait for results. */
struct scalapack_grid {
    const struct comm *comm;
    int n_rows, n_columns;
    int row, column;  /* of this rank; -1: outside */
    int context;      /* BLACS's handle */
    struct comm team; /* the ranks inside, or those outside */
};

/* "auto" or "RxC" as numbers; auto gives 0 x 0. Anything else is the user's mistake. */
CHECKED enum status scalapack_parse(const char *text, int *n_rows, int *n_columns);

/* Collective. 0 x 0: one rank for a matrix of small order, else all ranks, as square as they
 * can stand. More than there are ranks is the user's mistake, and so are
 * ranks with different kernels of the BLAS. Release with scalapack_grid_destroy. */
CHECKED enum status scalapack_grid_create(struct scalapack_grid *grid, const struct comm *comm,
                                          int n_rows, int n_columns, size_t order);
void scalapack_grid_destroy(struct scalapack_grid *grid);

/* A symmetric matrix of order n, of which the lower triangle counts. Squares of GRID_BLOCK rows
 * are dealt out to the grid in both directions in turn; no rank ever holds it all unless the
 * grid is 1 x 1. While it is summed up its numbers are integers, in the same memory. */
enum { GRID_BLOCK = 64 };
#define GRID_ELSEWHERE UINT32_MAX
struct scalapack_matrix {
    const struct scalapack_grid *grid;
    size_t n;
    size_t n_own_rows, n_own_columns; /* of this rank; columns are contiguous */
    uint32_t *own_row, *own_column;   /* n: where a global index is here, or GRID_ELSEWHERE */
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

/* All collective over the grid's comm; vectors are whole and the same on every rank.
 * scalapack_factor replaces a positive definite matrix by its Cholesky factor,
 * `log_determinant` is the matrix's; false: it is not positive definite. scalapack_solve needs
 * the factor; scalapack_invert replaces the factor by the inverse of the matrix;
 * scalapack_multiply and scalapack_diagonal take any matrix. */
CHECKED bool scalapack_factor(struct scalapack_matrix *matrix, double *log_determinant);
void scalapack_solve(const struct scalapack_matrix *factor, double *vector);
void scalapack_invert(struct scalapack_matrix *factor);
void scalapack_multiply(const struct scalapack_matrix *matrix, const double *vector,
                        double *product);
void scalapack_diagonal(const struct scalapack_matrix *matrix, double *diagonal);

/* The file of the library that serves ScaLAPACK's matrix products, and whether that is
 * OpenBLAS. */
bool scalapack_blas_is_fast(const char **library);

#endif
