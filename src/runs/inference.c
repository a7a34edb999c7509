/* Opens a trained model and a data set, for evaluate, predict, export and others. Only rank 0
 * needs to see the run directory: it resolves the path and shares what it finds. All ranks read
 * the data set. */
#include "runs/inference.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/nearest_path.h"
#include "data/own_levels.h"
#include "data/resplit.h"
#include "runs/refit.h"
#include "runs/run_find.h"
#include <errno.h>
#include <inttypes.h>
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

/* Collective: says if the run is not finished. */
static void say_unfinished(const struct inference *inference, const char *path)
{
    const struct checkpoint *checkpoint = &inference->checkpoint;
    char *text =
        comm_share_text(inference->comm, inference->comm->rank == 0 ? run_state(path) : NULL);
    if (text != NULL)
        log_say("note: %s %s; used is %s, after epoch %" PRId64, path, text, checkpoint->path,
                checkpoint->progress.epoch);
    memory_free(text);
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

/* A checkpoint must fit the data that it says it was trained on. */
static enum status check_trained_on(const struct inference *inference,
                                    const struct dataset *dataset)
{
    const int64_t fold = train_integer(inference, "fold");
    if (dataset->unseen.items.n > 0)
        return fail(BAD_DATA,
                    "%s: says that it was trained on %s, but does not know its item '%s'; the "
                    "checkpoint was changed by another program",
                    inference->checkpoint.path, dataset->path,
                    names_get(&dataset->unseen.items, 0));
    if (fold < 0 || fold > train_integer(inference, "folds"))
        return fail(BAD_DATA,
                    "%s: says that it was trained on fold %" PRId64 " of %" PRId64
                    "; the checkpoint was changed by another program",
                    inference->checkpoint.path, fold, train_integer(inference, "folds"));
    return OK;
}

/* Collective: reads this rank's students, with the split used in training. */
static enum status read_part(const struct inference *inference, const struct dataset *dataset,
                             struct shard *shard)
{
    const size_t rank = (size_t)inference->comm->rank, n_ranks = (size_t)inference->comm->size;
    const size_t first = dataset_cut(dataset, rank, n_ranks);
    TRY(dataset_read(dataset, first, dataset_cut(dataset, rank + 1, n_ranks) - first, shard));
    if (!is_trained_on(inference, dataset))
        return OK;
    TRY(check_trained_on(inference, dataset));
    if (train_integer(inference, "fold") > 0)
        resplit_folds(shard, train_integer(inference, "folds"),
                      train_integer(inference, "fold"),
                      (uint64_t)train_integer(inference, "seed"));
    if (refit_digest(inference->config) != NULL)
        resplit_join(shard);
    own_levels_mark(shard);
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

/* Collective: says what the data have that the model does not know. */
static void say_differences(const struct inference *inference)
{
    const struct dataset *dataset = &inference->dataset;
    const unsigned uses = model_uses(inference->model);
    dataset_say_others(dataset, (uses & MODEL_SKILLS) != 0, (uses & MODEL_GROUPS) != 0,
                       "the model's are used");
    if (inference->stand_ins.n_passes == 0)
        return;
    int64_t n[N_BASES];
    memcpy(n, inference->stand_ins.n, sizeof n);
    comm_sum_i64(inference->comm, n, N_BASES);
    const int64_t n_all = n[BASIS_SKILL] + n[BASIS_GROUP] + n[BASIS_MEAN];
    const size_t n_new = dataset->unseen.items.n;
    int64_t n_known = inference->stand_ins.n[BASIS_ITEM];
    comm_sum_i64(inference->comm, &n_known, 1);
    if (n_known == 0)
        log_warn(
            "%s: the model was trained on none of these items; is this the right data set?",
            dataset->path);
    log_say("note: %" PRId64 " attempt%s at %zu item%s that the model was not trained on %s "
            "predicted from other items: %" PRId64 " of their skills, %" PRId64
            " of their group, %" PRId64 " of all items",
            n_all, n_all == 1 ? "" : "s", n_new, n_new == 1 ? "" : "s",
            n_all == 1 ? "is" : "are", n[BASIS_SKILL], n[BASIS_GROUP], n[BASIS_MEAN]);
}

static enum status open_both(struct inference *inference, const char *path, const char *data,
                             bool any, const struct comm *comm)
{
    *inference = (struct inference){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(inference, path));
    say_unfinished(inference, path);
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
        log_say("note: %s is not the data set that %s was trained on: items are matched by "
                "name, and what students did before is known only as far as %s has it, so it "
                "should hold their whole log",
                inference->dataset.path, inference->checkpoint.path, inference->dataset.path);
    inference->dataset.unseen.allowed = any;
    TRY(load_model(inference, &inference->dataset));
    if (any)
        dataset_show_groups(&inference->dataset,
                            (model_uses(inference->model) & MODEL_GROUPS) == 0);
    TRY(read_part(inference, &inference->dataset, &inference->shard));
    stand_ins_choose(&inference->stand_ins, inference->model, &inference->shard);
    if (any)
        say_differences(inference);
    inference->work =
        inference->model->kind->attach(inference->model, &inference->shard, TO_PREDICT);
    return OK;
}

enum status inference_open(struct inference *inference, const char *path, const char *data,
                           const struct comm *comm)
{
    return open_both(inference, path, data, false, comm);
}

enum status inference_open_any(struct inference *inference, const char *path, const char *data,
                               const struct comm *comm)
{
    return open_both(inference, path, data, true, comm);
}

/* A data set without students that has the checkpoint's items. */
static void make_empty(const struct checkpoint *checkpoint, const struct comm *comm,
                       struct dataset *dataset)
{
    const size_t n = checkpoint->items.n;
    *dataset = (struct dataset){.path = memory_text("%s", checkpoint->path),
                                .comm = comm,
                                .n_items = n,
                                .n_skills = checkpoint->skills.n,
                                .n_groups = checkpoint->groups.n,
                                .has_time = true,
                                .source = memory_text("nothing"),
                                .first = NEW(uint64_t, 1),
                                .item_first = NEW(uint64_t, n + 1),
                                .item_group = NEW(int32_t, n)};
    const uint64_t *first = checkpoint->item_first;
    dataset->item_skills = NEW(uint32_t, first != NULL ? first[n] : 0);
    if (first != NULL) {
        memcpy(dataset->item_first, first, (n + 1) * sizeof *first);
        memcpy(dataset->item_skills, checkpoint->item_skills,
               first[n] * sizeof *dataset->item_skills);
    }
    for (size_t i = 0; i < n; i++)
        dataset->item_group[i] =
            checkpoint->item_group != NULL ? checkpoint->item_group[i] : -1;
    names_copy(&dataset->items, &checkpoint->items);
    names_copy(&dataset->skills, &checkpoint->skills);
    names_copy(&dataset->groups, &checkpoint->groups);
    for (size_t k = 0; k < checkpoint->covariates.names.n; k++)
        covariates_add(&dataset->covariates, names_get(&checkpoint->covariates.names, k),
                       &checkpoint->covariates.levels[k]);
}

enum status inference_open_model(struct inference *inference, const char *path,
                                 const struct comm *comm)
{
    *inference = (struct inference){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(inference, path));
    TRY(load_model(inference, NULL));
    if (inference->checkpoint.item_first == NULL)
        return OK;
    make_empty(&inference->checkpoint, comm, &inference->dataset);
    inference->model->dataset = &inference->dataset; /* for tables of items */
    return OK;
}

enum status inference_open_items(struct inference *inference, const char *path,
                                 const struct comm *comm)
{
    *inference = (struct inference){.comm = comm, .checkpoint = {.file = -1}};
    TRY(open_checkpoint(inference, path));
    say_unfinished(inference, path);
    const struct checkpoint *checkpoint = &inference->checkpoint;
    make_empty(checkpoint, comm, &inference->dataset);
    TRY(load_model(inference, &inference->dataset));
    if (checkpoint->item_first == NULL && (model_uses(inference->model) & MODEL_SKILLS) != 0)
        return fail(BAD_USER,
                    "%s: a checkpoint of an earlier version, which does not know the skills "
                    "of items; give the data set that has them with --data",
                    checkpoint->path);
    inference->shard =
        (struct shard){.dataset = &inference->dataset, .first = NEW(uint64_t, 1)};
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
    stand_ins_free(&inference->stand_ins);
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

char *inference_held_out(const struct inference *inference)
{
    const int64_t fold = inference->own_data ? train_integer(inference, "fold") : 0;
    if (fold == 0) /* the data set's own split, for any seed */
        return memory_text("folds = 0\nfold = 0\nseed = 0\n");
    return memory_text("folds = %lld\nfold = %lld\nseed = %lld\n",
                       (long long)train_integer(inference, "folds"), (long long)fold,
                       (long long)train_integer(inference, "seed"));
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
    if (!file_exists(path)) {
        const int error = errno;
        char *hint = nearest_path_hint(path);
        const enum status status =
            fail(BAD_USER, "%s: %s; expected a data set, a checkpoint or a run directory%s",
                 path, strerror(error), hint);
        memory_free(hint);
        return status;
    }
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
