/* The encoder, forward and backward; symbols as in vae.c.
 *
 *     z_1 = bias + x / sqrt(1 + n) + log(1 + n) count,  x = sum of the rows of the n answers
 *     h_l = tanh(z_l),  z_{l+1} = bias_l + h_l W_l,  out = bias + h_last W_out
 *
 * x is a sum of rows of a table, never a product with zeros. The root keeps z_1 of the same
 * size for students of few and of many answers, and log(1 + n) tells them apart: what the
 * posterior's width depends on most. Rows of a block go through the dense layers together by
 * matrix products; a student alone (prediction) goes by row kernels, whose bits depend on that
 * student only. */
#include "cells.h"
#include "memory.h"
#include "vae_parts.h"
#include <cblas.h>
#include <math.h>
#include <sleef.h>
#include <string.h>

#ifdef COHORT_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

void vae_encoder_reserve(const struct model *model, struct vae_work *work)
{
    const struct vae_shape *shape = &work->shape;
    (void)model;
    if (work->gradient == NULL)
        work->gradient = NEW(real, (shape->hidden + 1) * size_max(shape->width, shape->n_out));
    if (work->n_rows <= work->row_capacity)
        return;
    const size_t n = work->row_capacity = work->n_rows + work->n_rows / 4;
    real **const tables[] = {&work->dh[0], &work->dh[1], &work->out, &work->d_out};
    for (size_t k = 0; k < COUNT(tables); k++) {
        memory_free(*tables[k]);
        *tables[k] = NEW(real, n * (k < 2 ? shape->width : shape->n_out));
    }
    for (size_t l = 0; l < shape->n_layers; l++) {
        memory_free(work->h[l]);
        work->h[l] = NEW(real, n * shape->width);
    }
}

static real scale_of(size_t n)
{
    return (real)(1 / sqrt(1 + (double)n));
}

static real log_of(size_t n)
{
    return (real)Sleef_cinz_log1pd1_u10purec((double)n);
}

/* z += bias + x / sqrt(1 + n) + log(1 + n) count */
static void first_layer(const struct model *model, const struct vae_shape *shape,
                        const real *sum, size_t n, real *z)
{
    memcpy(z, params_rows(&model->params, shape->bias), shape->width * sizeof *z);
    cells->add(log_of(n), params_rows(&model->params, shape->count), z, shape->width);
    cells->add(scale_of(n), sum, z, shape->width);
}

static void copy_bias(const struct model *model, size_t panel, size_t width, size_t n, real *z)
{
    const real *bias = params_rows(&model->params, panel);
    for (size_t r = 0; r < n; r++)
        memcpy(z + r * width, bias, width * sizeof *z);
}

void vae_encoder_forward(const struct model *model, struct vae_work *work)
{
    const struct vae_shape *shape = &work->shape;
    const size_t width = shape->width, n = work->n_rows, top = shape->n_layers - 1;
    const real *input = params_rows(&model->params, shape->input);
    for (size_t r = 0; r < n; r++) {
        const struct vae_row *row = &work->rows[r];
        const uint32_t *unit = work->unit + work->first[row->student];
        memset(work->sum, 0, width * sizeof *work->sum);
        for (size_t j = 0; j < row->n; j++)
            cells->add(1, input + unit[j] * width, work->sum, width);
        first_layer(model, shape, work->sum, row->n, work->h[0] + r * width);
    }
    cells->rnn_forward(n, width, work->h[0], work->h[0]);
    for (size_t l = 1; l < shape->n_layers; l++) {
        copy_bias(model, shape->layer_bias[l], width, n, work->h[l]);
        GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)width, (int)shape->hidden,
             1, work->h[l - 1], (int)width, params_rows(&model->params, shape->weight[l]),
             (int)width, 1, work->h[l], (int)width);
        cells->rnn_forward(n, width, work->h[l], work->h[l]);
    }
    copy_bias(model, shape->output_bias, shape->n_out, n, work->out);
    GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)shape->n_out,
         (int)shape->hidden, 1, work->h[top], (int)width,
         params_rows(&model->params, shape->output), (int)shape->n_out, 1, work->out,
         (int)shape->n_out);
}

/* The statistics of a layer h W + bias: h^T dz, and the sum of dz. */
static void add_layer(const struct model *model, struct vae_work *work, size_t weight,
                      size_t bias, size_t columns, const real *h, const real *dz,
                      struct tally *tally)
{
    const struct vae_shape *shape = &work->shape;
    const struct panel *p = &model->params.panels[weight];
    GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)shape->hidden, (int)columns,
         (int)work->n_rows, 1, h, (int)shape->width, dz, (int)columns, 0, work->gradient,
         (int)columns);
    tally_add(tally, p->offset, work->gradient, shape->hidden * columns);
    memset(work->gradient, 0, columns * sizeof *work->gradient);
    for (size_t r = 0; r < work->n_rows; r++)
        cells->add(1, dz + r * columns, work->gradient, columns);
    tally_add(tally, model->params.panels[bias].offset, work->gradient, columns);
}

