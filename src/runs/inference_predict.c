/* Predictions of an open model for its data, with the stand-ins of unseen items (stand_ins.c):
 * the students who attempted such items are predicted once per pass, each time with other
 * stand-ins, and their chances are averaged. All others are predicted once. */
#include "base/fail.h"
#include "base/memory.h"
#include "runs/inference.h"
#include <math.h>
#include <string.h>

/* Sums over passes, one number per attempt of the shard. */
struct sums {
    double *chance, *square; /* of chances, and their squares plus variances; NULL: not asked */
};

/* The kind's deviations of the students of whom only[s] is true; NULL: of all. Caller frees. */
static real *deviations_of(const struct inference *inference, void *work,
                           const struct shard *shard, unsigned splits, const bool *only)
{
    real *deviation = NEW(real, shard->n_attempts);
    uint32_t *students = NEW_SCRATCH(uint32_t, shard->n_students);
    size_t n = 0;
    for (size_t s = 0; s < shard->n_students; s++)
        if (only == NULL || only[s])
            students[n++] = (uint32_t)s;
    inference->model->kind->view.deviation(inference->model, work, students, n, splits,
                                           deviation);
    memory_free(students);
    return deviation;
}

/* Predicts in one pass those students who attempted unseen items, and adds to the sums. */
static enum status predict_pass(const struct inference *inference, unsigned splits, size_t pass,
                                const bool *only, const struct sums *sums)
{
    struct shard shard = inference->shard;
    struct predictions predictions = {0};
    shard.item = NEW_SCRATCH(uint32_t, shard.n_attempts);
    memcpy(shard.item, inference->shard.item, shard.n_attempts * sizeof *shard.item);
    stand_ins_apply(&inference->stand_ins, pass, &shard);
    void *work = inference->model->kind->attach(inference->model, &shard, TO_PREDICT);
    enum status status =
        scoring_predict_some(inference->model, work, &shard, splits, only, &predictions);
    real *deviation = sums->square != NULL && status == OK
                          ? deviations_of(inference, work, &shard, splits, only)
                          : NULL;
    for (size_t i = 0; i < predictions.n; i++) {
        const uint64_t t = predictions.place[i];
        const double p = (double)predictions.list[i].probability;
        sums->chance[t] += p;
        if (deviation != NULL)
            sums->square[t] += p * p + (double)deviation[t] * (double)deviation[t];
    }
    memory_free(deviation);
    inference->model->kind->detach(work);
    scoring_free(&predictions);
    memory_free(shard.item);
    return status;
}

/* Students of the shard who attempted unseen items; caller frees. */
static bool *list_concerned(const struct inference *inference)
{
    const struct shard *shard = &inference->shard;
    bool *concerned = NEW(bool, shard->n_students);
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            concerned[s] |= stand_ins_basis(&inference->stand_ins, t) != BASIS_ITEM;
    return concerned;
}

static enum status predict_passes(const struct inference *inference, unsigned splits,
                                  struct predictions *predictions)
{
    const struct stand_ins *stand_ins = &inference->stand_ins;
    const struct shard *shard = &inference->shard;
    bool *concerned = list_concerned(inference);
    const struct sums sums = {.chance = NEW(double, shard->n_attempts)};
    enum status status = OK;
    for (size_t pass = 1; pass < stand_ins->n_passes && status == OK; pass++)
        status = predict_pass(inference, splits, pass, concerned, &sums);
    for (size_t i = 0; i < predictions->n && status == OK; i++) {
        struct prediction *prediction = &predictions->list[i];
        const uint64_t t = predictions->place[i];
        if (concerned[prediction->student - shard->first_student])
            prediction->probability =
                (float)(((double)prediction->probability + sums.chance[t]) /
                        (double)stand_ins->n_passes);
        if (stand_ins_basis(stand_ins, t) != BASIS_ITEM)
            prediction->group =
                inference->dataset.unseen.group[stand_ins->asked[t] - stand_ins->n_items];
    }
    memory_free(sums.chance);
    memory_free(concerned);
    return status;
}

enum status inference_predict(const struct inference *inference, unsigned splits,
                              struct predictions *predictions)
{
    enum status status = scoring_predict(inference->model, inference->work, &inference->shard,
                                         splits, predictions);
    predictions->stand_ins = &inference->stand_ins;
    if (status == OK && inference->stand_ins.n_passes > 0)
        status = predict_passes(inference, splits, predictions);
    return comm_agree(inference->comm, status);
}

/* Variance over stand-ins: mean of the variances plus variance of the means. */
static enum status deviate_passes(const struct inference *inference, unsigned splits,
                                  const struct predictions *predictions, float *deviation)
{
    const struct shard *shard = &inference->shard;
    const size_t n_passes = inference->stand_ins.n_passes;
    bool *concerned = list_concerned(inference);
    const struct sums sums = {NEW(double, shard->n_attempts), NEW(double, shard->n_attempts)};
    enum status status = OK;
    for (size_t pass = 0; pass < n_passes && status == OK; pass++)
        status = predict_pass(inference, splits, pass, concerned, &sums);
    for (size_t i = 0; i < predictions->n && status == OK; i++) {
        const uint64_t t = predictions->place[i];
        const double mean = sums.chance[t] / (double)n_passes;
        if (concerned[predictions->list[i].student - shard->first_student])
            deviation[i] =
                (float)sqrt(fmax(0, sums.square[t] / (double)n_passes - mean * mean));
    }
    memory_free(sums.chance);
    memory_free(sums.square);
    memory_free(concerned);
    return status;
}

/* "bkt, blend, lme": the kinds that know deviations; caller frees. */
static char *deviating_kinds(void)
{
    char *list = memory_text("%s", "");
    for (size_t k = 0; k < n_model_kinds; k++)
        if (model_kinds[k]->view.deviation != NULL) {
            char *longer =
                memory_text("%s%s%s", list, list[0] != '\0' ? ", " : "", model_kinds[k]->name);
            memory_free(list);
            list = longer;
        }
    return list;
}

enum status inference_deviate(const struct inference *inference, unsigned splits,
                              const struct predictions *predictions, float **deviation)
{
    const struct model_kind *kind = inference->model->kind;
    *deviation = NULL;
    if (kind->view.deviation == NULL) {
        char *kinds = deviating_kinds();
        enum status status =
            fail(BAD_USER,
                 "%s: %s models give no uncertainty for a probability (these do: %s); omit "
                 "--interval",
                 inference->checkpoint.path, kind->name, kinds);
        memory_free(kinds);
        return status;
    }
    real *own = deviations_of(inference, inference->work, &inference->shard, splits, NULL);
    *deviation = NEW(float, predictions->n);
    for (size_t i = 0; i < predictions->n; i++)
        (*deviation)[i] = (float)own[predictions->place[i]];
    memory_free(own);
    enum status status = inference->stand_ins.n_passes > 0
                             ? deviate_passes(inference, splits, predictions, *deviation)
                             : OK;
    return comm_agree(inference->comm, status);
}
