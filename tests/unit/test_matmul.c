/* builds: float double */
/* Products with packed matrices: correct sums, the same bits for any number of rows and on
 * every instruction set, and nothing written beyond the result. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/matmul.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct matmul_table matmul_plain;
#ifdef __x86_64__
extern const struct matmul_table matmul_avx2, matmul_avx512;
static const struct matmul_table *const tables[N_ISAS] = {&matmul_plain, &matmul_avx2,
                                                          &matmul_avx512};
#else
static const struct matmul_table *const tables[N_ISAS] = {&matmul_plain, &matmul_plain,
                                                          &matmul_plain};
#endif

#ifdef COHORT_REAL_DOUBLE
#define FUSED fma
#else
#define FUSED fmaf
#endif

static real *random_table(size_t n, uint32_t which)
{
    real *table = NEW(real, n);
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .part = which};
    for (size_t i = 0; i < n; i++)
        table[i] = i % 31 == 5 ? (real)-0.0 : (real)rng_normal(&rng, (uint32_t)i);
    return table;
}

/* Depths and rows around the sizes at which they are split. */
static void compare(size_t depth, size_t columns, bool transposed)
{
    enum { MOST = 41 };
    const size_t padded = size_padded(columns), c_stride = padded + WIDTH, a_stride = depth + 3;
    const size_t b_stride = (transposed ? depth : columns) + 5;
    real *a = random_table(MOST * a_stride, 1), *c = random_table((MOST + 1) * c_stride, 2);
    real *b = random_table((transposed ? columns : depth) * b_stride, 3);
    real *sums = NEW(real, (MOST + 1) * c_stride), *got = NEW(real, (MOST + 1) * c_stride);
    struct packed packed = {0};
    for (int again = 0; again < 2; again++) /* memory is reused */
        matmul_pack(&packed, depth, columns, b, b_stride, transposed);
    assert_int_equal(packed.columns, padded);
    memcpy(sums, c, (MOST + 1) * c_stride * sizeof *c);
    matmul_plain.add(MOST, a, a_stride, &packed, sums, c_stride);
    for (size_t i = 0; i < MOST; i++)
        for (size_t j = 0; j < c_stride; j++) {
            double sum = (double)c[i * c_stride + j], size = fabs(sum);
            for (size_t d = 0; d < depth && j < columns; d++) {
                const double term =
                    (double)a[i * a_stride + d] *
                    (double)(transposed ? b[j * b_stride + d] : b[d * b_stride + j]);
                sum += term;
                size += fabs(term);
            }
            const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
            if (!(fabs((double)sums[i * c_stride + j] - sum) <= 8 * epsilon * size))
                fail_msg("depth %zu, row %zu, column %zu: %.9g instead of %.9g", depth, i, j,
                         (double)sums[i * c_stride + j], sum);
            assert_true(j < columns || sums[i * c_stride + j] == c[i * c_stride + j]);
        }
    for (int isa = 0; isa < N_ISAS; isa++)
        for (size_t n = 0; n <= MOST && machine_has((enum isa)isa); n++) {
            memcpy(got, c, (MOST + 1) * c_stride * sizeof *c);
            tables[isa]->add(n, a, a_stride, &packed, got, c_stride);
            assert_memory_equal(got, sums, n * c_stride * sizeof *c);
            assert_memory_equal(got + n * c_stride, c + n * c_stride,
                                (MOST + 1 - n) * c_stride * sizeof *c);
        }
    matmul_free(&packed);
    real *const all[] = {a, b, c, sums, got};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
}

static void test_products(void **state)
{
    (void)state;
    static const size_t depths[] = {1, 2, 21, 256, 257, 530}, columns[] = {1, 16, 17, 48};
    for (size_t d = 0; d < COUNT(depths); d++)
        for (size_t k = 0; k < COUNT(columns); k++)
            for (int transposed = 0; transposed < 2; transposed++)
                compare(depths[d], columns[k], transposed);
}

/* The sum of n outer products, added to the previous content, for sizes around those at which
 * rows, columns and n are split: equal to a sequence of fused sums, to the bit; the same in two
 * pieces. */
