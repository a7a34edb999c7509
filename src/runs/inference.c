/* What evaluate, predict and export share. Rank 0 finds out what the user's path means and
 * tells the others, since only rank 0 needs to see the run directory; the data set is read by
 * all. */
#include "runs/inference.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/resplit.h"
#include "runs/refit.h"
#include "runs/run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum status open_checkpoint(struct opened *opened, const char *path)
{
    const struct comm *comm = opened->comm;
    char *file = NULL;
    TRY(comm_agree(comm, comm->rank == 0 ? run_find(path, &file) : OK));
    file = comm_share_text(comm, file);
    opened->training =
        comm_share_text(comm, comm->rank == 0 ? run_setting(path, "data", "file") : NULL);
    opened->origin =
        comm_share_text(comm, comm->rank == 0 ? run_setting(path, "train", "refit") : NULL);
    enum status status = checkpoint_open(&opened->checkpoint, file, comm);
    memory_free(file);
    return status;
}

static enum status check_training(const struct opened *opened)
{
    if (opened->training == NULL)
        return fail(BAD_USER,
                    "%s: there is no config.ini beside it that says what it was trained on; "
                    "name a data set with --data FILE",
                    opened->checkpoint.path);
    if (!store_exists(opened->training))
        return fail(BAD_USER,
                    "%s: it was trained on %s, which is not there (seen from this directory); "
                    "say with --data FILE where it is now",
                    opened->checkpoint.path, opened->training);
    return OK;
}

static bool is_trained_on(const struct opened *opened, const struct dataset *dataset)
{
    return strcmp(dataset->digest, opened->checkpoint.data_digest) == 0;
}

static int64_t train_integer(const struct opened *opened, const char *key)
{
    const char *value = config_get(opened->config, "train", key);
    return value ? strtoll(value, NULL, 10) : 0;
}

/* Collective: this rank's students, marked as they were in training. */
static enum status read_part(const struct opened *opened, const struct dataset *dataset,
                             struct shard *shard)
{
    const size_t rank = (size_t)opened->comm->rank, n_ranks = (size_t)opened->comm->size;
    const size_t first = dataset_cut(dataset, rank, n_ranks);
    TRY(dataset_read(dataset, first, dataset_cut(dataset, rank + 1, n_ranks) - first, shard));
    if (train_integer(opened, "fold") > 0 && is_trained_on(opened, dataset))
        marking_folds(shard, train_integer(opened, "folds"), train_integer(opened, "fold"),
                      (uint64_t)train_integer(opened, "seed"));
    if (refit_digest(opened->config) != NULL && is_trained_on(opened, dataset))
        marking_join(shard);
    return OK;
}

/* Collective; a sentence about settings (a kind that this program does not have) names the
 * file.
 */
static enum status load_model(struct opened *opened, struct dataset *dataset)
{
    const char *path = opened->checkpoint.path;
    opened->config = config_create();
    enum status status = checkpoint_model(&opened->checkpoint, opened->comm, opened->config,
                                          dataset, &opened->model);
    const bool has_path = strstr(fail_sentence(), path) != NULL ||
                          (dataset != NULL && strstr(fail_sentence(), dataset->path) != NULL);
    return status == OK || has_path ? status : fail_context(status, "%s", path);
}

enum status opened_open_model(struct opened *opened, const char *path, const struct comm *comm)
{
    *opened = (struct opened){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(opened, path));
    return load_model(opened, NULL);
}

enum status opened_open(struct opened *opened, const char *path, const char *data,
                        const struct comm *comm)
{
    *opened = (struct opened){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(opened, path));
    const bool chosen = data[0] != '\0';
    if (!chosen)
        TRY(comm_agree(comm, check_training(opened)));
    TRY(dataset_open(&opened->dataset, chosen ? data : opened->training, comm));
    opened->own_data = is_trained_on(opened, &opened->dataset);
    if (!opened->own_data && !chosen)
        return fail(
            BAD_USER,
            "%s: trained on a data set with digest %s, but %s has digest %s now: it does "
            "not match the checkpoint; use the same data, or name this one with --data "
            "to use it all the same",
            opened->checkpoint.path, opened->checkpoint.data_digest, opened->dataset.path,
            opened->dataset.digest);
    if (!opened->own_data)
        log_say(
            "note: %s is not the data set that %s was trained on; items are matched by name",
            opened->dataset.path, opened->checkpoint.path);
    TRY(load_model(opened, &opened->dataset));
    TRY(read_part(opened, &opened->dataset, &opened->shard));
    opened->work = opened->model->kind->attach(opened->model, &opened->shard);
    return OK;
}