static void back(const struct model *model, struct vae_work *work, size_t weight,
                 size_t columns, const real *dz, real *dh)
{
    const struct vae_shape *shape = &work->shape;
    GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)work->n_rows, (int)shape->hidden,
         (int)columns, 1, dz, (int)columns, params_rows(&model->params, weight), (int)columns,
         0, dh, (int)shape->width);
}

void vae_encoder_backward(const struct model *model, struct vae_work *work, struct tally *tally)
{
    const struct vae_shape *shape = &work->shape;
    const size_t width = shape->width, n = work->n_rows, top = shape->n_layers - 1;
    add_layer(model, work, shape->output, shape->output_bias, shape->n_out, work->h[top],
              work->d_out, tally);
    real *dh = work->dh[0], *below = work->dh[1];
    memset(dh, 0, n * width * sizeof *dh); /* padding is not written by the products */
    memset(below, 0, n * width * sizeof *below);
    back(model, work, shape->output, shape->n_out, work->d_out, dh);
    for (size_t l = top; l > 0; l--) {
        cells->rnn_backward(n, width, dh, work->h[l]);
        add_layer(model, work, shape->weight[l], shape->layer_bias[l], width, work->h[l - 1],
                  work->h[l], tally);
        back(model, work, shape->weight[l], width, work->h[l], below);
        real *const swap = dh;
        dh = below;
        below = swap;
    }
    cells->rnn_backward(n, width, dh, work->h[0]);

    real *const d_bias = work->gradient, *const d_count = work->gradient + width;
    memset(work->gradient, 0, 2 * width * sizeof *work->gradient);
    for (size_t r = 0; r < n; r++) {
        const struct vae_row *row = &work->rows[r];
        const uint32_t *unit = work->unit + work->first[row->student];
        const real *dz = work->h[0] + r * width;
        cells->add(1, dz, d_bias, width);
        cells->add(log_of(row->n), dz, d_count, width);
        for (size_t j = 0; j < row->n; j++)
            cells->add(scale_of(row->n), dz, touched_at(&work->inputs, unit[j]), width);
    }
    tally_add(tally, model->params.panels[shape->bias].offset, d_bias, width);
    tally_add(tally, model->params.panels[shape->count].offset, d_count, width);
    touched_flush(&work->inputs, &model->params.panels[shape->input], tally);
}

/* Off the diagonal, L_kj stands behind the K means and the K logarithms, row by row. */
void vae_posterior_of(const struct vae_shape *shape, const real *out,
                      struct vae_posterior *posterior)
{
    const size_t n = shape->n_dims;
    const real *rest = out + 2 * n;
    posterior->log_det = 0;
    for (size_t k = 0; k < n; k++) {
        real *row = posterior->root + k * n;
        posterior->mean[k] = out[k];
        for (size_t j = 0; j < n; j++)
            row[j] = j < k && shape->full ? *rest++ : 0;
        row[k] = (real)Sleef_cinz_expd1_u10purec((double)out[n + k]);
        posterior->log_det += (double)out[n + k];
    }
}

void vae_posterior_draw(const struct vae_shape *shape, const struct vae_posterior *posterior,
                        const real *epsilon, real *theta)
{
    const size_t n = shape->n_dims;
    for (size_t k = 0; k < n; k++) {
        theta[k] = posterior->mean[k];
        for (size_t j = shape->full ? 0 : k; j <= k; j++)
            theta[k] += posterior->root[k * n + j] * epsilon[j];
    }
}

void vae_encoder_read(const struct model *model, struct vae_work *work, const real *sum,
                      size_t n, struct vae_posterior *posterior)
{
    const struct vae_shape *shape = &work->shape;
    const size_t width = shape->width, widest = size_max(width, shape->n_out);
    real *h = work->z, *z = work->z + widest;
    first_layer(model, shape, sum, n, h);
    cells->rnn_forward(1, width, h, h);
    for (size_t l = 1; l < shape->n_layers; l++) {
        memcpy(z, params_rows(&model->params, shape->layer_bias[l]), width * sizeof *z);
        cells->combine(h, shape->hidden, params_rows(&model->params, shape->weight[l]), width,
                       z, width);
        cells->rnn_forward(1, width, z, h);
    }
    memcpy(z, params_rows(&model->params, shape->output_bias), shape->n_out * sizeof *z);
    cells->combine(h, shape->hidden, params_rows(&model->params, shape->output), shape->n_out,
                   z, shape->n_out);
    vae_posterior_of(shape, z, posterior);
}
