/* cohort evaluate with a model that predicts one target per student: its scores, and those of
 * the mean of the training targets. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/evaluate_internal.h"
#include "runs/targets.h"
#include <inttypes.h>
#include <stdio.h>

enum { LABEL = 38 };

static void print_finals(const struct inference *inference,
                         const struct evaluate_values *values, const struct score *score,
                         const struct score *baseline)
{
    if (values->json) {
        json_t *object = evaluate_score_json(score);
        json_object_set_new(object, "checkpoint",
                            command_json_text(inference->checkpoint.path));
        json_object_set_new(object, "model", json_string(inference->model->kind->name));
        json_object_set_new(object, "epoch",
                            json_integer(inference->checkpoint.progress.epoch));
        json_object_set_new(object, "data", command_json_text(inference->dataset.path));
        json_object_set_new(object, "split", json_string(evaluate_splits[values->split]));
        json_object_set_new(object, "mean_target", evaluate_score_json(baseline));
        command_json_print(object);
        return;
    }
    printf("%s: %s after epoch %" PRId64 ", on the %s students of %s\n\n",
           inference->checkpoint.path, inference->model->kind->name,
           inference->checkpoint.progress.epoch, evaluate_splits[values->split],
           inference->dataset.path);
    const bool chance = model_task(inference->model) == TASK_CHANCE;
    printf("%-*s  %8s  %11s  %9s  %9s  %9s\n", LABEL, "", "students", "mean target", "log-loss",
           "RMSE", chance ? "AUC" : "R2");
    for (int k = 0; k < 2; k++) {
        const struct score *row = k == 0 ? score : baseline;
        printf("%-*s  %8" PRId64 "  %11.5g  %9.5f  %9.5g  %9.4f", LABEL,
               k == 0 ? inference->model->kind->name : "mean of training targets", row->n,
               row->correct, row->log_loss, row->rmse, chance ? row->auc : row->r2);
        if (chance)
            printf("  accuracy %.4f", row->accuracy);
        putchar('\n');
    }
}

enum status evaluate_targets(const struct inference *inference,
                             const struct evaluate_values *values)
{
    if (values->groups || values->calibration || values->skip_first || values->replicates > 0)
        return fail(BAD_USER,
                    "this model predicts one target per student; --groups, --calibration, "
                    "--skip-first and --confidence apply to answers only");
    const unsigned set = evaluate_set(values);
    TRY(inference_check_splits(inference, set));
    struct target_prediction *targets = NULL;
    size_t n = 0;
    struct score score, baseline;
    TRY(comm_agree(inference->comm, targets_predict(inference->model, inference->work,
                                                    &inference->shard, set, &targets, &n)));
    targets_score(inference->comm, inference->model, targets, n, &score);
    const struct baseline_target target = baseline_target(inference);
    for (size_t i = 0; i < n; i++) {
        targets[i].mean = target.mean;
        targets[i].variance = target.variance;
    }
    targets_score(inference->comm, inference->model, targets, n, &baseline);
    memory_free(targets);
    if (score.n == 0)
        return fail(BAD_USER, "%s: no student in split %s has a target",
                    inference->dataset.path, evaluate_splits[values->split]);
    if (!log_muted())
        print_finals(inference, values, &score, &baseline);
    return OK;
}
