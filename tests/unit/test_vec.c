/* builds: float double */
/* Element-by-element kernels: their results, and the same bits on every instruction set. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/vec.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct vec_table vec_plain;
#ifdef __x86_64__
extern const struct vec_table vec_avx2, vec_avx512;
static const struct vec_table *const tables[N_ISAS] = {&vec_plain, &vec_avx2, &vec_avx512};
#else
static const struct vec_table *const tables[N_ISAS] = {&vec_plain, &vec_plain, &vec_plain};
#endif

static const bool is_double = sizeof(real) == sizeof(double);
static const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;

/* The instruction sets of this CPU beyond plain, one by one; 0 at the end. */
static enum isa next_isa(enum isa isa)
{
    do
        isa = (enum isa)(isa + 1);
    while (isa < N_ISAS && !machine_has(isa));
    return isa < N_ISAS ? isa : ISA_PLAIN;
}

#define EACH_ISA(isa)                                                                          \
    for (enum isa isa = next_isa(ISA_PLAIN); (isa) != ISA_PLAIN; (isa) = next_isa(isa))

static void test_instruction_sets(void **state)
{
    (void)state;
    int n = 0;
    EACH_ISA(isa)
    n++;
    for (int isa = 0; isa < N_ISAS; isa++)
        if (!machine_has((enum isa)isa))
            print_message("this CPU has no %s: its kernels are not tested here\n",
                          machine_isa_names[isa]);
    assert_true(vec == tables[machine_isa()]);
    if (n == 0)
        skip();
}

/* Critical numbers, then random ones of all magnitudes. */
static void fill(real *x, size_t n, uint32_t which)
{
    static const real special[] = {
        0.0f,    -0.0f,    1,      -1,     30,       -30,       30.5f,       -30.5f,
        87,      -87,      88.8f,  -88.8f, 104,      -104,      710,         -710,
        746,     -746,     1e30f,  -1e30f, FLT_MIN,  -FLT_MIN,  FLT_MIN / 8, -FLT_MIN / 8,
        FLT_MAX, -FLT_MAX, 1e-20f, 16.6f,  INFINITY, -INFINITY, NAN,         1e-45f};
    const struct rng rng = {.seed = 1, .purpose = RNG_SIMULATE, .part = which};
    for (size_t i = 0; i < n; i++) {
        const double scale = pow(10, (double)rng_below(&rng, (uint32_t)(2 * i), 7) - 4);
        x[i] = i < COUNT(special) ? special[i]
                                  : (real)(scale * rng_normal(&rng, (uint32_t)(2 * i + 1)));
    }
}

static void expect_same_bits(const real *a, const real *b, size_t n, const char *what,
                             enum isa isa)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof(real)) != 0 && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s, %s: number %zu is %.17g instead of %.17g", what,
                     machine_isa_names[isa], i, (double)b[i], (double)a[i]);
}

enum { N = 4096 };

typedef void (*map)(real *x, size_t n);
static map map_of(const struct vec_table *table, int which)
{
    return which == 0 ? table->exp : which == 1 ? table->sigmoid : table->softplus;
}
static const char *const map_names[] = {"exp", "sigmoid", "softplus"};

