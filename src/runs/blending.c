/* A blend combines trained models into one, in three steps:
 *
 *     predict   every member predicts the validation and test attempts, as scoring.c describes
 *     fit       weights are fitted on the validation attempts alone (blending_weights.c)
 *     save      a checkpoint of kind `blend` (models/blend/blend.c) stores the members' tensors
 *               and settings; it no longer depends on the members' directories
 *
 * A refit (refit.c) has learned the validation attempts, so its predictions of them are too
 * good to fit weights on. The original run predicts them instead, and the refit gets the weight
 * fitted for the original. If any member is a refit, all members see the validation outcomes
 * before they predict the test attempts. */
#include "runs/blending.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "runs/checkpoint.h"
#include "runs/refit.h"
#include "runs/run.h"
#include "runs/scoring.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *const blend_methods[] = {"convex", "logistic", NULL};

/* [model] of a member, as a JSON object. */
static char *settings_text(const struct inference *inference)
{
    const struct model_kind *kind = inference->model->kind;
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(kind->name));
    for (size_t o = 0; o < kind->n_options; o++) {
        const char *value = config_get(inference->config, "model", kind->options[o].key);
        if (value != NULL)
            json_object_set_new(object, kind->options[o].key, json_string(value));
    }
    char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(object);
    char *copy = memory_text("%s", text);
    free(text);
    return copy;
}

static enum status check_member(struct blend *blend, const struct inference *inference,
                                size_t m)
{
    if (inference->model->kind->made_by != NULL)
        return fail(BAD_USER, "%s: this is already a %s; blend its members instead, or omit it",
                    inference->checkpoint.path, inference->model->kind->name);
    if (!inference->own_data)
        return fail(BAD_USER,
                    "%s was trained on a data set with digest %s, but %s has digest %s; blend "
                    "members on the data they were trained on",
                    inference->checkpoint.path, inference->checkpoint.data_digest,
                    inference->dataset.path, inference->dataset.digest);
    char *train = inference_held_out(inference);
    if (m == 0) {
        blend->train = train;
        blend->data = memory_text("%s", inference->dataset.path);
        memcpy(blend->data_digest, inference->dataset.digest, sizeof blend->data_digest);
        return OK;
    }
    const bool same_fold = strcmp(blend->train, train) == 0;
    memory_free(train);
    if (strcmp(blend->data_digest, inference->dataset.digest) != 0)
        return fail(BAD_USER,
                    "%s was trained on %s (digest %s), but %s on %s (digest %s); all members "
                    "of a blend must use the same data set",
                    inference->checkpoint.path, inference->dataset.path,
                    inference->dataset.digest, blend->paths[0], blend->data,
                    blend->data_digest);
    if (!same_fold)
        return fail(BAD_USER,
                    "%s and %s hold out different folds of the cross-validation; all members "
                    "of a blend must hold out the same attempts",
                    inference->checkpoint.path, blend->paths[0]);
    return OK;
}

/* Stores member m's predictions for one part. */
static enum status predict(struct blend *blend, const struct inference *inference, size_t m,
                           int part)
{
    struct predictions predictions;
    TRY(comm_agree(blend->comm,
                   scoring_predict(inference->model, inference->work, &inference->shard,
                                   1u << (VALID + part), &predictions)));
    scoring_keep(&predictions, &inference->shard, false);
    struct blend_part *to = &blend->parts[part];
    if (to->list == NULL) {
        to->n = predictions.n;
        to->list = NEW_SCRATCH(struct prediction, predictions.n);
        memcpy(to->list, predictions.list, predictions.n * sizeof *to->list);
    }
    ENSURE(to->n == predictions.n);
    memory_free(to->p[m]);
    to->p[m] = NEW_SCRATCH(float, to->n);
    for (size_t i = 0; i < to->n; i++)
        to->p[m][i] = predictions.list[i].probability;
    scoring_free(&predictions);
    return OK;
}

/* Predicts a refit's validation attempts by its original run, which must be unchanged. */
static enum status predict_origin(struct blend *blend, size_t m, const char *digest)
{
    const char *path = blend->paths[m], *origin = blend->origins[m];
    struct inference inference;
    enum status status = inference_open(&inference, origin, blend->data, blend->comm);
    if (status != OK)
        status = fail_context(
            status, "%s is a refit of %s, whose predictions are needed to fit its weight", path,
            origin);
    else if (strcmp(inference.checkpoint.digest, digest) != 0)
        status =
            fail(BAD_USER,
                 "%s is a refit of %s with digest %s, but %s has digest %s now; refit it again",
                 path, origin, digest, inference.checkpoint.path, inference.checkpoint.digest);
    else
        status = predict(blend, &inference, m, 0);
    inference_close(&inference);
    return status;
}

