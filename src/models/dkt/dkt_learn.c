/* The gradient of DKT; symbols as in dkt.c.
 *
 * A block of students goes through the network side by side (sequence.h), forward and backward.
 * Gradients of the rows of X and w that the block touches are gathered in row_sums, so that the
 * cost does not grow with the number of items. Sums within a block are in floating point, in
 * one order; they become fixed point once per block. */
#include "base/memory.h"
#include "base/rng.h"
#include "learn/layers/cross_entropy.h"
#include "models/dkt/dkt_internal.h"
#include <string.h>

static void list_features(const struct model *model, struct dkt_work *work)
{
    const struct dkt_options *o = model->options;
    const struct dataset *dataset = work->shard->dataset;
    const size_t n_items = model->n_items;
    work->feature_first = NEW(uint64_t, n_items + 1);
    work->feature = NEW(uint32_t, 2 * n_items + dataset->item_first[n_items]);
    uint64_t n = 0;
    for (size_t i = 0; i < n_items; i++) {
        if (o->input != INPUT_SKILL)
            work->feature[n++] = (uint32_t)i;
        for (uint64_t k = dataset->item_first[i];
             o->input != INPUT_ITEM && k < dataset->item_first[i + 1]; k++)
            work->feature[n++] =
                (uint32_t)(o->input == INPUT_BOTH ? n_items : 0) + dataset->item_skills[k];
        if (o->common)
            work->feature[n++] = (uint32_t)work->shape->n_features - 1;
        work->feature_first[i + 1] = n;
    }
}

static void find_lengths(const struct model *model, struct dkt_work *work)
{
    const struct dkt_options *o = model->options;
    const struct shard *shard = work->shard;
    work->length = NEW(uint32_t, shard->n_students);
    work->n_read = NEW(uint32_t, shard->n_students);
    for (size_t s = 0; s < shard->n_students; s++) {
        const uint64_t start = shard->first[s], n = shard->first[s + 1] - start;
        const bool cut = o->task == DKT_FINAL && o->after > 0 && (uint64_t)o->after < n;
        work->n_read[s] = (uint32_t)(cut ? (uint64_t)o->after : n);
        if (o->task == DKT_FINAL)
            work->length[s] = dkt_trains_final(shard, s) ? work->n_read[s] + 1 : 0;
        for (uint64_t t = 0; o->task == DKT_TRACE && t < n; t++)
            if (mark_trains(shard->mark[start + t]))
                work->length[s] = (uint32_t)(t + 1);
    }
}

void *dkt_attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    struct dkt_work *work = NEW(struct dkt_work, 1);
    work->shard = shard;
    work->shape = dkt_shape(model);
    work->is_final = dkt_task(model) != TASK_TRACE;
    list_features(model, work);
    find_lengths(model, work);
    const struct recurrent *stack = &work->shape->stack;
    if (use == TO_TRAIN) {
        row_sums_create(&work->inputs, &model->params.panels[work->shape->input.panel]);
        row_sums_create(&work->outputs, &model->params.panels[work->shape->output.panel]);
    }
    dropout_create(&work->dropout, ((const struct dkt_options *)model->options)->dropout,
                   stack->width);
    const size_t size = PREDICTED_TOGETHER * stack->width;
    work->z = NEW(real, stack->n_gates * size);
    work->h = NEW(real, stack->n_layers * size);
    work->c = NEW(real, stack->n_layers * size);
    work->scratch = NEW(real, 2 * size);
    return work;
}

void dkt_detach(void *memory)
{
    struct dkt_work *work = memory;
    row_sums_free(&work->inputs);
    row_sums_free(&work->outputs);
    sequence_free(&work->sequence);
    recurrent_free(&work->run);
    recurrent_unpack(&work->packed);
    dropout_free(&work->dropout);
    dkt_free_waves(work->waves);
    void *const all[] = {work->feature_first,
                         work->feature,
                         work->length,
                         work->n_read,
                         work->z,
                         work->h,
                         work->c,
                         work->scratch};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
    memory_free(work);
}

void dkt_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct dkt_work *work = memory;
    *n_attempts = 0;
    for (size_t s = 0; s < work->shard->n_students; s++) {
        has_training[s] = work->length[s] > 0;
        if (work->is_final)
            *n_attempts += has_training[s] ? work->n_read[s] : 0;
    }
    for (uint64_t t = 0; !work->is_final && t < work->shard->n_attempts; t++)
        *n_attempts += mark_trains(work->shard->mark[t]);
}

const uint32_t *dkt_lengths(const void *memory)
{
    return ((const struct dkt_work *)memory)->length;
}

