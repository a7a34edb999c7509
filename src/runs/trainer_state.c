/* The state of a run between memory and its checkpoints: restored at a start, gathered from all
 * ranks and written now and then. The best epoch waits in memory for the next write. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "runs/continuation.h"
#include "runs/refit.h"
#include "runs/snapshots.h"
#include "runs/trainer_internal.h"
#include "runs/update.h"
#include <stdlib.h>
#include <string.h>

static enum status check_data(const struct trainer *t, const struct checkpoint *checkpoint)
{
    if (strcmp(checkpoint->data_digest, t->stepper.dataset.digest) == 0)
        return OK;
    return fail(BAD_USER,
                "%s: this run was trained on other data than %s has now (digest %s, now %s); "
                "to train on the data as they are now, choose another run=, or remove %s first",
                checkpoint->path, t->stepper.dataset.path, checkpoint->data_digest,
                t->stepper.dataset.digest, t->settings->run.directory);
}

/* Settings that a run was started with may not suit other data, and the user need not have set
 * them. So the data are the cause, and the sentence about the settings is dropped. */
enum status trainer_state_refused(const struct trainer *t, enum status refusal)
{
    char *path = memory_text("%s/last.h5", t->settings->run.directory);
    char *sentence = memory_text("%s", fail_sentence());
    int64_t there = t->comm->rank == 0 && file_exists(path);
    struct checkpoint checkpoint;
    enum status status = OK;
    comm_max_i64(t->comm, &there, 1);
    fail_clear();
    if (there && t->stepper.dataset.digest[0] != '\0' &&
        checkpoint_open(&checkpoint, path, t->comm) == OK) {
        status = check_data(t, &checkpoint);
        checkpoint_close(&checkpoint);
    }
    if (status == OK) {
        fail_clear();
        status = fail(refusal, "%s", sentence);
    }
    memory_free(sentence);
    memory_free(path);
    return status;
}

/* Restores the state of a checkpoint. */
enum status trainer_state_restore(struct trainer *t, const struct checkpoint *checkpoint)
{
    TRY(continuation_check(checkpoint, t->config, t->settings->groups, N_SETTINGS_GROUPS));
    TRY(check_data(t, checkpoint));
    if (checkpoint->progress.step > (int64_t)t->stepper.lanes.n_steps)
        return fail(
            BAD_DATA,
            "%s: the checkpoint is damaged: its step is beyond the end of the epoch; remove it",
            checkpoint->path);
    TRY(checkpoint_params(checkpoint, t->comm, t->model));
    TRY(checkpoint_slots(checkpoint, t->comm, &t->stepper.optimizer));
    size_t n_state = 0;
    void *state =
        t->model->kind->fit.state ? t->model->kind->fit.state(t->stepper.work, &n_state) : NULL;
    TRY(checkpoint_state(checkpoint, t->comm, state, n_state));
    t->progress = checkpoint->progress;
    log_say("continuing %s after epoch %lld, step %lld", checkpoint->path,
            (long long)t->progress.epoch, (long long)t->progress.step);
    return OK;
}

/* Collective: gathers what ranks hold in parts; rank 0 gets the checkpoint's bytes. */
static enum status collect(struct trainer *t, char **bytes, size_t *n_bytes)
{
    for (int k = 0; k < t->stepper.optimizer.n_slots; k++)
        exact_slices_collect(&t->stepper.slices, t->stepper.optimizer.slot[k]);
    size_t n_own = 0, n_state = 0;
    void *own =
        t->model->kind->fit.state ? t->model->kind->fit.state(t->stepper.work, &n_own) : NULL;
    void *state = comm_gather(t->comm, own, n_own, &n_state);
    const struct checkpoint_content content = {
        .model = t->model,
        .config = t->config,
        .data_digest = t->stepper.dataset.digest,
        .items = dataset_items(&t->stepper.dataset),
        .progress = &t->progress,
        .optimizer = &t->stepper.optimizer,
        .state = state,
        .n_state = n_state,
    };
    enum status status = t->comm->rank == 0 ? checkpoint_bytes(&content, bytes, n_bytes) : OK;
    memory_free(state);
    return comm_agree(t->comm, status);
}

/* Collective: keeps the best epoch in memory until the next checkpoint is written. */
enum status trainer_state_keep_best(struct trainer *t)
{
    memory_free(t->best);
    t->best = NULL;
    return collect(t, &t->best, &t->n_best);
}

/* Collective: writes a snapshot, if the epoch that is completed shall have one. */
enum status trainer_state_keep_snapshot(struct trainer *t)
{
    char *bytes = NULL;
    size_t n_bytes = 0;
    if (!snapshots_wants(t->settings->run.snapshots, t->progress.epoch))
        return OK;
    TRY(collect(t, &bytes, &n_bytes));
    const enum status status = snapshots_write(&t->run, t->progress.epoch, bytes, n_bytes);
    memory_free(bytes);
    return status;
}

/* Collective. best.h5 comes first: after a kill in between, last.h5 is of an earlier epoch and
 * previous_best.h5 is the best epoch of that time. */
enum status trainer_state_save(struct trainer *t)
{
    char *bytes = NULL;
    size_t n_bytes = 0;
    TRY(collect(t, &bytes, &n_bytes));
    enum status status = OK;
    if (t->best != NULL)
        status = run_save_best(&t->run, t->best, t->n_best);
    if (status == OK && t->comm->rank == 0)
        status = run_save_last(&t->run, bytes, n_bytes);
    memory_free(bytes);
    memory_free(t->best);
    t->best = NULL;
    t->saved = log_clock();
    return comm_agree(t->comm, status);
}
