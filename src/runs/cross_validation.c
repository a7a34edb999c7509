/* A cross-validation is k ordinary runs whose settings differ only in train.fold and the
 * directory:
 *
 *     RUN/fold-1 ... RUN/fold-k   one run per fold, continued like any other
 *     RUN/result.json             mean and standard deviation of the scores over the folds
 *
 * Finished folds are not trained again, so an interrupted cross-validation continues where it
 * stopped. */
#include "runs/cross_validation.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum status run_fold(const struct comm *comm, const struct settings *all, int64_t fold,
                            struct result *result)
{
    char *text = config_text(all->groups, N_SETTINGS_GROUPS, NULL);
    char *directory =
        memory_text("run.directory=%s/fold-%lld", all->run.directory, (long long)fold);
    char *number = memory_text("train.fold=%lld", (long long)fold);
    struct config *config = config_create();
    struct settings settings = {.config = config};
    enum status status = config_read_text(config, text, "cross-validation");
    if (status == OK)
        status = config_set(config, directory, "cross-validation");
    if (status == OK)
        status = config_set(config, number, "cross-validation");
    if (status == OK)
        status = settings_create(&settings, config, NULL);
    if (status == OK)
        status = trainer_run(comm, &settings, result);
    settings_destroy(&settings);
    memory_free(text);
    memory_free(directory);
    memory_free(number);
    return status;
}

/* Mean and standard deviation over the folds. */
static void summarize(struct result *results, int64_t n, enum split split,
                      struct cross_validation *folds)
{
    struct score *mean = &folds->mean[split], *spread = &folds->spread[split];
    for (int64_t f = 0; f < n; f++)
        mean->n += results[f].scores[split].n;
    for (int m = 0; m < N_METRICS; m++) {
        double sum = 0, squares = 0;
        for (int64_t f = 0; f < n; f++)
            sum += *metrics_value(&results[f].scores[split], m);
        for (int64_t f = 0; f < n; f++) {
            const double d = *metrics_value(&results[f].scores[split], m) - sum / (double)n;
            squares += d * d;
        }
        *metrics_value(mean, m) = sum / (double)n;
        *metrics_value(spread, m) = sqrt(squares / (double)(n - 1));
    }
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *split_json(struct result *results, int64_t n, enum split split,
                          struct cross_validation *folds)
{
    json_t *means = json_object();
    for (int m = 0; m < N_METRICS; m++) {
        json_t *values = json_array();
        for (int64_t f = 0; f < n; f++)
            json_array_append_new(values, number(*metrics_value(&results[f].scores[split], m)));
        json_object_set_new(means, metrics_names[m],
                            json_pack("{s:o, s:o, s:o}", "mean",
                                      number(*metrics_value(&folds->mean[split], m)), "spread",
                                      number(*metrics_value(&folds->spread[split], m)), "folds",
                                      values));
    }
    return means;
}

static enum status write_result(const struct settings *settings, struct result *results,
                                struct cross_validation *folds)
{
    const int64_t n = settings->train.folds;
    json_t *object = json_object();
    json_object_set_new(object, "folds", json_integer(n));
    json_object_set_new(object, "valid", split_json(results, n, VALID, folds));
    json_object_set_new(object, "test", split_json(results, n, TEST, folds));
    char *text =
        json_dumps(object, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    char *line = memory_text("%s\n", text),
         *path = memory_text("%s/result.json", settings->run.directory);
    enum status status = atomic_file_write(path, line, strlen(line));
    memory_free(line);
    memory_free(path);
    free(text);
    json_decref(object);
    return status;
}

enum status cross_validation_run(const struct comm *comm, const struct settings *settings,
                                 struct cross_validation *folds)
{
    const int64_t n = settings->train.folds;
    struct result *results = NEW(struct result, (size_t)n);
    enum status status = OK;
    *folds = (struct cross_validation){0};
    for (int64_t fold = 1; fold <= n && status == OK; fold++) {
        log_say("fold %lld of %lld", (long long)fold, (long long)n);
        status = run_fold(comm, settings, fold, &results[fold - 1]);
        folds->is_mixed |= results[fold - 1].is_mixed;
    }
    if (status == OK) {
        summarize(results, n, VALID, folds);
        summarize(results, n, TEST, folds);
        status =
            comm_agree(comm, comm->rank == 0 ? write_result(settings, results, folds) : OK);
    }
    memory_free(results);
    return status;
}
