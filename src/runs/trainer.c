/* The training loop:
 *
 *     for each epoch
 *         every lane shuffles its students
 *         for each step                       (stepper.c)
 *             blocks -> tallies -> exact sum -> parameters
 *             now and then: look at signals and the clock, save
 *         validate, remember the best epoch, log, save
 *
 * The result does not depend on the number of ranks, on when checkpoints were written, or on
 * how often the run was stopped and continued. All ranks must stop at the same step, so they
 * look at signals and the clock together, every so many steps. They agree on that number; it is
 * worth about a tenth of a second. */
#include "runs/trainer.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "runs/continuation.h"
#include "runs/elapsed.h"
#include "runs/likelihood.h"
#include "runs/precheck.h"
#include "runs/refit.h"
#include "runs/snapshots.h"
#include "runs/split_score.h"
#include "runs/trainer_internal.h"
#include "runs/update.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names the tensor that became infinite or NaN. */
static enum status check_finite(const struct trainer *t, int64_t n_out_of_range)
{
    double largest = t->stepper.optimizer.largest;
    comm_max_double(t->comm, &largest, 1);
    if (n_out_of_range == 0 && isfinite(largest))
        return OK;
    const struct params *params = &t->model->params;
    const struct tensor *worst = NULL;
    double most = 0;
    for (size_t i = 0; i < params->n; i++)
        if (!(fabs((double)params->value[i]) <= most)) {
            most = fabs((double)params->value[i]);
            worst = params_find(params, i);
            if (isnan(most))
                break;
        }
    return fail(DIVERGED,
                "training diverged in epoch %lld, by step %lld: %s reached %g; checkpoints "
                "saved before are intact; start another run= with a lower optimizer.rate, or "
                "set optimizer.clip",
                (long long)t->progress.epoch + 1, (long long)t->progress.all_steps,
                worst ? worst->name : "a tensor", most);
}

/* Collective, now and then: saves if it must, if it is time, or if any rank got a signal. */
static enum status look_around(struct trainer *t, bool must_save)
{
    const double now = log_clock(), seconds = now - t->started;
    const int64_t steps = t->progress.all_steps - t->steps_at_start;
    int64_t wishes[3] = {
        signals_came(),
        t->comm->rank == 0 && now - t->saved >= 60 * t->settings->run.save_minutes,
        t->comm->rank == 0 ? (int64_t)fmax(1, 0.1 * (double)steps / fmax(seconds, 1e-3)) : 0,
    };
    comm_max_i64(t->comm, wishes, COUNT(wishes));
    t->check_every = wishes[2] < 1000 ? wishes[2] : 1000;
    if (!t->progress.finished)
        trainer_say_progress(t);
    if ((wishes[0] || wishes[1]) && !must_save && t->comm->rank == 0)
        elapsed_note(&t->run, trainer_elapsed(t));
    if (wishes[0] || wishes[1] || must_save)
        TRY(trainer_state_save(t));
    if (wishes[0] && !t->progress.finished)
        return fail(STOPPED,
                    "stopped by a signal after epoch %lld, step %lld; everything is saved in "
                    "%s; run the same command again to continue",
                    (long long)t->progress.epoch, (long long)t->progress.step,
                    t->run.directory);
    return OK;
}

static enum status train_epoch(struct trainer *t)
{
    stepper_begin_epoch(&t->stepper, t->progress.epoch);
    int64_t since = 0, sums[3] = {0};
    while (t->progress.step < (int64_t)t->stepper.lanes.n_steps) {
        TRY(stepper_step(&t->stepper, t->progress.epoch, t->progress.step));
        t->progress.step++;
        t->progress.all_steps++;
        const bool ends = t->progress.step == (int64_t)t->stepper.lanes.n_steps;
        if (++since >= t->check_every || ends) {
            since = 0;
            sums[0] = t->stepper.tally.n_scored;
            sums[1] = t->stepper.tally.loss;
            sums[2] = t->stepper.tally.out_of_range;
            comm_sum_i64(t->comm, sums, COUNT(sums));
            t->stepper.tally.n_scored = t->stepper.tally.loss = 0;
            t->progress.n_scored += sums[0];
            t->progress.loss += sums[1];
            TRY(check_finite(t, sums[2]));
            if (!ends)
                TRY(look_around(t, false));
        }
    }
    return OK;
}

/* The log-likelihood of the validation students' steps if it decides, else NaN. The estimated
 * bias from sampling is subtracted, because it is largest for the sharpest model. A probability
 * above 1 is not a score. */
