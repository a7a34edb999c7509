/* How long a run has trained, over all its starts. */
#ifndef COHORT_ELAPSED_H
#define COHORT_ELAPSED_H

#include "base/base.h"
#include "runs/run.h"

/* Rank 0, all of them. Seconds of earlier starts, as far as they are known. */
double elapsed_before(const struct run *run);

/* Notes the seconds of all starts so far, when a run is saved in the middle of an epoch; and
 * removes the note, when log.jsonl knows better. Without success, nothing but the time is lost. */
void elapsed_note(const struct run *run, double seconds);
void elapsed_forget(const struct run *run);

#endif
