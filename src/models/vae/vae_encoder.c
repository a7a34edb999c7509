/* The encoder, forward and backward; symbols as in vae.c.
 *
 *     z_1 = bias + x / sqrt(1 + n) + log(1 + n) count,  x = sum of the rows of the n answers
 *     h_l = tanh(z_l),  z_{l+1} = bias_l + h_l W_l,  out = bias + h_last W_out
 *
 * x is a sum of rows of a table, never a product with zeros. The root keeps z_1 at the same
 * scale for students with few and with many answers; log(1 + n) distinguishes them, since the
 * width of the posterior depends on n most. Rows go through the dense layers together: all
 * histories of a block in training, all of one student in prediction. */
#include "base/memory.h"
#include "kernels/rnn_cells.h"
#include "learn/layers/activation.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { LEAST_LOG = -16, MOST_LOG = 1 }; /* of log L_kk */

void vae_encoder_reserve(struct vae_work *work, size_t n_rows)
{
    const struct vae_shape *shape = work->shape;
    if (n_rows <= work->row_capacity)
        return;
    const size_t n = work->row_capacity = n_rows + n_rows / 4;
    real **const tables[] = {&work->dh, &work->out, &work->d_out};
    for (size_t k = 0; k < COUNT(tables); k++) {
        memory_free(*tables[k]);
        *tables[k] = NEW(real, n * (k == 0 ? shape->width : shape->n_out));
    }
    for (size_t l = 0; l < shape->n_layers; l++) {
        memory_free(work->h[l]);
        work->h[l] = NEW(real, n * shape->width);
    }
    work->rows = memory_resize(work->rows, n, sizeof *work->rows);
}

void vae_encoder_pack(const struct model *model, struct vae_work *work, bool back)
{
    const struct vae_shape *shape = work->shape;
    for (size_t l = 1; l <= shape->n_layers; l++)
        dense_pack(&shape->layer[l], &model->params, &work->packed[l], back);
}

static real scale_of(size_t n)
{
    return (real)(1 / sqrt(1 + (double)n));
}

static real log_of(size_t n)
{
    return (real)Sleef_cinz_log1pd1_u10purec((double)n);
}

void vae_encoder_start(const struct model *model, struct vae_work *work, size_t r,
                       const real *sum, size_t n)
{
    const struct vae_shape *shape = work->shape;
    real *z = work->h[0] + r * shape->width;
    memcpy(z, params_rows(&model->params, shape->bias), shape->width * sizeof *z);
    rnn_cells->add(log_of(n), params_rows(&model->params, shape->count), z, shape->width);
    rnn_cells->add(scale_of(n), sum, z, shape->width);
}

void vae_encoder_finish(const struct model *model, struct vae_work *work, size_t n)
{
    const struct vae_shape *shape = work->shape;
    for (size_t l = 1; l <= shape->n_layers; l++) {
        activation_forward(ACTIVATION_TANH, n * shape->width, work->h[l - 1]);
        dense_forward(&shape->layer[l], &model->params, &work->packed[l], n, work->h[l - 1],
                      l < shape->n_layers ? work->h[l] : work->out);
    }
}

/* The sum of the rows of n answers. */
static void read_answers(const struct model *model, struct vae_work *work, const uint32_t *unit,
                         size_t n)
{
    const struct vae_shape *shape = work->shape;
    memset(work->sum, 0, shape->width * sizeof *work->sum);
    for (size_t j = 0; j < n; j++)
        embedding_add(&shape->input, &model->params, unit[j], 1, work->sum);
}

void vae_encoder_forward(const struct model *model, struct vae_work *work)
{
    vae_encoder_pack(model, work, true);
    for (size_t r = 0; r < work->n_rows; r++) {
        const struct vae_row *row = &work->rows[r];
        read_answers(model, work, work->unit + work->first[row->student], row->n);
        vae_encoder_start(model, work, r, work->sum, row->n);
    }
    vae_encoder_finish(model, work, work->n_rows);
}

void vae_encoder_backward(const struct model *model, struct vae_work *work, struct tally *tally)
{
    const struct vae_shape *shape = work->shape;
    const size_t width = shape->width, n = work->n_rows;
    const real *dz = work->d_out;
    for (size_t l = shape->n_layers; l > 0; l--) {
        dense_backward(&shape->layer[l], &model->params, &work->packed[l], n, work->h[l - 1],
                       dz, work->dh, work->gradient, tally);
        activation_backward(ACTIVATION_TANH, n * width, work->dh, work->h[l - 1]);
        dz = work->h[l - 1];
    }
    real *const d_bias = work->gradient, *const d_count = work->gradient + width;
    memset(work->gradient, 0, 2 * width * sizeof *work->gradient);
    for (size_t r = 0; r < n; r++) {
        const struct vae_row *row = &work->rows[r];
        const uint32_t *unit = work->unit + work->first[row->student];
        const real *d = dz + r * width;
        rnn_cells->add(1, d, d_bias, width);
        rnn_cells->add(log_of(row->n), d, d_count, width);
        for (size_t j = 0; j < row->n; j++)
            embedding_add_backward(&shape->input, unit[j], scale_of(row->n), d, &work->inputs);
    }
    tally_add(tally, model->params.panels[shape->bias].offset, d_bias, width);
    tally_add(tally, model->params.panels[shape->count].offset, d_count, width);
    row_sums_flush(&work->inputs, &model->params.panels[shape->input.panel], tally);
}

/* Off the diagonal, L_kj stands behind the K means and the K logarithms, row by row.
 *
 * Answers only narrow the prior, whose abilities have variance 1, so that at the optimum
 * log L_kk <= 0. Logarithms are held a little above that, where an encoder that steps too far
 * cannot raise e^x without end; the derivative there still leads back. */
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
        const double log_root = fmin(fmax((double)out[n + k], LEAST_LOG), MOST_LOG);
        row[k] = (real)Sleef_cinz_expd1_u10purec(log_root);
        posterior->log_det += log_root;
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

void vae_encoder_read(const struct model *model, struct vae_work *work, const uint32_t *unit,
                      size_t n, struct vae_posterior *posterior)
{
    vae_encoder_reserve(work, 1);
    vae_encoder_pack(model, work, false);
    read_answers(model, work, unit, n);
    vae_encoder_start(model, work, 0, work->sum, n);
    vae_encoder_finish(model, work, 1);
    vae_posterior_of(work->shape, work->out, posterior);
}
