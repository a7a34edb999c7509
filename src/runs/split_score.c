/* Scores of a split: predictions of the model, one target per student or one probability per
 * attempt, and of the baselines on the same attempts. */
#include "runs/split_score.h"
#include "base/fail.h"
#include "base/memory.h"
#include "runs/scoring.h"
#include "runs/targets.h"

static enum status score_targets(const struct comm *comm, const struct model *model, void *work,
                                 const struct shard *shard, enum split split,
                                 struct score *score)
{
    struct target_prediction *targets = NULL;
    size_t n = 0;
    TRY(comm_agree(comm, targets_predict(model, work, shard, 1u << split, &targets, &n)));
    targets_score(comm, model, targets, n, score);
    memory_free(targets);
    return OK;
}

enum status split_score(const struct comm *comm, const struct model *model, void *work,
                        const struct shard *shard, enum split split,
                        const struct item_counts *counts, struct score *score, double *log_loss)
{
    if (model_task(model) != TASK_TRACE)
        return score_targets(comm, model, work, shard, split, score);
    struct predictions predictions;
    TRY(comm_agree(comm, scoring_predict(model, work, shard, 1u << split, &predictions)));
    scoring_keep(&predictions, shard, false);
    metrics_score(comm, predictions.list, predictions.n, score);
    for (int b = 0; counts != NULL && b < N_BASELINES; b++) {
        struct prediction *list =
            baseline_predict((enum baseline)b, model, shard, counts, &predictions);
        struct score baseline;
        metrics_score(comm, list, predictions.n, &baseline);
        log_loss[b] = baseline.log_loss;
        memory_free(list);
    }
    scoring_free(&predictions);
    return OK;
}
