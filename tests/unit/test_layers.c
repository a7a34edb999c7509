/* builds: float double */
/* Layers: values against plain code for their formulas, derivatives against finite differences
 * of the loss sum_i g_i y_i in double precision, and the attention weights of a published
 * example. */
#include "base/memory.h"
#include "learn/layers/activation.h"
#include "learn/layers/cross_entropy.h"
#include "learn/layers/dense.h"
#include "learn/layers/dropout.h"
#include "learn/layers/embedding.h"
#include "learn/layers/layer_norm.h"
#include "learn/layers/softmax.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, BITS = 40 };
static const bool in_double = sizeof(real) == sizeof(double);

/* Tolerance of a derivative against a difference, and the step of the difference. */
static double slack(void)
{
    return in_double ? 1e-8 : 2e-3;
}
static const double step = sizeof(real) == sizeof(double) ? 1e-3 : 3e-2;

static real number(uint32_t part, uint32_t i)
{
    const struct rng rng = {.seed = 9, .purpose = RNG_INIT, .part = part};
    return (real)rng_normal(&rng, i);
}

/* n rows of `used` random numbers, padded with zeros. */
static real *rows(uint32_t part, size_t n, size_t used)
{
    real *all = NEW(real, n * size_padded(used));
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < used; j++)
            all[r * size_padded(used) + j] = number(part, (uint32_t)(r * used + j));
    return all;
}

static double dot(const real *a, const real *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* A function of numbers that a test may change. */
struct probe {
    double (*value)(void *arg);
    void *arg;
};

/* d value / d *at, of fourth order. */
static double slope(const struct probe *probe, real *at)
{
    const real middle = *at;
    double f[4];
    static const double places[] = {1, -1, 2, -2};
    for (size_t k = 0; k < 4; k++) {
        *at = middle + (real)(places[k] * step);
        f[k] = probe->value(probe->arg);
    }
    *at = middle;
    return (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * step);
}

static void expect_near(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= slack() * (1 + fabs(expected))))
        fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static double tallied(const struct tally *tally, size_t at)
{
    return (double)((const int64_t *)tally->values)[at] * tally_unit(tally);
}

/* For every trained number of a layer, the gradient in the tally equals the probe's. */
static void expect_gradient(const char *what, struct params *params, const struct tally *tally,
                            const struct probe *probe)
{
    assert_int_equal(tally->out_of_range, 0);
    for (size_t i = 0; i < params->n; i++)
        if (params_find(params, i) != NULL)
            expect_near(what, tallied(tally, i), slope(probe, &params->value[i]));
        else
            assert_true(tallied(tally, i) == 0);
}

struct dense_case {
    struct params params;
    struct dense dense;
    struct dense_packed packed;
    size_t n_in, n_out;
    real *x, *y, *g;
};

static double dense_value(void *arg)
{
    struct dense_case *c = arg;
    dense_pack(&c->dense, &c->params, &c->packed, true);
    dense_forward(&c->dense, &c->params, &c->packed, ROWS, c->x, c->y);
    return dot(c->y, c->g, ROWS * size_padded(c->n_out));
}

static void test_dense(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{3, 5}, {16, 1}, {1, 33}, {21, 16}};
    for (size_t k = 0; k < COUNT(shapes); k++) {
        struct dense_case c = {.n_in = shapes[k][0], .n_out = shapes[k][1]};
        dense_declare(&c.dense, &c.params, c.n_in, c.n_out, "weight", "bias");
        params_allocate(&c.params);
        dense_init(&c.dense, &c.params, 3, 0.5);
        const size_t width = size_padded(c.n_in), columns = size_padded(c.n_out);
        real *const bias = params_rows(&c.params, c.dense.bias);
        for (size_t j = 0; j < c.n_out; j++)
            bias[j] = number(4, (uint32_t)j);
        c.x = rows(1, ROWS, c.n_in);
        c.g = rows(2, ROWS, c.n_out);
        c.y = NEW(real, ROWS * columns);
        const struct probe probe = {dense_value, &c};
        dense_value(&c);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t j = 0; j < c.n_out; j++) {
                double sum = (double)bias[j];
                for (size_t i = 0; i < c.n_in; i++)
                    sum += (double)c.x[r * width + i] *
                           (double)params_rows(&c.params, c.dense.weight)[i * columns + j];
                expect_near("y", (double)c.y[r * columns + j], sum);
            }
        struct tally tally;
        tally_create(&tally, c.params.n, true, BITS, NULL);
        real *dx = rows(5, ROWS, c.n_in), *scratch = NEW(real, c.n_in * columns);
        dense_backward(&c.dense, &c.params, &c.packed, ROWS, c.x, c.g, dx, scratch, &tally);
        expect_gradient("dense", &c.params, &tally, &probe);
        for (size_t i = 0; i < ROWS * width; i++)
            if (i % width < c.n_in)
                expect_near("dx", (double)dx[i], slope(&probe, &c.x[i]));
        tally_destroy(&tally);
        dense_unpack(&c.packed);
        params_free(&c.params);
        void *const all[] = {c.x, c.g, c.y, dx, scratch};
        for (size_t i = 0; i < COUNT(all); i++)
            memory_free(all[i]);
    }
}

