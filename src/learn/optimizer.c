/* Gradient ascent. g is the gradient summed over the mini-batch, divided by the mean number of
 * students in a mini-batch, so that a larger batch needs no other learning rate. With
 * gradient = sum it is not divided: the learning rates of the source are for sums.
 *
 *     sgd     v = momentum v + g
 *             w = w + rate v - rate decay w
 *
 *     adam    m = beta1 m + (1 - beta1) g
 *             v = beta2 v + (1 - beta2) g^2
 *             m' = m / (1 - beta1^t)
 *             v' = v / (1 - beta2^t)
 *             w = w + rate m' / (sqrt(v') + epsilon) - rate decay w
 *
 * `rate` is that of the step (learning_rate.c). Weight decay is decoupled from the gradient and does not apply to biases. Adam's bias
 * corrections are folded into the rate and epsilon:
 *
 *     m' / (sqrt(v') + epsilon) = (c2 / c1) m / (sqrt(v) + c2 epsilon)
 *     c1 = 1 - beta1^t
 *     c2 = sqrt(1 - beta2^t)
 *
 * optimizer.average keeps a running mean of the parameters (Polyak averaging). The mean, which
 * averages out the noise of the last steps, is validated and saved as the best; training
 * continues from the parameters themselves.
 *
 * Clipping scales g so that its norm is at most `clip`. The norm is a floating-point sum over
 * ranks and needs a fixed order: the squares of each row are summed first, then every rank adds
 * the sums of all rows in order. */
#include "learn/optimizer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/vec.h"
#include "learn/learning_rate.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static const char *const methods[] = {"sgd", "adam", NULL};
static const char *const gradients[] = {"mean", "sum", NULL};
const char *const optimizer_slot_names[2][3] = {{"momentum", "average", NULL},
                                                {"mean", "square", "average"}};

#define AT(field) offsetof(struct optimizer_options, field)
const struct option optimizer_table[] = {
    {"method", OPTION_CHOICE, AT(method), "sgd", 0, 0, methods, "sgd with momentum, or adam"},
    {"rate", OPTION_NUMBER, AT(rate), "0.001", 0, 1e6, NULL, "learning rate"},
    {"gradient", OPTION_CHOICE, AT(gradient), "mean", 0, 0, gradients,
     "mean: rate and clip are for the mean gradient per student, so that a change of batch "
     "needs no change of rate; sum: for the sum over the mini-batch"},
    {"bias_rate", OPTION_NUMBER, AT(bias_rate), "1", 0, 1e6, NULL,
     "learning rate of the biases, as a multiple of rate"},
    {"momentum", OPTION_NUMBER, AT(momentum), "0.9", 0, 0.9999, NULL,
     "momentum coefficient (sgd)"},
    {"decay", OPTION_NUMBER, AT(decay), "0", 0, 1e6, NULL,
     "weight decay: weights shrink by rate * decay per step; biases do not"},
    {"beta1", OPTION_NUMBER, AT(beta1), "0.9", 0, 0.9999, NULL,
     "decay rate of the first moment (adam)"},
    {"beta2", OPTION_NUMBER, AT(beta2), "0.999", 0, 0.999999, NULL,
     "decay rate of the second moment (adam)"},
    {"epsilon", OPTION_NUMBER, AT(epsilon), "1e-8", 1e-30, 1, NULL,
     "added to the denominator (adam)"},
    {"clip", OPTION_NUMBER, AT(clip), "0", 0, 1e30, NULL,
     "largest norm of the gradient; 0: no limit"},
    {"average", OPTION_NUMBER, AT(average), "0", 0, 0.999999, NULL,
     "decay rate of a running mean of the parameters; validation and best.h5 use the mean "
     "instead of the parameters; 0: no mean"},
    {"schedule", OPTION_CHOICE, AT(schedule), "constant", 0, 0, learning_rate_schedules,
     "how the learning rate falls over train.epochs"},
    {"floor", OPTION_NUMBER, AT(floor), "0", 0, 1, NULL,
     "where linear and cosine end, as a fraction of rate"},
    {"drop", OPTION_NUMBER, AT(drop), "0.5", 0, 1, NULL,
     "factor by which the step schedule lowers the learning rate"},
    {"drop_every", OPTION_INTEGER, AT(drop_every), "10", 1, 1e9, NULL,
     "epochs between drops of the step schedule"},
    {"warm_up", OPTION_INTEGER, AT(warm_up), "0", 0, 1e9, NULL,
     "steps over which the learning rate rises from zero"},
};
const size_t n_optimizer_table = COUNT(optimizer_table);

