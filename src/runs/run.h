/* The directory of a run. */
#ifndef COHORT_RUN_H
#define COHORT_RUN_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/checkpoint.h"
#include <jansson.h>

/* config.ini (complete, as resolved), log.jsonl (a record for each epoch), last.h5,
 * previous.h5, best.h5, previous_best.h5, result.json (written at the end), lock. */
struct run {
    const struct comm *comm;
    char *directory;
    int lock; /* rank 0: open file, -1: none */
};

/* Collective: makes the directory and takes its lock, or says who has it. */
CHECKED enum status run_open(struct run *run, const char *directory, const struct comm *comm);
void run_close(struct run *run);
char *run_path(const struct run *run, const char *name); /* caller frees */

/* What a file of JSON holds (caller drops the reference); NULL: it is not there, or no JSON. */
json_t *run_json(const char *path);

/* Collective: the newest whole checkpoint; *found = false if there is none. A damaged last.h5
 * is reported, set aside as last.h5.damaged, and previous.h5 used. */
CHECKED enum status run_resume(const struct run *run, struct checkpoint *checkpoint,
                               bool *found);

/* Rank 0: best.h5 is of the epoch that the checkpoint which the run goes on from says was the
 * best, if there is one of that epoch; if there was no best yet, neither is there best.h5,
 * which would be another run's or of an epoch that this one may not come by again. */
CHECKED enum status run_settle_best(const struct run *run, const struct progress *progress);

/* Rank 0 writes best.h5, the one before becoming previous_best.h5; or last.h5, the one before
 * becoming previous.h5. Not collective. */
CHECKED enum status run_save_best(const struct run *run, const char *bytes, size_t n_bytes);
CHECKED enum status run_save_last(const struct run *run, const char *bytes, size_t n_bytes);

/* Rank 0: cuts log.jsonl back to the records up to epoch `last`, some of which may have been
 * lost with the machine's power; adds one; writes a text file by rename. */
CHECKED enum status run_log_cut(const struct run *run, int64_t last);
CHECKED enum status run_log_add(const struct run *run, const char *record);
CHECKED enum status run_write(const struct run *run, const char *name, const char *text);

/* Rank 0: warns where the last record names other kernels of the BLAS ("blas") than this
 * process has. */
CHECKED enum status run_compare_blas(const struct run *run);

/* Rank 0: the file may be missing already. */
CHECKED enum status run_remove(const struct run *run, const char *name);

/* Where a command finds the checkpoint that `path` (a run or a file) means: best.h5 of a run
 * where there is one, else last.h5, else previous.h5. Caller frees. A cross-validation or a
 * sweep is an error with a sentence of its own: it has many. */
CHECKED enum status run_find(const char *path, char **checkpoint);

/* Where the file `name` of the run `path` (or of the run that the checkpoint `path` lies in)
 * is. Caller frees. */
char *run_beside(const char *path, const char *name);

/* Collective: if there is a checkpoint in run.directory, what that run was started with is
 * suggested for all that the user has not said; unless another kind of model or another preset
 * was said, which will be refused. */
CHECKED enum status run_recall(const struct comm *comm, struct config *config);

/* A setting of the run `path` (or of the checkpoint in it), from config.ini; NULL if it is not
 * known, or empty. Caller frees. */
char *run_setting(const char *path, const char *section, const char *key);

#endif
