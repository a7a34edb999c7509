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

/* n rows of a with `panels` panels, which lie panel_size apart; n * panels <= ROWS. */
static inline __attribute__((always_inline)) void
some_rows(int n, int panels, size_t depth, const real *a, size_t a_stride, const real *panel,
          size_t panel_size, real *c, size_t c_stride)
{
    rreal sum[ROWS][REGISTERS], row[REGISTERS];
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int k = 0; k < panels; k++)
        UNROLL for (int r = 0; r < REGISTERS; r++) sum[i * panels + k][r] =
            IN(c, (size_t)i * c_stride + (size_t)k * WIDTH + (size_t)r * LANES);
    for (size_t d = 0; d < depth; d++)
        UNROLL for (int k = 0; k < panels; k++)
        {
            UNROLL for (int r = 0; r < REGISTERS; r++) row[r] =
                IN(panel, (size_t)k * panel_size + d * WIDTH + (size_t)r * LANES);
            UNROLL for (int i = 0; i < n; i++)
            {
                const rreal x = simd_all(a[(size_t)i * a_stride + d]);
                UNROLL for (int r = 0; r < REGISTERS; r++) sum[i * panels + k][r] =
                    fused(x, row[r], sum[i * panels + k][r]);
            }
        }
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int k = 0; k < panels; k++)
        UNROLL for (int r = 0; r < REGISTERS; r++)
            AT(c, (size_t)i * c_stride + (size_t)k * WIDTH + (size_t)r * LANES) =
                sum[i * panels + k][r];
}

/* The last rows, fewer than ROWS: a loop of its own for each number. Where they are few, their
 * sums alone would not keep the units busy, so several panels are taken together; returns how
 * many of the `n_panels` that are left. */
static size_t last_rows(size_t n, size_t n_panels, size_t depth, const real *a, size_t a_stride,
                        const real *panel, size_t panel_size, real *c, size_t c_stride)
{
#define TOGETHER(k) ((k) >= ROWS ? 1 : ROWS / (k) < 3 ? ROWS / (k) : 3)
#define CASE(k)                                                                                \
    case k:                                                                                    \
        if (n_panels >= TOGETHER(k)) {                                                         \
            some_rows(k < ROWS ? k : ROWS, TOGETHER(k), depth, a, a_stride, panel, panel_size, \
                      c, c_stride);                                                            \
            return TOGETHER(k);                                                                \
        }                                                                                      \
        some_rows(k < ROWS ? k : ROWS, 1, depth, a, a_stride, panel, panel_size, c, c_stride); \
        return 1
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
    return n_panels;
#undef CASE
#undef TOGETHER
}

static void add(size_t n, const real *a, size_t a_stride, const struct packed *b, real *c,
                size_t c_stride)
{
    const size_t n_panels = b->columns / WIDTH, panel_size = b->depth * WIDTH;
    for (size_t start = 0; start < n; start += SLICE)
        for (size_t d = 0; d < b->depth; d += DEPTH) {
            const size_t n_here = size_min(SLICE, n - start), whole = n_here - n_here % ROWS;
            const size_t depth = size_min(DEPTH, b->depth - d);
            const real *const part = b->value + d * WIDTH;
            for (size_t k = 0; whole > 0 && k < n_panels; k++)
                for (size_t i = start; i < start + whole; i += ROWS)
                    some_rows(ROWS, 1, depth, a + i * a_stride + d, a_stride,
                              part + k * panel_size, panel_size, c + i * c_stride + k * WIDTH,
                              c_stride);
            const size_t last = start + whole;
            for (size_t k = 0; last < n && k < n_panels;)
                k += last_rows(n_here - whole, n_panels - k, depth, a + last * a_stride + d,
                               a_stride, part + k * panel_size, panel_size,
                               c + last * c_stride + k * WIDTH, c_stride);
        }
}

extern const struct product_table KERNEL(product);
const struct product_table KERNEL(product) = {.add = add};
