/* Scores of targets are sums of a few numbers per student. Rank 0 gathers all numbers and sums
 * them in student order: the same bits on any number of ranks. */
#include "runs/targets.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>
#include <sleef.h>

enum status targets_predict(const struct model *model, void *work, const struct shard *shard,
                            unsigned splits, struct target_prediction **targets, size_t *n)
{
    uint32_t *students = NEW_SCRATCH(uint32_t, shard->n_students);
    *n = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        const uint64_t end = shard->first[s + 1];
        if (end > shard->first[s] && splits >> mark_split(shard->mark[end - 1]) & 1)
            students[(*n)++] = (uint32_t)s;
    }
    double *mean = NEW_SCRATCH(double, *n), *variance = NEW_SCRATCH(double, *n);
    model->kind->target.predict(model, work, students, *n, mean, variance);
    *targets = NEW_SCRATCH(struct target_prediction, *n);
    bool defined = true;
    for (size_t i = 0; i < *n; i++) {
        const size_t student = shard->first_student + students[i];
        (*targets)[i] = (struct target_prediction){
            (uint32_t)student, shard->dataset->target[student], mean[i], variance[i]};
        defined &= isfinite(mean[i]) != 0;
    }
    memory_free(students);
    memory_free(mean);
    memory_free(variance);
    if (defined)
        return OK;
    memory_free(*targets);
    *targets = NULL;
    return fail(DIVERGED, "the model's parameters are so large that its predictions are NaN: "
                          "training diverged; start again with a lower optimizer.rate");
}

static void score_chances(const struct comm *comm, const struct target_prediction *targets,
                          size_t n, struct score *score)
{
    struct prediction *list = NEW_SCRATCH(struct prediction, n);
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(targets[i].target))
            list[n_known++] = (struct prediction){.probability = (float)targets[i].mean,
                                                  .student = targets[i].student,
                                                  .group = -1,
                                                  .correct = targets[i].target > 0.5};
    metrics_score(comm, list, n_known, score);
    score->r2 = NAN;
    memory_free(list);
}

/* Rank 0: all students. */
static void score_all(enum model_task task, const struct target_prediction *all, size_t n,
                      struct score *score)
{
    static const double log_2_pi = 1.8378770664093454836;
    double sum = 0, errors = 0, spread = 0, density = 0;
    int64_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(all[i].target)) {
            sum += all[i].target;
            n_known++;
        }
    const double mean = sum / (double)n_known;
    for (size_t i = 0; i < n; i++) {
        if (isnan(all[i].target))
            continue;
        const double error = all[i].target - all[i].mean, away = all[i].target - mean;
        errors += error * error;
        spread += away * away;
        density -= 0.5 * (log_2_pi + Sleef_cinz_logd1_u10purec(all[i].variance) +
                          error * error / all[i].variance);
    }
    const double square = errors / (double)n_known;
    *score = (struct score){.n = n_known,
                            .n_students = n_known,
                            .correct = mean,
                            .cbd = NAN,
                            .auc = NAN,
                            .accuracy = NAN,
                            .calibration_error = NAN,
                            .rmse = sqrt(square),
                            .r2 = 1 - errors / spread,
                            .log_loss =
                                task == TASK_DENSITY
                                    ? -density / (double)n_known
                                    : 0.5 * (log_2_pi + 1 + Sleef_cinz_logd1_u10purec(square))};
}

void targets_score(const struct comm *comm, const struct model *model,
                   const struct target_prediction *targets, size_t n, struct score *score)
{
    const enum model_task task = model_task(model);
    if (task == TASK_CHANCE) {
        score_chances(comm, targets, n, score);
        return;
    }
    size_t n_bytes = 0;
    struct target_prediction *all = comm_gather(comm, targets, n * sizeof *targets, &n_bytes);
    if (comm->rank == 0)
        score_all(task, all, n_bytes / sizeof *all, score);
    comm_broadcast(comm, score, sizeof *score, 0);
    memory_free(all);
}
