/* builds: float double */
/* The kernels of recurrent cells against their formulas, and every instruction set against
 * plain. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rnn_cells.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const struct rnn_cells_table rnn_cells_plain;
#ifdef __x86_64__
extern const struct rnn_cells_table rnn_cells_avx2, rnn_cells_avx512;
static const struct rnn_cells_table *const tables[N_ISAS] = {&rnn_cells_plain, &rnn_cells_avx2,
                                                             &rnn_cells_avx512};
#else
static const struct rnn_cells_table *const tables[N_ISAS] = {&rnn_cells_plain, &rnn_cells_plain,
                                                             &rnn_cells_plain};
#endif

static const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;

/* n rows of `width`; z has at most four gates, w is for `combine`. All are in one block of
 * memory, to detect writes beyond a kernel's own part. */
struct sample {
    size_t n, width, n_numbers;
    real *all, *z, *h, *c, *h_before, *c_before, *dh, *dc, *gated, *w;
};
enum { N_SAMPLES = 5 * 4, MOST_GATES = 4, DEPTH = 21 };

static void open_sample(struct sample *s, uint32_t which)
{
    static const size_t rows[] = {0, 1, 2, 5, 33},
                        widths[] = {WIDTH, 2 * WIDTH, 5 * WIDTH, 13 * WIDTH};
    *s = (struct sample){.n = rows[which % 5], .width = widths[which / 5 % 4]};
    const size_t size = s->n * s->width, z_size = MOST_GATES * size;
    s->n_numbers = z_size + 7 * size + DEPTH * s->width + WIDTH;
    s->all = NEW(real, s->n_numbers);
    real **const parts[] = {&s->h,  &s->c,  &s->h_before, &s->c_before,
                            &s->dh, &s->dc, &s->gated,    &s->w};
    s->z = s->all;
    for (size_t k = 0; k < COUNT(parts); k++)
        *parts[k] = s->all + z_size + k * size;
    const struct rng rng = {.seed = 5, .purpose = RNG_SIMULATE, .part = which};
    for (size_t i = 0; i < s->n_numbers; i++) /* some large values, where the curves are flat */
        s->all[i] = (real)(rng_normal(&rng, (uint32_t)i) * (i % 50 == 7 ? 40 : 1));
    for (size_t i = 0; i < s->n_numbers; i += 97)
        s->all[i] = 0;
}

static void close_sample(struct sample *s)
{
    memory_free(s->all);
}

static double squash(double x)
{
    return 1 / (1 + exp(-x));
}

static void expect_near(real got, double expected, double size, const char *what)
{
    if (!(fabs((double)got - expected) <= 16 * epsilon * size))
        fail_msg("%s: %.17g instead of %.17g", what, (double)got, expected);
}

enum kernel {
    RNN_FORWARD,
    RNN_BACKWARD,
    LSTM_FORWARD,
    LSTM_BACKWARD,
    GRU_GATES,
    GRU_FORWARD,
    GRU_CANDIDATE,
    GRU_RESET,
    COMBINE,
    DOT,
    ADD,
    N_KERNELS
};

/* Calls one kernel on a sample. */
static void call(const struct rnn_cells_table *table, enum kernel kernel, struct sample *s)
{
    const size_t n = s->n, width = s->width;
    switch (kernel) {
    case RNN_FORWARD:
        table->rnn_forward(n, width, s->z, s->h);
        break;
    case RNN_BACKWARD:
        table->rnn_backward(n, width, s->dh, s->z);
        break;
    case LSTM_FORWARD:
        table->lstm_forward(n, width, s->z, s->c_before, s->c, s->h);
        break;
    case LSTM_BACKWARD:
        table->lstm_backward(n, width, s->dh, s->c_before, s->c, s->z, s->dc);
        break;
    case GRU_GATES:
        table->gru_gates(n, width, s->z, s->h_before, s->gated);
        break;
    case GRU_FORWARD:
        table->gru_forward(n, width, s->z, s->h_before, s->h);
        break;
    case GRU_CANDIDATE:
        table->gru_candidate(n, width, s->dh, s->h_before, s->z, s->h);
        break;
    case GRU_RESET:
        table->gru_reset(n, width, s->gated, s->h_before, s->z, s->h);
        break;
    case COMBINE: /* of several rows of n, as many as fit in z */
        for (size_t row = 0; row < n; row++)
            table->combine(s->w + row, row % DEPTH, s->w, width, s->z + row * width, width);
        break;
    case DOT:
        for (size_t row = 0; row < n; row++)
            s->gated[row] = table->dot(s->h + row * width, s->c + row * width, width);
        break;
    case ADD:
        for (size_t row = 0; row < n; row++)
            table->add(s->w[row % DEPTH], s->h + row * width, s->c + row * width, width);
        break;
    case N_KERNELS:
        break;
    }
}

