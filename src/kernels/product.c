/* c += a B with B in panels of WIDTH columns. A few rows of a and one panel are taken at a
 * time: their sums stay in registers while the panel is read once. In groups of SLICE rows, so
 * that the rows of a stay in the second-level cache while all panels pass by, and in parts of
 * DEPTH, so that a panel's part stays in the first.
 *
 * Sums are fused (one rounding for product and sum), which is twice as fast as two and, being
 * exact but for that rounding, the same on every CPU; where the CPU has no such instruction the
 * C library computes it. */
#include "product.h"
#include "simd.h"
#include <math.h>

#define AT(array, i) (*(rreal *)((array) + (i)))
#define IN(array, i) (*(const rreal *)((array) + (i)))

#ifdef COHORT_REAL_DOUBLE
#define FUSED fma
#else
#define FUSED fmaf
#endif

/* As many rows as leave registers for a row of the panel. */
#ifdef ISA_avx512
enum { ROWS = 12 / REGISTERS };
#elif defined(ISA_avx2) && !defined(COHORT_REAL_DOUBLE)
enum { ROWS = 6 };
#else
enum { ROWS = 3 };
#endif
enum { SLICE = 10 * ROWS, DEPTH = 256 };

static inline rreal fused(rreal a, rreal b, rreal c)
{
#if defined(ISA_avx512) && defined(COHORT_REAL_DOUBLE)
    return (rreal)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(ISA_avx512)
    return (rreal)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(ISA_avx2) && defined(COHORT_REAL_DOUBLE)
    return (rreal)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(ISA_avx2)
    return (rreal)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (size_t i = 0; i < LANES; i++)
        c[i] = FUSED(a[i], b[i], c[i]);
    return c;
#endif
}

static inline __attribute__((always_inline)) void some_rows(int n, size_t depth, const real *a,
                                                            size_t a_stride, const real *panel,
                                                            real *c, size_t c_stride)
{
    rreal sum[ROWS][REGISTERS];
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int r = 0; r < REGISTERS; r++) sum[i][r] =
        IN(c, (size_t)i * c_stride + (size_t)r * LANES);
    for (size_t d = 0; d < depth; d++) {
        rreal row[REGISTERS];
        UNROLL for (int r = 0; r < REGISTERS; r++) row[r] =
            IN(panel, d * WIDTH + (size_t)r * LANES);
        UNROLL for (int i = 0; i < n; i++)
        {
            const rreal x = simd_all(a[(size_t)i * a_stride + d]);
            UNROLL for (int r = 0; r < REGISTERS; r++) sum[i][r] = fused(x, row[r], sum[i][r]);
        }
    }
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int r = 0; r < REGISTERS; r++)
        AT(c, (size_t)i * c_stride + (size_t)r * LANES) = sum[i][r];
}

/* The last rows, fewer than ROWS: a loop of its own for each number. */
static void last_rows(size_t n, size_t depth, const real *a, size_t a_stride, const real *panel,
                      real *c, size_t c_stride)
{
#define CASE(k)                                                                                \
    case k:                                                                                    \
        some_rows(k < ROWS ? k : ROWS, depth, a, a_stride, panel, c, c_stride);                \
        break
    switch (n) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
    }
#undef CASE
}

static void add(size_t n, const real *a, size_t a_stride, const struct packed *b, real *c,
                size_t c_stride)
{
    for (size_t start = 0; start < n; start += SLICE)
        for (size_t d = 0; d < b->depth; d += DEPTH) {
            const size_t end = size_min(start + SLICE, n),
                         depth = size_min(DEPTH, b->depth - d);
            for (size_t column = 0; column < b->columns; column += WIDTH) {
                const real *panel = b->value + column * b->depth + d * WIDTH;
                size_t i = start;
                for (; i + ROWS <= end; i += ROWS)
                    some_rows(ROWS, depth, a + i * a_stride + d, a_stride, panel,
                              c + i * c_stride + column, c_stride);
                last_rows(end - i, depth, a + i * a_stride + d, a_stride, panel,
                          c + i * c_stride + column, c_stride);
            }
        }
}

extern const struct product_table KERNEL(product);
const struct product_table KERNEL(product) = {.add = add};
