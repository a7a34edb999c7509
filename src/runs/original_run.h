/* The finished run that a refit or an update starts from. */
#ifndef COHORT_ORIGINAL_RUN_H
#define COHORT_ORIGINAL_RUN_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "runs/checkpoint.h"
#include "runs/settings.h"

struct original_run {
    const char *key;        /* the setting that names it, as in "train.refit" */
    char *directory, *data; /* data: the path of its data set; NULL: unknown */
    struct checkpoint checkpoint;
    struct config *config; /* the checkpoint's */
};

/* Collective: refuses a run that is not finished, and one that is not trained but made of
 * others. Close it even after a failure. */
CHECKED enum status original_run_open(struct original_run *run, const struct comm *comm,
                                      const char *key, const char *directory);
void original_run_close(struct original_run *run);

/* The settings of the run, with the user's locations or, if `all`, all of the user's
 * settings. */
CHECKED enum status original_run_settings(const struct original_run *run,
                                          const struct config *given, bool all,
                                          struct settings *settings);

/* Rank 0: the new run must not overwrite the original one. */
CHECKED enum status original_run_check_place(const struct original_run *run,
                                             const struct settings *settings);

/* Sets the setting that names the original run, among those of the new run. */
CHECKED enum status original_run_set_name(const struct original_run *run,
                                          struct config *config);

#endif
