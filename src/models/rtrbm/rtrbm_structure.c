/* The structured RTRBM: a learned graph between skills; symbols as in rtrbm.c.
 *
 * Each skill (or item) has a group of hidden units. An item is connected to the groups of its
 * skills and to the shared units. The input of group b from group a, one step later, passes
 * through a gate:
 *
 *     U_mj acts as s_ab U_mj,   s_ab = sigma(delta nu_ab),   m in group a, j in group b
 *
 *     dU_mj  = s_ab dU'_mj
 *     dnu_ab = delta s_ab (1 - s_ab) (sum_mj U_mj dU'_mj - penalty)
 *
 * where dU' is the gradient by the gated weights. A group's connections to itself and to the
 * shared units have no gate. The penalty closes gates that do not help. Those that stay open
 * are the edges of a directed graph. */
#include "base/memory.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* The group of a hidden unit; n_groups for the shared ones. */
static size_t group_of(const struct rtrbm_shape *shape, size_t j)
{
    return j < shape->n_shared ? shape->n_groups : (j - shape->n_shared) / shape->group_size;
}

static bool is_gated(const struct rtrbm_shape *shape, size_t a, size_t b)
{
    return a != b && a < shape->n_groups && b < shape->n_groups;
}

static bool has_group(const struct model *model, size_t item, size_t group)
{
    const struct rtrbm_options *o = model->options;
    const struct dataset *dataset = model->dataset;
    if (o->structure == STRUCTURE_ITEMS)
        return item == group;
    for (uint64_t k = dataset->item_first[item]; k < dataset->item_first[item + 1]; k++)
        if (dataset->item_skills[k] == group)
            return true;
    return false;
}

/* Clears the weights of an item's row to hidden units it is not connected to. */
void rtrbm_mask_row(const struct rtrbm_shape *shape, const struct model *model, size_t item,
                    real *row)
{
    for (size_t g = 0; g < shape->n_groups; g++)
        if (!has_group(model, item, g))
            memset(row + shape->n_shared + g * shape->group_size, 0,
                   shape->group_size * sizeof *row);
}

static double gate_of(const struct model *model, size_t a, size_t b)
{
    const struct rtrbm_options *o = model->options;
    const size_t stride = model->params.panels[PANEL_GATES].stride;
    const double nu = (double)params_rows(&model->params, PANEL_GATES)[a * stride + b];
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-o->sharpness * nu));
}

/* Computes the weights in effect: masked and gated. */
void rtrbm_weigh(const struct model *model, struct rtrbm_work *work)
{
    const struct rtrbm_shape *shape = work->shape;
    const size_t width = shape->width, n = shape->n_groups;
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE];
    work->visible = params_rows(&model->params, PANEL_VISIBLE);
    work->recurrent = params_rows(&model->params, PANEL_RECURRENT);
    if (n == 0)
        return;
    if (work->gate == NULL) {
        work->gate = NEW(real, n * n);
        work->own_visible = NEW(real, panel->n_rows * width);
        work->own_recurrent = NEW(real, shape->hidden * width);
    }
    memcpy(work->own_visible, work->visible, panel->n_rows * width * sizeof(real));
    for (size_t row = 0; row < panel->n_rows; row++)
        rtrbm_mask_row(shape, model, row / (size_t)shape->rows.per_item,
                       work->own_visible + row * width);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            work->gate[a * n + b] = is_gated(shape, a, b) ? (real)gate_of(model, a, b) : 1;
    for (size_t m = 0; m < shape->hidden; m++) {
        const real *from = work->recurrent + m * width;
        real *to = work->own_recurrent + m * width;
        const size_t a = group_of(shape, m);
        memcpy(to, from, shape->hidden * sizeof *to);
        for (size_t j = shape->n_shared; a < n && j < shape->hidden; j++)
            to[j] *= work->gate[a * n + group_of(shape, j)];
    }
    work->visible = work->own_visible;
    work->recurrent = work->own_recurrent;
}

/* Removes the statistics of missing connections from the items of the block. */
void rtrbm_mask_weights(const struct model *model, struct rtrbm_work *work)
{
    for (size_t k = 0; work->shape->n_groups > 0 && k < work->weights.n; k++)
        rtrbm_mask_row(work->shape, model,
                       work->weights.row[k] / (size_t)work->shape->rows.per_item,
                       work->weights.sum + k * work->weights.row_size);
}

static void add_gates(const struct model *model, struct rtrbm_work *work, int64_t n_scored,
                      struct tally *tally)
{
    const struct rtrbm_options *o = model->options;
    const struct rtrbm_shape *shape = work->shape;
    const struct panel *panel = &model->params.panels[PANEL_GATES];
    const size_t n = shape->n_groups, size = shape->group_size, width = shape->width;
    const real *weights = params_rows(&model->params, PANEL_RECURRENT);
    const double cost = o->penalty * (double)n_scored;
    real *row = NEW(real, panel->stride);
    double open = 0;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            row[b] = 0;
            if (!is_gated(shape, a, b))
                continue;
            double sum = 0;
            for (size_t m = 0; m < size; m++)
                for (size_t j = 0; j < size; j++) {
                    const size_t at = (shape->n_shared + a * size + m) * width +
                                      shape->n_shared + b * size + j;
                    sum += (double)weights[at] * (double)work->gradient[at];
                }
            const double s = (double)work->gate[a * n + b];
            open += s;
            row[b] = (real)(o->sharpness * s * (1 - s) * (sum - cost));
        }
        tally_add(tally, panel->offset + a * panel->stride, row, panel->stride);
    }
    tally_add_loss(tally, cost * open);
    memory_free(row);
}

/* Adds work->gradient, by the gated weights, to the statistics of U and of the gates. */
void rtrbm_add_recurrent(const struct model *model, struct rtrbm_work *work, int64_t n_scored,
                         struct tally *tally)
{
    const struct rtrbm_shape *shape = work->shape;
    const struct panel *panel = &model->params.panels[PANEL_RECURRENT];
    const size_t n = shape->n_groups, width = shape->width;
    if (n > 0)
        add_gates(model, work, n_scored, tally);
    for (size_t m = 0; m < shape->hidden; m++) {
        real *row = work->gradient + m * width;
        const size_t a = group_of(shape, m);
        for (size_t j = shape->n_shared; a < n && j < shape->hidden; j++)
            row[j] *= work->gate[a * n + group_of(shape, j)];
        tally_add(tally, panel->offset + m * panel->stride, row, width);
    }
}

size_t rtrbm_n_nodes(const struct model *model, bool *by_item)
{
    *by_item = ((const struct rtrbm_options *)model->options)->structure == STRUCTURE_ITEMS;
    return rtrbm_shape(model)->n_groups;
}

/* Strength: the root mean square of the gated weights from one group to another. */
void rtrbm_graph(const struct model *model, real *gate, real *strength)
{
    const struct rtrbm_shape *shape = rtrbm_shape(model);
    const size_t n = shape->n_groups, size = shape->group_size;
    const real *weights = params_rows(&model->params, PANEL_RECURRENT);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            const double s = is_gated(shape, a, b) ? gate_of(model, a, b) : 1;
            double sum = 0;
            for (size_t m = 0; m < size; m++)
                for (size_t j = 0; j < size; j++) {
                    const double w =
                        (double)weights[(shape->n_shared + a * size + m) * shape->width +
                                        shape->n_shared + b * size + j];
                    sum += s * s * w * w;
                }
            gate[a * n + b] = (real)s;
            strength[a * n + b] = (real)sqrt(sum / (double)(size * size));
        }
}
