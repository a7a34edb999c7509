/* The training loop.
 *
 *     for each epoch: every lane shuffles its students
 *         for each step: every own lane's block adds to the tally; the tallies are summed
 * exactly; each rank moves its slice of the parameters and shares it validate; remember the
 * best epoch; save
 *
 * What happens does not depend on the number of ranks, on when checkpoints were written, or on
 * how often the run was stopped and continued. Signals and the clock are looked at together
 * every so many steps (the number is agreed on, about a tenth of a second's worth), because all
 * ranks must stop at the same step. */
#include "trainer.h"
#include "checkpoint.h"
#include "exact.h"
#include "fail.h"
#include "folds.h"
#include "lanes.h"
#include "log.h"
#include "memory.h"
#include "run.h"
#include "scoring.h"
#include "store.h"
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int number)
{
    (void)number;
    asked_to_stop = 1;
}

void trainer_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct trainer {
    const struct comm *comm;
    struct settings *settings;
    struct model *model;
    struct dataset dataset;
    struct lanes lanes;
    struct shard shard;
    void *work;
    int64_t n_training; /* attempts, over all ranks */
    struct exact_slices slices;
    struct optimizer optimizer;
    struct tally tally;
    struct run run;
    char *config; /* as stored in the checkpoint */
    struct progress progress;
    struct score valid; /* of the last validation; n = 0: none */
    double started, epoch_started, saved;
    int64_t steps_at_start, check_every;
};

/* Sections that say where things are, not what is computed. */
static const char *const places[] = {"data", "run", NULL};

/* What may differ between a run and its continuation. */
static bool may_change(const char *line)
{
    return strncmp(line, "epochs = ", 9) == 0 || strncmp(line, "patience = ", 11) == 0;
}

