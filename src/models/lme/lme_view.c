/* The mixed model's view of all attempts: what prediction needs, and what is kept of students
 * between passes. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>

/* Counts are of earlier attempts, never of their outcomes. (What a covariate reveals is up to the
 * import: the number of hints used reveals the outcome.) */
double lme_fixed_x(const struct lme_fixed *fixed, uint64_t position, uint64_t met,
                   const double *covariates)
{
    if (fixed->kind == FIXED_COVARIATE) {
        const double x = covariates[fixed->covariate];
        return isnan(x) ? 0 : x; /* empty: adds nothing, as in ktm */
    }
    return Sleef_cinz_log1pd1_u10purec(
        (double)(fixed->kind == FIXED_POSITION ? position : met));
}

/* Fixed effects of all attempts. */
static void list_fixed(struct lme_work *work)
{
    const struct shard *shard = work->shard;
    const size_t n_x = work->shape->n_fixed - 1;
    work->met = NEW(uint32_t, shard->dataset->n_items);
    work->x = NEW(double, n_x * shard->n_attempts);
    for (size_t s = 0; n_x > 0 && s < shard->n_students; s++) {
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            for (size_t k = 0; k < n_x; k++)
                work->x[t * n_x + k] =
                    lme_fixed_x(&work->shape->fixed[k + 1], t - shard->first[s],
                                work->met[shard->item[t]], lme_covariates(shard, t));
            work->met[shard->item[t]]++;
        }
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            work->met[shard->item[t]] = 0;
    }
}

void *lme_attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    (void)use;
    struct lme_work *work = NEW(struct lme_work, 1);
    work->model = model;
    work->shard = shard;
    work->shape = lme_shape(model);
    list_fixed(work);
    work->effect = NEW(double, shard->n_students);
    return work;
}

void lme_detach(void *memory)
{
    struct lme_work *work = memory;
    lme_solver_destroy(work);
    void *const parts[] = {work->x,   work->effect, work->shown, work->shown_outcome,
                           work->met, work->walked};
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(work);
}

void lme_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct shard *shard = ((const struct lme_work *)memory)->shard;
    *n_attempts = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        const int64_t before = *n_attempts;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            *n_attempts += mark_trains(shard->mark[t]);
        has_training[s] = *n_attempts > before;
    }
}

void *lme_state(void *memory, size_t *n_bytes)
{
    struct lme_work *work = memory;
    *n_bytes = work->shard->n_students * sizeof *work->effect;
    return work->effect;
}
