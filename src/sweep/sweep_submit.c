/* A sweep on Slurm. A trial of a few seconds is too short for a job of its own, so each array
 * task runs a pack of trials:
 *
 *     rung 1   array of n packs    task k:  cohort sweep ... --rung 1 --pack k/n
 *     rung 2   array               after all of rung 1, however it ended
 *     ...
 *     end      one job             after the last rung:  cohort sweep ... --collect
 *
 * An array larger than the site's MaxArraySize is split. With a throttle the parts run one
 * after the other, because Slurm limits tasks only within one array. Each task finds out by
 * itself which of its trials are missing. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "sweep/slurm.h"
#include "sweep/sweep.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sender {
    const struct sweep *sweep;
    const struct sweep_submission *submission;
    char *directory; /* for logs */
    int64_t *jobs;   /* all accepted jobs */
    size_t n_jobs, capacity;
    size_t first_before, first_now; /* first job of the previous stage, and of this one */
};

static bool is_missing(const struct sender *sender, size_t trial, int64_t rung)
{
    struct sweep_result result;
    sweep_read_result(sender->sweep, trial, rung, &result);
    memory_free(result.reason);
    return result.state != SWEEP_DONE &&
           !(result.state == SWEEP_FAILED && !sender->submission->retry);
}

static size_t count_missing(const struct sender *sender, int64_t rung)
{
    size_t n_known = 0;
    for (size_t t = 0; t < sender->sweep->n_trials; t++)
        n_known += !is_missing(sender, t, rung);
    const size_t width = sweep_width(sender->sweep, rung);
    return width > n_known ? width - n_known : 0;
}

/* "--dependency=afterany:1:2", or "" for the first stage; caller frees. */
static char *dependency(const struct sender *sender)
{
    char *text = memory_text("%s", sender->first_now > 0 ? "--dependency=afterany" : "");
    for (size_t j = sender->first_before; j < sender->first_now; j++) {
        char *longer = memory_text("%s:%" PRId64, text, sender->jobs[j]);
        memory_free(text);
        text = longer;
    }
    return text;
}

static void next_stage(struct sender *sender)
{
    if (sender->n_jobs == sender->first_now)
        return; /* nothing was submitted in this stage */
    sender->first_before = sender->first_now;
    sender->first_now = sender->n_jobs;
}

/* Submits one script to run after the previous stage; `array` may be empty. */
static enum status send(struct sender *sender, const struct slurm_script *script,
                        const char *array)
{
    char *text = NULL, *after = dependency(sender);
    const char *options[3] = {NULL};
    size_t n = 0;
    if (array[0] != '\0')
        options[n++] = array;
    if (after[0] != '\0')
        options[n++] = after;
    enum status status = slurm_write(script, &text);
    int64_t job = (int64_t)sender->n_jobs + 1;
    if (status == OK && sender->submission->dry_run)
        printf("### job %" PRId64 ": sbatch %s %s\n%s\n", job, array, after, text);
    else if (status == OK)
        status = slurm_submit(text, options, &job);
    if (status == OK) {
        GROW(sender->jobs, sender->n_jobs, sender->capacity);
        sender->jobs[sender->n_jobs++] = job;
    }
    memory_free(text);
    memory_free(after);
    return status;
}

/* The common script of all jobs; fills `words`. */
static struct slurm_script prepare(const struct sender *sender, struct names *words,
                                   const char *log)
{
    names_copy(words, &sender->submission->words);
    return (struct slurm_script){.template = SLURM_SWEEP,
                                 .job = &sender->submission->job,
                                 .name = slurm_name(sender->sweep->directory),
                                 .log = log,
                                 .made_by = "cohort sweep --submit",
                                 .command = "sweep",
                                 .words = words,
                                 .n_packs = 1};
}

static void add(struct names *words, const char *word)
{
    names_add(words, word, strlen(word));
}

