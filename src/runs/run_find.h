/* Runs in directories: finding them, and checking where one may be. */
#ifndef COHORT_RUN_FIND_H
#define COHORT_RUN_FIND_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"

/* The checkpoint that `path` (a run or a file) refers to: best.h5 of a run if it exists, else
 * last.h5, else previous.h5. Caller frees. A directory of several runs is an error of its own. */
CHECKED enum status run_find(const char *path, char **checkpoint);

/* Whether a process holds the lock of a run. */
bool run_is_running(const char *directory);

/* "is not finished ..." of a run that was begun and has not ended; NULL: it has ended, or `path`
 * is not such a run. Caller frees. */
char *run_state(const char *path);

/* The path of the file `name` in the run `path` (or in the run of the checkpoint `path`).
 * Caller frees. */
char *run_beside(const char *path, const char *name);

/* Collective: if run.directory has a checkpoint, suggests its run's settings for everything the
 * user did not set. Not if the user set another kind or preset, which will be refused. */
CHECKED enum status run_recall(const struct comm *comm, struct config *config);

/* A setting of the run `path` (or of the checkpoint in it), from config.ini; NULL: unknown or
 * empty. Caller frees. */
char *run_setting(const char *path, const char *section, const char *key);

/* Whether it is the directory of `cohort auto`, whose first sweep is in `kinds`. */
bool run_is_auto(const char *directory);

/* Refuses to write a run where a sweep or `cohort auto` has its runs: neither could continue. */
CHECKED enum status run_check_place(const char *directory);

/* Rank 0: refuses run.directory if it is that of several runs, or if there is neither a model to
 * start with nor a run to continue. Call it after run_recall. */
CHECKED enum status run_check(const struct config *config);

#endif
