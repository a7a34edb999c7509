/* Before a run starts or continues: find settings that have no effect. A validation score needs
 * attempts with a known outcome or, for a model of targets, students with a known target. */
#include "runs/precheck.h"
#include "base/comm.h"
#include "base/fail.h"
#include "base/log.h"
#include <math.h>
#include <string.h>

/* Whether the user set it for this run: not a default, and not the original run of an update. */
static bool is_chosen(const struct settings *settings, const char *key)
{
    const char *file = settings->update.file;
    bool chosen = false;
    for (size_t e = 0; e < config_count(settings->config); e++) {
        const struct config_entry entry = config_entry(settings->config, e);
        if (strcmp(entry.section, "train") == 0 && strcmp(entry.key, key) == 0)
            chosen |= file == NULL || strncmp(entry.origin, file, strlen(file)) != 0;
    }
    return chosen && config_is_given(settings->config, "train", key);
}

/* Whether a validation score decides which epoch is the result. */
static bool decides(const struct settings *settings)
{
    return settings->model->kind->fit.learn == NULL || settings->model->kind->fit.keeps_best;
}

/* Of the validation part: attempts, or students for a model of targets. */
struct valid_counts {
    int64_t n, n_known, n_right;
};

static bool has_targets(const struct settings *settings)
{
    return model_task(settings->model) != TASK_TRACE;
}

static void count_attempts(const struct shard *shard, struct valid_counts *counts)
{
    for (uint64_t a = 0; a < shard->n_attempts; a++) {
        const bool valid = mark_split(shard->mark[a]) == VALID;
        counts->n += valid;
        counts->n_known += valid && mark_outcome(shard->mark[a]) != UNKNOWN;
        counts->n_right += valid && mark_outcome(shard->mark[a]) == CORRECT;
    }
}

/* A student belongs to the part of the last attempt: see targets_predict. */
static void count_targets(const struct shard *shard, struct valid_counts *counts)
{
    for (size_t s = 0; s < shard->n_students; s++) {
        const uint64_t end = shard->first[s + 1];
        if (end == shard->first[s] || mark_split(shard->mark[end - 1]) != VALID)
            continue;
        const double target = shard->dataset->target[shard->first_student + s];
        counts->n++;
        counts->n_known += !isnan(target);
        counts->n_right += target > 0.5;
    }
}

/* Collective. */
static struct valid_counts count_valid(const struct settings *settings,
                                       const struct stepper *stepper)
{
    struct valid_counts counts = {0};
    if (has_targets(settings))
        count_targets(&stepper->shard, &counts);
    else
        count_attempts(&stepper->shard, &counts);
    int64_t sums[] = {counts.n, counts.n_known, counts.n_right};
    comm_sum_i64(stepper->comm, sums, COUNT(sums));
    return (struct valid_counts){sums[0], sums[1], sums[2]};
}

/* Scores of targets that are not chances have no AUC and no accuracy. */
static enum status check_score(const struct settings *settings)
{
    const enum model_task task = model_task(settings->model);
    const char *monitor = settings_monitor(settings);
    if ((task != TASK_SCORE && task != TASK_DENSITY) || strcmp(monitor, "log_loss") == 0 ||
        strcmp(monitor, "rmse") == 0 || settings_metric(settings) < 0)
        return OK;
    return fail(BAD_USER,
                "train.monitor = %s: this model predicts a number per student, for which %s is "
                "undefined; use train.monitor=log_loss or rmse",
                monitor, monitor);
}

enum status precheck_monitor(const struct settings *settings, const struct stepper *stepper)
{
    if (!decides(settings))
        return OK;
    TRY(check_score(settings));
    const struct valid_counts counts = count_valid(settings, stepper);
    const bool none_right = counts.n_right == 0, all_right = counts.n_right == counts.n_known;
    if (strcmp(settings_monitor(settings), "auc") != 0 || counts.n_known == 0 ||
        (!none_right && !all_right))
        return OK;
    if (has_targets(settings))
        return fail(BAD_USER,
                    "train.monitor = auc: all %lld validation targets are %d, so their AUC is "
                    "undefined; use train.monitor=log_loss, or import the data with more "
                    "students for validation",
                    (long long)counts.n_known, all_right);
    return fail(
        BAD_USER,
        "train.monitor = auc: no validation outcome is %s (outcomes: %lld), so their AUC "
        "is undefined; use train.monitor=log_loss, or import the data with more students "
        "for validation",
        all_right ? "incorrect" : "correct", (long long)counts.n_known);
}

void precheck_settings(const struct settings *settings, const struct stepper *stepper)
{
    const struct valid_counts counts = count_valid(settings, stepper);
    if ((counts.n_known > 0 && decides(settings)) || stepper->n_joined > 0)
        return;
    char why[160] = "the result of this model is its last epoch, not the best one";
    if (decides(settings) && counts.n == 0)
        snprintf(why, sizeof why,
                 "the data set has no validation attempts; import it with --valid or another "
                 "--split");
    else if (decides(settings))
        snprintf(why, sizeof why,
                 "no %s of the %lld validation %s is known; import the data with them, or with "
                 "another --split",
                 has_targets(settings) ? "target" : "outcome", (long long)counts.n,
                 has_targets(settings) ? "students" : "attempts");
    if (settings->train.patience > 0 && is_chosen(settings, "patience"))
        log_warn("train.patience = %lld has no effect: %s", (long long)settings->train.patience,
                 why);
    if (strcmp(settings_monitor(settings), "log_loss") != 0 && is_chosen(settings, "monitor"))
        log_warn("train.monitor = %s has no effect: %s", settings_monitor(settings), why);
}