struct norm_case {
    struct params params;
    struct layer_norm norm;
    real *x, *y, *g, *scale;
};

static double norm_value(void *arg)
{
    struct norm_case *c = arg;
    layer_norm_forward(&c->norm, &c->params, ROWS, c->x, c->y, c->scale);
    return dot(c->y, c->g, ROWS * size_padded(c->norm.n));
}

static void test_layer_norm(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 7, 16, 37};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        const size_t n = sizes[k], width = size_padded(n);
        struct norm_case c = {0};
        layer_norm_declare(&c.norm, &c.params, n, "norm");
        params_allocate(&c.params);
        layer_norm_init(&c.norm, &c.params);
        c.x = rows(1, ROWS, n);
        c.g = rows(2, ROWS, n);
        c.y = NEW(real, ROWS * width);
        c.scale = NEW(real, ROWS);
        norm_value(&c);
        for (size_t r = 0; r < ROWS; r++) { /* gain 1, bias 0: mean 0, variance 1 */
            double sum = 0, squares = 0;
            for (size_t j = 0; j < n; j++) {
                sum += (double)c.y[r * width + j];
                squares += (double)c.y[r * width + j] * (double)c.y[r * width + j];
            }
            assert_true(fabs(sum / (double)n) < 1e-5);
            assert_true(n == 2 || fabs(squares / (double)n - 1) < 1e-3);
        }
        for (size_t i = 0; i < 2 * width; i++)
            if (i % width < n)
                params_rows(&c.params, c.norm.panel)[i] += number(3, (uint32_t)i) / 4;
        const struct probe probe = {norm_value, &c};
        norm_value(&c);
        struct tally tally;
        tally_create(&tally, c.params.n, true, BITS, NULL);
        real *dx = NEW(real, ROWS * width), *scratch = NEW(real, 2 * width);
        layer_norm_backward(&c.norm, &c.params, ROWS, c.x, c.scale, c.g, dx, scratch, &tally);
        expect_gradient("layer norm", &c.params, &tally, &probe);
        for (size_t i = 0; in_double && n > 2 && i < ROWS * width; i++)
            if (i % width < n)
                expect_near("dx", (double)dx[i], slope(&probe, &c.x[i]));
        tally_destroy(&tally);
        params_free(&c.params);
        void *const all[] = {c.x, c.g, c.y, c.scale, dx, scratch};
        for (size_t i = 0; i < COUNT(all); i++)
            memory_free(all[i]);
    }
}

/* A function that maps one row to another. */
struct row_case {
    size_t n;
    int which;
    struct dropout dropout;
    real *x, *y, *g;
};

static double activation_value(void *arg)
{
    struct row_case *c = arg;
    memcpy(c->y, c->x, size_padded(c->n) * sizeof *c->y);
    activation_forward((enum activation)c->which, size_padded(c->n), c->y);
    return dot(c->y, c->g, c->n);
}

static double softmax_value(void *arg)
{
    struct row_case *c = arg;
    memcpy(c->y, c->x, size_padded(c->n) * sizeof *c->y);
    softmax_forward(c->y, c->n);
    return dot(c->y, c->g, c->n);
}

static double cross_entropy_value(void *arg)
{
    struct row_case *c = arg;
    return cross_entropy_softmax(c->x, c->n, (size_t)c->which, c->y);
}

static double dropout_value(void *arg)
{
    struct row_case *c = arg;
    const struct rng rng = {.seed = 5, .purpose = RNG_DROPOUT};
    return dot(dropout_forward(&c->dropout, &rng, c->x), c->g, c->n);
}

static void open_row(struct row_case *c, size_t n)
{
    *c = (struct row_case){
        .n = n, .x = rows(6, 1, n), .g = rows(7, 1, n), .y = NEW(real, size_padded(n))};
}