/* Adds to the digests of the refits' original runs. */
static enum status note_origin(struct blend *blend, const struct inference *inference, size_t m,
                               const char *digest)
{
    if (inference->origin == NULL)
        return fail(BAD_USER,
                    "%s: this is a refit, but there is no config.ini next to it that names its "
                    "original run, whose predictions are needed to fit its weight",
                    inference->checkpoint.path);
    const char *epochs = config_get(inference->config, "refit", "epochs");
    const int64_t epoch = inference->checkpoint.progress.epoch;
    if (epochs != NULL && epoch < strtoll(epochs, NULL, 10))
        return fail(
            BAD_USER,
            "%s: this refit is not finished (epoch %lld of %s), so the weight fitted for the "
            "finished %s does not apply to it; repeat the command that started it",
            inference->checkpoint.path, (long long)epoch, epochs, inference->origin);
    blend->origins[m] = memory_text("%s", inference->origin);
    char *all = blend->digests != NULL ? memory_text("%s %s", blend->digests, digest)
                                       : memory_text("%s", digest);
    memory_free(blend->digests);
    blend->digests = all;
    blend->n_refits++;
    return OK;
}

static enum status take_member(struct blend *blend, const struct inference *inference,
                               const char *path)
{
    const size_t m = blend->n_members;
    const char *digest = refit_digest(inference->config);
    TRY(check_member(blend, inference, m));
    blend->paths[m] = memory_text("%s", path);
    blend->kinds[m] = memory_text("%s", inference->model->kind->name);
    blend->settings[m] = settings_text(inference);
    memcpy(blend->checkpoints[m], inference->checkpoint.digest, sizeof blend->checkpoints[m]);
    blend->n_members++;
    if (digest != NULL) {
        TRY(note_origin(blend, inference, m, digest));
        TRY(predict_origin(blend, m, digest));
    } else {
        TRY(predict(blend, inference, m, 0));
    }
    return predict(blend, inference, m, 1);
}

static enum status add_member(struct blend *blend, const char *path, const char *data)
{
    struct inference inference;
    enum status status = inference_open(&inference, path, data, blend->comm);
    if (status == OK)
        status = take_member(blend, &inference, path);
    inference_close(&inference);
    return status;
}

/* A run that is still training may have a new best epoch by now, with other tensors. */
static enum status check_unchanged(const struct blend *blend, const struct inference *inference,
                                   size_t m)
{
    if (strcmp(blend->checkpoints[m], inference->checkpoint.digest) == 0)
        return OK;
    return fail(BAD_IO,
                "%s: the checkpoint was replaced while the blend was being made; run the same "
                "command again when training has finished",
                inference->checkpoint.path);
}

/* Predicts the test attempts again by member m, which now sees the validation outcomes. */
static enum status join(struct blend *blend, size_t m)
{
    struct inference inference;
    enum status status = inference_open(&inference, blend->paths[m], blend->data, blend->comm);
    if (status == OK)
        status = check_unchanged(blend, &inference, m);
    if (status == OK) {
        inference_join(&inference);
        status = predict(blend, &inference, m, 1);
    }
    inference_close(&inference);
    return status;
}

enum status blend_create(struct blend *blend, const struct comm *comm, const char *const *paths,
                         size_t n, const char *data)
{
    *blend = (struct blend){.comm = comm};
    for (size_t m = 0; m < n; m++)
        TRY(add_member(blend, paths[m], data));
    for (size_t m = 0; m < n; m++)
        if (blend->n_refits > 0 && blend->origins[m] == NULL)
            TRY(join(blend, m));
    int64_t n_valid = (int64_t)blend->parts[0].n;
    comm_sum_i64(comm, &n_valid, 1);
    if (n_valid == 0)
        return fail(
            BAD_USER,
            "%s: no validation attempt has a known outcome, but a blend fits its weights on "
            "them; import the data with validation attempts, as in --split by-student=80/10/10",
            blend->data);
    return OK;
}

void blend_destroy(struct blend *blend)
{
    for (size_t m = 0; m < BLEND_MOST; m++) {
        memory_free(blend->paths[m]);
        memory_free(blend->kinds[m]);
        memory_free(blend->settings[m]);
        memory_free(blend->origins[m]);
        for (int part = 0; part < 2; part++)
            memory_free(blend->parts[part].p[m]);
    }
    for (int part = 0; part < 2; part++)
        memory_free(blend->parts[part].list);
    memory_free(blend->data);
    memory_free(blend->train);
    memory_free(blend->digests);
    *blend = (struct blend){0};
}

/* The configuration of the blend as checkpoints store it, without locations. */
static char *config_of(const struct blend *blend, const struct blend_weights *weights)
{
    char *members = memory_text("%s", "");
    for (size_t m = 0; m < weights->n; m++) {
        char *longer = memory_text("%s%s%s", members, m > 0 ? "," : "",
                                   blend->settings[weights->members[m]]);
        memory_free(members);
        members = longer;
    }
    char *text =
        memory_text("[model]\nkind = blend\nmethod = %s\nmembers = [%s]\n\n"
                    "[train]\n%s%s%s%s",
                    blend_methods[weights->method], members, blend->train,
                    blend->n_refits > 0 ? "\n[refit]\ndigest = " : "",
                    blend->n_refits > 0 ? blend->digests : "", blend->n_refits > 0 ? "\n" : "");
    memory_free(members);
    return text;
}

