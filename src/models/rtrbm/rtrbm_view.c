/* The RTRBM's view of a shard: students as steps, steps as units; symbols as in rtrbm.c.
 *
 * Attempts of a step are sorted by their role. Shown attempts form the state r. Training
 * attempts with a known outcome are learned from. Attempts that are shown but not learned from
 * are given. */
#include "base/memory.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <string.h>

static size_t find_steps(struct rtrbm_work *work)
{
    const struct shard *shard = work->shard;
    size_t n = 0, longest = 0;
    work->first_step = NEW(uint64_t, shard->n_students + 1);
    work->step = NEW(uint64_t, shard->n_attempts + 1);
    work->length = NEW(uint32_t, shard->n_students);
    for (size_t s = 0; s < shard->n_students; s++) {
        work->first_step[s] = n;
        for (uint64_t a = shard->first[s]; a < shard->first[s + 1]; a++) {
            if (a == shard->first[s] || shard->mark[a] & MARK_STEP)
                work->step[n++] = a;
            if (mark_trains(shard->mark[a]))
                work->length[s] = (uint32_t)(n - work->first_step[s]);
            longest = size_max(longest, a + 1 - work->step[n - 1]);
        }
    }
    work->first_step[shard->n_students] = n;
    work->step[n] = shard->n_attempts;
    return longest;
}

void *rtrbm_attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    struct rtrbm_work *work = NEW(struct rtrbm_work, 1);
    const struct rtrbm_options *o = model->options;
    work->shard = shard;
    work->shape = rtrbm_shape(model);
    work->dense = o->dense;
    const size_t longest = size_max(find_steps(work), o->dense ? model->n_items : 0);
    const size_t width = work->shape->width;
    work->now.shown = NEW(uint32_t, longest);
    work->now.targets = NEW(uint32_t, longest);
    work->now.clamped = NEW(uint32_t, longest);
    work->count = NEW(uint8_t, size_padded(longest));
    work->logit = NEW(real, size_padded(longest));
    work->u = NEW(real, size_max(width, longest) + 4 * WIDTH);
    real **const vectors[] = {&work->zero,
                              &work->z,
                              &work->s0,
                              &work->s1,
                              &work->h,
                              &work->base,
                              &work->sum,
                              &work->first_gradient,
                              &work->bias_gradient};
    for (size_t k = 0; k < COUNT(vectors); k++)
        *vectors[k] = NEW(real, width);
    work->enumerated = NEW(real, 2 * MOST_UNITS * width);
    if (use == TO_TRAIN) {
        work->gradient = NEW(real, work->shape->hidden * width);
        row_sums_create(&work->weights, &model->params.panels[PANEL_VISIBLE]);
        row_sums_create(&work->biases, &model->params.panels[PANEL_VISIBLE_BIAS]);
    }
    return work;
}

void rtrbm_detach(void *memory)
{
    struct rtrbm_work *work = memory;
    row_sums_free(&work->weights);
    row_sums_free(&work->biases);
    sequence_free(&work->sequence);
    matmul_free(&work->forth);
    matmul_free(&work->back);
    matmul_free(&work->up);
    matmul_free(&work->down);
    rtrbm_frames_free(&work->frames);
    rtrbm_dense_free(&work->dense_rows);
    void *const all[] = {work->first_step,
                         work->step,
                         work->length,
                         work->own_visible,
                         work->own_recurrent,
                         work->gate,
                         work->rows.x,
                         work->rows.r,
                         work->borders,
                         work->before,
                         work->after,
                         work->carry,
                         work->through,
                         work->through_g,
                         work->gradient,
                         work->first_gradient,
                         work->bias_gradient,
                         work->now.shown,
                         work->now.targets,
                         work->now.clamped,
                         work->count,
                         work->logit,
                         work->u,
                         work->zero,
                         work->z,
                         work->s0,
                         work->s1,
                         work->h,
                         work->base,
                         work->sum,
                         work->enumerated};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
    memory_free(work);
}

const uint32_t *rtrbm_lengths(const void *memory)
{
    return ((const struct rtrbm_work *)memory)->length;
}

void rtrbm_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct rtrbm_work *work = memory;
    *n_attempts = 0;
    for (size_t s = 0; s < work->shard->n_students; s++)
        has_training[s] = work->length[s] > 0;
    for (uint64_t a = 0; a < work->shard->n_attempts; a++)
        *n_attempts += mark_trains(work->shard->mark[a]);
}

/* Fills work->now with step t of student s. */
void rtrbm_read_step(struct rtrbm_work *work, size_t s, size_t t)
{
    const struct shard *shard = work->shard;
    struct rtrbm_step *now = &work->now;
    const uint64_t *step = work->step + work->first_step[s] + t;
    now->n_shown = now->n_targets = now->n_clamped = 0;
    for (uint64_t a = step[0]; a < step[1]; a++) {
        const uint8_t mark = shard->mark[a];
        const uint32_t unit = 2 * shard->item[a] + (mark_outcome(mark) == CORRECT);
        if (mark_is_shown(mark))
            now->shown[now->n_shown++] = unit;
        if (mark_trains(mark))
            now->targets[now->n_targets++] = unit;
        else if (mark_is_shown(mark))
            now->clamped[now->n_clamped++] = unit;
    }
}

/* Where all items are visible: makes all of them targets of the step in work->now. */
void rtrbm_read_whole(const struct model *model, struct rtrbm_work *work)
{
    struct rtrbm_step *now = &work->now;
    uint8_t *on = work->count;
    memset(on, 0, model->n_items);
    for (size_t a = 0; a < now->n_targets; a++)
        on[now->targets[a] >> 1] |= now->targets[a] & 1;
    for (size_t a = 0; a < now->n_clamped; a++)
        on[now->clamped[a] >> 1] |= now->clamped[a] & 1;
    for (uint32_t i = 0; i < model->n_items; i++)
        now->targets[i] = 2 * i + on[i];
    now->n_targets = model->n_items;
    now->n_clamped = 0;
}

/* x += the rows of units. */
void rtrbm_add_units(const struct rtrbm_work *work, const uint32_t *unit, size_t n, real *x)
{
    rbm_rows->gather(&work->shape->rows, work->visible, unit, n, x);
}

real *rtrbm_touch(struct rtrbm_work *work, uint32_t unit)
{
    if (work->shape->rows.per_item == 2)
        return row_sums_at(&work->weights, unit);
    return unit & 1 ? row_sums_at(&work->weights, unit >> 1) : NULL;
}

void rtrbm_touch_bias(struct rtrbm_work *work, uint32_t unit, real value)
{
    if (work->shape->rows.per_item == 2)
        row_sums_at(&work->biases, unit >> 1)[unit & 1] += value;
    else if (unit & 1)
        row_sums_at(&work->biases, unit >> 1)[0] += value;
}