static double measure_likelihood(struct trainer *t, const struct view *view)
{
    if (settings_metric(t->settings) >= 0)
        return NAN;
    const struct train_options *train = &t->settings->train;
    const struct likelihood_plan plan = {.n_chains = train->chains,
                                         .n_temperatures = train->temperatures,
                                         .most_temperatures = train->most_temperatures,
                                         .most_bits = 10,
                                         .seed = (uint64_t)train->seed};
    struct likelihood_result result;
    likelihood_measure(t->comm, t->model, view->work, view->shard, 1u << VALID, &plan, &result);
    return result.mean > result.standard_error ? NAN : result.mean - result.bias;
}

/* Scores the validation attempts. */
static enum status validate(struct trainer *t)
{
    struct view view = stepper_open_view(&t->stepper);
    const enum status status =
        split_score(t->comm, t->model, view.work, view.shard, VALID, NULL, &t->valid, NULL);
    const bool decides = t->model->kind->fit.learn == NULL || t->model->kind->fit.keeps_best;
    if (status == OK && t->valid.n > 0 && decides)
        t->likelihood = measure_likelihood(t, &view);
    stepper_close_view(&t->stepper, &view);
    return status;
}

/* True if the last score is the best so far. */
static bool is_better(struct trainer *t)
{
    const int metric = settings_metric(t->settings);
    const double value = metric < 0 ? t->likelihood : *metrics_value(&t->valid, metric);
    const bool up = metric < 0 || metrics_up(metric);
    const bool better =
        !isnan(value) && (t->progress.best_epoch == 0 ||
                          (up ? value > t->progress.best : value < t->progress.best));
    if (better) {
        t->progress.best = value;
        t->progress.best_epoch = t->progress.epoch;
    }
    t->progress.stale = t->progress.epoch - t->progress.best_epoch;
    return better;
}

static bool is_done(const struct trainer *t)
{
    const struct train_options *o = &t->settings->train;
    return t->progress.epoch >= trainer_epochs(t) || t->progress.converged ||
           (o->patience > 0 && t->progress.stale >= o->patience);
}

/* If parameters are averaged and nothing is validated, the average at the end is the result and
 * is kept as the best. */
static bool ends_with_mean(const struct trainer *t)
{
    return t->model->kind->fit.learn == NULL && t->settings->optimizer.average > 0 &&
           t->progress.best_epoch == 0 && t->progress.all_steps > 0;
}

/* Everything after the last step of an epoch. */
static enum status finish_epoch(struct trainer *t, bool *done)
{
    const struct train_options *o = &t->settings->train;
    const double loss = t->progress.n_scored > 0 ? ldexp((double)t->progress.loss, -LOSS_BITS) /
                                                       (double)t->progress.n_scored
                                                 : NAN;
    t->progress.epoch++;
    t->progress.step = 0;
    t->progress.n_scored = t->progress.loss = 0;
    bool best = false;
    t->valid = (struct score){0};
    t->likelihood = NAN;
    const bool steps = t->model->kind->fit.learn == NULL;
    if (steps)
        optimizer_swap(&t->stepper.optimizer);
    if (t->progress.epoch % o->valid_every == 0 || t->progress.epoch == trainer_epochs(t))
        TRY(validate(t));
    t->progress.converged = t->stepper.converged;
    if (t->valid.n > 0 && (steps || t->model->kind->fit.keeps_best))
        best = is_better(t);
    *done = is_done(t);
    t->progress.finished = *done;
    TRY(comm_agree(t->comm, trainer_say_epoch(t, loss, best)));
    if (best || (*done && ends_with_mean(t)))
        TRY(trainer_state_keep_best(t));
    TRY(trainer_state_keep_snapshot(t));
    if (steps)
        optimizer_swap(&t->stepper.optimizer);
    return look_around(t, *done);
}