static struct tensor *tensor_named(struct params *params, const char *name)
{
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0)
            return &params->tensors[t];
    ENSURE(false);
    return NULL;
}

static void put(struct model *model, const char *name, const double *values, size_t n)
{
    struct params *params = &model->params;
    real dense[BLEND_MOST];
    for (size_t i = 0; i < n; i++)
        dense[i] = (real)values[i];
    params_put(params, tensor_named(params, name), dense, params->value);
}

/* Copies a member's tensors to member `number` (from 1) of the model. */
static enum status take_up(struct model *model, const struct blend *blend, size_t member,
                           size_t number)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct inference inference;
    enum status status = inference_open_model(&inference, blend->paths[member], &self);
    if (status == OK)
        status = check_unchanged(blend, &inference, member);
    const struct params *from = status == OK ? &inference.model->params : NULL;
    for (size_t t = 0; status == OK && t < from->n_tensors; t++) {
        const struct tensor *tensor = &from->tensors[t];
        char name[sizeof tensor->name];
        snprintf(name, sizeof name, "%zu_%.56s", number, tensor->name);
        real *dense = NEW_SCRATCH(real, params_size(from, tensor));
        params_take(from, tensor, from->value, dense);
        params_put(&model->params, tensor_named(&model->params, name), dense,
                   model->params.value);
        memory_free(dense);
    }
    inference_close(&inference);
    return status;
}

static enum status make_model(const struct blend *blend, const struct blend_weights *weights,
                              struct config *config, const char *text,
                              const struct inference *first, struct model **model)
{
    const struct model_kind *kind = NULL;
    TRY(config_read_text(config, text, "blend"));
    TRY(model_choose(config, &kind));
    *model = model_create(kind);
    struct model_names names;
    const struct option_group groups[] = {
        {"model", model_name_options, COUNT(model_name_options), &names},
        {"model", kind->options, kind->n_options, (*model)->options},
    };
    TRY(config_resolve_some(config, groups, COUNT(groups)));
    TRY(model_declare(*model, &first->dataset, first->model->n_students, first->model->n_items,
                      first->model->n_skills));
    put(*model, "weights", weights->weights, weights->n);
    if (weights->method == BLEND_LOGISTIC)
        put(*model, "intercept", &weights->intercept, 1);
    for (size_t m = 0; m < weights->n; m++)
        TRY(take_up(*model, blend, weights->members[m], m + 1));
    return OK;
}

/* Refuses to overwrite another run. */
static enum status check_directory(const char *directory)
{
    char *path = memory_text("%s/config.ini", directory);
    struct config *config = config_create();
    enum status status = file_exists(path) ? config_read(config, path) : OK;
    const char *kind = status == OK ? config_get(config, "model", "kind") : NULL;
    if (status == OK && kind != NULL && strcmp(kind, "blend") != 0)
        status = fail(BAD_USER,
                      "%s: this directory holds a run (model.kind = %s), which the blend would "
                      "overwrite; choose another directory",
                      directory, kind);
    config_destroy(config);
    memory_free(path);
    return status;
}

/* Rank 0 writes everything. */
static enum status write_run(const struct blend *blend, const struct blend_weights *weights,
                             const struct run *run, const struct inference *first)
{
    char *text = config_of(blend, weights), *bytes = NULL;
    size_t n_bytes = 0;
    struct config *config = config_create();
    struct model *model = NULL;
    enum status status = make_model(blend, weights, config, text, first, &model);
    const struct progress progress = {.epoch = 1, .finished = 1, .converged = 1};
    const struct checkpoint_content content = {
        .model = model,
        .config = text,
        .data_digest = blend->data_digest,
        .items = dataset_items(&first->dataset),
        .progress = &progress,
    };
    if (status == OK)
        status = checkpoint_bytes(&content, &bytes, &n_bytes);
    if (status == OK)
        status = run_save_last(run, bytes, n_bytes);
    if (status == OK) {
        char *complete = memory_text("[data]\nfile = %s\n\n%s\n[run]\ndirectory = %s\n",
                                     blend->data, text, run->directory);
        status = run_write(run, "config.ini", complete);
        memory_free(complete);
    }
    memory_free(bytes);
    memory_free(text);
    model_destroy(model);
    config_destroy(config);
    return status;
}

enum status blend_save(const struct blend *blend, const struct blend_weights *weights,
                       const char *directory)
{
    const struct comm *comm = blend->comm;
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    TRY(comm_agree(comm, comm->rank == 0 ? check_directory(directory) : OK));
    struct run run;
    TRY(run_open(&run, directory, comm));
    enum status status = OK;
    if (comm->rank == 0) {
        struct inference first;
        status = inference_open(&first, blend->paths[0], blend->data, &self);
        if (status == OK)
            status = write_run(blend, weights, &run, &first);
        inference_close(&first);
    }
    status = comm_agree(comm, status);
    run_close(&run);
    return status;
}
