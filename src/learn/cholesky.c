/* A = L L^T, row by row:
 *
 *     L_ij = (A_ij - sum_{k<j} L_ik L_jk) / L_jj      (j < i)
 *     L_ii = sqrt(A_ii - sum_{k<i} L_ik^2)
 *
 * Almost all the time goes into the sums, which are dot products of contiguous rows. Up to the
 * last multiple of 4, each is computed as two partial sums, over even and odd k. Four rows are
 * combined with two others at a time, so that each load is used several times; all rows of a
 * group are combined with these two before the next two. Products and sums are rounded one by
 * one, in this order, on every machine, which LAPACK does not guarantee. Order 1000: 80 ms,
 * LAPACK 26 ms. */
#include "learn/cholesky.h"
#include "base/fail.h"
#include <math.h>

enum { GROUP = 32 }; /* rows */

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Subtracts the sums over k < n (n even) from rows i .. i + 3 and columns j, j + 1 of A. */
static void reduce(double *matrix, size_t order, size_t i, size_t j, size_t n)
{
    const double *const a = matrix + i * order, *const b = matrix + j * order;
    pair sums[4][2] = {0};
    for (size_t k = 0; k < n; k += 2) {
        const pair b0 = *(const pair *)(b + k), b1 = *(const pair *)(b + order + k);
        _Pragma("GCC unroll 4") for (size_t r = 0; r < 4; r++)
        {
            const pair x = *(const pair *)(a + r * order + k);
            sums[r][0] += x * b0;
            sums[r][1] += x * b1;
        }
    }
    for (size_t r = 0; r < 4; r++)
        for (size_t c = 0; c < 2; c++)
            matrix[(i + r) * order + j + c] -= sums[r][c][0] + sums[r][c][1];
}

/* Computes L in the 4 x 4 block at (i, j), from which the sums over k < j are subtracted
 * already. */
static bool finish(double *matrix, size_t order, size_t i, size_t j)
{
    for (size_t r = i; r < i + 4; r++)
        for (size_t c = j; c < j + 4 && c <= r; c++) {
            double x = matrix[r * order + c];
            for (size_t k = j; k < c; k++)
                x -= matrix[r * order + k] * matrix[c * order + k];
            if (r == c && !(x > 0 && x < INFINITY))
                return false;
            matrix[r * order + c] = r == c ? sqrt(x) : x / matrix[c * order + c];
        }
    return true;
}

bool cholesky_factor(double *matrix, size_t order)
{
    ENSURE(order % 4 == 0);
    for (size_t start = 0; start < order; start += GROUP) {
        const size_t end = size_min(order, start + GROUP);
        for (size_t j = 0; j < end; j += 4)
            for (size_t i = size_max(start, j); i < end; i += 4) {
                reduce(matrix, order, i, j, j);
                reduce(matrix, order, i, j + 2, j);
                if (!finish(matrix, order, i, j))
                    return false;
            }
    }
    return true;
}

void cholesky_solve(const double *factor, size_t order, double *vector)
{
    for (size_t i = 0; i < order; i++) { /* L y = v */
        const double *const row = factor + i * order;
        const size_t whole = i / 4 * 4;
        pair sum = {0};
        for (size_t k = 0; k < whole; k += 2)
            sum += *(const pair *)(row + k) * *(const pair *)(vector + k);
        double x = vector[i] - (sum[0] + sum[1]);
        for (size_t k = whole; k < i; k++)
            x -= row[k] * vector[k];
        vector[i] = x / row[i];
    }
    for (size_t i = order; i-- > 0;) { /* L^T x = y */
        const double *const row = factor + i * order;
        vector[i] /= row[i];
        for (size_t k = 0; k < i; k++)
            vector[k] -= row[k] * vector[i];
    }
}
