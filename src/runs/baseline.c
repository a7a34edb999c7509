/* Baselines: a model that does not beat them has learned nothing about students.
 *
 *     attempts   p = (right + 1) / (right + wrong + 2) over the training attempts of the item
 *     targets    mean and variance of the training students' targets */
#include "runs/baseline.h"
#include "base/memory.h"
#include <math.h>

struct prediction *baseline_items(const struct inference *inference,
                                  const struct predictions *predictions)
{
    struct item_counts counts;
    if (!inference_counts(inference, &counts))
        return NULL;
    struct prediction *list = NEW_SCRATCH(struct prediction, predictions->n);
    for (size_t p = 0; p < predictions->n; p++) {
        const uint32_t i = inference->shard.item[predictions->place[p]];
        list[p] = predictions->list[p];
        list[p].probability = (float)((double)(counts.right[i] + 1) /
                                      (double)(counts.right[i] + counts.wrong[i] + 2));
    }
    memory_free(counts.right);
    return list;
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
