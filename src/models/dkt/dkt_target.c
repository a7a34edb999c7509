/* DKT with one target y per student (passed or not, a score), predicted from the state h after
 * the first `after` attempts:
 *
 *     cross_entropy   p = sigma(w . h + b),  loss  -y log p - (1 - y) log(1 - p)
 *     squared         m = w . h + b,         loss  (x - m)^2 / 2
 *     gaussian        and log v = w' . h + b',  loss  (log 2 pi v + (x - m)^2 / v) / 2
 *
 * with x = (y - center) / unit, so that scores of any scale are learned alike. The tensors
 * target (1 or 2, H) and target_bias take the place of the output rows of `trace`. A student
 * belongs to the split of its last attempt. Those with fewer attempts are predicted from all of
 * them. */
#include "base/fail.h"
#include "base/memory.h"
#include "learn/layers/cross_entropy.h"
#include "models/dkt/dkt_internal.h"
#include <math.h>
#include <sleef.h>

static const double log_2_pi = 1.8378770664093454836;

enum model_task dkt_task(const struct model *model)
{
    static const enum model_task tasks[] = {[LOSS_CROSS_ENTROPY] = TASK_CHANCE,
                                            [LOSS_SQUARED] = TASK_SCORE,
                                            [LOSS_GAUSSIAN] = TASK_DENSITY};
    const struct dkt_options *o = model->options;
    return o->task == DKT_TRACE ? TASK_TRACE : tasks[o->loss];
}

enum status dkt_check_targets(const struct model *model)
{
    const struct dkt_options *o = model->options;
    const struct dataset *dataset = model->dataset;
    if (dataset == NULL)
        return OK;
    if (dataset->target == NULL)
        return fail(
            BAD_USER,
            "%s: model.task=final needs targets, and the data set has none; import it with "
            "--target COLUMN or --targets FILE",
            dataset->path);
    for (size_t s = 0; o->loss == LOSS_CROSS_ENTROPY && s < dataset->n_students; s++)
        if (dataset->target[s] < 0 || dataset->target[s] > 1)
            return fail(BAD_USER,
                        "%s: student %zu has the target %g, but model.loss=cross_entropy "
                        "expects 0 to 1; for scores use model.loss=squared or gaussian",
                        dataset->path, s, dataset->target[s]);
    return OK;
}

bool dkt_trains_final(const struct shard *shard, size_t s)
{
    return shard->first[s + 1] > shard->first[s] &&
           mark_split(shard->mark[shard->first[s + 1] - 1]) == TRAIN &&
           !isnan(shard->dataset->target[shard->first_student + s]);
}

static double output(const struct model *model, const struct dkt_work *work, size_t row,
                     const real *h)
{
    return (double)embedding_score(&work->shape->output, &model->params, row, h);
}

void dkt_add_final(const struct model *model, struct dkt_work *work, size_t s, size_t t,
                   size_t row, const struct draw *draw, struct tally *tally)
{
    const struct dkt_options *o = model->options;
    const struct recurrent *stack = &work->shape->stack;
    const size_t width = stack->width;
    const double y = work->shard->dataset->target[work->shard->first_student + s];
    const double x = (y - o->center) / o->unit;
    const real *h = dkt_drop(work, draw, s, t, work->run.h[stack->n_layers - 1] + row * width);
    const double mean = output(model, work, 0, h);
    double d[2] = {x - mean, 0}, loss = 0.5 * (x - mean) * (x - mean);
    if (o->loss == LOSS_CROSS_ENTROPY)
        loss = cross_entropy_logistic(mean, o->smoothing + (1 - 2 * o->smoothing) * y, &d[0]);
    if (o->loss == LOSS_GAUSSIAN) {
        const double log_variance = output(model, work, 1, h);
        const double precision = Sleef_cinz_expd1_u10purec(-log_variance);
        d[0] = (x - mean) * precision;
        d[1] = 0.5 * ((x - mean) * d[0] - 1);
        loss = 0.5 * (log_2_pi + log_variance + (x - mean) * d[0]);
    }
    real *const dh = work->run.dh + row * width;
    for (size_t k = 0; k < (o->loss == LOSS_GAUSSIAN ? 2 : 1); k++)
        embedding_score_backward(&work->shape->output, &model->params, k, (real)d[k], h, dh,
                                 &work->outputs);
    dropout_backward(&work->dropout, dh);
    tally_add_loss(tally, loss);
    tally->n_scored++;
}

void dkt_predict_target(const struct model *model, void *memory, const uint32_t *students,
                        size_t n, double *mean, double *variance)
{
    const struct dkt_options *o = model->options;
    struct dkt_work *work = memory;
    const struct recurrent *stack = &work->shape->stack;
    const size_t width = stack->width;
    const real *top = work->h + (stack->n_layers - 1) * PREDICTED_TOGETHER * width;
    struct sequence group = {0};
    uint32_t *place = NEW_SCRATCH(uint32_t, work->shard->n_students); /* in `students` */
    for (size_t i = 0; i < n; i++)
        place[students[i]] = (uint32_t)i;
    recurrent_pack(stack, &model->params, &work->packed, false);
    for (size_t start = 0; start < n; start += PREDICTED_TOGETHER) {
        sequence_arrange(&group, students + start, size_min(PREDICTED_TOGETHER, n - start),
                         work->n_read);
        dkt_predict_group(model, work, &group, 0, 0, NULL);
        for (size_t i = 0; i < group.n; i++) {
            const double x = output(model, work, 0, top + i * width);
            const uint32_t to = place[group.student[i]];
            variance[to] = NAN;
            mean[to] = o->loss == LOSS_CROSS_ENTROPY ? 1 / (1 + Sleef_cinz_expd1_u10purec(-x))
                                                     : o->center + o->unit * x;
            if (o->loss == LOSS_GAUSSIAN)
                variance[to] =
                    o->unit * o->unit *
                    Sleef_cinz_expd1_u10purec(output(model, work, 1, top + i * width));
        }
    }
    sequence_free(&group);
    memory_free(place);
}