static void close_row(struct row_case *c)
{
    dropout_free(&c->dropout);
    memory_free(c->x);
    memory_free(c->g);
    memory_free(c->y);
}

static void test_activation(void **state)
{
    (void)state;
    for (int f = ACTIVATION_TANH; f <= ACTIVATION_RELU; f++) {
        struct row_case c;
        open_row(&c, 40);
        c.which = f;
        const struct probe probe = {activation_value, &c};
        real *d = NEW(real, size_padded(c.n));
        activation_value(&c);
        memcpy(d, c.y, size_padded(c.n) * sizeof *d);
        for (size_t i = 0; i < c.n; i++) {
            const double x = (double)c.x[i];
            expect_near("value", (double)d[i],
                        f == ACTIVATION_TANH      ? tanh(x)
                        : f == ACTIVATION_SIGMOID ? 1 / (1 + exp(-x))
                                                  : fmax(x, 0));
        }
        activation_backward((enum activation)f, size_padded(c.n), c.g, d);
        for (size_t i = 0; i < c.n; i++)
            if (f != ACTIVATION_RELU || fabs((double)c.x[i]) > 2 * step)
                expect_near("derivative", (double)d[i], slope(&probe, &c.x[i]));
        memory_free(d);
        close_row(&c);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 16, 19};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        struct row_case c;
        open_row(&c, sizes[k]);
        const struct probe probe = {softmax_value, &c};
        softmax_value(&c);
        double sum = 0;
        for (size_t i = 0; i < size_padded(c.n); i++) {
            sum += (double)c.y[i];
            assert_true(i < c.n ? c.y[i] > 0 : c.y[i] == 0);
        }
        expect_near("sum", sum, 1);
        real *d = NEW(real, size_padded(c.n)), *w = NEW(real, size_padded(c.n));
        memcpy(d, c.g, c.n * sizeof *d);
        memcpy(w, c.y, c.n * sizeof *w);
        softmax_backward(w, d, c.n);
        for (size_t i = 0; i < c.n; i++)
            expect_near("derivative", (double)d[i], slope(&probe, &c.x[i]));
        memory_free(d);
        memory_free(w);
        close_row(&c);
    }
    real nothing[WIDTH] __attribute__((aligned(64))) = {0};
    softmax_forward(nothing, 0);
    for (size_t i = 0; i < WIDTH; i++)
        assert_true(nothing[i] == 0);
    real large[WIDTH] __attribute__((aligned(64))) = {1000, 999, -1000};
    softmax_forward(large, 3);
    expect_near("large", (double)large[0], 1 / (1 + exp(-1)));
}

static void test_cross_entropy(void **state)
{
    (void)state;
    struct row_case c;
    open_row(&c, 11);
    for (c.which = 0; c.which < 11; c.which++) {
        const struct probe probe = {cross_entropy_value, &c};
        double sum = 0;
        for (size_t i = 0; i < c.n; i++)
            sum += exp((double)c.x[i]);
        expect_near("loss", cross_entropy_value(&c), log(sum) - (double)c.x[c.which]);
        real d[WIDTH];
        memcpy(d, c.y, sizeof d);
        for (size_t i = 0; i < c.n; i++)
            expect_near("minus the derivative", -(double)d[i], slope(&probe, &c.x[i]));
    }
    close_row(&c);
    static const double logits[] = {-800, -3, -0.1, 0, 2, 800};
    for (size_t k = 0; k < COUNT(logits); k++)
        for (double y = 0; y <= 1; y += 0.25) {
            double d;
            const double x = logits[k], loss = cross_entropy_logistic(x, y, &d);
            assert_true(isfinite(loss) && loss >= 0);
            if (fabs(x) < 100) {
                const double p = 1 / (1 + exp(-x));
                assert_true(fabs(loss + y * log(p) + (1 - y) * log(1 - p)) < 1e-12);
                assert_true(fabs(d - (y - p)) < 1e-12);
            }
        }
}

