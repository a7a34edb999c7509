/* Opens a trained model and a data set, for evaluate, predict, export and others. Only rank 0
 * needs to see the run directory: it resolves the path and shares what it finds. All ranks read
 * the data set. */
#include "runs/inference.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/resplit.h"
#include "runs/refit.h"
#include "runs/run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum status open_checkpoint(struct inference *inference, const char *path)
{
    const struct comm *comm = inference->comm;
    char *file = NULL;
    TRY(comm_agree(comm, comm->rank == 0 ? run_find(path, &file) : OK));
    file = comm_share_text(comm, file);
    inference->training =
        comm_share_text(comm, comm->rank == 0 ? run_setting(path, "data", "file") : NULL);
    inference->origin =
        comm_share_text(comm, comm->rank == 0 ? run_setting(path, "train", "refit") : NULL);
    enum status status = checkpoint_open(&inference->checkpoint, file, comm);
    memory_free(file);
    return status;
}

static enum status check_training(const struct inference *inference)
{
    if (inference->training == NULL)
        return fail(BAD_USER,
                    "%s: no config.ini next to it names the data set it was trained on; name "
                    "one with --data FILE",
                    inference->checkpoint.path);
    if (!file_exists(inference->training))
        return fail(BAD_USER,
                    "%s: it was trained on %s, which does not exist (relative to the current "
                    "directory); give its new location with --data FILE",
                    inference->checkpoint.path, inference->training);
    return OK;
}

static bool is_trained_on(const struct inference *inference, const struct dataset *dataset)
{
    return strcmp(dataset->digest, inference->checkpoint.data_digest) == 0;
}

static int64_t train_integer(const struct inference *inference, const char *key)
{
    const char *value = config_get(inference->config, "train", key);
    return value ? strtoll(value, NULL, 10) : 0;
}

/* Collective: reads this rank's students, with the split used in training. */
static enum status read_part(const struct inference *inference, const struct dataset *dataset,
                             struct shard *shard)
{
    const size_t rank = (size_t)inference->comm->rank, n_ranks = (size_t)inference->comm->size;
    const size_t first = dataset_cut(dataset, rank, n_ranks);
    TRY(dataset_read(dataset, first, dataset_cut(dataset, rank + 1, n_ranks) - first, shard));
    if (train_integer(inference, "fold") > 0 && is_trained_on(inference, dataset))
        resplit_folds(shard, train_integer(inference, "folds"),
                      train_integer(inference, "fold"),
                      (uint64_t)train_integer(inference, "seed"));
    if (refit_digest(inference->config) != NULL && is_trained_on(inference, dataset))
        resplit_join(shard);
    return OK;
}

/* Collective; errors about settings (such as an unknown kind) get the file name as prefix. */
static enum status load_model(struct inference *inference, struct dataset *dataset)
{
    const char *path = inference->checkpoint.path;
    inference->config = config_create();
    enum status status = checkpoint_model(&inference->checkpoint, inference->comm,
                                          inference->config, dataset, &inference->model);
    const bool has_path = strstr(fail_sentence(), path) != NULL ||
                          (dataset != NULL && strstr(fail_sentence(), dataset->path) != NULL);
    return status == OK || has_path ? status : fail_context(status, "%s", path);
}

enum status inference_open_model(struct inference *inference, const char *path,
                                 const struct comm *comm)
{
    *inference = (struct inference){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(inference, path));
    return load_model(inference, NULL);
}

enum status inference_open(struct inference *inference, const char *path, const char *data,
                           const struct comm *comm)
{
    *inference = (struct inference){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(inference, path));
    const bool chosen = data[0] != '\0';
    if (!chosen)
        TRY(comm_agree(comm, check_training(inference)));
    TRY(dataset_open(&inference->dataset, chosen ? data : inference->training, comm));
    inference->own_data = is_trained_on(inference, &inference->dataset);
    if (!inference->own_data && !chosen)
        return fail(BAD_USER,
                    "%s: trained on a data set with digest %s, but %s now has digest %s, which "
                    "does not match the checkpoint; use the same data, or give --data to use "
                    "this data set anyway",
                    inference->checkpoint.path, inference->checkpoint.data_digest,
                    inference->dataset.path, inference->dataset.digest);
    if (!inference->own_data)
        log_say(
            "note: %s is not the data set that %s was trained on; items are matched by name",
            inference->dataset.path, inference->checkpoint.path);
    TRY(load_model(inference, &inference->dataset));
    TRY(read_part(inference, &inference->dataset, &inference->shard));
    inference->work =
        inference->model->kind->attach(inference->model, &inference->shard, TO_PREDICT);
    return OK;
}

