/* One command from data to the best model:
 *
 *     DIR/kinds          a sweep over the kinds of the portfolio that fit the data, each with
 *                        its defaults
 *     DIR/around-KIND    for the best kinds, a sweep over settings around the defaults: all
 *                        trials for half of the epochs, the better half of them to the end
 *     DIR/refit-KIND     if asked: the members of the blend once more, on validation too
 *     DIR/models/KIND    a link to the best run of each kind
 *     DIR/best           the blend of the best run of every kind, weights fitted on validation
 *     leaderboard.csv    all of these on the same attempts, with paired intervals
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
#include "runs/blending.h"
#include "runs/inference.h"
#include "runs/refit.h"
#include "runs/scoring.h"
#include "runs/trainer.h"
#include "sweep/portfolio.h"
#include "sweep/sweep.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_RANKS = 4, /* per trial: the blocks of a default mini-batch */
    FEW_STUDENTS = 100,
    REPLICATES = 1000,
    SEED = 1
};
#define LEAST_WEIGHT 0.005 /* members below it are left out of the blend */

/* The best run of a kind so far. */
struct candidate {
    const struct portfolio_entry *entry;
    struct auto_model model;
    double seconds; /* of one trial */
};

struct auto_work {
    const struct comm *comm;
    const struct auto_plan *plan;
    struct data_shape shape;
    struct candidate kinds[16];
    size_t n_kinds;
    int64_t n_trials; /* used up */
    double started;
};

/* ---- sweeps */

static void describe(const struct sweep *sweep, size_t trial, struct candidate *kind)
{
    char *text = memory_text("%s", "");
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        if (strcmp(sweep->dimensions[d].key, "kind") == 0)
            continue;
        char *longer = memory_text("%s%s%s.%s=%s", text, text[0] != '\0' ? " " : "",
                                   sweep->dimensions[d].section, sweep->dimensions[d].key,
                                   sweep->trials[trial].values[d]);
        memory_free(text);
        text = longer;
    }
    memory_free(kind->model.settings);
    memory_free(kind->model.run);
    kind->model.settings = text;
    kind->model.run = sweep_path(sweep, trial, NULL);
}

static struct candidate *kind_of(struct auto_work *work, const struct sweep *sweep,
                                 size_t trial)
{
    for (size_t k = 0; k < work->n_kinds; k++) {
        const char *fixed = config_get(sweep->config, "model", "kind");
        const char *name = fixed;
        for (size_t d = 0; d < sweep->n_dimensions; d++)
            if (strcmp(sweep->dimensions[d].key, "kind") == 0)
                name = sweep->trials[trial].values[d];
        if (strcmp(name, work->kinds[k].entry->kind) == 0)
            return &work->kinds[k];
    }
    return NULL;
}

/* Every rank reads the results, which are files. */
static void take_results(struct auto_work *work, const struct sweep *sweep)
{
    for (size_t t = 0; t < sweep->n_trials; t++) {
        struct sweep_result result;
        sweep_read_result(sweep, t, sweep->options.rungs, &result);
        struct candidate *kind = kind_of(work, sweep, t);
        if (result.state == SWEEP_DONE && isfinite(result.valid.log_loss) &&
            !(result.valid.log_loss >= kind->model.valid)) {
            kind->model.valid = result.valid.log_loss;
            describe(sweep, t, kind);
        }
        if (result.state == SWEEP_DONE)
            kind->seconds = result.seconds;
        if (result.state == SWEEP_FAILED && work->comm->rank == 0)
            log_warn("%s failed: %s", kind->entry->kind, result.reason);
        memory_free(result.reason);
    }
}

static int64_t ranks_per_trial(const struct auto_work *work, size_t n_trials)
{
    const int64_t share = work->comm->size / (int64_t)size_max(1, n_trials);
    const int64_t most = work->shape.n_students < FEW_STUDENTS ? 1 : MOST_RANKS;
    return share < 1 ? 1 : share < most ? share : most;
}