static double exp_of(int which, double x)
{
    return which == 0   ? exp(x)
           : which == 1 ? 1 / (1 + exp(-x))
                        : fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void test_maps(void **state)
{
    (void)state;
    real *x = NEW(real, N), *y = NEW(real, N), *z = NEW(real, N);
    fill(x, N, 1);
    for (int which = 0; which < 3; which++) {
        memcpy(y, x, N * sizeof(real));
        map_of(&vec_plain, which)(y, N);
        for (size_t i = 0; i < N; i++) {
            const double expected = exp_of(which, (double)x[i]), got = (double)y[i];
            if (isnan(expected)         ? isnan(got)
                : isinf((real)expected) ? isinf(got) && got > 0
                                        : false)
                continue;
            /* log(1 + tiny) cannot be more exact than 1 + tiny */
            const double slack = which == 2 ? epsilon : is_double ? 1e-300 : 1e-37;
            if (!(fabs(got - expected) <= 8 * epsilon * expected + slack))
                fail_msg("%s(%.9g) = %.9g instead of %.9g", map_names[which], (double)x[i], got,
                         expected);
        }
        EACH_ISA(isa)
        {
            memcpy(z, x, N * sizeof(real));
            map_of(tables[isa], which)(z, N);
            expect_same_bits(y, z, N, map_names[which], isa);
        }
    }
    memory_free(x);
    memory_free(y);
    memory_free(z);
}

/* No kernel writes beyond its n numbers. */
static void test_lengths(void **state)
{
    (void)state;
    real *x = NEW(real, 8 * WIDTH);
    uint8_t *count = NEW(uint8_t, 8 * WIDTH);
    int32_t *q = NEW(int32_t, 8 * WIDTH);
    for (int isa = 0; isa < N_ISAS; isa++)
        for (size_t n = 0; machine_has((enum isa)isa) && n <= 6 * WIDTH; n += WIDTH) {
            for (int which = 0; which < 3; which++) {
                for (size_t i = 0; i < 8 * WIDTH; i++)
                    x[i] = 3;
                map_of(tables[isa], which)(x, n);
                for (size_t i = 0; i < 8 * WIDTH; i++)
                    assert_true((x[i] == 3) == (i >= n));
            }
            real *u = NEW(real, 8 * WIDTH), *logit = NEW(real, 8 * WIDTH);
            for (size_t i = 0; i < 8 * WIDTH; i++) {
                u[i] = (real)0.5;
                logit[i] = 20;
                count[i] = 77;
                q[i] = -77;
            }
            tables[isa]->binomial(logit, u, 2, count, n);
            tables[isa]->quantize(u, 1, 4, q, n);
            for (size_t i = 0; i < 8 * WIDTH; i++) {
                assert_int_equal(count[i], i < n ? 2 : 77);
                assert_int_equal(q[i], i < n ? 8 : -77);
            }
            memory_free(u);
            memory_free(logit);
        }
    memory_free(x);
    memory_free(count);
    memory_free(q);
}

static void test_uniform(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 63, 64, 65, 1000};
    const struct rng names[] = {
        {.seed = 0},
        {.seed = 0xdeadbeefcafe1234,
         .purpose = RNG_VISIBLE,
         .part = 9999,
         .when = 77,
         .who = 1u << 31},
        {.seed = UINT64_MAX,
         .purpose = RNG_FILE_ORDER,
         .part = (1 << 24) - 1,
         .when = UINT32_MAX,
         .who = UINT32_MAX},
    };
    real *out = NEW(real, 1100);
    for (int isa = 0; isa < N_ISAS; isa++)
        for (size_t r = 0; machine_has((enum isa)isa) && r < COUNT(names); r++)
            for (size_t l = 0; l < COUNT(lengths); l++) {
                const size_t whole = (lengths[l] + 63) / 64 * 64;
                for (size_t i = 0; i < 1100; i++)
                    out[i] = 2;
                tables[isa]->uniform(&names[r], out, lengths[l]);
                for (size_t i = 0; i < whole; i++) {
                    uint32_t words[4];
                    rng_words(&names[r], (uint32_t)(i / 64 * 16 + i % 16), words);
                    assert_true(out[i] == (real)(words[i % 64 / 16] >> 8) * (real)0x1p-24);
                    assert_true(out[i] >= 0 && out[i] < 1);
                }
                for (size_t i = whole; i < 1100; i++)
                    assert_true(out[i] == 2);
            }
    memory_free(out);
}

static double binomial_chance(int n, int k, double logit)
{
    const double p = 1 / (1 + exp(-logit));
    double chance = 1;
    for (int c = 0; c < k; c++)
        chance *= p * (n - c) / (c + 1);
    return chance * pow(1 / (1 + exp(logit)), n - k);
}

/* With evenly spaced u every count must come up exactly as often as expected, and a larger u
 * never gives a smaller count. */
static void test_binomial_frequencies(void **state)
{
    (void)state;
    enum { STEPS = 1 << 16 };
    static const double logits[] = {-40, -12, -7, -3, -0.7, 0, 0.1, 2, 5, 6.5, 7.5, 10, 14, 40};
    real *u = NEW(real, STEPS), *logit = NEW(real, STEPS);
    uint8_t *count = NEW(uint8_t, STEPS);
    for (size_t i = 0; i < STEPS; i++)
        u[i] = ((real)i + (real)0.5) / STEPS;
    for (int copies = 1; copies <= 15; copies++)
        for (size_t l = 0; l < COUNT(logits); l++) {
            double met[16] = {0};
            for (size_t i = 0; i < STEPS; i++)
                logit[i] = (real)logits[l];
            vec_plain.binomial(logit, u, copies, count, STEPS);
            for (size_t i = 0; i < STEPS; i++) {
                assert_in_range(count[i], 0, copies);
                assert_true(i == 0 || count[i] >= count[i - 1]);
                met[count[i]]++;
            }
            for (int k = 0; k <= copies; k++) {
                const double expected = STEPS * binomial_chance(copies, k, (double)logit[0]);
                if (!(fabs(met[k] - expected) <= 1.5))
                    fail_msg("%d copies, logit %g: count %d came up %g times of %d, not %.2f",
                             copies, logits[l], k, met[k], STEPS, expected);
            }
        }
    memory_free(u);
    memory_free(logit);
    memory_free(count);
}

