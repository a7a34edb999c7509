/* Element-wise kernels of recurrent cells, over all active students of a step; see
 * src/kernels/rnn_cells.h for the equations. Rows are students, and a gate is a block of
 * `width` columns of z; for the lstm:
 *
 *                 width      width      width      width
 *     student   | input i  | forget f | output o | fresh g  |
 *     student   | ...
 */
#include "kernels/rnn_cells.h"
#include "kernels/simd.h"

static inline rreal sigmoid(rreal x)
{
    return 1 / (1 + simd_exp(-x));
}

/* tanh x = 1 - 2 / (1 + e^2x): exact at both ends; its error is that of the exponential. */
static inline rreal hyperbolic(rreal x)
{
    return 1 - 2 / (1 + simd_exp(x + x));
}

static void rnn_forward(size_t n, size_t width, real *z, real *h)
{
    for (size_t i = 0; i < n * width; i += LANES)
        AT(h, i) = AT(z, i) = hyperbolic(IN(z, i));
}

static void rnn_backward(size_t n, size_t width, const real *dh, real *z)
{
    for (size_t i = 0; i < n * width; i += LANES)
        AT(z, i) = IN(dh, i) * (1 - IN(z, i) * IN(z, i));
}

static void lstm_forward(size_t n, size_t width, real *z, const real *c_before, real *c,
                         real *h)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            const size_t at = row * width + j;
            real *const gate = z + 4 * row * width + j;
            const rreal in = sigmoid(IN(gate, 0)), forget = sigmoid(IN(gate, width));
            const rreal out = sigmoid(IN(gate, 2 * width)),
                        fresh = hyperbolic(IN(gate, 3 * width));
            const rreal cell = forget * IN(c_before, at) + in * fresh;
            AT(gate, 0) = in;
            AT(gate, width) = forget;
            AT(gate, 2 * width) = out;
            AT(gate, 3 * width) = fresh;
            AT(c, at) = cell;
            AT(h, at) = out * hyperbolic(cell);
        }
}

static void lstm_backward(size_t n, size_t width, const real *dh, const real *c_before,
                          const real *c, real *z, real *dc)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            const size_t at = row * width + j;
            real *const gate = z + 4 * row * width + j;
            const rreal in = IN(gate, 0), forget = IN(gate, width);
            const rreal out = IN(gate, 2 * width), fresh = IN(gate, 3 * width);
            const rreal squashed = hyperbolic(IN(c, at));
            const rreal d_cell = IN(dc, at) + IN(dh, at) * out * (1 - squashed * squashed);
            AT(gate, 0) = d_cell * fresh * in * (1 - in);
            AT(gate, width) = d_cell * IN(c_before, at) * forget * (1 - forget);
            AT(gate, 2 * width) = IN(dh, at) * squashed * out * (1 - out);
            AT(gate, 3 * width) = d_cell * in * (1 - fresh * fresh);
            AT(dc, at) = d_cell * forget;
        }
}

static void gru_gates(size_t n, size_t width, real *z, const real *h_before, real *gated)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            real *const gate = z + 3 * row * width + j;
            AT(gate, 0) = sigmoid(IN(gate, 0));
            AT(gate, width) = sigmoid(IN(gate, width));
            AT(gated, row * width + j) = IN(gate, 0) * IN(h_before, row * width + j);
        }
}

static void gru_forward(size_t n, size_t width, real *z, const real *h_before, real *h)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            const size_t at = row * width + j;
            real *const gate = z + 3 * row * width + j;
            const rreal keep = IN(gate, width), fresh = hyperbolic(IN(gate, 2 * width));
            AT(gate, 2 * width) = fresh;
            AT(h, at) = keep * IN(h_before, at) + (1 - keep) * fresh;
        }
}

static void gru_candidate(size_t n, size_t width, const real *dh, const real *h_before, real *z,
                          real *dh_before)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            const size_t at = row * width + j;
            real *const gate = z + 3 * row * width + j;
            const rreal keep = IN(gate, width), fresh = IN(gate, 2 * width), d = IN(dh, at);
            AT(gate, width) = d * (IN(h_before, at) - fresh) * keep * (1 - keep);
            AT(gate, 2 * width) = d * (1 - keep) * (1 - fresh * fresh);
            AT(dh_before, at) = d * keep;
        }
}

static void gru_reset(size_t n, size_t width, const real *d_gated, const real *h_before,
                      real *z, real *dh_before)
{
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < width; j += LANES) {
            const size_t at = row * width + j;
            real *const gate = z + 3 * row * width + j;
            const rreal reset = IN(gate, 0), d = IN(d_gated, at);
            AT(gate, 0) = d * IN(h_before, at) * reset * (1 - reset);
            AT(dh_before, at) += d * reset;
        }
}

static inline __attribute__((always_inline)) void
combine_columns(const real *h, size_t n, const real *w, size_t stride, real *z, int groups)
{
    rreal sum[4 * REGISTERS] = {0};
    UNROLL for (int r = 0; r < groups * REGISTERS; r++) sum[r] = IN(z, (size_t)r * LANES);
    for (size_t j = 0; j < n; j++)
        UNROLL for (int r = 0; r < groups * REGISTERS; r++) sum[r] +=
            h[j] * IN(w + j * stride, (size_t)r * LANES);
    UNROLL for (int r = 0; r < groups * REGISTERS; r++) AT(z, (size_t)r * LANES) = sum[r];
}

static void combine(const real *h, size_t n, const real *w, size_t stride, real *z,
                    size_t n_columns)
{
    size_t c = 0;
    for (; c + 4 * WIDTH <= n_columns; c += 4 * WIDTH)
        combine_columns(h, n, w + c, stride, z + c, 4);
    for (; c < n_columns; c += WIDTH)
        combine_columns(h, n, w + c, stride, z + c, 1);
}

static real dot(const real *a, const real *b, size_t n)
{
    rreal sum[REGISTERS] = {0};
    for (size_t i = 0; i < n; i += WIDTH)
        UNROLL for (int r = 0; r < REGISTERS; r++) sum[r] +=
            IN(a, i + (size_t)r * LANES) * IN(b, i + (size_t)r * LANES);
    return simd_total(sum);
}

static void add(real scale, const real *a, real *b, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        AT(b, i) += scale * IN(a, i);
}

extern const struct rnn_cells_table KERNEL(rnn_cells);
const struct rnn_cells_table KERNEL(rnn_cells) = {
    .rnn_forward = rnn_forward,
    .rnn_backward = rnn_backward,
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
    .gru_gates = gru_gates,
    .gru_forward = gru_forward,
    .gru_candidate = gru_candidate,
    .gru_reset = gru_reset,
    .combine = combine,
    .dot = dot,
    .add = add,
};
