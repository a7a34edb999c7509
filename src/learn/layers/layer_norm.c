/* Layer normalisation of a row x of n numbers (Ba, Kiros and Hinton, 2016):
 *
 *     m = mean of x,   v = mean of (x - m)^2,   s = 1 / sqrt(v + 1e-5)
 *     z = (x - m) s
 *     forward    y  = gain z + bias
 *     backward   dz = gain dy
 *                dx = s (dz - mean of dz - z mean of dz z)
 *                d gain = sum over rows of dy z,   d bias = sum over rows of dy
 *
 * Means are summed in double, in one order. */
#include "learn/layers/layer_norm.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GAIN, BIAS, PARTS = 8 };
static const double epsilon = 1e-5;

void layer_norm_declare(struct layer_norm *norm, struct params *params, size_t n,
                        const char *name)
{
    *norm = (struct layer_norm){.n = n, .panel = params_panel(params, 2, n)};
    struct tensor tensor = {"", norm->panel, 0, n, 2, {2, n}, false};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    params_tensor(params, &tensor);
}

void layer_norm_init(const struct layer_norm *norm, struct params *params)
{
    for (size_t j = 0; j < norm->n; j++)
        params_rows(params, norm->panel)[j] = 1;
}

/* The mean of (a_j - shift) (b_j - shift); b NULL: of a_j. */
static double mean_of(const real *a, const real *b, double shift, size_t n)
{
    double part[PARTS] = {0};
    for (size_t j = 0; j < n; j++)
        part[j % PARTS] +=
            b == NULL ? (double)a[j] : ((double)a[j] - shift) * ((double)b[j] - shift);
    return (((part[0] + part[4]) + (part[1] + part[5])) +
            ((part[2] + part[6]) + (part[3] + part[7]))) /
           (double)n;
}

void layer_norm_forward(const struct layer_norm *norm, const struct params *params,
                        size_t n_rows, const real *x, real *y, real *scale)
{
    const size_t n = norm->n, width = size_padded(n);
    const real *gain = params_rows(params, norm->panel) + GAIN * width;
    const real *bias = params_rows(params, norm->panel) + BIAS * width;
    for (size_t r = 0; r < n_rows; r++, x += width, y += width) {
        const double mean = mean_of(x, NULL, 0, n);
        scale[r] = (real)(1 / sqrt(mean_of(x, x, mean, n) + epsilon));
        for (size_t j = 0; j < n; j++)
            y[j] = gain[j] * ((x[j] - (real)mean) * scale[r]) + bias[j];
        memset(y + n, 0, (width - n) * sizeof *y);
    }
}

void layer_norm_backward(const struct layer_norm *norm, const struct params *params,
                         size_t n_rows, const real *x, const real *scale, const real *dy,
                         real *dx, real *scratch, struct tally *tally)
{
    const size_t n = norm->n, width = size_padded(n);
    const real *gain = params_rows(params, norm->panel) + GAIN * width;
    real *const d_gain = scratch + GAIN * width, *const d_bias = scratch + BIAS * width;
    memset(scratch, 0, 2 * width * sizeof *scratch);
    for (size_t r = 0; r < n_rows; r++, x += width, dy += width, dx += width) {
        const real mean = (real)mean_of(x, NULL, 0, n);
        double dz = 0, dz_z = 0;
        for (size_t j = 0; j < n; j++) {
            const real z = (x[j] - mean) * scale[r];
            d_gain[j] += dy[j] * z;
            d_bias[j] += dy[j];
            dz += (double)(gain[j] * dy[j]);
            dz_z += (double)(gain[j] * dy[j]) * (double)z;
        }
        dz /= (double)n;
        dz_z /= (double)n;
        for (size_t j = 0; j < n; j++) {
            const double z = (double)((x[j] - mean) * scale[r]);
            dx[j] = scale[r] * (real)((double)(gain[j] * dy[j]) - dz - z * dz_z);
        }
        memset(dx + n, 0, (width - n) * sizeof *dx);
    }
    tally_add(tally, params->panels[norm->panel].offset, scratch, 2 * width);
}