/* Collective: runs a sweep in a directory of its own. */
static enum status sweep_in(struct auto_work *work, const char *name, const char *lines)
{
    const struct comm *comm = work->comm;
    char *text = memory_text("data.file = %s\nrun.directory = %s/%s\n%s", work->plan->data,
                             work->plan->directory, name, lines);
    struct config *config = config_create();
    struct sweep sweep = {.config = config};
    enum status status = config_read_text(config, text, "auto");
    memory_free(text);
    if (status == OK)
        status = sweep_create(&sweep, config);
    status = comm_agree(comm, status);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? sweep_open(&sweep) : OK);
    if (status == OK) {
        sweep.options.ranks = ranks_per_trial(work, sweep.n_trials);
        const struct sweep_order order = {.pack = 1, .n_packs = 1};
        const bool muted = log_muted();
        log_mute(true);
        status = sweep_run(&sweep, comm, &order);
        log_mute(muted);
    }
    if (status == OK) {
        comm_barrier(comm);
        take_results(work, &sweep);
        work->n_trials += (int64_t)sweep.n_trials;
    }
    sweep_destroy(&sweep);
    return status;
}

/* ---- the kinds */

static int by_valid(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->model.valid != y->model.valid)
        return isnan(y->model.valid) || x->model.valid < y->model.valid ? -1 : 1;
    return x->entry < y->entry ? -1 : 1;
}

static void sort_kinds(struct auto_work *work)
{
    qsort(work->kinds, work->n_kinds, sizeof *work->kinds, by_valid);
}

static enum status try_kinds(struct auto_work *work)
{
    char *list = memory_text("%s", "");
    for (size_t e = 0; e < n_portfolio; e++) {
        const struct portfolio_entry *entry = &portfolio[e];
        if (!portfolio_fits(entry, &work->shape)) {
            log_say("%s is left out: %s", entry->kind, entry->unfit);
            continue;
        }
        if ((int64_t)work->n_kinds == work->plan->trials)
            break;
        char *longer = memory_text("%s%s%s", list, work->n_kinds > 0 ? ", " : "", entry->kind);
        memory_free(list);
        list = longer;
        work->kinds[work->n_kinds++] =
            (struct candidate){.entry = entry, .model = {.valid = NAN}};
    }
    log_say("train %s with their defaults", list);
    char *lines = memory_text("model.kind = {%s}\n", list);
    const enum status status = sweep_in(work, "kinds", lines);
    memory_free(lines);
    memory_free(list);
    TRY(status);
    sort_kinds(work);
    while (work->n_kinds > 0 && isnan(work->kinds[work->n_kinds - 1].model.valid))
        work->n_kinds--;
    for (size_t k = 0; k < work->n_kinds; k++)
        log_say("  %-8s validation log-loss %.5f", work->kinds[k].entry->kind,
                work->kinds[k].model.valid);
    return work->n_kinds > 0
               ? OK
               : fail(BAD_USER,
                      "%s: no kind of model could be trained; `cohort train data=%s "
                      "model.kind=ktm` shows why",
                      work->plan->data, work->plan->data);
}

/* ---- settings around the best kinds */

/* How many trials `around` makes: the product of the lengths of its lists. */
static int64_t count_trials(const char *around)
{
    int64_t n = 1, length = 1;
    for (const char *c = around; *c != '\0'; c++) {
        length += *c == ',';
        if (*c == '}') {
            n *= length;
            length = 1;
        }
    }
    return n;
}

/* Collective: whether there is time for n trials of a kind, by rank 0's clock. */
static bool has_time(const struct auto_work *work, const struct candidate *kind, int64_t n)
{
    int64_t has = 1;
    if (work->plan->minutes > 0) {
        const double spent = log_clock() - work->started;
        const double rounds = ceil((double)n / work->comm->size);
        has = spent + 1.5 * kind->seconds * rounds < 60 * work->plan->minutes;
    }
    comm_broadcast(work->comm, &has, sizeof has, 0);
    return has != 0;
}

/* Collective: whether the directory has such a file. */
static bool is_there(const struct auto_work *work, const char *name)
{
    int64_t there = work->comm->rank == 0 && file_is_in(work->plan->directory, name);
    comm_max_i64(work->comm, &there, 1);
    return there != 0;
}

