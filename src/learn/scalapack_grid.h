/* layer 1 (instruments): a dense symmetric matrix in pieces on many ranks, factored by
 * ScaLAPACK. */
#ifndef COHORT_GRID_H
#define COHORT_GRID_H

#include "base/base.h"
#include "base/comm.h"

/* Some of the ranks as a rectangle of n_rows x n_columns; the others only wait for results. */
struct grid {
    const struct comm *comm;
    int n_rows, n_columns;
    int row, column;  /* of this rank; -1: outside */
    int context;      /* BLACS's handle */
    struct comm team; /* the ranks inside, or those outside */
};

/* "auto" or "RxC" as numbers; auto gives 0 x 0. Anything else is the user's mistake. */
CHECKED enum status grid_parse(const char *text, int *n_rows, int *n_columns);

/* Collective. 0 x 0: one rank for a matrix of small order, else all ranks, as square as they
 * can stand. More than there are ranks is the user's mistake, and so are
 * ranks with different kernels of the BLAS. Release with grid_destroy. */
CHECKED enum status grid_create(struct grid *grid, const struct comm *comm, int n_rows,
                                int n_columns, size_t order);
void grid_destroy(struct grid *grid);

/* A symmetric matrix of order n, of which the lower triangle counts. Squares of GRID_BLOCK rows
 * are dealt out to the grid in both directions in turn; no rank ever holds it all unless the
 * grid is 1 x 1. While it is summed up its numbers are integers, in the same memory. */
enum { GRID_BLOCK = 64 };
#define GRID_ELSEWHERE UINT32_MAX
struct grid_matrix {
    const struct grid *grid;
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
void grid_matrix_create(struct grid_matrix *matrix, const struct grid *grid, size_t n);
void grid_matrix_destroy(struct grid_matrix *matrix);
void grid_matrix_clear(struct grid_matrix *matrix);

/* All collective over the grid's comm; vectors are whole and the same on every rank.
 * grid_factor replaces a positive definite matrix by its Cholesky factor, `log_determinant` is
 * the matrix's; false: it is not positive definite. grid_solve needs the factor; grid_invert
 * replaces the factor by the inverse of the matrix; grid_multiply and grid_diagonal take any
 * matrix. */
CHECKED bool grid_factor(struct grid_matrix *matrix, double *log_determinant);
void grid_solve(const struct grid_matrix *factor, double *vector);
void grid_invert(struct grid_matrix *factor);
void grid_multiply(const struct grid_matrix *matrix, const double *vector, double *product);
void grid_diagonal(const struct grid_matrix *matrix, double *diagonal);

/* The file of the library that serves ScaLAPACK's matrix products, and whether that is
 * OpenBLAS. */
bool grid_blas_is_fast(const char **library);

#endif
