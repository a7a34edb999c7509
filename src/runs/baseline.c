/* Baselines: a model that does not beat them has learned nothing about students.
 *
 *     item means         p = (right + 1) / (right + wrong + 2) over the training attempts of
 *                        the item
 *     running means      the model `average` at its first values: of the student's answers to
 *                        the skill so far, where older ones fade, from the item's mean on
 *     targets            mean and variance of the training students' targets
 *
 * Like a model, both predict an attempt at an item without training attempts as the mean over
 * its stand-ins (stand_ins.c). */
#include "runs/baseline.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

static void predict_items(const struct shard *shard, const struct item_counts *counts,
                          const struct predictions *predictions, float *chance)
{
    for (size_t p = 0; p < predictions->n; p++) {
        const uint32_t i = shard->item[predictions->place[p]];
        chance[p] = (float)((double)(counts->right[i] + 1) /
                            (double)(counts->right[i] + counts->wrong[i] + 2));
    }
}

static void predict_average(const struct model *model, const struct shard *shard,
                            const struct item_counts *counts,
                            const struct predictions *predictions, float *chance)
{
    struct model *average = model_create(model_find("average"));
    average->covariates = model->covariates;
    ENSURE(model_declare(average, shard->dataset, model->n_students, model->n_items,
                         model->n_skills) == OK);
    average->kind->init(average, 0, counts);
    void *work = average->kind->attach(average, shard, TO_PREDICT);
    real *p = NEW_SCRATCH(real, shard->n_attempts);
    uint32_t *students = NEW_SCRATCH(uint32_t, shard->n_students);
    size_t n = 0;
    for (size_t k = 0; k < predictions->n; k++) {
        const uint32_t s = predictions->list[k].student - (uint32_t)shard->first_student;
        if (n == 0 || students[n - 1] != s)
            students[n++] = s;
    }
    model_predict(average, work, shard, students, n, (1u << N_SPLITS) - 1, p);
    memory_free(students);
    for (size_t k = 0; k < predictions->n; k++)
        chance[k] = (float)p[predictions->place[k]];
    memory_free(p);
    average->kind->detach(work);
    model_destroy(average);
}

struct prediction *baseline_predict(enum baseline baseline, const struct model *model,
                                    const struct shard *shard, const struct item_counts *counts,
                                    const struct predictions *predictions)
{
    const struct stand_ins *stand_ins = predictions->stand_ins;
    const size_t n = predictions->n, n_passes = stand_ins != NULL ? stand_ins->n_passes : 0;
    struct shard in_pass = *shard;
    in_pass.item = NEW_SCRATCH(uint32_t, shard->n_attempts);
    memcpy(in_pass.item, shard->item, shard->n_attempts * sizeof *shard->item);
    float *chance = NEW_SCRATCH(float, n);
    double *sum = NEW(double, n);
    for (size_t pass = 0; pass < size_max(1, n_passes); pass++) {
        if (n_passes > 0)
            stand_ins_apply(stand_ins, pass, &in_pass);
        if (baseline == BASELINE_ITEMS)
            predict_items(&in_pass, counts, predictions, chance);
        else
            predict_average(model, &in_pass, counts, predictions, chance);
        for (size_t p = 0; p < n; p++)
            sum[p] += (double)chance[p];
    }
    struct prediction *list = NEW_SCRATCH(struct prediction, n);
    for (size_t p = 0; p < n; p++) {
        list[p] = predictions->list[p];
        list[p].probability = (float)(sum[p] / (double)size_max(1, n_passes));
    }
    memory_free(in_pass.item);
    memory_free(chance);
    memory_free(sum);
    return list;
}

void baseline_say(const char *what, double log_loss, const double *baselines)
{
    const double items = baselines[BASELINE_ITEMS], average = baselines[BASELINE_AVERAGE];
    if (isnan(log_loss) || isnan(items) || isnan(average))
        return;
    log_say("%s log-loss %.5f; item means have %.5f, running means %.5f", what, log_loss, items,
            average);
    if (log_loss >= fmin(items, average))
        log_warn("the model is no better than %s: check the data and the settings",
                 log_loss >= items ? "predicting each item's mean"
                                   : "each student's running mean");
}

/* Summed in the order of the data set: the same bits on any number of ranks. */
struct baseline_target baseline_target(const struct inference *inference)
{
    const struct shard *shard = &inference->shard;
    double *own = NEW_SCRATCH(double, shard->n_students);
    size_t n_own = 0, n_bytes = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        const double target = inference->dataset.target[shard->first_student + s];
        if (shard->first[s + 1] > shard->first[s] && !isnan(target) &&
            mark_split(shard->mark[shard->first[s + 1] - 1]) == TRAIN)
            own[n_own++] = target;
    }
    double *all = comm_gather(inference->comm, own, n_own * sizeof *own, &n_bytes);
    const size_t n = n_bytes / sizeof *all;
    struct baseline_target target = {0, 0};
    for (size_t i = 0; all != NULL && i < n; i++)
        target.mean += all[i] / (double)n;
    for (size_t i = 0; all != NULL && i < n; i++)
        target.variance += (all[i] - target.mean) * (all[i] - target.mean) / (double)n;
    comm_broadcast(inference->comm, &target, sizeof target, 0);
    memory_free(own);
    memory_free(all);
    return target;
}
