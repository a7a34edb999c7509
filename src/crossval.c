/* A cross-validation is k ordinary runs, one for each fold, whose settings differ in train.fold
 * and in the directory. Finished folds are found finished, so a stopped cross-validation
 * continues where it was. */
#include "crossval.h"
#include "fail.h"
#include "log.h"
#include "memory.h"
#include "store.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum status run_fold(const struct comm *comm, const struct settings *all, int64_t fold,
                            struct result *result)
{
    char *text = config_text(all->groups, N_TRAINER_GROUPS, NULL);
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
        status = settings_create(&settings, config);
    if (status == OK)
        status = trainer_run(comm, &settings, result);
    settings_destroy(&settings);
    memory_free(text);
    memory_free(directory);
    memory_free(number);
    return status;
}

/* Mean and standard deviation of a metric over the folds. */
static void summarize(struct score *scores, int64_t n, int metric, double *mean, double *spread)
{
    double sum = 0, squares = 0;
    for (int64_t f = 0; f < n; f++)
        sum += *metrics_value(&scores[f], metric);
    *mean = sum / (double)n;
    for (int64_t f = 0; f < n; f++) {
        const double d = *metrics_value(&scores[f], metric) - *mean;
        squares += d * d;
    }
    *spread = sqrt(squares / (double)(n - 1));
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static enum status report(const struct settings *settings, struct score *scores)
{
    const int64_t n = settings->train.folds;
    json_t *object = json_object(), *means = json_object();
    json_object_set_new(object, "folds", json_integer(n));
    printf("%lld folds, test of each:\n", (long long)n);
    for (int m = 0; m < N_METRICS; m++) {
        double mean = 0, spread = 0;
        summarize(scores, n, m, &mean, &spread);
        printf("  %-18s %.5f +- %.5f\n", metrics_names[m], mean, spread);
        json_t *values = json_array();
        for (int64_t f = 0; f < n; f++)
            json_array_append_new(values, number(*metrics_value(&scores[f], m)));
        json_object_set_new(means, metrics_names[m],
                            json_pack("{s:o, s:o, s:o}", "mean", number(mean), "spread",
                                      number(spread), "folds", values));
    }
    json_object_set_new(object, "test", means);
    char *text =
        json_dumps(object, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    char *line = memory_text("%s\n", text),
         *path = memory_text("%s/result.json", settings->run.directory);
    enum status status = store_write(path, line, strlen(line));
    memory_free(line);
    memory_free(path);
    free(text);
    json_decref(object);
    return status;
}

enum status crossval_run(const struct comm *comm, const struct settings *settings)
{
    const int64_t n = settings->train.folds;
    struct score *scores = NEW(struct score, (size_t)n);
    enum status status = OK;
    for (int64_t fold = 1; fold <= n && status == OK; fold++) {
        struct result result;
        log_say("fold %lld of %lld", (long long)fold, (long long)n);
        status = run_fold(comm, settings, fold, &result);
        scores[fold - 1] = result.scores[TEST];
    }
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? report(settings, scores) : OK);
    memory_free(scores);
    return status;
}