/* Inputs of layer 0: the attempt before each row. */
static void read_attempts(const struct model *model, struct dkt_work *work)
{
    const struct sequence *sequence = &work->sequence;
    const struct shard *shard = work->shard;
    const size_t columns = work->shape->stack.n_gates * work->shape->stack.width;
    for (size_t t = 1; t < sequence->n_steps; t++)
        for (size_t i = 0; i < sequence->active[t]; i++) {
            const uint64_t a = shard->first[sequence->student[i]] + t - 1;
            real *z = work->run.z[0] + (sequence->offset[t] + i) * columns;
            memset(z, 0, columns * sizeof *z);
            dkt_read_attempt(model, work, shard->item[a], shard->mark[a], z);
        }
}

const real *dkt_drop(struct dkt_work *work, const struct draw *draw, size_t s, size_t t,
                     const real *h)
{
    const struct rng rng = {.seed = draw->seed,
                            .purpose = RNG_DROPOUT,
                            .part = (uint32_t)t,
                            .when = draw->epoch,
                            .who = (uint32_t)(work->shard->first_student + s)};
    return dropout_forward(&work->dropout, &rng, h);
}

double dkt_add_answer(const struct model *model, struct dkt_work *work, uint32_t item, double y,
                      double weight, const real *h, real *dh)
{
    double d;
    const double loss = cross_entropy_logistic((double)dkt_logit(model, work, item, h), y, &d);
    for (uint64_t f = work->feature_first[item]; f < work->feature_first[item + 1]; f++)
        embedding_score_backward(&work->shape->output, &model->params, work->feature[f],
                                 (real)(weight * d), h, dh, &work->outputs);
    return weight * loss;
}

/* The answers of the block. */
static void add_answers(const struct model *model, struct dkt_work *work,
                        const struct draw *draw, struct tally *tally)
{
    const struct dkt_options *o = model->options;
    const struct shard *shard = work->shard;
    const struct sequence *sequence = &work->sequence;
    const size_t width = work->shape->stack.width, top = work->shape->stack.n_layers - 1;
    for (size_t t = 0; t < sequence->n_steps; t++)
        for (size_t i = 0; i < sequence->active[t]; i++) {
            const size_t s = sequence->student[i], at = (sequence->offset[t] + i) * width;
            const uint64_t a = shard->first[s] + t;
            if (!mark_trains(shard->mark[a]))
                continue;
            const double y =
                mark_outcome(shard->mark[a]) == CORRECT ? 1 - o->smoothing : o->smoothing;
            const real *h = dkt_drop(work, draw, s, t, work->run.h[top] + at);
            real *const dh = work->run.dh + at;
            tally_add_loss(tally, dkt_add_answer(model, work, shard->item[a], y, 1, h, dh));
            dropout_backward(&work->dropout, dh);
            tally->n_scored++;
        }
}

void dkt_accumulate(const struct model *model, void *memory, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally)
{
    struct dkt_work *work = memory;
    const struct dkt_options *o = model->options;
    const struct shard *shard = work->shard;
    struct sequence *sequence = &work->sequence;
    const struct recurrent *stack = &work->shape->stack;
    sequence_arrange(sequence, students, n, work->length);
    if (sequence->n == 0)
        return;
    recurrent_reserve(stack, &work->run, sequence);
    read_attempts(model, work);
    recurrent_forward(stack, &model->params, sequence, &work->run);
    memset(work->run.dh, 0, sequence->n_rows * stack->width * sizeof(real));
    if (o->task == DKT_FINAL) {
        for (size_t i = 0; i < sequence->n; i++) {
            const size_t s = sequence->student[i], t = work->length[s] - 1;
            dkt_add_final(model, work, s, t, sequence->offset[t] + i, draw, tally);
        }
    } else {
        add_answers(model, work, draw, tally);
        if (o->reconstruction > 0 || o->waviness > 0 || o->waviness2 > 0)
            dkt_add_penalties(model, work, tally);
    }
    recurrent_backward(stack, &model->params, sequence, &work->run, (size_t)o->window, tally);

    const size_t columns = stack->n_gates * stack->width;
    for (size_t t = 1; t < sequence->n_steps; t++)
        for (size_t i = 0; i < sequence->active[t]; i++) {
            const uint64_t a = shard->first[sequence->student[i]] + t - 1;
            const uint32_t item = shard->item[a];
            for (uint64_t f = work->feature_first[item]; f < work->feature_first[item + 1]; f++)
                embedding_add_backward(
                    &work->shape->input,
                    (size_t)work->feature[f] * N_SEEN + dkt_seen(shard->mark[a]), 1,
                    work->run.z[0] + (sequence->offset[t] + i) * columns, &work->inputs);
        }
    row_sums_flush(&work->inputs, &model->params.panels[work->shape->input.panel], tally);
    row_sums_flush(&work->outputs, &model->params.panels[work->shape->output.panel], tally);
}
