/* Dropout. With u_j uniform in [0, 1), named by seed, epoch, student and place, so that it is
 * the same on any rank:
 *
 *     mask_j = 0 if u_j < rate, else 1 / (1 - rate)
 *     forward    y_j  = x_j mask_j
 *     backward   dx_j = dy_j mask_j
 *
 * The scale keeps the mean, so that prediction uses x as it is. */
#include "learn/layers/dropout.h"
#include "base/memory.h"
#include "kernels/vec.h"

void dropout_create(struct dropout *dropout, double rate, size_t n)
{
    *dropout = (struct dropout){.rate = rate, .n = n};
    dropout->u = NEW(real, n + 4 * WIDTH); /* vec->uniform fills groups of 64 */
    dropout->mask = NEW(real, n);
    dropout->y = NEW(real, n);
}

void dropout_free(struct dropout *dropout)
{
    memory_free(dropout->u);
    memory_free(dropout->mask);
    memory_free(dropout->y);
    *dropout = (struct dropout){0};
}

const real *dropout_forward(struct dropout *dropout, const struct rng *rng, const real *x)
{
    if (dropout->rate == 0)
        return x;
    const real scale = (real)(1 / (1 - dropout->rate));
    vec->uniform(rng, dropout->u, dropout->n);
    for (size_t j = 0; j < dropout->n; j++) {
        dropout->mask[j] = dropout->u[j] < (real)dropout->rate ? 0 : scale;
        dropout->y[j] = x[j] * dropout->mask[j];
    }
    return dropout->y;
}

void dropout_backward(const struct dropout *dropout, real *dx)
{
    if (dropout->rate > 0)
        for (size_t j = 0; j < dropout->n; j++)
            dx[j] *= dropout->mask[j];
}
