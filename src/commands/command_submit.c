/* cohort submit: submits a training run to Slurm. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/slurm_flags.h"
#include "runs/run_find.h"
#include "runs/run_settings.h"
#include "runs/trainer.h"
#include <inttypes.h>

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
      "name of the job; if omitted, the last part of the run directory"},
     0,
     "NAME"},
    {{"dry-run", OPTION_SWITCH, AT(dry_run), "no", 0, 0, NULL,
      "print the script and submit nothing"},
     0,
     NULL},
};

/* What would only fail after hours in a queue. */
static enum status check(const struct settings *settings, const struct slurm_job *job)
{
    const int64_t n_lanes =
        (settings->train.batch + settings->train.block - 1) / settings->train.block;
    if (job->ranks > n_lanes)
        return fail(BAD_USER,
                    "--ranks %" PRId64 " is more than the %" PRId64
                    " blocks of students per mini-batch (train.batch = %" PRId64
                    ", train.block = %" PRId64 "): use at most %" PRId64
                    " ranks, a larger batch or a smaller block",
                    job->ranks, n_lanes, settings->train.batch, settings->train.block, n_lanes);
    if (job->nodes > job->ranks)
        return fail(BAD_USER,
                    "--nodes %" PRId64 " --ranks %" PRId64
                    ": expected at least one rank on every node",
                    job->nodes, job->ranks);
    if (!file_exists(settings->data.file))
        log_warn("%s does not exist yet; the job will need it", settings->data.file);
    return OK;
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
        .command = "train",
        .words = words,
    };
    enum status status = slurm_write(&script, &text);
    if (status == OK && values->dry_run)
        fputs(text, stdout);
    else if (status == OK)
        status = slurm_hand_over(text, directory, log);
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
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? run_check(config) : OK);
    if (status == OK) {
        status = comm_agree(comm, run_settings(comm, &settings, config));
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
    .summary = "Submit a training run to Slurm and print the job number",
    .details =
        "Accept the same files and settings as `cohort train` and check them immediately. The "
        "job uses them as they are now, even if the files change later.\n\n"
        "The job script is made from the template train.sbatch (installed in "
        "share/cohort/jobs), which can also be edited and submitted by hand. It starts the "
        "same cohort program. Shortly before the time "
        "limit the ranks save, and the job goes back into the queue, until the run is finished "
        "or --restarts is reached. The job writes slurm.log in the run directory.\n\n"
        "If a job is cancelled or its node fails, submit the run again to continue it. While "
        "a job of the run is in the queue, a second one is refused; slurm.job in the run "
        "directory has its number.",
    .examples = "Train on 2 nodes with 64 ranks, for up to 8 hours per start:\n\n"
                "  cohort submit rbm.ini data=class.h5 run=runs/rbm \\\n"
                "      --nodes 2 --ranks 64 --time 8:00:00 --partition batch\n\n"
                "See the script that would be submitted:\n\n"
                "  cohort submit rbm.ini data=class.h5 run=runs/rbm --dry-run",
    .see_also = "cohort-train(1), cohort-sweep(1), cohort-settings(7)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
