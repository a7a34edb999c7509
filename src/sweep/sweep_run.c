/* Trials run by teams. The ranks are split into teams. A team takes the next free trial by
 * locking the file `claim` in the trial's directory, trains it, writes its result and goes on:
 *
 *     ranks   0 1 2 3 | 4 5 6 7 | ...      sweep.ranks = 4
 *     team       0    |    1    |
 *     trials   t1 t4  |  t2 t3  |          a free team takes the next trial
 *
 * The kernel releases a lock when its process ends, so a killed job leaves nothing to clean up,
 * and several jobs (a Slurm array) can work on one sweep at once. A run has the same bits on
 * any number of ranks, so it does not matter which team runs a trial.
 *
 * With successive halving all teams meet after each rung and wait for trials of other jobs,
 * because the ranking of the whole rung decides which trials continue. Scores are comparable
 * only on the same data, so every result stores the data set's digest. */
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "data/dataset.h"
#include "runs/cross_validation.h"
#include "sweep/sweep.h"
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct runner {
    const struct sweep *sweep;
    const struct comm *comm;
    struct comm team;
    const struct sweep_order *order;
    char *data; /* path of the data set, and its digest */
    char data_digest[33];
    bool retry; /* failed trials too; not again while waiting for others */
    bool talks; /* this rank prints */
    double started, spoke;
    int64_t rung; /* shown last; it began then, with so many trials done */
    double rung_started;
    size_t n_before;
    int64_t n_run, n_mixed; /* trials run by this team; those that another version began */
};

/* Whether there is a result already, which must be for the same data. */
static enum status look(const struct runner *r, size_t trial, int64_t rung, bool *known)
{
    struct sweep_result result;
    sweep_read_result(r->sweep, trial, rung, &result);
    memory_free(result.reason);
    *known = result.state == SWEEP_DONE || (result.state == SWEEP_FAILED && !r->retry);
    if (*known && result.data_digest[0] != '\0' &&
        strcmp(result.data_digest, r->data_digest) != 0)
        return fail(BAD_USER,
                    "%s: trial %s was trained on a data set with digest %s, but %s has digest "
                    "%s now, so scores are not comparable; use the same data, or another run=",
                    r->sweep->directory, r->sweep->trials[trial].id, result.data_digest,
                    r->data, r->data_digest);
    return OK;
}

/* The open file of the claim, or -1: another team has it, or there is a result. */
static enum status claim(const struct runner *r, size_t trial, int64_t rung, int *file)
{
    bool known = false;
    *file = -1;
    TRY(look(r, trial, rung, &known));
    if (known)
        return OK;
    char *directory = sweep_path(r->sweep, trial, NULL),
         *path = sweep_path(r->sweep, trial, "claim");
    enum status status = file_make_directory(directory);
    if (status == OK)
        status = file_lock_take(path, 0, file);
    memory_free(path);
    memory_free(directory);
    if (*file < 0)
        return status;
    /* Another job may have finished it before the lock was taken. */
    status = look(r, trial, rung, &known);
    if (known) {
        close(*file);
        *file = -1;
    }
    return status;
}

/* Collective over the team: trains a trial. */
static enum status train(struct runner *r, size_t trial, struct sweep_result *result)
{
    struct settings settings;
    enum status status =
        sweep_settings(r->sweep, trial, sweep_epochs(r->sweep, result->rung), &settings);
    if (status == OK && r->sweep->folds) {
        struct cross_validation folds;
        status = cross_validation_run(&r->team, &settings, &folds);
        result->epochs = settings.train.epochs;
        r->n_mixed += status == OK && folds.is_mixed;
        result->valid = folds.mean[VALID];
        result->valid_spread = folds.spread[VALID];
        result->test = folds.mean[TEST];
        result->test_spread = folds.spread[TEST];
    } else if (status == OK) {
        struct result trained;
        status = trainer_run(&r->team, &settings, &trained);
        r->n_mixed += status == OK && trained.is_mixed;
        result->epochs = trained.epochs;
        result->valid = trained.scores[VALID];
        result->test = trained.scores[TEST];
    }
    settings_destroy(&settings);
    if (status == OK && result->valid.n == 0)
        status = fail(BAD_USER, "the data set has no validation attempts with known outcomes "
                                "to compare trials by; import the data with them, as in "
                                "--split by-student=80/10/10, or set train.folds");
    return status;
}