static enum status try_around(struct auto_work *work)
{
    struct candidate *order = NEW(struct candidate, work->n_kinds);
    memcpy(order, work->kinds, work->n_kinds * sizeof *order);
    enum status status = OK;
    for (size_t k = 0; status == OK && k < work->n_kinds; k++) {
        const struct portfolio_entry *entry = order[k].entry;
        const int64_t n = entry->around != NULL ? count_trials(entry->around) : 0;
        char name[64];
        snprintf(name, sizeof name, "around-%s", entry->kind);
        const bool was_begun = is_there(work, name); /* by a command with a larger limit */
        if (n == 0 || (!was_begun && work->n_trials + n > work->plan->trials))
            continue;
        if (!was_begun && !has_time(work, &order[k], n)) {
            log_say("no time is left for settings around %s", entry->kind);
            continue;
        }
        log_say("try %lld settings around the defaults of %s", (long long)n, entry->kind);
        char *lines = memory_text("model.kind = %s\n%s%s", entry->kind, entry->around,
                                  entry->in_rungs ? "sweep.rungs = 2\nsweep.factor = 2\n" : "");
        status = sweep_in(work, name, lines);
        memory_free(lines);
    }
    memory_free(order);
    sort_kinds(work);
    return status;
}

/* ---- names for the best runs */

/* Rank 0: DIR/models/KIND leads to the best run of the kind. */
static enum status link_model(const struct auto_work *work, const struct candidate *kind)
{
    const size_t skip = strlen(work->plan->directory) + 1;
    char *to = memory_text("../%s", kind->model.run + skip);
    char *draft = memory_text("%s/models/.new", work->plan->directory);
    char *name = memory_text("%s/models/%s", work->plan->directory, kind->entry->kind);
    unlink(draft);
    enum status status = OK;
    if (symlink(to, draft) != 0 || rename(draft, name) != 0)
        status = fail(BAD_IO, "%s: cannot make this link: %s", name, strerror(errno));
    memory_free(draft);
    memory_free(name);
    memory_free(to);
    return status;
}

static enum status link_models(const struct auto_work *work)
{
    char *directory = memory_text("%s/models", work->plan->directory);
    enum status status = file_make_directory(directory);
    for (size_t k = 0; status == OK && k < work->n_kinds; k++)
        status = link_model(work, &work->kinds[k]);
    memory_free(directory);
    return status;
}

/* Collective. */
static enum status name_models(struct auto_work *work)
{
    TRY(comm_agree(work->comm, work->comm->rank == 0 ? link_models(work) : OK));
    for (size_t k = 0; k < work->n_kinds; k++) {
        struct candidate *kind = &work->kinds[k];
        memory_free(kind->model.run);
        kind->model.run = memory_text("%s/models/%s", work->plan->directory, kind->entry->kind);
    }
    return OK;
}

/* ---- the blend */

/* The directory of the refit of a run, which is models/KIND; caller frees. */
static char *refit_of(const struct auto_work *work, const char *run)
{
    return memory_text("%s/refit-%s", work->plan->directory, strrchr(run, '/') + 1);
}

/* Collective: each rank trains some of the refits, alone. */
static enum status refit_members(const struct auto_work *work, char **runs, size_t n)
{
    const struct comm *comm = work->comm;
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    enum status status = OK;
    const bool muted = log_muted();
    log_mute(true);
    for (size_t m = (size_t)comm->rank; status == OK && m < n; m += (size_t)comm->size) {
        struct config *config = config_create();
        struct settings settings = {0};
        struct result result;
        char *directory = refit_of(work, runs[m]);
        char *text = memory_text("train.refit = %s\nrun.directory = %s\n", runs[m], directory);
        memory_free(directory);
        status = config_read_text(config, text, "auto");
        if (status == OK)
            status = refit_settings(&self, &settings, config);
        else
            config_destroy(config);
        if (status == OK)
            status = trainer_run(&self, &settings, &result);
        settings_destroy(&settings);
        memory_free(text);
    }
    log_mute(muted);
    TRY(comm_agree(comm, status));
    for (size_t m = 0; m < n; m++) {
        char *refit = refit_of(work, runs[m]);
        memory_free(runs[m]);
        runs[m] = refit;
    }
    return OK;
}