void inference_close(struct inference *inference)
{
    if (inference->work != NULL)
        inference->model->kind->detach(inference->work);
    model_destroy(inference->model);
    config_destroy(inference->config);
    shard_free(&inference->shard);
    dataset_close(&inference->dataset);
    checkpoint_close(&inference->checkpoint);
    memory_free(inference->training);
    memory_free(inference->origin);
    *inference = (struct inference){.checkpoint = {.file = -1}};
}

void inference_join(struct inference *inference)
{
    inference->model->kind->detach(inference->work);
    resplit_join(&inference->shard);
    inference->work =
        inference->model->kind->attach(inference->model, &inference->shard, TO_PREDICT);
}

enum status inference_check_splits(const struct inference *inference, unsigned splits)
{
    if (splits != 1u << VALID || !inference->own_data ||
        refit_digest(inference->config) == NULL)
        return OK;
    if (inference->origin == NULL)
        return fail(BAD_USER,
                    "%s: it was trained on the validation attempts too, so none are left to "
                    "test it on; use --split test, or the runs it was refitted from",
                    inference->checkpoint.path);
    return fail(BAD_USER,
                "%s: this refit of %s was trained on the validation attempts too, so none are "
                "left to test it on; use --split test, or %s",
                inference->checkpoint.path, inference->origin, inference->origin);
}

bool inference_counts(const struct inference *inference, struct item_counts *counts)
{
    if (inference->own_data) {
        item_counts_take(counts, &inference->shard);
        return true;
    }
    if (inference->training == NULL)
        return false;
    struct dataset dataset = {0};
    struct shard shard = {0};
    enum status status = dataset_open(&dataset, inference->training, inference->comm);
    if (status == OK && !is_trained_on(inference, &dataset))
        status = BAD_USER;
    if (status == OK)
        status = checkpoint_follow(&inference->checkpoint, &dataset);
    if (status == OK)
        status = read_part(inference, &dataset, &shard);
    if (status == OK)
        item_counts_take(counts, &shard);
    fail_clear();
    shard_free(&shard);
    dataset_close(&dataset);
    return status == OK;
}

enum status inference_students(const struct inference *inference, size_t first, size_t n,
                               struct names *names)
{
    enum status status = dataset_read_names(&inference->dataset, first, n, names);
    return status == OK ? OK : fail_context(status, "%s", inference->dataset.path);
}

const struct names *inference_row_names(const struct inference *inference,
                                        const struct table *table)
{
    return strcmp(table->row, "item") == 0    ? &inference->checkpoint.items
           : strcmp(table->row, "skill") == 0 ? &inference->checkpoint.skills
                                              : NULL;
}

static bool starts_as_checkpoint(const char *path)
{
    static const char begin[] = "cohort checkpoint";
    char bytes[sizeof begin] = "";
    const size_t n = file_peek(path, bytes, sizeof begin - 1);
    return n == sizeof begin - 1 && memcmp(bytes, begin, n) == 0;
}

/* The attribute `format` of a cohort HDF5 file; NULL: none. Caller frees. */
static char *format_of(const char *path)
{
    hid_t file = h5_open(path, MPI_COMM_SELF, 1);
    if (file < 0)
        return NULL;
    char *format = h5_text(file, "format");
    h5_let_go(file);
    return format;
}

enum status inference_recognize(const char *path, enum path_kind *kind)
{
    if (!file_exists(path))
        return fail(BAD_USER, "%s: %s; expected a data set, a checkpoint or a run directory",
                    path, strerror(errno));
    if (file_is_directory(path)) {
        *kind = PATH_RUN;
        if (file_is_in(path, "config.ini") || file_is_in(path, "last.h5") ||
            file_is_in(path, "best.h5") || file_is_in(path, "fold-1"))
            return OK;
        return fail(BAD_DATA, "%s: not a run directory: it has no config.ini and no checkpoint",
                    path);
    }
    *kind = PATH_CHECKPOINT;
    if (starts_as_checkpoint(path))
        return OK;
    char *format = format_of(path);
    enum status status = OK;
    if (format != NULL && strcmp(format, "cohort data set") == 0)
        *kind = PATH_DATA_SET;
    else if (format == NULL || strcmp(format, "cohort checkpoint") != 0)
        status =
            fail(BAD_DATA, "%s: %s%s; expected a data set, a checkpoint or a run directory",
                 path, format ? "this file holds " : "not a cohort file, or damaged",
                 format ? format : "");
    memory_free(format);
    return status;
}
