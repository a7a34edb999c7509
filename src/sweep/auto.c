/* One command from data to the best model:
 *
 *     DIR/kinds          a sweep over the kinds of the portfolio that fit the data, each with
 *                        its defaults
 *     DIR/around-KIND    for the best kinds, a sweep over settings around the defaults: all
 *                        trials for half of the epochs, the better half of them to the end
 *     DIR/refit-KIND     if asked: the members of the blend once more, on validation too
 *     DIR/models/KIND    a link to the best run of each kind; KIND-2 to the second best
 *     DIR/best           the blend of these runs, weights fitted on validation; a link, if one
 *                        run has all the weight
 *     leaderboard.csv    all of these on the same attempts, with paired intervals; of second
 *                        best runs, those in the blend
 *
 * Sweeps train by teams of ranks and skip trials that are done, so a stopped command continues
 * where it was. A step begins when the one before has ended on all ranks, and decisions depend
 * on validation scores alone. So if the number of trials bounds the work, and not the clock, the
 * result does not depend on the number or the speed of ranks. */
#include "sweep/auto.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/baseline.h"
#include "runs/inference.h"
#include "runs/scoring.h"
#include "runs/split_score.h"
#include "sweep/auto_internal.h"
#include <math.h>
#include <unistd.h>

enum { REPLICATES = 1000, SEED = 1 };

void auto_forget(struct auto_model *model)
{
    memory_free(model->run);
    memory_free(model->kind);
    memory_free(model->settings);
    *model = (struct auto_model){.valid = NAN};
}

/* Collective: adds the baselines on the same attempts. */
static enum status compare_baselines(const struct inference *inference,
                                     const struct predictions *predictions,
                                     struct paired *paired)
{
    struct item_counts counts;
    enum status status = OK;
    if (!inference_counts(inference, &counts))
        return OK;
    for (int b = 0; status == OK && b < N_BASELINES; b++) {
        struct prediction *list = baseline_predict((enum baseline)b, inference->model,
                                                   &inference->shard, &counts, predictions);
        status = paired_add(paired, list, predictions->n);
        memory_free(list);
    }
    memory_free(counts.right);
    return status;
}

/* Collective: adds a run's predictions of a split, and then perhaps the baselines. */
static enum status compare(const struct comm *comm, const char *run, int split, bool baselines,
                           struct paired *paired)
{
    struct inference inference;
    struct predictions predictions = {0};
    enum status status = inference_open(&inference, run, "", comm);
    if (status == OK)
        status = comm_agree(comm, scoring_predict(inference.model, inference.work,
                                                  &inference.shard, 1u << split, &predictions));
    if (status == OK) {
        scoring_keep(&predictions, &inference.shard, false);
        status = paired_add(paired, predictions.list, predictions.n);
    }
    if (status == OK && baselines)
        status = compare_baselines(&inference, &predictions, paired);
    scoring_free(&predictions);
    inference_close(&inference);
    return status;
}

/* Collective: test attempts with known outcomes, if there are any. */
static enum status choose_split(const struct auto_work *work, struct auto_result *result)
{
    struct inference inference;
    int64_t n = 0;
    enum status status = inference_open(&inference, work->models[0].run, "", work->comm);
    if (status == OK) {
        for (uint64_t t = 0; t < inference.shard.n_attempts; t++)
            n += mark_split(inference.shard.mark[t]) == TEST &&
                 mark_outcome(inference.shard.mark[t]) != UNKNOWN;
        comm_sum_i64(work->comm, &n, 1);
    }
    inference_close(&inference);
    result->split = n > 0 ? TEST : VALID;
    return status;
}

/* Defaults know nothing of these columns. */
static void say_columns(const struct dataset *dataset)
{
    const struct names *names = &dataset->covariates.names;
    if (names->n == 0)
        return;
    char *list = memory_text("%s", names_get(names, 0));
    for (size_t k = 1; k < names->n; k++)
        memory_append(&list, ", %s", names_get(names, k));
    log_say(
        "note: no model of auto uses the factors and covariates of the data (%s); lme and ktm "
        "can, in runs of their own: `cohort help models`",
        list);
    memory_free(list);
}

