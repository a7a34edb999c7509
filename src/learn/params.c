/* One flat vector holds all parameters, so that the optimizer, the sum over ranks, the
 * checkpoint and the gradient check are single loops:
 *
 *     flat   | panel 0                      | panel 1          | ...
 *     row    | w w w w w w w b 0 0 .. 0 |     rows are padded to full vector registers
 *              `-- tensor --' `- another
 *
 * Two tensors may share a panel: an RBM stores the bias of a visible unit after its weights, so
 * that one load reads both. */
#include "learn/params.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include <string.h>

size_t params_panel(struct params *params, size_t n_rows, size_t n_columns)
{
    ENSURE(params->n_panels < MOST_TENSORS);
    struct panel *panel = &params->panels[params->n_panels];
    *panel = (struct panel){params->n, n_rows, size_padded(n_columns), NULL};
    params->n += panel->n_rows * panel->stride;
    return params->n_panels++;
}

size_t params_panel_of(struct params *params, const char *of, size_t n_rows, size_t n_columns)
{
    const size_t panel = params_panel(params, n_rows, n_columns);
    params->panels[panel].of = of;
    return panel;
}

void params_tensor(struct params *params, const struct tensor *tensor)
{
    ENSURE(params->n_tensors < MOST_TENSORS && tensor->panel < params->n_panels);
    const struct panel *panel = &params->panels[tensor->panel];
    uint64_t n = 1;
    for (int d = 0; d < tensor->rank; d++)
        n *= tensor->shape[d];
    ENSURE(n == panel->n_rows * tensor->n_columns &&
           tensor->first_column + tensor->n_columns <= panel->stride);
    params->tensors[params->n_tensors++] = *tensor;
}

void params_logits(struct params *params, const struct tensor *tensor)
{
    params_tensor(params, tensor);
    params->is_logit[params->n_tensors - 1] = true;
}

void params_examined(struct params *params, const struct tensor *tensor)
{
    params_tensor(params, tensor);
    params->is_examined[params->n_tensors - 1] = true;
}

void params_allocate(struct params *params)
{
    params->value = NEW(real, params->n);
}

void params_free(struct params *params)
{
    memory_free(params->value);
    *params = (struct params){0};
}

void params_fill_uniform(struct params *params, size_t panel, size_t n_groups, size_t n,
                         uint64_t seed, double size)
{
    const struct panel *p = &params->panels[panel];
    for (size_t row = 0; row < p->n_rows; row++) {
        const struct rng rng = {.seed = seed,
                                .purpose = RNG_INIT,
                                .part = (uint32_t)panel + 1,
                                .who = (uint32_t)row};
        real *const to = params_rows(params, panel) + row * p->stride;
        for (size_t j = 0; j < n_groups * n; j++)
            to[j / n * size_padded(n) + j % n] =
                (real)(size * (2 * rng_uniform(&rng, (uint32_t)j) - 1));
    }
}

size_t params_size(const struct params *params, const struct tensor *tensor)
{
    return params->panels[tensor->panel].n_rows * tensor->n_columns;
}

size_t params_count(const struct params *params)
{
    size_t n = 0;
    for (size_t i = 0; i < params->n_tensors; i++)
        n += params_size(params, &params->tensors[i]);
    return n;
}

void params_take(const struct params *params, const struct tensor *tensor, const real *flat,
                 real *dense)
{
    const struct panel *panel = &params->panels[tensor->panel];
    const real *from = flat + panel->offset + tensor->first_column;
    for (size_t row = 0; row < panel->n_rows; row++)
        memcpy(dense + row * tensor->n_columns, from + row * panel->stride,
               tensor->n_columns * sizeof *dense);
}

void params_put(const struct params *params, const struct tensor *tensor, const real *dense,
                real *flat)
{
    const struct panel *panel = &params->panels[tensor->panel];
    real *to = flat + panel->offset + tensor->first_column;
    for (size_t row = 0; row < panel->n_rows; row++)
        memcpy(to + row * panel->stride, dense + row * tensor->n_columns,
               tensor->n_columns * sizeof *dense);
}

size_t params_cut(const struct params *params, size_t w, size_t n)
{
    const size_t wanted = size_cut(params->n, w, n);
    for (size_t p = 0; p < params->n_panels; p++) {
        const struct panel *panel = &params->panels[p];
        if (wanted < panel->offset + panel->n_rows * panel->stride)
            return panel->offset + (wanted - panel->offset) / panel->stride * panel->stride;
    }
    return params->n;
}

const struct tensor *params_find(const struct params *params, size_t i)
{
    for (size_t t = 0; t < params->n_tensors; t++) {
        const struct tensor *tensor = &params->tensors[t];
        const struct panel *panel = &params->panels[tensor->panel];
        if (i < panel->offset || i >= panel->offset + panel->n_rows * panel->stride)
            continue;
        const size_t column = (i - panel->offset) % panel->stride;
        if (column >= tensor->first_column && column < tensor->first_column + tensor->n_columns)
            return tensor;
    }
    return NULL;
}
