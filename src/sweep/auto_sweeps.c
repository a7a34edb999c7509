/* The sweeps of `cohort auto` (see auto.c): first the kinds of the portfolio with their defaults,
 * then settings around the best kinds. Each sweep has a directory of its own. Its results are
 * files, which rank 0 alone reads: another node may see an older state of a shared file system,
 * and ranks that disagree about the best kinds would wait for each other in different sweeps. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "sweep/auto_internal.h"
#include "sweep/sweep.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_RANKS = 4, /* per trial: the blocks of a default mini-batch */
    FEW_STUDENTS = 100
};

/* The settings of a trial that differ from the defaults of its kind; caller frees. */
static char *describe(const struct sweep *sweep, size_t trial)
{
    const bool of_kinds =
        sweep->n_dimensions == 1 && strcmp(sweep->dimensions[0].key, "kind") == 0;
    return of_kinds ? memory_text("%s", "") : sweep_describe(sweep, trial, "");
}

/* Equal scores are those of equal settings, which a blend needs only once. */
static void take_run(struct candidate *kind, const struct sweep *sweep, size_t trial,
                     double valid)
{
    size_t place = 0;
    while (place < N_RUNS && kind->runs[place].run != NULL && kind->runs[place].valid < valid)
        place++;
    if (place == N_RUNS || (kind->runs[place].run != NULL && kind->runs[place].valid == valid))
        return;
    auto_forget(&kind->runs[N_RUNS - 1]);
    for (size_t r = N_RUNS - 1; r > place; r--)
        kind->runs[r] = kind->runs[r - 1];
    kind->runs[place] = (struct auto_model){.run = sweep_path(sweep, trial, NULL),
                                            .kind = memory_text("%s", kind->entry->kind),
                                            .settings = describe(sweep, trial),
                                            .valid = valid};
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

/* What decides about a trial. */
struct trial_outcome {
    int64_t state;
    double log_loss, seconds;
};

/* Collective: the outcomes of all trials as rank 0 reads them; caller frees. */
static struct trial_outcome *share_outcomes(struct auto_work *work, const struct sweep *sweep)
{
    struct trial_outcome *outcomes = NEW(struct trial_outcome, sweep->n_trials);
    for (size_t t = 0; work->comm->rank == 0 && t < sweep->n_trials; t++) {
        struct sweep_result result;
        sweep_read_result(sweep, t, sweep->options.rungs, &result);
        outcomes[t] =
            (struct trial_outcome){result.state, result.valid.log_loss, result.seconds};
        if (result.state == SWEEP_FAILED)
            log_warn("%s failed: %s", kind_of(work, sweep, t)->entry->kind, result.reason);
        memory_free(result.reason);
    }
    comm_broadcast(work->comm, outcomes, sweep->n_trials * sizeof *outcomes, 0);
    return outcomes;
}

/* Collective. */
static void take_results(struct auto_work *work, const struct sweep *sweep)
{
    struct trial_outcome *outcomes = share_outcomes(work, sweep);
    for (size_t t = 0; t < sweep->n_trials; t++) {
        struct candidate *kind = kind_of(work, sweep, t);
        if (outcomes[t].state != SWEEP_DONE)
            continue;
        if (isfinite(outcomes[t].log_loss))
            take_run(kind, sweep, t, outcomes[t].log_loss);
        kind->seconds = outcomes[t].seconds;
    }
    memory_free(outcomes);
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

static int by_valid(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    const double p = x->runs[0].valid, q = y->runs[0].valid;
    if ((x->runs[0].run == NULL) != (y->runs[0].run == NULL))
        return y->runs[0].run == NULL ? -1 : 1;
    if (x->runs[0].run != NULL && p != q)
        return p < q ? -1 : 1;
    return x->entry < y->entry ? -1 : 1;
}

static void sort_kinds(struct auto_work *work)
{
    qsort(work->kinds, work->n_kinds, sizeof *work->kinds, by_valid);
}

static size_t count_kinds(const char *list)
{
    size_t n = 1;
    for (const char *c = list; *c != '\0'; c++)
        n += *c == ',';
    return n;
}

static size_t count_fitting(const struct auto_work *work)
{
    size_t n = 0;
    for (size_t e = 0; e < n_portfolio; e++)
        n += portfolio_fits(&portfolio[e], &work->shape);
    return n;
}

/* A kind may have several lines, of which one fits. */
static bool kind_fits(const struct auto_work *work, const char *kind)
{
    bool fits = false;
    for (size_t e = 0; e < n_portfolio; e++)
        fits |=
            strcmp(portfolio[e].kind, kind) == 0 && portfolio_fits(&portfolio[e], &work->shape);
    return fits;
}

/* Rank 0: --trials bounds the kinds, so a directory that was started with another one may have
 * another sweep. This is the cause if one list of kinds begins with the other. */
static enum status check_trials(const struct auto_work *work, const char *kinds)
{
    char *path = memory_text("%s/kinds/sweep.ini", work->plan->directory);
    struct config *config = config_create();
    enum status status = file_exists(path) ? config_read(config, path) : OK;
    const char *list = config_get(config, "sweep", "model.kind");
    if (status == OK && list != NULL && list[0] == '{') {
        list++;
        const size_t n = count_kinds(list);
        const char *more = n == count_fitting(work) ? " or more" : "";
        if (n != work->n_kinds &&
            strncmp(list, kinds, size_min(strcspn(list, "}"), strlen(kinds))) == 0)
            status =
                fail(BAD_USER,
                     "run=%s: this directory was started with --trials %zu%s, and "
                     "--trials %lld would train other kinds of models; continue it with "
                     "--trials %zu%s, or choose another run=",
                     work->plan->directory, n, more, (long long)work->plan->trials, n, more);
    }
    config_destroy(config);
    memory_free(path);
    return status;
}

enum status auto_sweeps_kinds(struct auto_work *work)
{
    char *list = memory_text("%s", "");
    for (size_t e = 0; e < n_portfolio; e++) {
        const struct portfolio_entry *entry = &portfolio[e];
        if (!portfolio_fits(entry, &work->shape)) {
            if (entry->unfit != NULL && !kind_fits(work, entry->kind))
                log_say("skipping %s: %s", entry->kind, entry->unfit);
            continue;
        }
        if ((int64_t)work->n_kinds == work->plan->trials)
            break;
        char *longer = memory_text("%s%s%s", list, work->n_kinds > 0 ? ", " : "", entry->kind);
        memory_free(list);
        list = longer;
        work->kinds[work->n_kinds++] = (struct candidate){.entry = entry};
    }
    log_say("train %s with %s defaults", list, work->n_kinds == 1 ? "its" : "their");
    char *lines = memory_text("model.kind = {%s}\n", list);
    enum status status =
        comm_agree(work->comm, work->comm->rank == 0 ? check_trials(work, list) : OK);
    if (status == OK)
        status = sweep_in(work, "kinds", lines);
    memory_free(lines);
    memory_free(list);
    TRY(status);
    sort_kinds(work);
    while (work->n_kinds > 0 && work->kinds[work->n_kinds - 1].runs[0].run == NULL)
        work->n_kinds--;
    for (size_t k = 0; k < work->n_kinds; k++)
        log_say("  %-8s validation log-loss %.5f", work->kinds[k].entry->kind,
                work->kinds[k].runs[0].valid);
    if (work->n_kinds > 0)
        return OK;
    char *data = shell_quote_text("data=%s", work->plan->data);
    status = fail(BAD_USER,
                  "%s: no kind of model could be trained; `cohort train %s model.kind=ktm` "
                  "shows why",
                  work->plan->data, data);
    memory_free(data);
    return status;
}

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

/* Why fewer trials were made than allowed. `least`: of the sweeps that --trials excluded, the
 * trials of the smallest, which is of a kind; 0: it excluded none. */
static void say_unused(const struct auto_work *work, int64_t least, const char *kind,
                       bool short_of_time)
{
    const long long most = work->plan->trials, unused = most - work->n_trials;
    if (unused <= 0 || short_of_time)
        return;
    if (least > 0)
        log_say("trials not used: %lld of %lld (the settings around %s need %lld)", unused,
                most, kind, (long long)least);
    else
        log_say("trials not used: %lld of %lld (there is nothing else to try)", unused, most);
}

enum status auto_sweeps_around(struct auto_work *work)
{
    int64_t least = 0;
    const char *smallest = "";
    bool short_of_time = false;
    struct candidate *order = NEW(struct candidate, work->n_kinds);
    memcpy(order, work->kinds, work->n_kinds * sizeof *order);
    enum status status = OK;
    for (size_t k = 0; status == OK && k < work->n_kinds; k++) {
        const struct portfolio_entry *entry = order[k].entry;
        const int64_t n = entry->around != NULL ? count_trials(entry->around) : 0;
        char name[64];
        snprintf(name, sizeof name, "around-%s", entry->kind);
        const bool was_begun = is_there(work, name); /* by a command with a larger limit */
        if (n == 0)
            continue;
        if (!was_begun && work->n_trials + n > work->plan->trials) {
            if (least == 0 || n < least) {
                least = n;
                smallest = entry->kind;
            }
            continue;
        }
        if (!was_begun && !has_time(work, &order[k], n)) {
            log_say("skipping settings around %s: not enough time left", entry->kind);
            short_of_time = true;
            continue;
        }
        log_say("try %lld setting%s around the defaults of %s", (long long)n, n == 1 ? "" : "s",
                entry->kind);
        char *lines = memory_text("model.kind = %s\n%s%s", entry->kind, entry->around,
                                  entry->in_rungs ? "sweep.rungs = 2\nsweep.factor = 2\n" : "");
        status = sweep_in(work, name, lines);
        memory_free(lines);
    }
    memory_free(order);
    sort_kinds(work);
    if (status == OK)
        say_unused(work, least, smallest, short_of_time);
    return status;
}
