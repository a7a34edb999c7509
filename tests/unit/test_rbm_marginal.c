/* builds: float double */
/* Hidden units summed out: the results of the kernels, and the same bits on every instruction
 * set. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_marginal.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct rbm_marginal_table rbm_marginal_plain;
#ifdef __x86_64__
extern const struct rbm_marginal_table rbm_marginal_avx2, rbm_marginal_avx512;
static const struct rbm_marginal_table *const tables[N_ISAS] = {
    &rbm_marginal_plain, &rbm_marginal_avx2, &rbm_marginal_avx512};
#else
static const struct rbm_marginal_table *const tables[N_ISAS] = {
    &rbm_marginal_plain, &rbm_marginal_plain, &rbm_marginal_plain};
#endif

static const double tolerance = sizeof(real) == sizeof(double) ? 1e-13 : 2e-6;
enum { MOST = 2048 };

/* Inputs of all magnitudes; the last `n_off` are off. */
static void fill(real *x, size_t n, size_t n_off, uint32_t who)
{
    const struct rng rng = {.seed = 1, .purpose = RNG_SIMULATE, .who = who};
    for (size_t i = 0; i < n; i++)
        x[i] = i + n_off < n ? (real)(rng_normal(&rng, (uint32_t)i) * (i % 5 == 0 ? 40 : 2))
                             : BINARY_OFF;
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void test_sums(void **state)
{
    (void)state;
    static const size_t widths[] = {16, 112, 208, 1024, 1040, 2048};
    real *x = NEW(real, MOST), *w0 = NEW(real, MOST), *w1 = NEW(real, MOST),
         *s0 = NEW(real, MOST), *s1 = NEW(real, MOST);
    for (size_t k = 0; k < COUNT(widths); k++) {
        const size_t n = widths[k], n_off = k % 2 == 0 ? 3 : 0;
        fill(x, n, n_off, 1);
        fill(w0, n, 0, 2);
        fill(w1, n, 0, 3);
        for (size_t i = n - n_off; i < n; i++)
            w0[i] = w1[i] = 0;
        const double pair = (double)rbm_marginal->pair(x, w0, w1, n, s0, s1);
        const double worth = (double)rbm_marginal->worth(x, n);
        double expected = 0, size = 1, total = 0;
        for (size_t i = 0; i < n; i++) {
            const double a = (double)(x[i] + w0[i]), b = (double)(x[i] + w1[i]);
            expected += softplus(b) - softplus(a);
            size += fabs(softplus(b) - softplus(a));
            total += softplus((double)x[i]);
            assert_true(fabs((double)s0[i] - 1 / (1 + exp(-a))) < tolerance);
            assert_true(fabs((double)s1[i] - 1 / (1 + exp(-b))) < tolerance);
            if (i + n_off >= n)
                assert_true(s0[i] == 0 && s1[i] == 0);
        }
        assert_true(fabs(pair - expected) < tolerance * size);
        assert_true(fabs(worth - total) < tolerance * total);
    }
    /* units with input 0 contribute log 2 each: one factor of 2 per unit */
    memset(x, 0, MOST * sizeof *x);
    assert_true(fabs((double)rbm_marginal->worth(x, MOST) - MOST * log(2)) < MOST * tolerance);
    memory_free(x);
    memory_free(w0);
    memory_free(w1);
    memory_free(s0);
    memory_free(s1);
}

static void test_back_and_draw(void **state)
{
    (void)state;
    real d[64] __attribute__((aligned(64))), r[64] __attribute__((aligned(64))),
        e[64] __attribute__((aligned(64))), g[64] __attribute__((aligned(64))),
        h[64] __attribute__((aligned(64)));
    fill(d, 64, 0, 4);
    for (size_t i = 0; i < 64; i++) {
        r[i] = (real)i / 64;
        e[i] = 3;
    }
    rbm_marginal->back(d, r, e, g, 64);
    rbm_marginal->draw(r, g, h, 64);
    for (size_t i = 0; i < 64; i++) {
        assert_true(fabs((double)(g[i] - d[i] * r[i] * (1 - r[i]))) < 1e-4);
        assert_true(e[i] == 3 + g[i]);
        assert_true(h[i] == (g[i] < r[i] ? 1 : 0));
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    real *x = NEW(real, MOST), *w = NEW(real, MOST), *s[2][4];
    fill(x, MOST, 5, 5);
    fill(w, MOST, 0, 6);
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 4; k++)
            s[t][k] = NEW(real, MOST);
    for (int isa = ISA_PLAIN + 1; isa < N_ISAS; isa++) {
        if (!machine_has((enum isa)isa))
            continue;
        const struct rbm_marginal_table *both[2] = {&rbm_marginal_plain, tables[isa]};
        real sums[2][2];
        for (int t = 0; t < 2; t++) {
            sums[t][0] = both[t]->pair(x, w, s[0][3], MOST, s[t][0], s[t][1]);
            sums[t][1] = both[t]->worth(x, MOST);
            memset(s[t][2], 0, MOST * sizeof(real));
            both[t]->back(w, s[t][0], s[t][2], s[t][1], MOST);
        }
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        for (int k = 0; k < 3; k++)
            assert_memory_equal(s[0][k], s[1][k], MOST * sizeof(real));
    }
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 4; k++)
            memory_free(s[t][k]);
    memory_free(x);
    memory_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_back_and_draw),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
