/* builds: float double */
/* The kernels of sparse rows against plain loops, and every instruction set against plain. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_rows.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct rbm_rows_table rbm_rows_plain;
#ifdef __x86_64__
extern const struct rbm_rows_table rbm_rows_avx2, rbm_rows_avx512;
static const struct rbm_rows_table *const tables[N_ISAS] = {&rbm_rows_plain, &rbm_rows_avx2,
                                                            &rbm_rows_avx512};
#else
static const struct rbm_rows_table *const tables[N_ISAS] = {&rbm_rows_plain, &rbm_rows_plain,
                                                            &rbm_rows_plain};
#endif

enum { N_ITEMS = 11, MOST_UNITS = 64 };

/* One shape, a table of rows, and a student with n answers. */
struct sample {
    struct row_shape shape;
    size_t n, n_numbers; /* n_numbers: of the table */
    real *table, *g, *x;
    uint32_t unit[MOST_UNITS];
    uint8_t count[MOST_UNITS];
    int32_t *data, *model, *scratch;
};

static void open_sample(struct sample *s, uint32_t which)
{
    static const size_t strides[] = {WIDTH, 2 * WIDTH, 4 * WIDTH, 7 * WIDTH};
    static const size_t lengths[] = {0, 1, 15, 16, 17, 40, 64};
    static const int copies[] = {1, 2, 3, 15};
    *s = (struct sample){.n = lengths[which / 2 % 7],
                         .shape = {.stride = strides[which / 14 % 4],
                                   .per_item = 1 + (int)(which % 2),
                                   .copies = copies[which / 56 % 4]}};
    const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .part = which};
    const size_t stride = s->shape.stride;
    s->n_numbers = N_ITEMS * (size_t)s->shape.per_item * stride;
    s->table = NEW(real, s->n_numbers);
    s->g = NEW(real, stride);
    s->x = NEW(real, stride);
    s->data = NEW(int32_t, stride);
    s->model = NEW(int32_t, stride);
    s->scratch = NEW(int32_t, stride * ((size_t)s->shape.copies + 2));
    uint32_t index = 0;
    for (size_t i = 0; i < s->n_numbers; i++)
        s->table[i] = (real)rng_normal(&rng, index++);
    for (size_t c = 0; c < stride; c++) {
        s->g[c] = (real)rng_normal(&rng, index++);
        s->x[c] = (real)rng_normal(&rng, index++);
        s->data[c] = (int32_t)rng_below(&rng, index++, 1 << 20) - (1 << 19);
        s->model[c] = (int32_t)rng_below(&rng, index++, 1 << 20) - (1 << 19);
    }
    for (size_t a = 0; a < s->n; a++) {
        s->unit[a] = (uint32_t)rng_below(&rng, index++, 2 * N_ITEMS);
        s->count[a] = (uint8_t)rng_below(&rng, index++, (uint64_t)s->shape.copies + 1);
    }
}
enum { N_SAMPLES = 2 * 7 * 4 * 4 };

static void close_sample(struct sample *s)
{
    memory_free(s->table);
    memory_free(s->g);
    memory_free(s->x);
    memory_free(s->data);
    memory_free(s->model);
    memory_free(s->scratch);
}

/* Number c of the row of (item, outcome), zero where bernoulli has no such row. */
static double weight(const struct sample *s, size_t item, int k, size_t c)
{
    if (s->shape.per_item == 1 && k == 0)
        return 0;
    const size_t row = s->shape.per_item == 2 ? 2 * item + (size_t)k : item;
    return (double)s->table[row * s->shape.stride + c];
}

static void expect_near(double got, double expected, double size, const char *what)
{
    const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
    if (!(fabs(got - expected) <= 8 * epsilon * size))
        fail_msg("%s: %.17g instead of %.17g", what, got, expected);
}

static void test_gather(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++) {
        struct sample s, other;
        open_sample(&s, which);
        rbm_rows_plain.gather(&s.shape, s.table, s.unit, s.n, s.x);
        for (int isa = 1; isa < N_ISAS; isa++) {
            open_sample(&other, which);
            if (machine_has((enum isa)isa)) {
                tables[isa]->gather(&other.shape, other.table, other.unit, other.n, other.x);
                assert_memory_equal(other.x, s.x, s.shape.stride * sizeof(real));
            }
            close_sample(&other);
        }
        open_sample(&other, which);
        for (size_t c = 0; c < s.shape.stride; c++) {
            double sum = (double)other.x[c], size = fabs(sum);
            for (size_t a = 0; a < s.n; a++) {
                const double w = s.shape.copies * weight(&s, s.unit[a] >> 1, s.unit[a] & 1, c);
                sum += w;
                size += fabs(w);
            }
            expect_near((double)s.x[c], sum, size, "gather");
        }
        for (size_t a = 0; a < s.n; a++) /* one call per unit: the same bits */
            rbm_rows_plain.gather(&s.shape, s.table, s.unit + a, 1, other.x);
        assert_memory_equal(other.x, s.x, s.shape.stride * sizeof(real));
        close_sample(&other);
        close_sample(&s);
    }
}