/* The same with random numbers as in training: chi-square. */
static void test_binomial_draws(void **state)
{
    (void)state;
    enum { DRAWS = 1 << 17 };
    static const double logits[] = {-2, 0.3, 4};
    static const int copies[] = {1, 2, 3, 8, 15};
    real *u = NEW(real, DRAWS), *logit = NEW(real, DRAWS);
    uint8_t *count = NEW(uint8_t, DRAWS);
    for (size_t c = 0; c < COUNT(copies); c++)
        for (size_t l = 0; l < COUNT(logits); l++) {
            const struct rng rng = {
                .seed = 4, .purpose = RNG_VISIBLE, .part = (uint32_t)c, .who = (uint32_t)l};
            vec->uniform(&rng, u, DRAWS);
            for (size_t i = 0; i < DRAWS; i++)
                logit[i] = (real)logits[l];
            vec->binomial(logit, u, copies[c], count, DRAWS);
            double met[16] = {0}, square = 0, freedom = -1;
            for (size_t i = 0; i < DRAWS; i++)
                met[count[i]]++;
            for (int k = 0; k <= copies[c]; k++) {
                const double expected = DRAWS * binomial_chance(copies[c], k, logits[l]);
                if (expected < 10)
                    continue;
                square += (met[k] - expected) * (met[k] - expected) / expected;
                freedom++;
            }
            assert_true(square < freedom + 5 * sqrt(2 * freedom) + 3);
        }
    memory_free(u);
    memory_free(logit);
    memory_free(count);
}

static void test_binomial_bits(void **state)
{
    (void)state;
    real *u = NEW(real, N), *logit = NEW(real, N);
    uint8_t *expected = NEW(uint8_t, N), *count = NEW(uint8_t, N);
    fill(logit, N, 2);
    const struct rng rng = {.seed = 2};
    vec_plain.uniform(&rng, u, N);
    for (size_t i = 0; i < 8; i++)
        u[i] = (real)(i % 2 == 0 ? 0 : 1 - 0x1p-24);
    for (int copies = 1; copies <= 15; copies++) {
        vec_plain.binomial(logit, u, copies, expected, N);
        for (size_t i = 0; i < N; i++) {
            assert_in_range(expected[i], 0, copies);
            if (logit[i] > 40)
                assert_int_equal(expected[i], copies);
            if (logit[i] < -40)
                assert_int_equal(expected[i], 0);
        }
        EACH_ISA(isa)
        {
            tables[isa]->binomial(logit, u, copies, count, N);
            assert_memory_equal(count, expected, N);
        }
    }
    memory_free(u);
    memory_free(logit);
    memory_free(expected);
    memory_free(count);
}

static void test_quantize(void **state)
{
    (void)state;
    real *x = NEW(real, N);
    int32_t *expected = NEW(int32_t, N), *q = NEW(int32_t, N);
    fill(x, N, 3);
    const double ties[] = {0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 0.51, -2.5};
    for (size_t i = 0; i < COUNT(ties); i++)
        x[N - 1 - i] = (real)ldexp(ties[i], -12);
    for (int bits = 4; bits <= 20; bits += 8) {
        vec_plain.quantize(x, 1024, bits, expected, N);
        for (size_t i = 0; i < N; i++) {
            const double value = isnan(x[i]) ? 0 : fmin(1024, fmax(-1024, (double)x[i]));
            assert_int_equal(expected[i], (int32_t)nearbyint(ldexp(value, bits)));
        }
        EACH_ISA(isa)
        {
            tables[isa]->quantize(x, 1024, bits, q, N);
            assert_memory_equal(q, expected, N * sizeof *q);
        }
    }
    memory_free(x);
    memory_free(expected);
    memory_free(q);
}

/* Input of the two updates, created anew for each instruction set. */
struct update {
    real *w, *m, *v, *rate, *decay;
    int32_t *narrow;
    int64_t *wide;
};
enum { STRIDE = 3 * WIDTH, N_ROWS = 20, N_UPDATE = STRIDE * N_ROWS };
static const double unit = 0x1p-10;