static enum status send_rung(struct sender *sender, int64_t rung, size_t n_missing,
                             int64_t array_size)
{
    const struct sweep_submission *submission = sender->submission;
    const size_t n_teams =
        size_max(1, (size_t)(submission->job.ranks / sender->sweep->options.ranks));
    const size_t wish = submission->packs > 0 ? (size_t)submission->packs
                                              : (n_missing + 20 * n_teams - 1) / (20 * n_teams);
    const size_t n_packs = size_min(wish, sweep_width(sender->sweep, rung));
    struct names words = {0};
    char *log = slurm_log(sender->directory, "pack-%a.log"), *rung_text = NULL;
    struct slurm_script script = prepare(sender, &words, log);
    rung_text = memory_text("%" PRId64, rung);
    add(&words, "--rung");
    add(&words, rung_text);
    if (submission->retry)
        add(&words, "--retry");
    const bool several = sender->sweep->options.rungs > 1;
    enum status status = OK;
    for (size_t first = 0; status == OK && first < n_packs; first += (size_t)array_size) {
        const size_t n = size_min(n_packs - first, (size_t)array_size);
        char throttle[32] = "";
        if (submission->throttle > 0) {
            snprintf(throttle, sizeof throttle, "%%%" PRId64, submission->throttle);
            next_stage(sender);
        }
        char *array = memory_text("--array=0-%zu%s", n - 1, throttle);
        script.first_pack = (int64_t)first;
        script.n_packs = (int64_t)n_packs;
        status = send(sender, &script, array);
        memory_free(array);
    }
    if (status == OK)
        log_say("%s%s%s%zu trial%s in %zu pack%s", several ? "rung " : "",
                several ? rung_text : "", several ? ": " : "", n_missing,
                n_missing == 1 ? "" : "s", n_packs, n_packs == 1 ? "" : "s");
    memory_free(rung_text);
    memory_free(log);
    names_free(&words);
    return status;
}

static enum status send_collector(struct sender *sender)
{
    struct names words = {0};
    struct slurm_job job = sender->submission->job;
    job.nodes = job.ranks = 1;
    char *log = slurm_log(sender->directory, "collect.log");
    struct slurm_script script = prepare(sender, &words, log);
    script.job = &job;
    add(&words, "--collect");
    next_stage(sender);
    const enum status status = send(sender, &script, "");
    memory_free(log);
    names_free(&words);
    return status;
}

static enum status send_all(struct sender *sender)
{
    int64_t array_size = 1001; /* Slurm's default */
    if (!sender->submission->dry_run)
        TRY(slurm_array_size(&array_size));
    for (int64_t rung = 1; rung <= sender->sweep->options.rungs; rung++) {
        const size_t n_missing = count_missing(sender, rung);
        if (n_missing == 0)
            continue;
        next_stage(sender);
        TRY(send_rung(sender, rung, n_missing, array_size));
    }
    if (sender->n_jobs == 0) {
        log_say("%s: no trial is missing", sender->sweep->directory);
        return OK;
    }
    return send_collector(sender);
}

static void report(const struct sender *sender)
{
    for (size_t j = 0; j < sender->n_jobs; j++)
        printf("%" PRId64 "\n", sender->jobs[j]);
    if (sender->n_jobs > 0)
        log_say("submitted %zu job%s; the last one collects the results in %s", sender->n_jobs,
                sender->n_jobs == 1 ? "" : "s", sender->sweep->directory);
}

enum status sweep_submit(const struct sweep *sweep, const struct sweep_submission *submission)
{
    struct sender sender = {.sweep = sweep, .submission = submission};
    sender.directory = memory_text("%s/slurm", sweep->directory);
    char *file = memory_text("%s/sweep.ini", sweep->directory), *kept = NULL;
    char *lock = memory_text("%s/lock", sweep->directory);
    char *size = memory_text("%s/size.ini", sweep->directory);
    const bool was_there = file_exists(file), acts = !submission->dry_run;
    enum status status = acts ? slurm_make(sender.directory, &kept) : OK;
    if (status == OK && (acts || was_there))
        status = sweep_open(sweep);
    if (status == OK && acts)
        status = sweep_note_size(sweep);
    if (status == OK)
        status = send_all(&sender);
    if (status == OK && acts) {
        report(&sender);
    } else if (acts) {
        for (size_t j = 0; j < sender.n_jobs; j++)
            slurm_cancel(sender.jobs[j]);
        if (!was_there) {
            unlink(file);
            unlink(lock);
            unlink(size);
        }
        slurm_unmake(sender.directory, kept);
    }
    memory_free(kept);
    memory_free(file);
    memory_free(lock);
    memory_free(size);
    memory_free(sender.directory);
    memory_free(sender.jobs);
    return status;
}
