/* Activation functions. Each derivative is a function of the value, so that the input need not
 * be kept:
 *
 *     y = tanh z             dy/dz = 1 - y^2
 *     y = 1 / (1 + e^-z)     dy/dz = y (1 - y)
 *     y = max(z, 0)          dy/dz = 1 if y > 0, else 0 */
#include "learn/layers/activation.h"
#include "kernels/rnn_cells.h"
#include "kernels/vec.h"

void activation_forward(enum activation f, size_t n, real *z)
{
    if (f == ACTIVATION_TANH)
        rnn_cells->rnn_forward(1, n, z, z);
    else if (f == ACTIVATION_SIGMOID)
        vec->sigmoid(z, n);
    else
        for (size_t i = 0; i < n; i++)
            z[i] = z[i] > 0 ? z[i] : 0;
}

void activation_backward(enum activation f, size_t n, const real *dy, real *y)
{
    if (f == ACTIVATION_TANH)
        rnn_cells->rnn_backward(1, n, dy, y);
    else if (f == ACTIVATION_SIGMOID)
        for (size_t i = 0; i < n; i++)
            y[i] = dy[i] * y[i] * (1 - y[i]);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = y[i] > 0 ? dy[i] : 0;
}
