/* The directory of a run, as it is written. */
#ifndef COHORT_RUN_H
#define COHORT_RUN_H

#include "base/base.h"
#include "base/comm.h"
#include "runs/checkpoint.h"
#include <jansson.h>

/* config.ini (complete, as resolved), log.jsonl (one record per epoch), last.h5, previous.h5,
 * best.h5, previous_best.h5, result.json (written at the end), lock, snapshots (snapshots.h). */
struct run {
    const struct comm *comm;
    char *directory;
    int lock; /* rank 0: open file; -1: none */
};

/* Collective: creates the directory and locks it, or reports who holds the lock. */
CHECKED enum status run_open(struct run *run, const char *directory, const struct comm *comm);
void run_close(struct run *run);

/* The error of a run that another process has locked: who has it, and what to do. */
CHECKED enum status run_taken(const char *directory);
char *run_path(const struct run *run, const char *name); /* caller frees */

/* The content of a JSON file (caller drops the reference); NULL: missing, or not JSON. */
json_t *run_json(const char *path);

/* Collective: opens the newest intact checkpoint; *found = false if there is none. A damaged
 * last.h5 is reported and renamed to last.h5.damaged, and previous.h5 is used. */
CHECKED enum status run_resume(const struct run *run, struct checkpoint *checkpoint,
                               bool *found);

/* Rank 0: makes best.h5 agree with the checkpoint that the run continues from: restores
 * previous_best.h5 if only that is of the best epoch, and removes both if there was no best
 * epoch yet. Otherwise best.h5 could be another run's, or of an epoch that this run never
 * reaches. */
CHECKED enum status run_settle_best(const struct run *run, const struct progress *progress);

/* Rank 0: writes best.h5, keeping the old one as previous_best.h5; or last.h5, keeping
 * previous.h5. Not collective. */
CHECKED enum status run_save_best(const struct run *run, const char *bytes, size_t n_bytes);
CHECKED enum status run_save_last(const struct run *run, const char *bytes, size_t n_bytes);

/* Rank 0: truncates log.jsonl after epoch `last` (records may be missing after a power
 * failure); appends a record; writes a text file by rename. */
CHECKED enum status run_log_cut(const struct run *run, int64_t last);
CHECKED enum status run_log_add(const struct run *run, const char *record);
CHECKED enum status run_write(const struct run *run, const char *name, const char *text);

/* Rank 0: warns if the last record names other BLAS kernels ("blas") than this process uses, or
 * another grid of ranks than `grid` ("2x3"). */
CHECKED enum status run_compare_blas(const struct run *run, const char *grid);

/* Rank 0: removes a file, which need not exist. */
CHECKED enum status run_remove(const struct run *run, const char *name);

#endif