static void open_update(struct update *u)
{
    const struct rng rng = {.seed = 9, .purpose = RNG_SIMULATE};
    *u = (struct update){NEW(real, N_UPDATE),   NEW(real, N_UPDATE), NEW(real, N_UPDATE),
                         NEW(real, STRIDE),     NEW(real, STRIDE),   NEW(int32_t, N_UPDATE),
                         NEW(int64_t, N_UPDATE)};
    for (uint32_t i = 0; i < N_UPDATE; i++) {
        u->w[i] = (real)rng_normal(&rng, 4 * i);
        u->m[i] = (real)rng_normal(&rng, 4 * i + 1);
        u->v[i] = (real)rng_uniform(&rng, 4 * i + 2);
        u->narrow[i] = (int32_t)(1e4 * rng_normal(&rng, 4 * i + 3));
        u->wide[i] = u->narrow[i];
    }
    for (uint32_t c = 0; c < STRIDE; c++) { /* columns of a tensor, of biases, of padding */
        u->rate[c] = (real)(c < 20 ? 0.01 : c < 40 ? 0.03 : 0);
        u->decay[c] = (real)(c < 20 ? 0.002 : 0);
    }
}

static void close_update(struct update *u)
{
    memory_free(u->w);
    memory_free(u->m);
    memory_free(u->v);
    memory_free(u->rate);
    memory_free(u->decay);
    memory_free(u->narrow);
    memory_free(u->wide);
}

static double take_step(const struct vec_table *table, struct update *u, bool wide, bool adam)
{
    const void *statistics = wide ? (const void *)u->wide : (const void *)u->narrow;
    const real beta[2] = {(real)0.9, (real)0.99};
    return adam ? table->adam(u->w, u->m, u->v, statistics, wide, unit, u->rate, u->decay, beta,
                              (real)1e-3, STRIDE, N_UPDATE)
                : table->momentum(u->w, u->m, statistics, wide, unit, u->rate, u->decay,
                                  (real)0.8, STRIDE, N_UPDATE);
}

static void test_updates(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        const bool wide = variant & 1, adam = variant & 2;
        struct update before, after;
        open_update(&before);
        open_update(&after);
        const double got = take_step(&vec_plain, &after, wide, adam);
        double largest = 0;
        for (size_t i = 0; i < N_UPDATE; i++) {
            const double g = unit * before.narrow[i], rate = (double)before.rate[i % STRIDE];
            const double w = (double)before.w[i], m = (double)before.m[i];
            const double mean = adam ? 0.9 * m + 0.1 * g : 0.8 * m + g;
            const double square = adam ? 0.99 * (double)before.v[i] + 0.01 * g * g : 0;
            const double expected = w + rate * mean / (adam ? sqrt(square) + 1e-3 : 1) -
                                    (double)before.decay[i % STRIDE] * w;
            const double slack = 1e-6; /* 1 - 0.99 in float is 0.01 to this accuracy only */
            assert_true(fabs((double)after.w[i] - expected) < slack * (1 + fabs(expected)));
            assert_true(fabs((double)after.m[i] - mean) < slack * (1 + fabs(mean)));
            if (adam)
                assert_true(fabs((double)after.v[i] - square) < 10 * slack * (1 + square));
            if (rate == 0)
                assert_true(after.w[i] == before.w[i]);
            largest = fmax(largest, fabs((double)after.w[i]));
        }
        assert_true(got == largest);
        EACH_ISA(isa)
        {
            struct update other;
            open_update(&other);
            assert_true(take_step(tables[isa], &other, wide, adam) == got);
            assert_memory_equal(other.w, after.w, N_UPDATE * sizeof(real));
            assert_memory_equal(other.m, after.m, N_UPDATE * sizeof(real));
            assert_memory_equal(other.v, after.v, N_UPDATE * sizeof(real));
            close_update(&other);
        }
        close_update(&before);
        close_update(&after);
    }
}

/* A parameter that has become NaN or infinite is reported, wherever it is. */
static void test_updates_report_nan_and_infinity(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1e35};
    for (int isa = 0; isa < N_ISAS; isa++)
        for (size_t b = 0; machine_has((enum isa)isa) && b < COUNT(bad); b++)
            for (size_t i = 0; i < N_UPDATE; i += 7)
                for (int adam = 0; adam < 2; adam++) {
                    struct update u;
                    open_update(&u);
                    u.w[i] = (real)bad[b];
                    assert_true(take_step(tables[isa], &u, false, adam) == INFINITY);
                    close_update(&u);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_binomial_frequencies),
        cmocka_unit_test(test_binomial_draws),
        cmocka_unit_test(test_binomial_bits),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_updates_report_nan_and_infinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
