/* Softmax:
 *
 *     forward    w_j  = e^(x_j - m) / sum_k e^(x_k - m),   m = max x
 *     backward   dx_j = w_j (dw_j - sum_k w_k dw_k)
 *
 * A masked row (attention that may not see the future) is a shorter one: the caller passes the
 * number of places that may be seen. Sums are in double, in one order. */
#include "learn/layers/softmax.h"
#include "kernels/vec.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

double softmax_forward(real *x, size_t n)
{
    const size_t padded = size_padded(n);
    real most = -INFINITY;
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        most = x[j] > most ? x[j] : most;
    for (size_t j = 0; j < n; j++)
        x[j] -= most;
    memset(x + n, 0, (padded - n) * sizeof *x);
    vec->exp(x, padded);
    memset(x + n, 0, (padded - n) * sizeof *x);
    for (size_t j = 0; j < n; j++)
        sum += (double)x[j];
    const real scale = (real)(1 / sum);
    for (size_t j = 0; j < n; j++)
        x[j] *= scale;
    return (double)most + Sleef_cinz_logd1_u10purec(sum);
}

void softmax_backward(const real *w, real *dw, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += (double)w[j] * (double)dw[j];
    for (size_t j = 0; j < n; j++)
        dw[j] = w[j] * (real)((double)dw[j] - sum);
}
