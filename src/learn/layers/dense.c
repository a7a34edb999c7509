/* A dense layer over n rows:
 *
 *     forward    y  = b + x W
 *     backward   dx = dy W^T,   dW = x^T dy,   db = sum of the rows of dy
 *
 * A row of y and of dx has the same bits whatever rows are beside it (matmul.h). */
#include "learn/layers/dense.h"
#include "kernels/rnn_cells.h"
#include <stdio.h>
#include <string.h>

void dense_declare(struct dense *dense, struct params *params, size_t n_in, size_t n_out,
                   const char *weight, const char *bias)
{
    *dense = (struct dense){.n_in = n_in, .n_out = n_out};
    dense->weight = params_panel(params, n_in, n_out);
    dense->bias = params_panel(params, 1, n_out);
    struct tensor tensors[] = {
        {"", dense->weight, 0, n_out, 2, {n_in, n_out}, true},
        {"", dense->bias, 0, n_out, 1, {n_out}, false},
    };
    snprintf(tensors[0].name, sizeof tensors[0].name, "%s", weight);
    snprintf(tensors[1].name, sizeof tensors[1].name, "%s", bias);
    params_tensor(params, &tensors[0]);
    params_tensor(params, &tensors[1]);
}

void dense_init(const struct dense *dense, struct params *params, uint64_t seed, double size)
{
    params_fill_uniform(params, dense->weight, 1, dense->n_out, seed, size);
}

void dense_pack(const struct dense *dense, const struct params *params,
                struct dense_packed *packed, bool backward)
{
    const real *w = params_rows(params, dense->weight);
    const size_t columns = size_padded(dense->n_out);
    matmul_pack(&packed->forward, dense->n_in, columns, w, columns, false);
    if (backward)
        matmul_pack(&packed->backward, columns, dense->n_in, w, columns, true);
}

void dense_unpack(struct dense_packed *packed)
{
    matmul_free(&packed->forward);
    matmul_free(&packed->backward);
}

void dense_forward(const struct dense *dense, const struct params *params,
                   const struct dense_packed *packed, size_t n, const real *x, real *y)
{
    const size_t columns = size_padded(dense->n_out);
    const real *bias = params_rows(params, dense->bias);
    for (size_t r = 0; r < n; r++)
        memcpy(y + r * columns, bias, columns * sizeof *y);
    matmul->add(n, x, size_padded(dense->n_in), &packed->forward, y, columns);
}

void dense_backward(const struct dense *dense, const struct params *params,
                    const struct dense_packed *packed, size_t n, const real *x, const real *dy,
                    real *dx, real *scratch, struct tally *tally)
{
    const size_t rows = dense->n_in, width = size_padded(rows);
    const size_t columns = size_padded(dense->n_out);
    memset(scratch, 0, rows * columns * sizeof *scratch);
    matmul->outer(n, rows, columns, 1, x, width, dy, columns, scratch, columns);
    tally_add(tally, params->panels[dense->weight].offset, scratch, rows * columns);
    memset(scratch, 0, columns * sizeof *scratch);
    for (size_t r = 0; r < n; r++)
        rnn_cells->add(1, dy + r * columns, scratch, columns);
    tally_add(tally, params->panels[dense->bias].offset, scratch, columns);
    if (dx == NULL)
        return;
    memset(dx, 0, n * width * sizeof *dx);
    matmul->add(n, dy, columns, &packed->backward, dx, width);
}
