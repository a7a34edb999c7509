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

static real chance(const struct model *model, const struct dkt_work *work, uint32_t item,
                   const real *h)
{
    return (real)(1 /
                  (1 + Sleef_cinz_expd1_u10purec(-(double)dkt_logit(model, work, item, h))));
}

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
                p[a - origin] = chance(model, work, shard->item[a], top + i * width);
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

/* A student whose attempts come one by one: its state is h and, for the lstm, c of every layer,
 * one after the other. */
static size_t n_tables(const struct recurrent *stack)
{
    return stack->n_layers * (stack->kind == CELL_LSTM ? 2 : 1);
}

size_t dkt_live_size(const struct model *model)
{
    const struct recurrent *stack = &dkt_shape(model)->stack;
    return n_tables(stack) * stack->width * sizeof(real);
}

void dkt_live_ready(const struct model *model, void *memory)
{
    struct dkt_work *work = memory;
    recurrent_pack(&work->shape->stack, &model->params, &work->packed, false);
}

void dkt_live_begin(const struct model *model, void *memory, void *state)
{
    (void)memory;
    memset(state, 0, dkt_live_size(model));
}

/* Row i of table k of the group. */
static real *row_of(const struct dkt_work *work, size_t k, size_t i)
{
    const struct recurrent *stack = &work->shape->stack;
    const size_t l = k < stack->n_layers ? k : k - stack->n_layers;
    return (k < stack->n_layers ? work->h : work->c) +
           (l * PREDICTED_TOGETHER + i) * stack->width;
}

static void advance(const struct model *model, struct dkt_work *work, size_t n,
                    void *const *state, const struct live_attempt *attempts)
{
    const struct recurrent *stack = &work->shape->stack;
    const size_t width = stack->width, columns = stack->n_gates * width;
    memset(work->z, 0, n * columns * sizeof(real));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n_tables(stack); k++)
            memcpy(row_of(work, k, i), (const real *)state[i] + k * width,
                   width * sizeof(real));
        dkt_read_attempt(model, work, attempts[i].item, attempts[i].mark,
                         work->z + i * columns);
    }
    recurrent_advance(stack, &model->params, &work->packed, n, PREDICTED_TOGETHER, work->z,
                      work->h, work->c, work->scratch);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_tables(stack); k++)
            memcpy((real *)state[i] + k * width, row_of(work, k, i), width * sizeof(real));
}

void dkt_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    for (size_t i = 0; i < n; i += PREDICTED_TOGETHER)
        advance(model, work, size_min(PREDICTED_TOGETHER, n - i), state + i, attempts + i);
}

void dkt_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)when;
    const struct dkt_work *work = memory;
    const struct recurrent *stack = &work->shape->stack;
    const real *top = (const real *)state + (stack->n_layers - 1) * stack->width;
    for (size_t i = 0; i < n; i++)
        p[i] = chance(model, work, items[i], top);
}
