/* builds: float double */
/* Products with packed matrices: the sum they stand for, the same bits whatever the number of
 * rows and the instruction set, and nothing written beyond the result. */
#include "machine.h"
#include "memory.h"
#include "product.h"
#include "rng.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct product_table product_plain;
#ifdef __x86_64__
extern const struct product_table product_avx2, product_avx512;
static const struct product_table *const tables[N_ISAS] = {&product_plain, &product_avx2,
                                                           &product_avx512};
#else
static const struct product_table *const tables[N_ISAS] = {&product_plain, &product_plain,
                                                           &product_plain};
#endif

static real *random_table(size_t n, uint32_t which)
{
    real *table = NEW(real, n);
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .part = which};
    for (size_t i = 0; i < n; i++)
        table[i] = i % 31 == 5 ? (real)-0.0 : (real)rng_normal(&rng, (uint32_t)i);
    return table;
}

/* Depths on both sides of where they are cut, rows on both sides of the groups. */
static void compare(size_t depth, size_t columns, bool transposed)
{
    enum { MOST = 41 };
    const size_t padded = size_padded(columns), c_stride = padded + WIDTH, a_stride = depth + 3;
    const size_t b_stride = (transposed ? depth : columns) + 5;
    real *a = random_table(MOST * a_stride, 1), *c = random_table((MOST + 1) * c_stride, 2);
    real *b = random_table((transposed ? columns : depth) * b_stride, 3);
    real *sums = NEW(real, (MOST + 1) * c_stride), *got = NEW(real, (MOST + 1) * c_stride);
    struct packed packed = {0};
    for (int again = 0; again < 2; again++) /* memory is used again */
        product_pack(&packed, depth, columns, b, b_stride, transposed);
    assert_int_equal(packed.columns, padded);
    memcpy(sums, c, (MOST + 1) * c_stride * sizeof *c);
    product_plain.add(MOST, a, a_stride, &packed, sums, c_stride);
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
    product_free(&packed);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
