/* Copies of a run's checkpoint at chosen epochs. */
#ifndef COHORT_SNAPSHOTS_H
#define COHORT_SNAPSHOTS_H

#include "base/base.h"
#include "runs/run.h"
#include "runs/settings.h"

/* `text` is the setting run.snapshots. BAD_USER unless it is a list of increasing epochs. */
CHECKED enum status snapshots_check(const char *text);
bool snapshots_wants(const char *text, int64_t epoch);

/* Collective: writes rank 0's bytes to RUN/snapshots/epoch-N.h5. */
CHECKED enum status snapshots_write(const struct run *run, int64_t epoch, const char *bytes,
                                    size_t n_bytes);

/* The run as it continues, whose snapshots may be removed. */
struct snapshots_owner {
    const struct settings *settings;
    const char *config; /* as stored in checkpoints */
    const char *data_digest;
    const struct progress *progress;
};

/* Rank 0: removes the run's own snapshots of epochs after those from which it continues, and
 * notes epochs of run.snapshots that were trained before and have none. BAD_USER if the
 * directory is a link, or if another file has the name of a snapshot to come. */
CHECKED enum status snapshots_prepare(const struct run *run,
                                      const struct snapshots_owner *owner);

/* Rank 0: the epochs that the run at `path` (or the run of the checkpoint `path`) has snapshots
 * of, ascending. Returns how many. Caller frees. */
size_t snapshots_list(const char *path, int64_t **epochs);
char *snapshots_path(const char *path, int64_t epoch); /* caller frees */

#endif