/* Collective: scores item means on the validation attempts, by which models are chosen. */
static enum status score_item_means(const struct auto_work *work, struct auto_result *result)
{
    struct inference inference;
    struct item_counts counts;
    struct score score;
    double baselines[N_BASELINES] = {NAN, NAN};
    enum status status = inference_open(&inference, work->models[0].run, "", work->comm);
    if (status == OK)
        say_columns(&inference.dataset);
    if (status == OK && inference_counts(&inference, &counts)) {
        status = split_score(work->comm, inference.model, inference.work, &inference.shard,
                             VALID, &counts, &score, baselines);
        memory_free(counts.right);
    }
    inference_close(&inference);
    result->item_means = baselines[BASELINE_ITEMS];
    return status;
}

static enum status compare_all(struct auto_work *work, struct auto_result *result)
{
    TRY(choose_split(work, result));
    paired_start(&result->paired, work->comm, REPLICATES, SEED);
    for (size_t m = 0; m < work->n_models; m++) {
        const bool last = !result->blended && m + 1 == work->n_models;
        TRY(compare(work->comm, work->models[m].run, result->split, last, &result->paired));
    }
    return result->blended
               ? compare(work->comm, result->best, result->split, true, &result->paired)
               : OK;
}

static enum status check_directory(const struct auto_plan *plan)
{
    static const char *const others[] = {"config.ini", "sweep.ini", "last.h5", "fold-1"};
    for (size_t o = 0; o < COUNT(others); o++)
        if (file_is_in(plan->directory, others[o]))
            return fail(BAD_USER,
                        "run=%s: this directory belongs to a run or a sweep; choose another",
                        plan->directory);
    return file_make_directory(plan->directory);
}

/* Rank 0: two commands in one directory would count each other's trials as missing. */
static enum status take_lock(const struct auto_plan *plan, int *lock)
{
    TRY(check_directory(plan));
    char *path = memory_text("%s/lock", plan->directory);
    enum status status = file_lock_take(path, 1, lock);
    memory_free(path);
    if (status == OK && *lock < 0)
        status = fail(BAD_USER,
                      "run=%s: another `cohort auto` works in this directory; wait for it, or "
                      "choose another run=",
                      plan->directory);
    return status;
}

enum status auto_run(const struct comm *comm, const struct auto_plan *plan,
                     struct auto_result *result)
{
    *result = (struct auto_result){.split = TEST, .lock = -1};
    struct auto_work work = {.comm = comm, .plan = plan, .started = log_clock()};
    TRY(data_shape_read(&work.shape, plan->data, comm));
    if (!work.shape.has_valid)
        return fail(BAD_USER,
                    "%s: no validation attempts with known outcomes to choose models by; "
                    "import the data with them, as in --split by-student=80/10/10",
                    plan->data);
    TRY(comm_agree(comm, comm->rank == 0 ? take_lock(plan, &result->lock) : OK));
    enum status status = auto_sweeps_kinds(&work);
    if (status == OK)
        status = auto_sweeps_around(&work);
    if (status == OK)
        status = auto_blend_name(&work);
    if (status == OK)
        status = auto_blend_best(&work, result);
    if (status == OK)
        status = score_item_means(&work, result);
    if (status == OK)
        status = compare_all(&work, result);
    for (size_t k = 0; k < COUNT(work.kinds); k++)
        for (size_t r = 0; r < N_RUNS; r++)
            auto_forget(&work.kinds[k].runs[r]);
    result->n = work.n_models;
    result->models = work.models;
    return status;
}

void auto_free(struct auto_result *result)
{
    for (size_t m = 0; m < result->n; m++)
        auto_forget(&result->models[m]);
    memory_free(result->models);
    memory_free(result->best);
    paired_free(&result->paired);
    if (result->lock >= 0)
        close(result->lock);
    *result = (struct auto_result){.lock = -1};
}