static void test_dropout(void **state)
{
    (void)state;
    struct row_case c;
    open_row(&c, 48);
    dropout_create(&c.dropout, 0.3, 48);
    const struct probe probe = {dropout_value, &c};
    dropout_value(&c);
    size_t n_dropped = 0;
    for (size_t i = 0; i < c.n; i++) {
        n_dropped += c.dropout.y[i] == 0;
        if (c.dropout.y[i] != 0)
            expect_near("kept", (double)c.dropout.y[i], (double)c.x[i] / 0.7);
    }
    assert_in_range(n_dropped, 5, 25);
    real *d = NEW(real, c.n);
    memcpy(d, c.g, c.n * sizeof *d);
    dropout_backward(&c.dropout, d);
    for (size_t i = 0; i < c.n; i++)
        expect_near("derivative", (double)d[i], slope(&probe, &c.x[i]));
    memory_free(d);
    c.dropout.rate = 0;
    assert_ptr_equal(dropout_forward(&c.dropout, NULL, c.x), c.x);
    close_row(&c);
}

struct embedding_case {
    struct params params;
    struct embedding input, output;
    real *h, *g;
};

/* g . (0.5 row 2 of the input), and the scores of rows 0 and 3 of the output at h. */
static double embedding_value(void *arg)
{
    struct embedding_case *c = arg;
    real *x = NEW(real, c->input.width);
    embedding_add(&c->input, &c->params, 2, (real)0.5, x);
    const double sum = dot(x, c->g, c->input.width) +
                       2 * (double)embedding_score(&c->output, &c->params, 0, c->h) -
                       (double)embedding_score(&c->output, &c->params, 3, c->h);
    memory_free(x);
    return sum;
}

static void test_embedding(void **state)
{
    (void)state;
    enum { N_ROWS = 4, N = 9 };
    struct embedding_case c = {.h = rows(1, 1, N), .g = rows(2, 1, N)};
    const size_t width = size_padded(N);
    c.input = (struct embedding){params_panel(&c.params, N_ROWS, width), width};
    c.output = (struct embedding){params_panel(&c.params, N_ROWS, width + 1), width};
    params_tensor(&c.params, &(struct tensor){"in", c.input.panel, 0, N, 2, {N_ROWS, N}, true});
    params_tensor(&c.params,
                  &(struct tensor){"out", c.output.panel, 0, N, 2, {N_ROWS, N}, true});
    params_tensor(&c.params,
                  &(struct tensor){"bias", c.output.panel, width, 1, 1, {N_ROWS}, false});
    params_allocate(&c.params);
    params_fill_uniform(&c.params, c.input.panel, 1, N, 1, 1);
    params_fill_uniform(&c.params, c.output.panel, 1, N, 1, 1);
    const struct probe probe = {embedding_value, &c};
    struct tally tally;
    tally_create(&tally, c.params.n, true, BITS, NULL);
    struct row_sums inputs, outputs;
    row_sums_create(&inputs, &c.params.panels[c.input.panel]);
    row_sums_create(&outputs, &c.params.panels[c.output.panel]);
    real *dh = NEW(real, width);
    embedding_add_backward(&c.input, 2, (real)0.5, c.g, &inputs);
    embedding_score_backward(&c.output, &c.params, 0, 2, c.h, dh, &outputs);
    embedding_score_backward(&c.output, &c.params, 3, -1, c.h, dh, &outputs);
    row_sums_flush(&inputs, &c.params.panels[c.input.panel], &tally);
    row_sums_flush(&outputs, &c.params.panels[c.output.panel], &tally);
    expect_gradient("embedding", &c.params, &tally, &probe);
    for (size_t j = 0; j < N; j++)
        expect_near("dh", (double)dh[j], slope(&probe, &c.h[j]));
    row_sums_free(&inputs);
    row_sums_free(&outputs);
    tally_destroy(&tally);
    params_free(&c.params);
    memory_free(dh);
    memory_free(c.h);
    memory_free(c.g);
}

/* Weights of the fourth of four positions, which attends to three or four of them. Queries
 * equal keys: (1, .5) (-.5, 2) (1.5, -1) (.3, .8); scores are divided by sqrt 2. */
static void test_attention(void **state)
{
    (void)state;
    static const double key[4][2] = {{1, .5}, {-.5, 2}, {1.5, -1}, {.3, .8}};
    static const double expected[2][4] = {{.314917598, .535200315, .149882086, 0},
                                          {.238272601, .404942664, .113403616, .243381119}};
    for (size_t seen = 3; seen <= 4; seen++) {
        real w[WIDTH] __attribute__((aligned(64))) = {0};
        for (size_t j = 0; j < seen; j++)
            w[j] = (real)((key[3][0] * key[j][0] + key[3][1] * key[j][1]) / sqrt(2));
        softmax_forward(w, seen);
        for (size_t j = 0; j < 4; j++)
            assert_true(fabs((double)w[j] - expected[seen - 3][j]) < 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),         cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_activation),    cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_embedding),     cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