/* Scores the parameters of the best epoch, or the last ones if nothing was validated. */
static enum status score_best(struct trainer *t, struct result *result)
{
    enum status status = OK;
    if (t->progress.best_epoch > 0 || ends_with_mean(t)) {
        char *path = run_path(&t->run, "best.h5");
        struct checkpoint best;
        status = checkpoint_open(&best, path, t->comm);
        if (status == OK && t->progress.best_epoch > 0 &&
            (best.progress.epoch != t->progress.best_epoch ||
             best.progress.best != t->progress.best))
            status = fail(BAD_DATA,
                          "%s: this is epoch %lld with score %.6g, but the best was epoch %lld "
                          "with %.6g; best.h5 and last.h5 are from different runs, or one was "
                          "replaced by an older copy",
                          path, (long long)best.progress.epoch, best.progress.best,
                          (long long)t->progress.best_epoch, t->progress.best);
        if (status == OK)
            status = checkpoint_params(&best, t->comm, t->model);
        checkpoint_close(&best);
        memory_free(path);
        if (status != OK)
            status = fail_context(
                status, "the best epoch cannot be read (train again with another run=)");
    }
    struct view view = stepper_open_view(&t->stepper);
    struct item_counts counts;
    item_counts_take(&counts, view.shard);
    for (int split = VALID; status == OK && split < N_SPLITS; split++)
        status = split_score(t->comm, t->model, view.work, view.shard, (enum split)split,
                             &counts, &result->scores[split], result->baselines[split]);
    memory_free(counts.right);
    stepper_close_view(&t->stepper, &view);
    return status;
}