static enum status check_same_config(const char *stored, const char *now, const char *path)
{
    while (*stored != '\0' || *now != '\0') {
        const size_t a = strcspn(stored, "\n"), b = strcspn(now, "\n");
        if ((a != b || memcmp(stored, now, a) != 0) && !(may_change(stored) && may_change(now)))
            return fail(BAD_USER,
                        "%s: this run was started with '%.*s' but now '%.*s' is asked for: "
                        "continue it with the same settings (only epochs and patience may "
                        "change), or choose another run=",
                        path, (int)a, stored, (int)b, now);
        stored += a + (stored[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return OK;
}

static void count_items(const struct trainer *t, struct item_counts *counts)
{
    counts->n_items = t->dataset.n_items;
    counts->right = NEW(int64_t, 2 * counts->n_items);
    counts->wrong = counts->right + counts->n_items;
    for (uint64_t a = 0; a < t->shard.n_attempts; a++)
        if (mark_split(t->shard.mark[a]) == TRAIN && mark_outcome(t->shard.mark[a]) != UNKNOWN)
            (mark_outcome(t->shard.mark[a]) == CORRECT ? counts->right
                                                       : counts->wrong)[t->shard.item[a]]++;
    comm_sum_i64(t->comm, counts->right, 2 * counts->n_items);
}

/* Training needs both outcomes; with one, every model would learn to say it and nothing else.
 */
static enum status check_outcomes(const struct trainer *t, const struct item_counts *counts)
{
    int64_t n_right = 0, n_wrong = 0, n_new = 0;
    for (size_t i = 0; i < counts->n_items; i++) {
        n_right += counts->right[i];
        n_wrong += counts->wrong[i];
        n_new += counts->right[i] + counts->wrong[i] == 0;
    }
    if (n_right == 0 || n_wrong == 0)
        return fail(BAD_USER,
                    "%s: all %lld training outcomes are %s: there is nothing to learn; "
                    "check the outcome column of the import",
                    t->dataset.path, (long long)(n_right + n_wrong),
                    n_right > 0 ? "correct" : "incorrect");
    if (n_new > 0)
        log_say("note: %lld of %zu items have no training attempt; what is predicted for them "
                "comes "
                "from the student alone",
                (long long)n_new, counts->n_items);
    return OK;
}

static enum status prepare_data(struct trainer *t)
{
    const struct train_options *o = &t->settings->train;
    size_t first = 0, n = 0;
    TRY(dataset_open(&t->dataset, t->settings->data.file, t->comm));
    TRY(lanes_create(&t->lanes, &t->dataset, (size_t)o->batch, (size_t)o->block, &first, &n));
    TRY(dataset_read(&t->dataset, first, n, &t->shard));
    if (o->fold > 0)
        folds_mark(&t->shard, o->folds, o->fold, (uint64_t)o->seed);
    return OK;
}

static enum status prepare_model(struct trainer *t)
{
    const struct train_options *o = &t->settings->train;
    const struct model_kind *kind = t->model->kind;
    TRY(model_declare(t->model, &t->dataset, t->dataset.n_items, t->dataset.n_skills));
    struct item_counts counts;
    count_items(t, &counts);
    enum status status = check_outcomes(t, &counts);
    if (status == OK)
        kind->init(t->model, (uint64_t)o->seed, &counts);
    memory_free(counts.right);
    TRY(status);

    t->work = kind->attach(t->model, &t->shard);
    bool *has_training = NEW(bool, t->shard.n_students);
    kind->training(t->work, has_training, &t->n_training);
    status = lanes_fill(&t->lanes, &t->shard, has_training, (size_t)o->batch);
    memory_free(has_training);
    TRY(status);
    comm_sum_i64(t->comm, &t->n_training, 1);
    exact_slices_create(&t->slices, t->comm, &t->model->params);
    optimizer_create(&t->optimizer, &t->settings->optimizer, &t->model->params, &t->slices,
                     o->epochs);
    bool wide = true;
    int bits = 32;
    if (kind->measure != NULL)
        kind->measure(t->model, t->work, t->comm, t->lanes.most_students, &wide, &bits);
    tally_create(&t->tally, t->model->params.n, wide, bits);
    return OK;
}

/* Takes up what a checkpoint says. */
static enum status restore(struct trainer *t, const struct checkpoint *checkpoint)
{
    TRY(check_same_config(checkpoint->config, t->config, checkpoint->path));
    if (strcmp(checkpoint->data_digest, t->dataset.digest) != 0)
        return fail(BAD_USER,
                    "%s: trained on a data set with digest %s, but %s has digest %s: it does "
                    "not match the checkpoint; use the same data, or another run=",
                    checkpoint->path, checkpoint->data_digest, t->dataset.path,
                    t->dataset.digest);
    TRY(checkpoint_params(checkpoint, t->comm, t->model));
    TRY(checkpoint_slots(checkpoint, t->comm, &t->optimizer));
    size_t n_state = 0;
    void *state = t->model->kind->state ? t->model->kind->state(t->work, &n_state) : NULL;
    TRY(checkpoint_state(checkpoint, t->comm, state, n_state));
    t->progress = checkpoint->progress;
    log_say("continuing %s after epoch %lld, step %lld", checkpoint->path,
            (long long)t->progress.epoch, (long long)t->progress.step);
    return OK;
}

/* Collective: gathers what ranks hold in parts, and lets rank 0 write it. */
static enum status save(struct trainer *t, bool best)
{
    for (int k = 0; k < t->optimizer.n_slots; k++)
        exact_collect(&t->slices, t->optimizer.slot[k]);
    size_t n_own = 0, n_state = 0;
    void *own = t->model->kind->state ? t->model->kind->state(t->work, &n_own) : NULL;
    void *state = comm_gather(t->comm, own, n_own, &n_state);
    enum status status = OK;
    if (t->comm->rank == 0) {
        const struct checkpoint_content content = {
            .model = t->model,
            .config = t->config,
            .data_digest = t->dataset.digest,
            .items = &t->dataset.items,
            .progress = &t->progress,
            .optimizer = &t->optimizer,
            .state = state,
            .n_state = n_state,
        };
        char *bytes = NULL;
        size_t n_bytes = 0;
        status = checkpoint_bytes(&content, &bytes, &n_bytes);
        if (status == OK)
            status = run_save(&t->run, bytes, n_bytes, best);
        memory_free(bytes);
    }
    memory_free(state);
    t->saved = log_clock();
    return comm_agree(t->comm, status);
}

/* Names the tensor in which training left the numbers a computer can hold. */
static enum status check_finite(const struct trainer *t, int64_t n_out_of_range)
{
    double largest = t->optimizer.largest;
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
                "training diverged in epoch %lld, at step %lld: %s reached %g; the last "
                "checkpoint is from before; lower optimizer.rate or set optimizer.clip",
                (long long)t->progress.epoch + 1, (long long)t->progress.all_steps,
                worst ? worst->name : "a tensor", most);
}

static void show_progress(const struct trainer *t)
{
    const double seconds = log_clock() - t->started;
    const int64_t steps = t->progress.all_steps - t->steps_at_start;
    const int64_t all = t->settings->train.epochs * (int64_t)t->lanes.n_steps;
    if (steps <= 0 || seconds <= 0)
        return;
    const double rate = (double)steps / seconds;
    log_live(
        "epoch %lld of %lld, step %lld of %zu, %.2f million attempts a second, %.0f s left",
        (long long)t->progress.epoch + 1, (long long)t->settings->train.epochs,
        (long long)t->progress.step, t->lanes.n_steps,
        rate * (double)t->n_training / (double)t->lanes.n_steps / 1e6,
        (double)(all - t->progress.all_steps) / rate);
}

/* Collective, now and then: a signal anywhere, or ten minutes without a checkpoint on rank 0.
 */
static enum status look_around(struct trainer *t)
{
    const double now = log_clock(), seconds = now - t->started;
    const int64_t steps = t->progress.all_steps - t->steps_at_start;
    int64_t wishes[3] = {
        asked_to_stop,
        t->comm->rank == 0 && now - t->saved > 60 * t->settings->run.save_minutes,
        t->comm->rank == 0 ? (int64_t)fmax(1, 0.1 * (double)steps / fmax(seconds, 1e-3)) : 0,
    };
    comm_max_i64(t->comm, wishes, COUNT(wishes));
    t->check_every = wishes[2] < 1000 ? wishes[2] : 1000;
    show_progress(t);
    if (wishes[0]) {
        TRY(save(t, false));
        return fail(STOPPED,
                    "stopped by a signal after epoch %lld, step %lld; everything is saved: the "
                    "same command continues",
                    (long long)t->progress.epoch, (long long)t->progress.step);
    }
    return wishes[1] ? save(t, false) : OK;
}

static enum status train_epoch(struct trainer *t)
{
    const struct draw draw = {.seed = (uint64_t)t->settings->train.seed,
                              .epoch = (uint32_t)t->progress.epoch};
    lanes_shuffle(&t->lanes, draw.seed, draw.epoch);
    int64_t since = 0, sums[3] = {0};
    while (t->progress.step < (int64_t)t->lanes.n_steps) {
        tally_clear(&t->tally);
        for (size_t l = 0; l < t->lanes.n_own; l++) {
            size_t n = 0;
            const uint32_t *students = lanes_block(&t->lanes, l, (size_t)t->progress.step, &n);
            t->model->kind->accumulate(t->model, t->work, students, n, &draw, &t->tally);
        }
        exact_sum(&t->slices, &t->tally);
        optimizer_step(&t->optimizer, &t->tally, t->progress.all_steps,
                       (int64_t)t->lanes.n_steps, t->model->params.value);
        t->progress.step++;
        t->progress.all_steps++;
        if (++since >= t->check_every || t->progress.step == (int64_t)t->lanes.n_steps) {
            since = 0;
            sums[0] = t->tally.n_scored;
            sums[1] = t->tally.loss;
            sums[2] = t->tally.out_of_range;
            comm_sum_i64(t->comm, sums, COUNT(sums));
            t->tally.n_scored = t->tally.loss = 0;
            t->progress.n_scored += sums[0];
            t->progress.loss += sums[1];
            TRY(check_finite(t, sums[2]));
            TRY(look_around(t));
        }
    }
    return OK;
}

static void score_split(struct trainer *t, enum split split, struct score *score)
{
    struct predictions predictions;
    scoring_predict(t->model, t->work, &t->shard, 1u << split, &predictions);
    scoring_keep(&predictions, &t->shard, false);
    metrics_score(t->comm, predictions.list, predictions.n, score);
    scoring_free(&predictions);
}

/* True if the score just measured is the best so far. AUC and accuracy are better when larger.
 */
static bool is_better(struct trainer *t)
{
    const char *name = settings_monitor(t->settings);
    double value = NAN;
    for (int m = 0; m < N_METRICS; m++)
        if (strcmp(metrics_names[m], name) == 0)
            value = *metrics_value(&t->valid, m);
    const bool up = strcmp(name, "auc") == 0 || strcmp(name, "accuracy") == 0;
    const bool better =
        !isnan(value) && (t->progress.best_epoch == 0 ||
                          (up ? value > t->progress.best : value < t->progress.best));
    if (better) {
        t->progress.best = value;
        t->progress.best_epoch = t->progress.epoch;
        t->progress.stale = 0;
    } else {
        t->progress.stale++;
    }
    return better;
}

static json_t *score_json(const struct score *score)
{
    json_t *object = json_object();
    struct score copy = *score;
    json_object_set_new(object, "n", json_integer(score->n));
    for (int m = 0; m < N_METRICS; m++) {
        const double value = *metrics_value(&copy, m);
        json_object_set_new(object, metrics_names[m],
                            isfinite(value) ? json_real(value) : json_null());
    }
    return object;
}

static enum status log_epoch(struct trainer *t, double loss)
{
    const double seconds = log_clock() - t->epoch_started;
    const double rate = (double)t->n_training / fmax(seconds, 1e-9);
    if (t->valid.n > 0)
        log_say("epoch %lld: loss %.4f, valid cbd %.5f, log-loss %.5f, auc %.4f%s; %.2f s, "
                "%.1f million "
                "attempts a second",
                (long long)t->progress.epoch, loss, t->valid.cbd, t->valid.log_loss,
                t->valid.auc, t->progress.stale == 0 ? " (best)" : "", seconds, rate / 1e6);
    else
        log_say("epoch %lld: loss %.4f; %.2f s, %.1f million attempts a second",
                (long long)t->progress.epoch, loss, seconds, rate / 1e6);
    if (t->comm->rank != 0)
        return OK;
    json_t *record = json_object();
    json_object_set_new(record, "epoch", json_integer(t->progress.epoch));
    json_object_set_new(record, "step", json_integer(t->progress.all_steps));
    json_object_set_new(record, "loss", json_real(loss));
    if (t->valid.n > 0)
        json_object_set_new(record, "valid", score_json(&t->valid));
    json_object_set_new(record, "seconds", json_real(seconds));
    json_object_set_new(record, "attempts_per_second", json_real(rate));
    char *text = json_dumps(record, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    enum status status = run_log_add(&t->run, text);
    free(text);
    json_decref(record);
    return status;
}

/* What follows an epoch's last step. */
static enum status finish_epoch(struct trainer *t, bool *done)
{
    const struct train_options *o = &t->settings->train;
    const double loss =
        t->progress.n_scored > 0
            ? (double)t->progress.loss / ((double)t->progress.n_scored * (1 << LOSS_BITS))
            : NAN;
    t->progress.epoch++;
    t->progress.step = 0;
    t->progress.n_scored = t->progress.loss = 0;
    bool best = false;
    t->valid = (struct score){0};
    if (t->progress.epoch % o->valid_every == 0 || t->progress.epoch == o->epochs)
        score_split(t, VALID, &t->valid);
    if (t->valid.n > 0)
        best = is_better(t);
    *done =
        t->progress.epoch >= o->epochs || (o->patience > 0 && t->progress.stale >= o->patience);
    t->progress.finished = *done;
    TRY(comm_agree(t->comm, log_epoch(t, loss)));
    if (best || *done || t->progress.epoch % t->settings->run.save_every == 0)
        TRY(save(t, best));
    return OK;
}

/* Scores the best epoch's parameters, or the last ones where nothing was validated. */
static enum status score_best(struct trainer *t, struct result *result)
{
    char *path = run_path(&t->run, "best.h5");
    int64_t there = t->comm->rank == 0 && t->progress.best_epoch > 0 && store_exists(path);
    comm_max_i64(t->comm, &there, 1);
    enum status status = OK;
    if (there) {
        struct checkpoint best;
        status = checkpoint_open(&best, path, t->comm);
        if (status == OK)
            status = checkpoint_params(&best, t->comm, t->model);
        checkpoint_close(&best);
    }
    memory_free(path);
    for (int split = VALID; status == OK && split < N_SPLITS; split++)
        score_split(t, (enum split)split, &result->scores[split]);
    return status;
}

static enum status write_result(const struct trainer *t, const struct result *result)
{
    json_t *object = json_object();
    json_object_set_new(object, "model", json_string(t->model->kind->name));
    json_object_set_new(object, "epochs", json_integer(result->epochs));
    json_object_set_new(object, "best_epoch", json_integer(result->best_epoch));
    json_object_set_new(object, "monitor", json_string(settings_monitor(t->settings)));
    json_object_set_new(object, "stopped_early", json_boolean(result->stopped_early));
    json_object_set_new(object, "parameters",
                        json_integer((json_int_t)params_count(&t->model->params)));
    json_object_set_new(object, "data_digest", json_string(t->dataset.digest));
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

static enum status begin(struct trainer *t, bool *done)
{
    const struct train_options *o = &t->settings->train;
    t->config = config_text(t->settings->groups, N_TRAINER_GROUPS, places);
    TRY(prepare_data(t));
    TRY(prepare_model(t));
    TRY(run_open(&t->run, t->settings->run.directory, t->comm));
    struct checkpoint checkpoint;
    bool found = false;
    TRY(run_resume(&t->run, &checkpoint, &found));
    if (found) {
        enum status status = restore(t, &checkpoint);
        checkpoint_close(&checkpoint);
        TRY(status);
    }
    *done =
        t->progress.epoch >= o->epochs || (o->patience > 0 && t->progress.stale >= o->patience);
    if (*done && found)
        return OK;
    char *complete = config_text(t->settings->groups, N_TRAINER_GROUPS, NULL);
    enum status status = OK;
    if (t->comm->rank == 0) {
        status = run_write(&t->run, "config.ini", complete);
        if (status == OK)
            status = run_log_cut(&t->run, t->progress.epoch);
    }
    memory_free(complete);
    TRY(comm_agree(t->comm, status));
    log_say(
        "%s on %s: %zu parameters; %lld training attempts, %zu students a step, %zu steps an "
        "epoch, %zu lanes, %d rank%s",
        t->model->kind->name, t->dataset.path, params_count(&t->model->params),
        (long long)t->n_training, t->lanes.most_students, t->lanes.n_steps, t->lanes.n_lanes,
        t->comm->size, t->comm->size == 1 ? "" : "s");
    return OK;
}

static enum status train(struct trainer *t, struct result *result)
{
    bool done = false;
    TRY(begin(t, &done));
    char *path = run_path(&t->run, "result.json");
    int64_t has_result = t->comm->rank == 0 && store_exists(path);
    comm_max_i64(t->comm, &has_result, 1);
    result->was_finished = done && has_result;
    memory_free(path);
    t->started = t->saved = log_clock();
    t->steps_at_start = t->progress.all_steps;
    t->check_every = 1;
    while (!done) {
        t->epoch_started = log_clock();
        TRY(train_epoch(t));
        TRY(finish_epoch(t, &done));
    }
    result->seconds = log_clock() - t->started;
    result->epochs = t->progress.epoch;
    result->best_epoch = t->progress.best_epoch;
    result->best = t->progress.best;
    result->stopped_early = t->progress.epoch < t->settings->train.epochs;
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
    enum status status = train(&t, result);
    tally_destroy(&t.tally);
    optimizer_destroy(&t.optimizer);
    exact_slices_destroy(&t.slices);
    if (t.work != NULL)
        t.model->kind->detach(t.work);
    run_close(&t.run);
    shard_free(&t.shard);
    lanes_destroy(&t.lanes);
    memory_free(t.config);
    dataset_close(&t.dataset);
    return status;
}
