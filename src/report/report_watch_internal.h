/* Shared by the parts of a page about training that goes on. All of it is for rank 0. */
#ifndef COHORT_REPORT_WATCH_INTERNAL_H
#define COHORT_REPORT_WATCH_INTERNAL_H

#include "report/report_internal.h"
#include "report/report_watch.h"
#include "sweep/sweep.h"
#include <time.h>

enum watch_state { WATCH_ABSENT, WATCH_RUNNING, WATCH_STOPPED, WATCH_FINISHED };

/* What a file was like when it was looked at; all zero: there was none. */
struct watch_stamp {
    uint64_t device, inode, size;
    int64_t seconds, nanoseconds;
};
struct watch_stamp report_watch_stamp_of(const char *path);

enum { WATCH_FILES = 5 };

/* A run as far as its files tell. */
struct watch_run {
    char *directory;
    enum watch_state state;
    bool was_killed; /* it stopped without closing its lock file */
    struct watch_stamp files[WATCH_FILES];
    int64_t changed; /* when a file changed last, in seconds of the calendar; 0: never */
    const struct model_kind *kind; /* NULL: not known yet */
    char *data;                    /* as shown on the page, or NULL */
    int64_t epochs;                /* at most; 0: not known yet */
    bool may_end_early;
    bool is_final; /* it predicts targets of students */
    int monitor;   /* a metric; -1: the likelihood */
    struct report_history history;
    double elapsed, pace; /* seconds of training; seconds per epoch, NaN: not known */
    bool has_saved;
    struct progress saved; /* of the newest checkpoint */
    char *trouble;         /* why that cannot be read, or NULL */
};

/* Looks at the files of a run, at its checkpoint too if `wants_checkpoint`. Returns whether
 * anything has changed since the last look. Only reads, and takes no lock. */
bool report_watch_run_look(struct watch_run *run, bool wants_checkpoint);
void report_watch_run_free(struct watch_run *run);

/* Epochs completed; the last and the best value of the monitored score, NaN if there is none. */
int64_t report_watch_run_epoch(const struct watch_run *run);
double report_watch_run_last(const struct watch_run *run);
double report_watch_run_best(const struct watch_run *run, double *epoch);
const char *report_watch_score_words(int monitor);

/* Sections about one run; curves of the monitored scores of several. */
void report_watch_run_lead(FILE *out, const struct watch_run *run);
void report_watch_run_show(FILE *out, const struct watch_run *run);
struct watch_curve {
    const char *name;
    const struct watch_run *run;
};
void report_watch_curves(FILE *out, const struct watch_curve *curves, size_t n, int monitor);

/* Several runs with one aim: a sweep, the sweeps of `cohort auto`, or the folds of a
 * cross-validation. */
enum watch_kind { WATCH_SINGLE, WATCH_SWEEP, WATCH_AUTO, WATCH_FOLDS };
enum watch_kind report_watch_kind(const char *directory);

struct watch_group;
struct watch_group *report_watch_group_create(const char *directory, enum watch_kind kind);
void report_watch_group_free(struct watch_group *group);

/* Looks at the files; fails if they are not those of a sweep. Only reads, and takes no lock. */
CHECKED enum status report_watch_group_look(struct watch_group *group);
enum watch_state report_watch_group_state(const struct watch_group *group);
int64_t report_watch_group_changed(const struct watch_group *group);
void report_watch_group_lead(FILE *out, const struct watch_group *group);
void report_watch_group_show(FILE *out, const struct watch_group *group, int64_t n_rows);

#endif