static enum status write_result(const struct trainer *t, const struct result *result)
{
    elapsed_forget(&t->run);
    json_t *object = json_object();
    json_object_set_new(object, "model", json_string(t->model->kind->name));
    json_object_set_new(object, "epochs", json_integer(result->epochs));
    json_object_set_new(object, "best_epoch", json_integer(result->best_epoch));
    json_object_set_new(object, "monitor", json_string(settings_monitor(t->settings)));
    json_object_set_new(object, "stopped_early", json_boolean(result->stopped_early));
    json_object_set_new(object, "parameters",
                        json_integer((json_int_t)params_count(&t->model->params)));
    json_object_set_new(object, "data_digest", json_string(t->stepper.dataset.digest));
    if (result->scores[VALID].n > 0)
        json_object_set_new(object, "valid", score_json(&result->scores[VALID]));
    if (result->scores[TEST].n > 0)
        json_object_set_new(object, "test", score_json(&result->scores[TEST]));
    char *text =
        json_dumps(object, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    char *line = memory_text("%s\n", text);
    enum status status = run_write(&t->run, "result.json", line);
    memory_free(line);
    free(text);
    json_decref(object);
    return status;
}

/* Rank 0: makes the directory agree with the checkpoint, or with the start. */
static enum status prepare(const struct trainer *t, bool had_ended)
{
    if (t->progress.best_epoch > 0 || !had_ended)
        TRY(run_settle_best(&t->run, &t->progress));
    TRY(run_log_cut(&t->run, t->progress.epoch));
    const struct snapshots_owner owner = {t->settings, t->config, t->stepper.dataset.digest,
                                          &t->progress};
    TRY(snapshots_prepare(&t->run, &owner));
    if (t->progress.all_steps == 0)
        elapsed_forget(&t->run);
    if (had_ended)
        return OK;
    char *grid = trainer_grid(t);
    enum status status = grid != NULL ? run_compare_blas(&t->run, grid) : OK;
    memory_free(grid);
    TRY(status);
    char *complete = config_text(t->settings->groups, N_SETTINGS_GROUPS, NULL);
    status = run_write(&t->run, "config.ini", complete);
    memory_free(complete);
    return status == OK ? run_remove(&t->run, "result.json") : status;
}

/* The settings without locations, as checkpoints store them; caller frees. */
static char *stored_config(const struct settings *settings)
{
    char *text = config_text(settings->groups, N_SETTINGS_GROUPS, settings_places);
    char *from = settings->refit.digest[0] != '\0'    ? refit_text(&settings->refit)
                 : settings->update.digest[0] != '\0' ? update_text(&settings->update)
                                                      : memory_text("%s", "");
    char *all = memory_text("%s%s", text, from);
    memory_free(text);
    memory_free(from);
    return all;
}

/* Ends a run that already has all its epochs, or is to have none. */
static enum status end_here(struct trainer *t)
{
    if (ends_with_mean(t)) {
        optimizer_swap(&t->stepper.optimizer);
        TRY(trainer_state_keep_best(t));
        optimizer_swap(&t->stepper.optimizer);
    }
    return trainer_state_save(t);
}

static enum status begin(struct trainer *t, bool *done)
{
    t->config = stored_config(t->settings);
    TRY(comm_agree_on(t->comm, t->config, "the settings"));
    const enum status created = stepper_create(&t->stepper, t->comm, t->settings);
    if (created != OK)
        return created == BAD_USER ? trainer_state_refused(t, created) : created;
    TRY(precheck_monitor(t->settings, &t->stepper));
    TRY(run_open(&t->run, t->settings->run.directory, t->comm));
    struct checkpoint checkpoint;
    bool found = false;
    TRY(run_resume(&t->run, &checkpoint, &found));
    if (found) {
        enum status status = trainer_state_restore(t, &checkpoint);
        checkpoint_close(&checkpoint);
        TRY(status);
    }
    *done = is_done(t);
    const bool had_ended = *done && found && t->progress.finished;
    t->progress.finished = *done;
    TRY(comm_agree(t->comm, t->comm->rank == 0 ? prepare(t, had_ended) : OK));
    if (t->progress.all_steps == 0 && !had_ended)
        TRY(trainer_state_keep_snapshot(t));
    if (*done)
        return had_ended ? OK : end_here(t);
    const struct lanes *lanes = &t->stepper.lanes;
    const size_t per_step = (lanes->n_training + lanes->n_steps - 1) / lanes->n_steps;
    log_say("%s on %s: %zu parameters; %lld training attempts, %zu student%s per step, %zu "
            "step%s per epoch, %zu block%s per step, %d rank%s",
            t->model->kind->name, t->stepper.dataset.path, params_count(&t->model->params),
            (long long)t->stepper.n_training, per_step, per_step == 1 ? "" : "s",
            lanes->n_steps, lanes->n_steps == 1 ? "" : "s", lanes->n_lanes,
            lanes->n_lanes == 1 ? "" : "s", t->comm->size, t->comm->size == 1 ? "" : "s");
    precheck_settings(t->settings, &t->stepper);
    if (t->stepper.n_joined > 0)
        log_say("refit of %s: %s%lld epoch%s; validation attempts added to training: %lld",
                t->settings->train.refit, t->settings->refit.epochs > 0 ? "" : "at most ",
                (long long)trainer_epochs(t), trainer_epochs(t) == 1 ? "" : "s",
                (long long)t->stepper.n_joined);
    t->is_mixed = continuation_say_numerics(t->run.directory, t->model->kind->name,
                                            t->progress.numerics, t->config);
    return OK;
}

static enum status train(struct trainer *t, struct result *result)
{
    bool done = false;
    TRY(begin(t, &done));
    char *path = run_path(&t->run, "result.json");
    int64_t has_result = t->comm->rank == 0 && file_exists(path);
    comm_max_i64(t->comm, &has_result, 1);
    result->was_finished = done && has_result;
    memory_free(path);
    t->before = t->comm->rank == 0 ? elapsed_before(&t->run) : 0;
    t->started = t->saved = log_clock();
    t->steps_at_start = t->progress.all_steps;
    t->check_every = 1;
    if (!done)
        trainer_say_progress(t);
    while (!done) {
        const double epoch_started = log_clock();
        const int64_t n_steps = (int64_t)t->stepper.lanes.n_steps;
        const double share = (double)(n_steps - t->progress.step) / (double)n_steps;
        const enum status status = train_epoch(t);
        if (status == DIVERGED && t->best != NULL &&
            run_save_best(&t->run, t->best, t->n_best) != OK)
            log_warn("the best epoch so far could not be saved");
        TRY(status);
        t->trained = log_clock() - epoch_started;
        t->rate =
            share * t->stepper.share * (double)t->stepper.n_training / fmax(t->trained, 1e-9);
        TRY(finish_epoch(t, &done));
    }
    result->seconds = trainer_elapsed(t);
    result->epochs = t->progress.epoch;
    result->best_epoch = t->progress.best_epoch;
    result->best = t->progress.best;
    result->stopped_early = t->progress.epoch < trainer_epochs(t);
    result->converged = t->progress.converged;
    result->is_mixed = t->is_mixed;
    TRY(score_best(t, result));
    if (result->was_finished)
        return OK;
    return comm_agree(t->comm, t->comm->rank == 0 ? write_result(t, result) : OK);
}

enum status trainer_run(const struct comm *comm, struct settings *settings,
                        struct result *result)
{
    struct trainer t = {
        .comm = comm, .settings = settings, .model = settings->model, .run = {.lock = -1}};
    *result = (struct result){0};
    for (int split = 0; split < N_SPLITS; split++)
        for (int b = 0; b < N_BASELINES; b++)
            result->baselines[split][b] = NAN;
    enum status status = train(&t, result);
    run_close(&t.run);
    memory_free(t.config);
    memory_free(t.best);
    stepper_destroy(&t.stepper);
    return status;
}