static void test_dot(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++) {
        struct sample s;
        open_sample(&s, which);
        real *logit = NEW(real, MOST_UNITS + WIDTH), *same = NEW(real, MOST_UNITS + WIDTH);
        for (size_t a = 0; a < MOST_UNITS + WIDTH; a++)
            logit[a] = same[a] = 77;
        rbm_rows_plain.dot(&s.shape, s.table, s.unit, s.n, s.g, logit);
        for (int isa = 1; isa < N_ISAS; isa++)
            if (machine_has((enum isa)isa)) {
                tables[isa]->dot(&s.shape, s.table, s.unit, s.n, s.g, same);
                assert_memory_equal(same, logit, (MOST_UNITS + WIDTH) * sizeof(real));
            }
        for (size_t a = 0; a < s.n; a++) {
            double sum = 0, size = 0;
            for (size_t c = 0; c < s.shape.stride; c++) {
                const double w =
                    weight(&s, s.unit[a] >> 1, 1, c) - weight(&s, s.unit[a] >> 1, 0, c);
                sum += (double)s.g[c] * w;
                size += fabs((double)s.g[c] * w);
            }
            expect_near((double)logit[a], sum, size, "dot");
        }
        for (size_t a = s.n; a < MOST_UNITS + WIDTH; a++)
            assert_true(logit[a] == (a < size_padded(s.n) ? 0 : 77));
        memory_free(logit);
        memory_free(same);
        close_sample(&s);
    }
}

static void test_mix(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++) {
        struct sample s, other;
        open_sample(&s, which);
        rbm_rows_plain.mix(&s.shape, s.table, s.unit, s.count, s.n, s.x);
        for (int isa = 1; isa < N_ISAS; isa++) {
            open_sample(&other, which);
            if (machine_has((enum isa)isa)) {
                tables[isa]->mix(&other.shape, other.table, other.unit, other.count, other.n,
                                 other.x);
                assert_memory_equal(other.x, s.x, s.shape.stride * sizeof(real));
            }
            close_sample(&other);
        }
        open_sample(&other, which);
        for (size_t c = 0; c < s.shape.stride; c++) {
            double sum = (double)other.x[c], size = fabs(sum);
            for (size_t a = 0; a < s.n; a++) {
                const double right = s.count[a] * weight(&s, s.unit[a] >> 1, 1, c);
                const double wrong =
                    (s.shape.copies - s.count[a]) * weight(&s, s.unit[a] >> 1, 0, c);
                sum += right + wrong;
                size += fabs(right) + fabs(wrong);
            }
            expect_near((double)s.x[c], sum, size, "mix");
        }
        close_sample(&other);
        close_sample(&s);
    }
}

/* Integers: exact, in 32 bits and in 64, and added to the previous content. */
static void test_tally(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++) {
        struct sample s;
        open_sample(&s, which);
        const size_t stride = s.shape.stride;
        int64_t *expected = NEW(int64_t, s.n_numbers);
        for (size_t i = 0; i < s.n_numbers; i++)
            expected[i] = 1000 * (int64_t)i;
        for (size_t a = 0; a < s.n; a++)
            for (int k = s.shape.per_item == 2 ? 0 : 1; k < 2; k++) {
                const size_t item = s.unit[a] >> 1;
                const size_t row = s.shape.per_item == 2 ? 2 * item + (size_t)k : item;
                const int in_data = (int)(s.unit[a] & 1) == k ? s.shape.copies : 0;
                const int in_model = k == 1 ? s.count[a] : s.shape.copies - s.count[a];
                for (size_t c = 0; c < stride; c++)
                    expected[row * stride + c] +=
                        (int64_t)in_data * s.data[c] - (int64_t)in_model * s.model[c];
            }
        for (int isa = 0; isa < N_ISAS; isa++)
            for (int wide = 0; machine_has((enum isa)isa) && wide < 2; wide++) {
                int64_t *all = NEW(int64_t, s.n_numbers);
                for (size_t i = 0; i < s.n_numbers; i++)
                    if (wide)
                        all[i] = 1000 * (int64_t)i;
                    else
                        ((int32_t *)all)[i] = 1000 * (int32_t)i;
                tables[isa]->tally(&s.shape, all, wide, s.unit, s.count, s.n, s.data, s.model,
                                   s.scratch);
                for (size_t i = 0; i < s.n_numbers; i++)
                    assert_int_equal(wide ? all[i] : ((int32_t *)all)[i], expected[i]);
                memory_free(all);
            }
        memory_free(expected);
        close_sample(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_tally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