void optimizer_create(struct optimizer *optimizer, const struct optimizer_options *options,
                      const struct params *params, const struct exact_slices *slices,
                      int64_t n_epochs, double n_students)
{
    *optimizer = (struct optimizer){
        .options = *options,
        .params = params,
        .slices = slices,
        .n_slots = (options->method == METHOD_ADAM ? 2 : 1) + (options->average > 0),
        .n_epochs = n_epochs,
        .share = options->gradient == GRADIENT_MEAN ? 1 / fmax(1, n_students) : 1};
    for (int k = 0; k < optimizer->n_slots; k++)
        optimizer->slot[k] = NEW(real, params->n);
    size_t widest = WIDTH;
    for (size_t p = 0; p < params->n_panels; p++)
        widest = size_max(widest, params->panels[p].stride);
    optimizer->rate = NEW(real, widest);
    optimizer->decay = NEW(real, widest);
}

void optimizer_destroy(struct optimizer *optimizer)
{
    for (int k = 0; k < optimizer->n_slots; k++)
        memory_free(optimizer->slot[k]);
    memory_free(optimizer->rate);
    memory_free(optimizer->decay);
    *optimizer = (struct optimizer){0};
}

/* The learning rate and decay of each column of a panel; both are zero for padding. */
static void fill_coefficients(struct optimizer *optimizer, size_t panel, double rate)
{
    const struct params *params = optimizer->params;
    const size_t stride = params->panels[panel].stride;
    memset(optimizer->rate, 0, stride * sizeof(real));
    memset(optimizer->decay, 0, stride * sizeof(real));
    for (size_t t = 0; t < params->n_tensors; t++) {
        const struct tensor *tensor = &params->tensors[t];
        for (size_t c = 0; tensor->panel == panel && c < tensor->n_columns; c++) {
            const double own = tensor->decays ? rate : rate * optimizer->options.bias_rate;
            optimizer->rate[tensor->first_column + c] = (real)own;
            optimizer->decay[tensor->first_column + c] =
                tensor->decays ? (real)(rate * optimizer->options.decay) : 0;
        }
    }
}

/* The part of a panel that lies in the own slice, as a range of the flat vector. */
static bool own_part(const struct optimizer *optimizer, size_t panel, size_t *start,
                     size_t *end)
{
    const struct panel *p = &optimizer->params->panels[panel];
    const int rank = optimizer->slices->comm->rank;
    *start = size_max(p->offset, optimizer->slices->cuts[rank]);
    *end = size_min(p->offset + p->n_rows * p->stride, optimizer->slices->cuts[rank + 1]);
    return *start < *end;
}

static double statistic(const struct tally *tally, size_t i)
{
    return tally->wide ? (double)((const int64_t *)tally->values)[i]
                       : (double)((const int32_t *)tally->values)[i];
}

/* |g|, the same bits on every rank at any number of ranks. */
static double norm_of(const struct optimizer *optimizer, const struct tally *tally)
{
    const struct params *params = optimizer->params;
    size_t n_rows = 0, row = 0;
    for (size_t p = 0; p < params->n_panels; p++)
        n_rows += params->panels[p].n_rows;
    double *squares = NEW(double, n_rows);
    for (size_t p = 0; p < params->n_panels; p++) {
        const struct panel *panel = &params->panels[p];
        size_t start = 0, end = 0;
        if (own_part(optimizer, p, &start, &end))
            for (size_t i = start; i < end; i++) {
                const double g = statistic(tally, i) * tally_unit(tally) * optimizer->share;
                squares[row + (i - panel->offset) / panel->stride] += g * g;
            }
        row += panel->n_rows;
    }
    comm_max_double(optimizer->slices->comm, squares,
                    n_rows); /* every row has one owner, all other ranks have 0 */
    double sum = 0;
    for (size_t r = 0; r < n_rows; r++)
        sum += squares[r];
    memory_free(squares);
    return sqrt(sum);
}

