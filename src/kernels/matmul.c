/* c += a B, with B packed in panels of WIDTH columns:
 *
 *             depth                WIDTH                     WIDTH
 *           +-------+            +-----+-----+--           +-----+-----+--
 *     ROWS  |   a   |     depth  |     |     |       ROWS  |  c  |     |
 *           +-------+            |  B  |     |             +-----+-----+--
 *           |       |            +-----+-----+--           |     |     |
 *
 * The inner loop multiplies ROWS rows of a by one panel: the ROWS x WIDTH sums stay in
 * registers while the panel is read once. Rows are processed in groups of SLICE, so that they
 * stay in the second-level cache while all panels pass, and in parts of DEPTH, so that the part
 * of a panel stays in the first-level cache.
 *
 * c += alpha a^T b processes the rows of a and b in parts of DEPTH too. The columns of a are
 * packed in strips of ROWS (STRIPS columns at a time, for the second-level cache), the columns
 * of b in one panel after the other, so that both are read sequentially. A strip is then
 * multiplied by a panel in the same inner loop.
 *
 * Sums use fused multiply-add (one rounding for product and sum). This is twice as fast as two
 * instructions, and its result is the same on every CPU; CPUs without it emulate it. */
#include "kernels/matmul.h"
#include "base/memory.h"
#include "kernels/simd.h"
#include <math.h>

#ifdef COHORT_REAL_DOUBLE
#define FUSED fma
#else
#define FUSED fmaf
#endif

/* As many rows as fit the registers together with one row of the panel. */
#ifdef ISA_avx512
enum { ROWS = 12 / REGISTERS };
#elif defined(ISA_avx2) && !defined(COHORT_REAL_DOUBLE)
enum { ROWS = 6 };
#elif defined(__aarch64__)
enum { ROWS = 6 * 4 / REGISTERS };
#else
enum { ROWS = 3 };
#endif
enum { SLICE = 10 * ROWS, DEPTH = 256, STRIPS = 240 };

#if !defined(COHORT_REAL_DOUBLE) && !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
/* Two fused multiply-adds without the instruction. The product is exact in double precision.
 * The sum is rounded to odd there (if it is inexact, its last bit is set), so that rounding it
 * again to float gives the same as rounding the exact sum once. */
typedef float half __attribute__((vector_size(8), may_alias));
typedef double wide __attribute__((vector_size(16), may_alias));
typedef int64_t wide_bits __attribute__((vector_size(16), may_alias));
union halves {
    rreal whole;
    half half[2];
};

static inline half fused_half(half a, half b, half c)
{
    const wide matmul_of = __builtin_convertvector(a, wide) * __builtin_convertvector(b, wide);
    const wide term = __builtin_convertvector(c, wide), sum = matmul_of + term;
    const wide part = sum - matmul_of, lost = (matmul_of - (sum - part)) + (term - part);
    const wide_bits bits = (wide_bits)sum, is_up = (wide_bits)(lost > 0);
    const wide_bits is_lost = is_up | (wide_bits)(lost < 0), is_even = (bits & 1) - 1;
    const wide_bits shrinks = is_up ^ (wide_bits)(sum > 0); /* all bits, or none: -1, 0 */
    const wide_bits step = (shrinks & -2) + 1;
    return __builtin_convertvector((wide)(bits + (step & is_lost & is_even)), half);
}
#endif

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
#elif defined(COHORT_REAL_DOUBLE) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    for (size_t i = 0; i < LANES; i++)
        c[i] = FUSED(a[i], b[i], c[i]);
    return c;
#else
    const union halves x = {a}, y = {b}, z = {c};
    union halves sum;
    for (int h = 0; h < 2; h++)
        sum.half[h] = fused_half(x.half[h], y.half[h], z.half[h]);
    return sum.whole;
#endif
}

/* Multiplies n rows of a by `panels` panels, which are panel_size apart; n * panels <= ROWS.
 * Rows of a are a_stride apart, the numbers in a row a_step. */
static inline __attribute__((always_inline)) void
some_rows(int n, int panels, size_t depth, const real *a, size_t a_stride, size_t a_step,
          const real *panel, size_t panel_size, real *c, size_t c_stride)
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
                const rreal x = simd_all(a[(size_t)i * a_stride + d * a_step]);
                UNROLL for (int r = 0; r < REGISTERS; r++) sum[i * panels + k][r] =
                    fused(x, row[r], sum[i * panels + k][r]);
            }
        }
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int k = 0; k < panels; k++)
        UNROLL for (int r = 0; r < REGISTERS; r++)
            AT(c, (size_t)i * c_stride + (size_t)k * WIDTH + (size_t)r * LANES) =
                sum[i * panels + k][r];
}

/* The last rows, fewer than ROWS, with a separate loop for each count. The sums of few rows
 * cannot keep the execution units busy, so several panels are processed together. Returns how
 * many of the `n_panels` remaining ones were processed. */