static void test_instruction_sets(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++)
        for (int kernel = 0; kernel < N_KERNELS; kernel++) {
            struct sample before, plain;
            open_sample(&before, which);
            open_sample(&plain, which);
            call(&rnn_cells_plain, (enum kernel)kernel, &plain);
            if (plain.n > 1)
                assert_memory_not_equal(plain.all, before.all, plain.n_numbers * sizeof(real));
            for (int isa = 1; isa < N_ISAS; isa++) {
                if (!machine_has((enum isa)isa))
                    continue;
                struct sample other;
                open_sample(&other, which);
                call(tables[isa], (enum kernel)kernel, &other);
                if (memcmp(other.all, plain.all, plain.n_numbers * sizeof(real)) != 0)
                    fail_msg("kernel %d, sample %u: bits of %s differ from plain", kernel,
                             which, machine_isa_names[isa]);
                close_sample(&other);
            }
            close_sample(&before);
            close_sample(&plain);
        }
}

/* Number j of row `row` of gate g. */
static double gate(const struct sample *s, size_t n_gates, size_t row, size_t g, size_t j)
{
    return (double)s->z[(row * n_gates + g) * s->width + j];
}

static void check_rnn(const struct sample *old, const struct sample *new, enum kernel kernel,
                      size_t row, size_t j)
{
    const size_t at = row * old->width + j;
    const double z = gate(old, 1, row, 0, j), dh = (double)old->dh[at];
    if (kernel == RNN_FORWARD) {
        expect_near(new->z[at], tanh(z), 1, "rnn z");
        assert_true(new->h[at] == new->z[at]);
    } else {
        expect_near(new->z[at], dh * (1 - z * z), fabs(dh) * (1 + z * z), "rnn dz");
    }
}

static void check_lstm(const struct sample *old, const struct sample *new, enum kernel kernel,
                       size_t row, size_t j)
{
    const size_t at = row * old->width + j;
    double z[MOST_GATES];
    real got[MOST_GATES];
    for (size_t g = 0; g < 4; g++) {
        z[g] = gate(old, 4, row, g, j);
        got[g] = new->z[(row * 4 + g) * new->width + j];
    }
    const double c_before = (double)old->c_before[at];
    if (kernel == LSTM_FORWARD) {
        const double in = squash(z[0]), forget = squash(z[1]), out = squash(z[2]),
                     fresh = tanh(z[3]), c = forget * c_before + in * fresh;
        expect_near(got[0], in, 1, "lstm in");
        expect_near(got[1], forget, 1, "lstm forget");
        expect_near(got[2], out, 1, "lstm out");
        expect_near(got[3], fresh, 1, "lstm cell");
        expect_near(new->c[at], c, 1 + fabs(c_before), "lstm c");
        expect_near(new->h[at], out * tanh(c), 1 + fabs(c_before), "lstm h");
        return;
    }
    const double dh = (double)old->dh[at], dc = (double)old->dc[at];
    const double t = tanh((double)old->c[at]), d = dc + dh * z[2] * (1 - t * t);
    const double size = fabs(dc) + fabs(dh * z[2]);
    expect_near(got[0], d * z[3] * z[0] * (1 - z[0]),
                size * fabs(z[3] * z[0]) * (1 + fabs(z[0])), "lstm d in");
    expect_near(got[1], d * c_before * z[1] * (1 - z[1]),
                size * fabs(c_before * z[1]) * (1 + fabs(z[1])), "lstm d forget");
    expect_near(got[2], dh * t * z[2] * (1 - z[2]), fabs(dh * z[2]) * (1 + fabs(z[2])),
                "lstm d out");
    expect_near(got[3], d * z[0] * (1 - z[3] * z[3]), size * fabs(z[0]) * (1 + z[3] * z[3]),
                "lstm d cell");
    expect_near(new->dc[at], d * z[1], size * fabs(z[1]), "lstm dc");
}

static void check_gru(const struct sample *old, const struct sample *new, enum kernel kernel,
                      size_t row, size_t j)
{
    const size_t at = row * old->width + j;
    double z[3];
    real got[3];
    for (size_t g = 0; g < 3; g++) {
        z[g] = gate(old, 3, row, g, j);
        got[g] = new->z[(row * 3 + g) * new->width + j];
    }
    const double h = (double)old->h_before[at], dh = (double)old->dh[at], keep = z[1];
    const double d_gated = (double)old->gated[at];
    if (kernel == GRU_GATES) {
        expect_near(got[0], squash(z[0]), 1, "gru reset");
        expect_near(got[1], squash(z[1]), 1, "gru keep");
        assert_true((double)got[2] == z[2]);
        expect_near(new->gated[at], squash(z[0]) * h, fabs(h), "gru gated");
    } else if (kernel == GRU_FORWARD) {
        expect_near(got[2], tanh(z[2]), 1, "gru state");
        expect_near(new->h[at], keep * h + (1 - keep) * tanh(z[2]),
                    1 + fabs(keep) * (1 + fabs(h)), "gru h");
        assert_true((double)got[0] == z[0] && (double)got[1] == z[1]);
    } else if (kernel == GRU_CANDIDATE) {
        expect_near(got[1], dh * (h - z[2]) * keep * (1 - keep),
                    fabs(dh * keep) * (fabs(h) + fabs(z[2])) * (1 + fabs(keep)), "gru d keep");
        expect_near(got[2], dh * (1 - keep) * (1 - z[2] * z[2]),
                    fabs(dh) * (1 + fabs(keep)) * (1 + z[2] * z[2]), "gru d state");
        expect_near(new->h[at], dh * keep, fabs(dh * keep), "gru begins dh");
        assert_true((double)got[0] == z[0]);
    } else {
        expect_near(got[0], d_gated * h * z[0] * (1 - z[0]),
                    fabs(d_gated * h * z[0]) * (1 + fabs(z[0])), "gru d reset");
        expect_near(new->h[at], (double)old->h[at] + d_gated * z[0],
                    fabs((double)old->h[at]) + fabs(d_gated * z[0]), "gru dh");
        assert_true((double)got[1] == z[1] && (double)got[2] == z[2]);
    }
}