/* Collective over the team. A failed trial is recorded, and the sweep continues. */
static enum status run_trial(struct runner *r, size_t trial, int64_t rung)
{
    const double started = log_clock();
    struct sweep_result result = {.state = SWEEP_DONE, .rung = rung};
    memcpy(result.data_digest, r->data_digest, sizeof result.data_digest);
    const bool muted = log_muted();
    log_mute(true);
    enum status status = train(r, trial, &result);
    log_mute(muted);
    if (status == STOPPED || status == BAD_IO)
        return status;
    if (status != OK) {
        result.state = SWEEP_FAILED;
        result.reason = memory_text("%s", fail_sentence());
        fail_clear();
    }
    result.seconds = log_clock() - started;
    status = r->team.rank == 0 ? sweep_write_result(r->sweep, trial, &result) : OK;
    memory_free(result.reason);
    return comm_agree(&r->team, status);
}

static size_t count_done(const struct runner *r, const size_t *trials, size_t n, int64_t rung)
{
    size_t n_done = 0;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "rung-%lld.json", (long long)rung);
        char *path = sweep_path(r->sweep, trials[i], name);
        n_done += file_exists(path);
        memory_free(path);
    }
    return n_done;
}

/* Shows the progress of the whole sweep. */
static void show_progress(struct runner *r, const size_t *trials, size_t n, int64_t rung)
{
    const double now = log_clock();
    if (!r->talks || (now - r->spoke < 0.5 && rung == r->rung))
        return;
    r->spoke = now;
    const size_t n_done = count_done(r, trials, n, rung);
    if (rung != r->rung) {
        r->rung = rung;
        r->rung_started = now;
        r->n_before = n_done;
    }
    char which[64] = "", time[64], left[96] = "";
    if (r->sweep->options.rungs > 1)
        snprintf(which, sizeof which, "rung %lld of %lld, ", (long long)rung,
                 (long long)r->sweep->options.rungs);
    if (n_done > r->n_before && n_done < n) {
        terminal_duration((now - r->rung_started) / (double)(n_done - r->n_before) *
                              (double)(n - n_done),
                          time, sizeof time);
        snprintf(left, sizeof left, ", %s left", time);
    }
    terminal_duration(now - r->started, time, sizeof time);
    log_live("%s%zu of %zu trials, %s%s", which, n_done, n, time, left);
}

/* Collective over the team: runs trials until none is left. */
static enum status run_list(struct runner *r, const size_t *trials, size_t n, int64_t rung)
{
    for (size_t i = 0; i < n;) {
        int file = -1;
        enum status status = OK;
        show_progress(r, trials, n, rung);
        if (r->team.rank == 0)
            while (i < n && status == OK && file < 0 && !signals_came()) {
                const bool own = i % (size_t)r->order->n_packs == (size_t)r->order->pack - 1;
                if (own)
                    status = claim(r, trials[i], rung, &file);
                if (file < 0)
                    i++;
            }
        status = comm_agree(&r->team, status);
        uint64_t next = r->team.rank == 0 && file < 0 ? n : i;
        comm_broadcast(&r->team, &next, sizeof next, 0);
        i = next;
        if (status == OK && i < n)
            status = run_trial(r, trials[i], rung);
        if (file >= 0)
            close(file);
        TRY(status);
        r->n_run += i < n;
        i++;
    }
    return OK;
}

/* Collective: shares rank 0's list with all ranks; caller frees. */
static size_t *share_list(const struct runner *r, int64_t rung, size_t *n)
{
    uint64_t size = 0;
    size_t *list = NULL;
    if (r->comm->rank == 0) {
        list = sweep_rung(r->sweep, rung, n);
        size = *n;
    }
    comm_broadcast(r->comm, &size, sizeof size, 0);
    *n = size;
    if (r->comm->rank != 0)
        list = NEW(size_t, *n);
    comm_broadcast(r->comm, list, *n * sizeof *list, 0);
    return list;
}

/* Collective: the number of trials in the list without a result, claimed or abandoned by other
 * jobs. */
static size_t count_open(const struct runner *r, int64_t rung, const size_t *trials, size_t n)
{
    uint64_t n_open = r->comm->rank == 0 ? sweep_n_open(r->sweep, rung, trials, n) : 0;
    comm_broadcast(r->comm, &n_open, sizeof n_open, 0);
    return n_open;
}