/* Collective: fits weights of the runs; with `directory`, saves the blend there. */
static enum status blend(const struct auto_work *work, char *const *runs, size_t n,
                         const char *directory, double *weights)
{
    struct blend blend;
    enum status status = blend_create(&blend, work->comm, (const char *const *)runs, n, "");
    if (status == OK) {
        struct blend_weights all = {.method = BLEND_CONVEX, .n = n};
        for (size_t m = 0; m < n; m++)
            all.members[m] = m;
        blend_fit(&blend, &all);
        memcpy(weights, all.weights, n * sizeof *weights);
        if (directory != NULL)
            status = blend_save(&blend, &all, directory);
    }
    blend_destroy(&blend);
    return status;
}

/* Collective: keeps the members that count, best first, and at least two. */
static enum status blend_best(struct auto_work *work, struct auto_result *result)
{
    double weights[BLEND_MOST] = {0};
    char *runs[BLEND_MOST] = {NULL};
    size_t n = size_min(work->n_kinds, BLEND_MOST), kept = 0;
    if (n < 2) {
        result->best = memory_text("%s", work->kinds[0].model.run);
        work->kinds[0].model.weight = 1;
        return OK;
    }
    for (size_t m = 0; m < n; m++)
        runs[m] = memory_text("%s", work->kinds[m].model.run);
    enum status status = blend(work, runs, n, NULL, weights);
    size_t n_counting = 0;
    for (size_t m = 0; m < n; m++)
        n_counting += weights[m] >= LEAST_WEIGHT;
    for (size_t m = 0; m < n; m++) {
        work->kinds[m].model.weight = weights[m];
        if (weights[m] < LEAST_WEIGHT && (n_counting >= 2 || m >= 2)) {
            memory_free(runs[m]);
            work->kinds[m].model.weight = 0;
            continue;
        }
        runs[kept++] = runs[m];
    }
    if (status == OK && work->plan->refit)
        status = refit_members(work, runs, kept);
    result->best = memory_text("%s/best", work->plan->directory);
    if (status == OK)
        status = blend(work, runs, kept, result->best, weights);
    for (size_t m = 0; m < kept; m++)
        memory_free(runs[m]);
    return status;
}

/* ---- the leaderboard */

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
    enum status status = inference_open(&inference, work->kinds[0].model.run, "", work->comm);
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

static enum status compare_all(struct auto_work *work, struct auto_result *result)
{
    TRY(choose_split(work, result));
    paired_start(&result->paired, work->comm, REPLICATES, SEED);
    for (size_t k = 0; k < work->n_kinds; k++)
        TRY(compare(work->comm, work->kinds[k].model.run, result->split, false,
                    &result->paired));
    return compare(work->comm, result->best, result->split, true, &result->paired);
}

static enum status check_directory(const struct auto_plan *plan)
{
    static const char *const others[] = {"config.ini", "sweep.ini", "last.h5"};
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
                    "%s: no validation attempts to choose models by; import the data with "
                    "them, as in --split by-student=80/10/10",
                    plan->data);
    TRY(comm_agree(comm, comm->rank == 0 ? take_lock(plan, &result->lock) : OK));
    enum status status = try_kinds(&work);
    if (status == OK)
        status = try_around(&work);
    if (status == OK)
        status = name_models(&work);
    if (status == OK)
        status = blend_best(&work, result);
    if (status == OK)
        status = compare_all(&work, result);
    result->n = work.n_kinds;
    result->models = NEW(struct auto_model, work.n_kinds);
    for (size_t k = 0; k < COUNT(work.kinds); k++) {
        struct auto_model *model = &work.kinds[k].model;
        if (k < work.n_kinds) {
            model->kind = memory_text("%s", work.kinds[k].entry->kind);
            result->models[k] = *model;
        }
    }
    return status;
}

void auto_free(struct auto_result *result)
{
    for (size_t m = 0; m < result->n; m++) {
        memory_free(result->models[m].run);
        memory_free(result->models[m].kind);
        memory_free(result->models[m].settings);
    }
    memory_free(result->models);
    memory_free(result->best);
    paired_free(&result->paired);
    if (result->lock >= 0)
        close(result->lock);
    *result = (struct auto_result){.lock = -1};
}
