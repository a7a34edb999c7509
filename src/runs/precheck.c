/* Before a run starts or continues: find settings that have no effect. */
#include "runs/precheck.h"
#include "base/comm.h"
#include "base/log.h"
#include <string.h>

void precheck_settings(const struct settings *settings, const struct stepper *stepper)
{
    const struct shard *shard = &stepper->shard;
    const bool decides =
        settings->model->kind->fit.learn == NULL || settings->model->kind->fit.keeps_best;
    int64_t n_valid = 0;
    for (uint64_t a = 0; a < shard->n_attempts; a++)
        n_valid += mark_split(shard->mark[a]) == VALID;
    comm_sum_i64(stepper->comm, &n_valid, 1);
    if ((n_valid > 0 && decides) || stepper->n_joined > 0)
        return;
    const char *why = decides ? "the data set has no validation attempts; import it with "
                                "--valid or another --split"
                              : "the result of this model is its last epoch, not the best one";
    if (settings->train.patience > 0)
        log_warn("train.patience = %lld has no effect: %s", (long long)settings->train.patience,
                 why);
    if (strcmp(settings_monitor(settings), "log_loss") != 0)
        log_warn("train.monitor = %s has no effect: %s", settings_monitor(settings), why);
}