/* Collective: one pass over the list. */
static enum status run_pass(struct runner *r, const size_t *trials, size_t n, int64_t rung)
{
    const enum status status = run_list(r, trials, n, rung);
    int64_t stopped = signals_came();
    comm_max_i64(r->comm, &stopped, 1);
    TRY(comm_agree(r->comm, status == STOPPED ? OK : status));
    fail_clear();
    if (stopped)
        return fail(STOPPED, "the sweep was stopped by a signal; finished work is kept; run "
                             "the same command again to continue");
    return OK;
}

/* Collective. Which trials continue is known only when all jobs have finished the rung. */
static enum status run_rung(struct runner *r, int64_t rung, bool goes_on)
{
    const struct timespec pause = {.tv_nsec = 500000000};
    size_t n = 0;
    size_t *trials = share_list(r, rung, &n);
    r->retry = r->order->retry;
    enum status status = run_pass(r, trials, n, rung);
    r->retry = false;
    while (status == OK && goes_on && count_open(r, rung, trials, n) > 0) {
        nanosleep(&pause, NULL);
        status = run_pass(r, trials, n, rung);
    }
    memory_free(trials);
    return status;
}

/* Collective: a single rung can start only after the previous one has ended. */
static enum status check_before(const struct runner *r, int64_t rung)
{
    if (rung == 1)
        return OK;
    size_t n = 0;
    size_t *trials = share_list(r, rung - 1, &n);
    const size_t n_open = count_open(r, rung - 1, trials, n);
    memory_free(trials);
    if (n_open > 0)
        return fail(BAD_USER,
                    "%s: not done yet: %zu of the %zu trials of rung %lld, so the trials of "
                    "rung %lld cannot be selected yet; finish the earlier rung first",
                    r->sweep->directory, n_open, n, (long long)rung - 1, (long long)rung);
    return OK;
}

/* Collective: opens the data set of all trials. */
static enum status look_at_data(struct runner *r)
{
    struct dataset dataset;
    struct settings settings;
    enum status status =
        comm_agree(r->comm, sweep_settings(r->sweep, 0, r->sweep->epochs, &settings));
    if (status == OK)
        status = dataset_open(&dataset, settings.data.file, r->comm);
    if (status == OK) {
        r->data = memory_text("%s", dataset.path);
        memcpy(r->data_digest, dataset.digest, sizeof r->data_digest);
        dataset_close(&dataset);
    }
    settings_destroy(&settings);
    return status;
}

enum status sweep_run(const struct sweep *sweep, const struct comm *comm,
                      const struct sweep_order *order)
{
    struct runner r = {.sweep = sweep,
                       .comm = comm,
                       .order = order,
                       .talks = !log_muted(),
                       .started = log_clock(),
                       .spoke = log_clock()};
    TRY(look_at_data(&r));
    const size_t size = (size_t)comm->size;
    const size_t n_teams = size_max(1, size / (size_t)sweep->options.ranks);
    size_t team = 0;
    while (team + 1 < n_teams && size_cut(size, team + 1, n_teams) <= (size_t)comm->rank)
        team++;
    comm_split(comm, (int)team, &r.team);
    const int64_t first = order->rung > 0 ? order->rung : 1;
    const int64_t last = order->rung > 0 ? order->rung : sweep->options.rungs;
    enum status status = check_before(&r, first);
    for (int64_t rung = first; rung <= last && status == OK; rung++)
        status = run_rung(&r, rung, rung < last);
    int64_t counts[] = {r.n_run, r.n_mixed};
    for (size_t c = 0; c < COUNT(counts); c++)
        counts[c] = r.team.rank == 0 ? counts[c] : 0;
    comm_leave(&r.team);
    memory_free(r.data);
    if (status != OK)
        return status;
    comm_sum_i64(comm, counts, COUNT(counts));
    log_say("%lld trial%s trained by %zu team%s in %.1f s", (long long)counts[0],
            counts[0] == 1 ? "" : "s", n_teams, n_teams == 1 ? "" : "s",
            log_clock() - r.started);
    if (counts[1] > 0)
        log_say("note: %lld of them %s started by a version of cohort with other arithmetic; "
                "the results may differ in bits from those of an uninterrupted sweep",
                (long long)counts[1], counts[1] == 1 ? "was" : "were");
    return OK;
}
