/* cohort submit: a training run as a job for Slurm. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/slurm_flags.h"
#include "runs/refit.h"
#include "runs/run.h"
#include "runs/trainer.h"
#include <inttypes.h>
#include <string.h>

struct values {
    struct slurm_job job;
    const char *name;
    bool dry_run;
};

#define AT(field) offsetof(struct values, field)
#define JOB_AT(field) offsetof(struct values, job.field)
static const struct flag flags[] = {
    SLURM_FLAGS(JOB_AT),
    {{"name", OPTION_TEXT, AT(name), "", 0, 0, NULL,
      "name of the job; the run directory's last part unless set"},
     0},
    {{"dry-run", OPTION_SWITCH, AT(dry_run), "no", 0, 0, NULL,
      "print the script and submit nothing"},
     0},
};

/* What would only fail after hours in a queue. */
static enum status check(const struct settings *settings, const struct slurm_job *job)
{
    const int64_t n_lanes =
        (settings->train.batch + settings->train.block - 1) / settings->train.block;
    if (job->ranks > n_lanes)
        return fail(BAD_USER,
                    "--ranks %" PRId64 ", but there are only %" PRId64
                    " lanes (train.batch = %" PRId64 " in blocks of train.block = %" PRId64
                    "): use at most %" PRId64 " ranks, a larger batch or a smaller block",
                    job->ranks, n_lanes, settings->train.batch, settings->train.block, n_lanes);
    if (job->nodes > job->ranks)
        return fail(BAD_USER,
                    "--nodes %" PRId64 " --ranks %" PRId64
                    ": expected at least one rank on every node",
                    job->nodes, job->ranks);
    if (!file_exists(settings->data.file))
        log_warn("%s is not there; the job will need it", settings->data.file);
    return OK;
}

static enum status hand_over(const char *text, const char *directory, const char *log)
{
    char *kept = NULL;
    int64_t job = 0;
    enum status status = slurm_make(directory, &kept);
    if (status == OK) {
        status = slurm_submit(text, NULL, &job);
        if (status != OK)
            slurm_unmake(directory, kept);
    }
    memory_free(kept);
    if (status == OK) {
        printf("%" PRId64 "\n", job);
        log_say("submitted job %" PRId64 "; it writes to %s", job, log);
    }
    return status;
}

/* Rank 0. */
static enum status submit(const struct settings *settings, const struct values *values,
                          const struct names *words)
{
    TRY(check(settings, &values->job));
    const char *directory = settings->run.directory;
    char *log = slurm_log(directory, "slurm.log"), *text = NULL;
    const struct slurm_script script = {
        .template = SLURM_TRAIN,
        .job = &values->job,
        .name = values->name[0] != '\0' ? values->name : slurm_name(directory),
        .log = log,
        .made_by = "cohort submit",
        .words = words,
    };
    enum status status = slurm_write(&script, &text);
    if (status == OK && values->dry_run)
        fputs(text, stdout);
    else if (status == OK)
        status = hand_over(text, directory, log);
    memory_free(text);
    memory_free(log);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **files = NEW(const char *, (size_t)argc);
    int n_files = 0;
    enum status status = command_parse(&command_submit, argc, argv, &values, files, &n_files);
    if (status == OK && n_files == 0)
        status = command_usage(&command_submit);
    struct config *config = config_create();
    struct settings settings = {0};
    struct names words = {0};
    if (status == OK)
        status = comm_agree(comm, config_read_words(config, files, (size_t)n_files));
    if (status == OK) {
        slurm_words(config, &words);
        status = run_recall(comm, config);
    }
    if (status == OK) {
        status = comm_agree(comm, refit_settings(comm, &settings, config));
    } else {
        config_destroy(config);
    }
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? submit(&settings, &values, &words) : OK);
    settings_destroy(&settings);
    names_free(&words);
    memory_free(files);
    return status;
}

const struct command command_submit = {
    .name = "submit",
    .usage = "submit FILE.ini... [section.key=value...] [--nodes N] [--ranks N] [--time T] "
             "[--partition P] [--account A] [--dry-run]",
    .summary = "Submits a training run to Slurm, and prints the job's number",
    .details =
        "Takes files and settings as `cohort train` does and checks them at once; the job "
        "gets\n"
        "them as they are now. Its script comes from the template jobs/train.sbatch, which "
        "can\n"
        "also be edited and submitted by hand, and it starts this very program. Shortly "
        "before\n"
        "the time limit the ranks save, and the job goes back into the queue, until the run "
        "is\n"
        "done or --restarts is reached. It writes to slurm.log in the run directory, where "
        "every\n"
        "start continues. Submitted again, a run that was cancelled or whose node broke goes "
        "on.",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
