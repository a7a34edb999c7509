/* One rule of prediction for all models: p(t) depends only on what the student did before t and
 * on item t itself.
 *
 *     attempts of a student   a(1)  a(2)  ...  a(t-1)  | a(t)  a(t+1)  ...
 *                             ----- seen by p(t) ----  |  not seen
 *
 * The model keeps the rule (a test flips later outcomes and finds no bit changed); this file
 * collects the predictions. */
#include "runs/scoring.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>

/* Probabilities of the shard's attempts. */
static void predict_all(const struct model *model, void *work, const struct shard *shard,
                        unsigned splits, const bool *only, real *p)
{
    uint32_t *students = NEW_SCRATCH(uint32_t, shard->n_students);
    size_t n = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        bool wanted = false;
        const uint64_t end = only == NULL || only[s] ? shard->first[s + 1] : 0;
        for (uint64_t t = shard->first[s]; t < end && !wanted; t++)
            wanted = splits >> mark_split(shard->mark[t]) & 1;
        if (wanted)
            students[n++] = (uint32_t)s;
    }
    model_predict(model, work, shard, students, n, splits, p);
    memory_free(students);
}

enum status scoring_predict(const struct model *model, void *work, const struct shard *shard,
                            unsigned splits, struct predictions *predictions)
{
    return scoring_predict_some(model, work, shard, splits, NULL, predictions);
}

enum status scoring_predict_some(const struct model *model, void *work,
                                 const struct shard *shard, unsigned splits, const bool *only,
                                 struct predictions *predictions)
{
    if (model_task(model) != TASK_TRACE)
        return fail(BAD_USER, "this model predicts one target per student, not single answers");
    size_t n = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        n += splits >> mark_split(shard->mark[t]) & 1;
    *predictions = (struct predictions){.list = NEW_SCRATCH(struct prediction, n),
                                        .place = NEW_SCRATCH(uint64_t, n)};
    real *p = NEW_SCRATCH(real, shard->n_attempts);
    predict_all(model, work, shard, splits, only, p);
    bool defined = true;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            if ((only != NULL && !only[s]) || !(splits >> mark_split(shard->mark[t]) & 1))
                continue;
            defined &= p[t] >= 0 && p[t] <= 1;
            predictions->place[predictions->n] = t;
            predictions->list[predictions->n++] =
                (struct prediction){.probability = (float)p[t],
                                    .student = (uint32_t)(shard->first_student + s),
                                    .group = shard->dataset->item_group[shard->item[t]],
                                    .correct = mark_outcome(shard->mark[t]) == CORRECT,
                                    .is_first = t == shard->first[s]};
        }
    memory_free(p);
    if (defined)
        return OK;
    scoring_free(predictions);
    return fail(DIVERGED, "the model's parameters are so large that its predictions are NaN: "
                          "training diverged; start again with a lower optimizer.rate");
}

void scoring_free(struct predictions *predictions)
{
    memory_free(predictions->list);
    memory_free(predictions->place);
    *predictions = (struct predictions){0};
}

void scoring_keep(struct predictions *predictions, const struct shard *shard, bool skip_first)
{
    size_t n = 0;
    for (size_t i = 0; i < predictions->n; i++) {
        const uint64_t place = predictions->place[i];
        if (mark_outcome(shard->mark[place]) == UNKNOWN ||
            (skip_first && predictions->list[i].is_first))
            continue;
        predictions->list[n] = predictions->list[i];
        predictions->place[n++] = place;
    }
    predictions->n = n;
}

struct prediction *scoring_rest(const struct prediction *list, size_t n, size_t *n_rest)
{
    struct prediction *rest = NEW_SCRATCH(struct prediction, n);
    *n_rest = 0;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_first)
            rest[(*n_rest)++] = list[i];
    return rest;
}
