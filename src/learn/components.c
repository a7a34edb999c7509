/* Principal components. With the rows centred to X (n x m), the components are the eigenvectors
 * of the smaller of two matrices that have the same eigenvalues:
 *
 *     n > m:   X^T X v = lambda v     score = X v
 *     n <= m:  X X^T u = lambda u     score = sqrt(lambda) u
 *
 *     share of the variance = lambda / trace
 *
 * The eigenvectors come from cyclic Jacobi rotations. Each rotation makes one number beside the
 * diagonal zero:
 *
 *     theta = (a_qq - a_pp) / (2 a_pq)
 *     t = sign(theta) / (|theta| + sqrt(theta^2 + 1)),  c = 1 / sqrt(t^2 + 1),  s = t c
 *
 * The sum of squares beside the diagonal falls with every sweep, in the end quadratically. A
 * matrix of 300 rows needs about eight sweeps. All of it is plain arithmetic in one order, so the
 * bits are the same everywhere. Eigenvectors have no sign of their own: a component points to
 * where its largest score is positive, the first one of equals. */
#include "learn/components.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { MOST_SWEEPS = 60 };

static void centre(double *x, size_t n, size_t m)
{
    for (size_t j = 0; j < m; j++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += x[i * m + j];
        for (size_t i = 0; i < n; i++)
            x[i * m + j] -= sum / (double)n;
    }
}

/* X^T X, or X X^T if `by_row`. */
static void multiply(const double *x, size_t n, size_t m, bool by_row, double *a)
{
    const size_t size = by_row ? n : m, inner = by_row ? m : n;
    const size_t step = by_row ? m : 1, next = by_row ? 1 : m;
    for (size_t p = 0; p < size; p++)
        for (size_t q = p; q < size; q++) {
            double sum = 0;
            for (size_t i = 0; i < inner; i++)
                sum += x[p * step + i * next] * x[q * step + i * next];
            a[p * size + q] = a[q * size + p] = sum;
        }
}

static void rotate(double *a, double *vectors, size_t size, size_t p, size_t q)
{
    const double theta = (a[q * size + q] - a[p * size + p]) / (2 * a[p * size + q]);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t i = 0; i < size; i++) {
        const double x = a[i * size + p], y = a[i * size + q];
        a[i * size + p] = c * x - s * y;
        a[i * size + q] = s * x + c * y;
    }
    for (size_t i = 0; i < size; i++) {
        const double x = a[p * size + i], y = a[q * size + i];
        a[p * size + i] = c * x - s * y;
        a[q * size + i] = s * x + c * y;
    }
    a[p * size + q] = a[q * size + p] = 0;
    for (size_t i = 0; i < size; i++) { /* rows of `vectors` are the eigenvectors */
        const double x = vectors[p * size + i], y = vectors[q * size + i];
        vectors[p * size + i] = c * x - s * y;
        vectors[q * size + i] = s * x + c * y;
    }
}

/* Leaves the eigenvalues on the diagonal of `a`. */
static void diagonalize(double *a, double *vectors, size_t size)
{
    double trace = 0;
    memset(vectors, 0, size * size * sizeof *vectors);
    for (size_t p = 0; p < size; p++) {
        vectors[p * size + p] = 1;
        trace += a[p * size + p];
    }
    bool moved = true;
    for (int sweep = 0; sweep < MOST_SWEEPS && moved; sweep++) {
        moved = false;
        for (size_t p = 0; p < size; p++)
            for (size_t q = p + 1; q < size; q++)
                if (fabs(a[p * size + q]) > 1e-14 * trace) {
                    rotate(a, vectors, size, p, q);
                    moved = true;
                }
    }
}

/* The largest eigenvalue that is not used yet; the first one of equals. */
static size_t next_largest(const double *a, bool *used, size_t size)
{
    size_t best = size;
    for (size_t p = 0; p < size; p++)
        if (!used[p] && (best == size || a[p * size + p] > a[best * size + best]))
            best = p;
    if (best < size)
        used[best] = true;
    return best;
}

static void orient(double *score, size_t n, size_t k)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(score[i * k]) > fabs(most) * (1 + 1e-9))
            most = score[i * k];
    for (size_t i = 0; i < n && most < 0; i++)
        score[i * k] = -score[i * k];
}

double components_take(const double *rows, size_t n, size_t m, size_t k, double *score,
                       double *share)
{
    const bool by_row = n <= m;
    const size_t size = by_row ? n : m;
    double *x = NEW_SCRATCH(double, n *m), *a = NEW_SCRATCH(double, size *size);
    double *vectors = NEW_SCRATCH(double, size *size), trace = 0;
    bool *used = NEW(bool, size);
    memcpy(x, rows, n * m * sizeof *x);
    centre(x, n, m);
    multiply(x, n, m, by_row, a);
    for (size_t p = 0; p < size; p++)
        trace += a[p * size + p];
    diagonalize(a, vectors, size);
    memset(score, 0, n * k * sizeof *score);
    for (size_t c = 0; c < k; c++) {
        const size_t p = next_largest(a, used, size);
        const double value = p < size ? fmax(a[p * size + p], 0) : 0;
        share[c] = trace > 0 ? value / trace : 0;
        for (size_t i = 0; i < n && value > 0; i++) {
            if (by_row)
                score[i * k + c] = sqrt(value) * vectors[p * size + i];
            for (size_t j = 0; j < m && !by_row; j++)
                score[i * k + c] += x[i * m + j] * vectors[p * size + j];
        }
        orient(score + c, n, k);
    }
    memory_free(x);
    memory_free(a);
    memory_free(vectors);
    memory_free(used);
    return n > 0 ? trace / (double)n : 0;
}