void opened_close(struct opened *opened)
{
    if (opened->work != NULL)
        opened->model->kind->detach(opened->work);
    model_destroy(opened->model);
    config_destroy(opened->config);
    shard_free(&opened->shard);
    dataset_close(&opened->dataset);
    checkpoint_close(&opened->checkpoint);
    memory_free(opened->training);
    memory_free(opened->origin);
    *opened = (struct opened){.checkpoint = {.file = -1}};
}

void opened_join(struct opened *opened)
{
    opened->model->kind->detach(opened->work);
    marking_join(&opened->shard);
    opened->work = opened->model->kind->attach(opened->model, &opened->shard);
}

enum status opened_check_splits(const struct opened *opened, unsigned splits)
{
    if (splits != 1u << VALID || !opened->own_data || refit_digest(opened->config) == NULL)
        return OK;
    if (opened->origin == NULL)
        return fail(
            BAD_USER,
            "%s: it has learned the validation attempts too, so none are left to try it "
            "on; choose --split test, or take the runs it was refitted from",
            opened->checkpoint.path);
    return fail(
        BAD_USER,
        "%s: this refit of %s has learned the validation attempts too, so none are left "
        "to try it on; choose --split test, or take %s",
        opened->checkpoint.path, opened->origin, opened->origin);
}

bool opened_counts(const struct opened *opened, struct item_counts *counts)
{
    if (opened->own_data) {
        item_counts_take(counts, &opened->shard);
        return true;
    }
    if (opened->training == NULL)
        return false;
    struct dataset dataset = {0};
    struct shard shard = {0};
    enum status status = dataset_open(&dataset, opened->training, opened->comm);
    if (status == OK && !is_trained_on(opened, &dataset))
        status = BAD_USER;
    if (status == OK)
        status = checkpoint_follow(&opened->checkpoint, &dataset);
    if (status == OK)
        status = read_part(opened, &dataset, &shard);
    if (status == OK)
        item_counts_take(counts, &shard);
    fail_clear();
    shard_free(&shard);
    dataset_close(&dataset);
    return status == OK;
}

enum status opened_students(const struct opened *opened, size_t first, size_t n,
                            struct names *names)
{
    enum status status = dataset_read_names(&opened->dataset, first, n, names);
    return status == OK ? OK : fail_context(status, "%s", opened->dataset.path);
}

const struct names *opened_row_names(const struct opened *opened, const struct table *table)
{
    return strcmp(table->row, "item") == 0    ? &opened->checkpoint.items
           : strcmp(table->row, "skill") == 0 ? &opened->checkpoint.skills
                                              : NULL;
}

static bool starts_as_checkpoint(const char *path)
{
    static const char begin[] = "cohort checkpoint";
    char bytes[sizeof begin] = "";
    const size_t n = store_peek(path, bytes, sizeof begin - 1);
    return n == sizeof begin - 1 && memcmp(bytes, begin, n) == 0;
}

/* The attribute `format` that cohort gives its HDF5 files, NULL if it is none; caller frees. */
static char *format_of(const char *path)
{
    hid_t file = h5_open(path, MPI_COMM_SELF, 1);
    if (file < 0)
        return NULL;
    char *format = h5_text(file, "format");
    h5_let_go(file);
    return format;
}

enum status opened_recognize(const char *path, enum opened_kind *kind)
{
    if (!store_exists(path))
        return fail(BAD_USER, "%s: %s; expected a data set, a checkpoint or a run directory",
                    path, strerror(errno));
    if (store_is_directory(path)) {
        *kind = OPENED_RUN;
        if (store_has(path, "config.ini") || store_has(path, "last.h5") ||
            store_has(path, "best.h5") || store_has(path, "fold-1"))
            return OK;
        return fail(BAD_DATA,
                    "%s: this directory is not a run: it has no config.ini and no checkpoint",
                    path);
    }
    *kind = OPENED_CHECKPOINT;
    if (starts_as_checkpoint(path))
        return OK;
    char *format = format_of(path);
    enum status status = OK;
    if (format != NULL && strcmp(format, "cohort data set") == 0)
        *kind = OPENED_DATA_SET;
    else if (format == NULL || strcmp(format, "cohort checkpoint") != 0)
        status = fail(BAD_DATA,
                      "%s: this %s%s; expected a data set, a checkpoint or a run directory",
                      path, format ? "holds " : "is no file of cohort's, or it is damaged",
                      format ? format : "");
    memory_free(format);
    return status;
}