static size_t last_rows(size_t n, size_t n_panels, size_t depth, const real *a, size_t a_stride,
                        const real *panel, size_t panel_size, real *c, size_t c_stride)
{
#define TOGETHER(k) ((k) >= ROWS ? 1 : ROWS / (k) < 3 ? ROWS / (k) : 3)
#define CASE(k)                                                                                \
    case k:                                                                                    \
        if (n_panels >= TOGETHER(k)) {                                                         \
            some_rows(k < ROWS ? k : ROWS, TOGETHER(k), depth, a, a_stride, 1, panel,          \
                      panel_size, c, c_stride);                                                \
            return TOGETHER(k);                                                                \
        }                                                                                      \
        some_rows(k < ROWS ? k : ROWS, 1, depth, a, a_stride, 1, panel, panel_size, c,         \
                  c_stride);                                                                   \
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
                    some_rows(ROWS, 1, depth, a + i * a_stride + d, a_stride, 1,
                              part + k * panel_size, panel_size, c + i * c_stride + k * WIDTH,
                              c_stride);
            const size_t last = start + whole;
            for (size_t k = 0; last < n && k < n_panels;)
                k += last_rows(n_here - whole, n_panels - k, depth, a + last * a_stride + d,
                               a_stride, part + k * panel_size, panel_size,
                               c + last * c_stride + k * WIDTH, c_stride);
        }
}

/* Packs alpha times a in strips of ROWS columns, with zeros after the last column. */
static void pack_strips(size_t depth, size_t columns, real alpha, const real *a,
                        size_t a_stride, real *strips)
{
    const size_t whole = columns - columns % ROWS, rest = columns - whole;
    for (size_t d = 0; d < depth; d++, a += a_stride, strips += ROWS) {
        real *to = strips;
        for (size_t first = 0; first < whole; first += ROWS, to += depth * ROWS)
            UNROLL for (size_t i = 0; i < ROWS; i++) to[i] = alpha * a[first + i];
        for (size_t i = 0; rest > 0 && i < ROWS; i++)
            to[i] = i < rest ? alpha * a[whole + i] : 0;
    }
}

static void pack_panel(size_t depth, size_t columns, const real *b, size_t b_stride,
                       real *panel)
{
    for (size_t d = 0; d < depth; d++, b += b_stride, panel += WIDTH)
        if (columns == WIDTH)
            memcpy(panel, b, WIDTH * sizeof *b);
        else
            for (size_t j = 0; j < WIDTH; j++)
                panel[j] = j < columns ? b[j] : 0;
}

/* Multiplies a strip by a panel at the edge of c, where the product is larger than c. */
static void meet_at_edge(size_t depth, size_t rows, size_t columns, const real *strip,
                         const real *panel, real *c, size_t c_stride)
{
    real tile[ROWS * WIDTH] __attribute__((aligned(64))) = {0};
    for (size_t i = 0; i < rows; i++)
        memcpy(tile + i * WIDTH, c + i * c_stride, columns * sizeof *c);
    some_rows(ROWS, 1, depth, strip, 1, ROWS, panel, 0, tile, WIDTH);
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * c_stride, tile + i * WIDTH, columns * sizeof *c);
}

static void add_outer(size_t n, size_t rows, size_t columns, real alpha, const real *a,
                      size_t a_stride, const real *b, size_t b_stride, real *c, size_t c_stride)
{
    const size_t most = size_min(n, DEPTH),
                 n_strips = (size_min(rows, STRIPS) + ROWS - 1) / ROWS;
    real *const strips = NEW_SCRATCH(real, most * n_strips * ROWS);
    real *const panel = NEW_SCRATCH(real, most * WIDTH);
    for (size_t start = 0; start < rows; start += STRIPS)
        for (size_t d = 0; d < n; d += DEPTH) {
            const size_t depth = size_min(DEPTH, n - d), end = size_min(rows, start + STRIPS);
            pack_strips(depth, end - start, alpha, a + d * a_stride + start, a_stride, strips);
            for (size_t j = 0; j < columns; j += WIDTH) {
                const size_t width = size_min(WIDTH, columns - j);
                pack_panel(depth, width, b + d * b_stride + j, b_stride, panel);
                for (size_t i = start; i < end; i += ROWS) {
                    const real *const strip = strips + (i - start) * depth;
                    real *const to = c + i * c_stride + j;
                    if (i + ROWS <= end && width == WIDTH)
                        some_rows(ROWS, 1, depth, strip, 1, ROWS, panel, 0, to, c_stride);
                    else
                        meet_at_edge(depth, size_min(ROWS, end - i), width, strip, panel, to,
                                     c_stride);
                }
            }
        }
    memory_free(strips);
    memory_free(panel);
}

extern const struct matmul_table KERNEL(matmul);
const struct matmul_table KERNEL(matmul) = {.add = add, .outer = add_outer};
