/* Predictions of DKT, for many students side by side; only the last state is kept.
 *
 * Students are sorted by length and processed in groups; those still active at step t are the
 * first of their group. A student's states do not depend on the others (matmul.h), so neither
 * the grouping nor the number of ranks changes a bit. Memory: a few rows per student of a
 * group, however long the sequences are. */
#include "base/memory.h"
#include "models/dkt/dkt_internal.h"
#include <sleef.h>
#include <string.h>

void dkt_predict_group(const struct model *model, struct dkt_work *work,
                       const struct sequence *group, unsigned splits, uint64_t origin, real *p)
{
    const struct shard *shard = work->shard;
    const struct recurrent *stack = &work->shape->stack;
    const size_t width = stack->width, columns = stack->n_gates * width;
    const size_t size = PREDICTED_TOGETHER * width;
    const real *top = work->h + (stack->n_layers - 1) * size;
    memset(work->h, 0, stack->n_layers * size * sizeof(real));
    memset(work->c, 0, stack->n_layers * size * sizeof(real));
    for (size_t t = 0; t < group->n_steps; t++) {
        memset(work->z, 0, group->active[t] * columns * sizeof(real));
        for (size_t i = 0; i < group->active[t]; i++) {
            const uint64_t a = shard->first[group->student[i]] + t;
            if (splits >> mark_split(shard->mark[a]) & 1)
                p[a - origin] =
                    (real)(1 / (1 + Sleef_cinz_expd1_u10purec(-(double)dkt_logit(
                                        model, work, shard->item[a], top + i * width))));
            dkt_read_attempt(model, work, shard->item[a], shard->mark[a],
                             work->z + i * columns);
        }
        recurrent_advance(stack, &model->params, &work->packed, group->active[t],
                          PREDICTED_TOGETHER, work->z, work->h, work->c, work->scratch);
    }
}

static void predict(const struct model *model, struct dkt_work *work, uint32_t *students,
                    size_t n, unsigned splits, uint64_t origin, real *p)
{
    struct sequence group = {0};
    recurrent_pack(&work->shape->stack, &model->params, &work->packed, false);
    sequence_sort(students, n, work->n_read);
    for (size_t i = 0; i < n; i += PREDICTED_TOGETHER) {
        sequence_arrange(&group, students + i, size_min(PREDICTED_TOGETHER, n - i),
                         work->n_read);
        dkt_predict_group(model, work, &group, splits, origin, p);
    }
    sequence_free(&group);
}

void dkt_predict_many(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *p)
{
    uint32_t *sorted = NEW_SCRATCH(uint32_t, n);
    memcpy(sorted, students, n * sizeof *sorted);
    predict(model, work, sorted, n, splits, 0, p);
    memory_free(sorted);
}

void dkt_predict(const struct model *model, void *memory, size_t s, unsigned splits, real *p)
{
    struct dkt_work *work = memory;
    uint32_t student = (uint32_t)s;
    predict(model, work, &student, 1, splits, work->shard->first[s], p);
}
