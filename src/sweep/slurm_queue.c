/* One job per directory: the number of the job that was submitted last is in DIRECTORY/slurm.job,
 * and while that job is in the queue another one is refused. */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "sweep/slurm.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of the job that was submitted last for the run, in its directory; 0: none. */
static int64_t last_job(const char *directory)
{
    char *path = memory_text("%s/slurm.job", directory), *text = NULL;
    size_t n = 0;
    if (file_exists(path) && file_read(path, &text, &n) != OK)
        fail_clear();
    const int64_t job = text != NULL ? strtoll(text, NULL, 10) : 0;
    memory_free(text);
    memory_free(path);
    return job;
}

static enum status note_job(const char *directory, int64_t job)
{
    char *path = memory_text("%s/slurm.job", directory);
    char *text = memory_text("%" PRId64 "\n", job);
    const enum status status = atomic_file_write(path, text, strlen(text));
    memory_free(text);
    memory_free(path);
    return status;
}

/* Two jobs cannot train in one directory. */
static enum status check_queue(const char *directory)
{
    const int64_t job = last_job(directory);
    char *state = NULL;
    if (job > 0)
        TRY(slurm_state(job, &state));
    if (state == NULL)
        return OK;
    const enum status status =
        fail(BAD_USER,
             "%s: job %" PRId64 " for this run is in the queue already (%s); wait for it, or "
             "cancel it with `scancel %" PRId64 "`, or choose another run=",
             directory, job, state, job);
    memory_free(state);
    return status;
}

enum status slurm_hand_over(const char *text, const char *directory, const char *log)
{
    char *kept = NULL;
    int64_t job = 0;
    TRY(check_queue(directory));
    enum status status = slurm_make(directory, &kept);
    if (status == OK) {
        status = slurm_submit(text, NULL, &job);
        if (status != OK)
            slurm_unmake(directory, kept);
    }
    memory_free(kept);
    if (status == OK)
        status = note_job(directory, job);
    if (status == OK) {
        printf("%" PRId64 "\n", job);
        log_say("submitted job %" PRId64 "; it writes to %s", job, log);
    }
    return status;
}