static void check_sums(const struct sample *old, const struct sample *new, enum kernel kernel,
                       size_t row, size_t j)
{
    const size_t at = row * old->width + j;
    double sum = 0, size = 0;
    if (kernel == COMBINE) {
        sum = (double)old->z[at];
        size = fabs(sum);
        for (size_t d = 0; d < row % DEPTH; d++) {
            const double term = (double)old->w[row + d] * (double)old->w[d * old->width + j];
            sum += term;
            size += fabs(term);
        }
        expect_near(new->z[at], sum, size, "combine");
    } else if (kernel == DOT) {
        for (size_t i = 0; i < old->width; i++) {
            const double term =
                (double)old->h[row * old->width + i] * (double)old->c[row * old->width + i];
            sum += term;
            size += fabs(term);
        }
        expect_near(new->gated[row], sum, size, "dot");
    } else {
        sum = (double)old->w[row % DEPTH] * (double)old->h[at];
        expect_near(new->c[at], (double)old->c[at] + sum, fabs((double)old->c[at]) + fabs(sum),
                    "add");
    }
}

/* For every number, the kernel's result from the old ones. */
static void test_formulas(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++)
        for (enum kernel kernel = 0; kernel < N_KERNELS; kernel++) {
            struct sample old, new;
            open_sample(&old, which);
            open_sample(&new, which);
            call(rnn_cells, kernel, &new);
            for (size_t row = 0; row < old.n; row++)
                for (size_t j = 0; j < old.width; j++) {
                    if (kernel <= RNN_BACKWARD)
                        check_rnn(&old, &new, kernel, row, j);
                    else if (kernel <= LSTM_BACKWARD)
                        check_lstm(&old, &new, kernel, row, j);
                    else if (kernel <= GRU_RESET)
                        check_gru(&old, &new, kernel, row, j);
                    else
                        check_sums(&old, &new, kernel, row, j);
                }
            close_sample(&old);
            close_sample(&new);
        }
}

/* h and c may be updated in place, as in prediction. */
static void test_in_place(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < N_SAMPLES; which++) {
        struct sample apart, same;
        open_sample(&apart, which);
        open_sample(&same, which);
        const size_t n_bytes = apart.n * apart.width * sizeof(real);
        rnn_cells->lstm_forward(apart.n, apart.width, apart.z, apart.c_before, apart.c,
                                apart.h);
        rnn_cells->lstm_forward(same.n, same.width, same.z, same.c_before, same.c_before,
                                same.h);
        assert_memory_equal(apart.c, same.c_before, n_bytes);
        assert_memory_equal(apart.h, same.h, n_bytes);
        close_sample(&apart);
        close_sample(&same);
    }
}

/* The ends of the curves: exact, and no NaN; zero stays zero, and so does padding. */
static void test_ends_of_the_curves(void **state)
{
    (void)state;
    static const double ends[] = {0, 1e4, -1e4, 1e30, -1e30};
    for (int isa = 0; isa < N_ISAS; isa++) {
        if (!machine_has((enum isa)isa))
            continue;
        for (size_t e = 0; e < COUNT(ends); e++) {
            real *z = NEW(real, 4 * WIDTH), *h = NEW(real, WIDTH), *c = NEW(real, WIDTH);
            for (size_t i = 0; i < 4 * WIDTH; i++)
                z[i] = (real)ends[e];
            tables[isa]->lstm_forward(1, WIDTH, z, c, c, h);
            const double gate = ends[e] == 0 ? 0.5 : ends[e] > 0 ? 1 : 0;
            const double state_now = ends[e] == 0 ? 0 : ends[e] > 0 ? 1 : -1;
            for (size_t j = 0; j < WIDTH; j++) {
                for (size_t g = 0; g < 3; g++)
                    assert_true((double)z[g * WIDTH + j] == gate);
                assert_true((double)z[3 * WIDTH + j] == state_now);
                assert_true((double)c[j] == gate * state_now);
                if (ends[e] == 0)
                    assert_true(h[j] == 0);
            }
            memory_free(z);
            memory_free(h);
            memory_free(c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_ends_of_the_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