/* Updates the own slice of the running mean, the last slot. Its decay rate rises from 0 to
 * `average`, so that the initial values are soon forgotten. */
static void follow(struct optimizer *optimizer, int64_t step)
{
    const int rank = optimizer->slices->comm->rank;
    const double memory = fmin(optimizer->options.average, (double)step / ((double)step + 10));
    const real share = (real)(1 - memory), *const value = optimizer->params->value;
    real *const mean = optimizer->slot[optimizer->n_slots - 1];
    for (size_t i = optimizer->slices->cuts[rank]; i < optimizer->slices->cuts[rank + 1]; i++)
        mean[i] += share * (value[i] - mean[i]);
}

void optimizer_swap(struct optimizer *optimizer)
{
    if (optimizer->options.average == 0)
        return;
    const int rank = optimizer->slices->comm->rank;
    real *const value = optimizer->params->value;
    real *const mean = optimizer->slot[optimizer->n_slots - 1];
    for (size_t i = optimizer->slices->cuts[rank]; i < optimizer->slices->cuts[rank + 1]; i++) {
        const real swap = value[i];
        value[i] = mean[i];
        mean[i] = swap;
    }
    exact_slices_share(optimizer->slices);
}

void optimizer_step(struct optimizer *optimizer, const struct tally *tally, int64_t step,
                    int64_t n_steps)
{
    const struct optimizer_options *o = &optimizer->options;
    double unit = tally_unit(tally) * optimizer->share,
           rate = learning_rate_at(o, optimizer->n_epochs, step, n_steps);
    double epsilon = o->epsilon, decay_share = 1;
    if (o->clip > 0) {
        const double norm = norm_of(optimizer, tally);
        if (norm > o->clip)
            unit *= o->clip / norm;
    }
    if (o->method == METHOD_ADAM) {
        const double c1 = 1 - Sleef_cinz_powd1_u10purec(o->beta1, (double)(step + 1));
        const double c2 = sqrt(1 - Sleef_cinz_powd1_u10purec(o->beta2, (double)(step + 1)));
        decay_share = c1 / c2; /* the correction does not apply to the weight decay */
        rate *= c2 / c1;
        epsilon *= c2;
    }
    const size_t size = tally->wide ? sizeof(int64_t) : sizeof(int32_t);
    real *const flat = optimizer->params->value;
    const real beta[2] = {(real)o->beta1, (real)o->beta2};
    optimizer->largest = 0;
    for (size_t p = 0; p < optimizer->params->n_panels; p++) {
        size_t start = 0, end = 0;
        if (!own_part(optimizer, p, &start, &end))
            continue;
        const size_t stride = optimizer->params->panels[p].stride;
        fill_coefficients(optimizer, p, rate);
        for (size_t c = 0; c < stride; c++)
            optimizer->decay[c] *= (real)decay_share;
        const void *statistics = (const char *)tally->values + start * size;
        real *w = flat + start, *first = optimizer->slot[0] + start;
        const double most =
            o->method == METHOD_ADAM
                ? vec->adam(w, first, optimizer->slot[1] + start, statistics, tally->wide, unit,
                            optimizer->rate, optimizer->decay, beta, (real)epsilon, stride,
                            end - start)
                : vec->momentum(w, first, statistics, tally->wide, unit, optimizer->rate,
                                optimizer->decay, (real)o->momentum, stride, end - start);
        optimizer->largest = fmax(optimizer->largest, most);
    }
    if (o->average > 0)
        follow(optimizer, step);
    exact_slices_share(optimizer->slices);
}
