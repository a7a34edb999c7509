/* Cross-entropy. Loss and derivative come from the logits together, so that neither overflows
 * nor takes the logarithm of a probability that was rounded to zero:
 *
 *     logistic   loss = log(1 + e^-|x|) + max(x, 0) - x y     -d loss/dx   = y - sigma(x)
 *     softmax    loss = log sum_j e^x_j - x_target            -d loss/dx_j = [j = target] - p_j
 *
 * Signs are those of a tally: minus the derivative of the loss (model.h). */
#include "learn/layers/cross_entropy.h"
#include "learn/layers/softmax.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

double cross_entropy_logistic(double x, double y, double *d)
{
    *d = y - 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
    return Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(-fabs(x))) + fmax(x, 0) -
           x * y;
}

double cross_entropy_softmax(const real *x, size_t n, size_t target, real *d)
{
    memcpy(d, x, n * sizeof *d);
    const double loss = softmax_forward(d, n) - (double)x[target];
    for (size_t j = 0; j < n; j++)
        d[j] = (j == target ? 1 : 0) - d[j];
    return loss;
}
