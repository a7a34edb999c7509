/* Before a run starts or continues: find settings that have no effect. */
#include "runs/precheck.h"
#include "base/comm.h"
#include "base/fail.h"
#include "base/log.h"
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

/* Collective: validation attempts by outcome. */
static void count_valid(const struct stepper *stepper, int64_t n[4])
{
    const struct shard *shard = &stepper->shard;
    memset(n, 0, 4 * sizeof *n);
    for (uint64_t a = 0; a < shard->n_attempts; a++)
        n[mark_outcome(shard->mark[a])] += mark_split(shard->mark[a]) == VALID;
    comm_sum_i64(stepper->comm, n, 4);
}

enum status precheck_monitor(const struct settings *settings, const struct stepper *stepper)
{
    int64_t n[4];
    if (strcmp(settings_monitor(settings), "auc") != 0 || !decides(settings) ||
        model_task(settings->model) != TASK_TRACE)
        return OK;
    count_valid(stepper, n);
    const int64_t n_known = n[INCORRECT] + n[CORRECT];
    if (n_known == 0 || (n[INCORRECT] > 0 && n[CORRECT] > 0))
        return OK;
    return fail(
        BAD_USER,
        "train.monitor = auc: no validation outcome is %s (outcomes: %lld), so their AUC "
        "is undefined; use train.monitor=log_loss, or import the data with more students "
        "for validation",
        n[CORRECT] > 0 ? "incorrect" : "correct", (long long)n_known);
}

void precheck_settings(const struct settings *settings, const struct stepper *stepper)
{
    int64_t n[4];
    count_valid(stepper, n);
    const bool has_valid = n[INCORRECT] + n[CORRECT] + n[UNKNOWN] > 0;
    if ((has_valid && decides(settings)) || stepper->n_joined > 0)
        return;
    const char *why = decides(settings)
                          ? "the data set has no validation attempts; import it with "
                            "--valid or another --split"
                          : "the result of this model is its last epoch, not the best one";
    if (settings->train.patience > 0 && is_chosen(settings, "patience"))
        log_warn("train.patience = %lld has no effect: %s", (long long)settings->train.patience,
                 why);
    if (strcmp(settings_monitor(settings), "log_loss") != 0 && is_chosen(settings, "monitor"))
        log_warn("train.monitor = %s has no effect: %s", settings_monitor(settings), why);
}