static void compare_outer(size_t n, size_t rows, size_t columns, real alpha)
{
    const size_t a_stride = rows + 3, b_stride = columns + 5,
                 c_stride = size_padded(columns) + WIDTH;
    const size_t n_c = (rows + 1) * c_stride;
    real *a = random_table(n * a_stride, 1), *b = random_table(n * b_stride, 2);
    real *c = random_table(n_c, 3), *sums = NEW(real, n_c), *got = NEW(real, n_c);
    memcpy(sums, c, n_c * sizeof *c);
    matmul_plain.outer(n, rows, columns, alpha, a, a_stride, b, b_stride, sums, c_stride);
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j < c_stride; j++) {
            const size_t at = i * c_stride + j;
            const bool inside = i < rows && j < columns;
            real sum = c[at];
            for (size_t d = 0; d < n && inside; d++)
                sum = FUSED(alpha * a[d * a_stride + i], b[d * b_stride + j], sum);
            if (memcmp(&sum, &sums[at], sizeof sum) != 0)
                fail_msg("%zu rows, place %zu %zu: %.9g instead of %.9g", n, i, j,
                         (double)sums[at], (double)sum);
        }
    for (int isa = 0; isa < N_ISAS; isa++) {
        if (!machine_has((enum isa)isa))
            continue;
        for (size_t cut = 0; cut <= n; cut += n / 2 + 1) {
            memcpy(got, c, n_c * sizeof *c);
            tables[isa]->outer(cut, rows, columns, alpha, a, a_stride, b, b_stride, got,
                               c_stride);
            tables[isa]->outer(n - cut, rows, columns, alpha, a + cut * a_stride, a_stride,
                               b + cut * b_stride, b_stride, got, c_stride);
            assert_memory_equal(got, sums, n_c * sizeof *c);
        }
    }
    real *const all[] = {a, b, c, sums, got};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
}

static void test_outer_products(void **state)
{
    (void)state;
    static const size_t ns[] = {0, 1, 5, 256, 257, 530}, rows[] = {1, 6, 13, 240, 247};
    static const size_t columns[] = {1, 16, 21, 48};
    for (size_t n = 0; n < COUNT(ns); n++)
        for (size_t r = 0; r < COUNT(rows); r++)
            for (size_t k = 0; k < COUNT(columns); k++)
                compare_outer(ns[n], rows[r], columns[k], k % 2 ? -1 : 1);
}

/* A fused sum of numbers of all magnitudes, and of numbers whose exact sum lies almost halfway
 * between two others: so close that a sum in double would be exactly halfway. */
static void test_fused_sums(void **state)
{
    (void)state;
    enum { N = 1 << 13, DIGITS = sizeof(real) == sizeof(float) ? 24 : 53 };
    for (uint32_t round = 0; round < N; round++) {
        const struct rng rng = {.seed = 9, .purpose = RNG_SIMULATE, .part = round};
        const int close = DIGITS - 1 - (int)(round / 2 % 9);
        real a[WIDTH], c[WIDTH], sums[WIDTH];
        real b = (real)ldexp(rng_uniform(&rng, WIDTH) - 0.5, (int)(round % 90) - 45);
        if (round % 2)
            b = (real)(1 - ldexp(1, -close));
        for (uint32_t j = 0; j < WIDTH; j++) {
            const double u = rng_uniform(&rng, j);
            const int place = (int)(u * 1e6) % 250 - 125;
            const double sign = j % 2 ? 1 : -1;
            if (round % 2) {
                a[j] = (real)ldexp(sign * (1 + ldexp(1, -close)), place - DIGITS);
                c[j] = (real)ldexp(1 + ldexp(round / 2 % 4, 1 - DIGITS), place);
            } else {
                a[j] = (real)ldexp(u - 0.5, place / 4);
                c[j] = j % 4 == 0 ? -a[j] * b : (real)ldexp(sign * u, (int)(u * 1e8) % 60 - 30);
            }
            sums[j] = FUSED(a[j], b, c[j]);
        }
        for (int isa = 0; isa < N_ISAS; isa++) {
            real got[WIDTH] __attribute__((aligned(64)));
            memcpy(got, c, sizeof got);
            if (machine_has((enum isa)isa)) {
                tables[isa]->outer(1, 1, WIDTH, 1, &b, 1, a, WIDTH, got, WIDTH);
                assert_memory_equal(got, sums, sizeof got);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_outer_products),
                                       cmocka_unit_test(test_fused_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
