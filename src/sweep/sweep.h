/* Many runs that differ in some settings. */
#ifndef COHORT_SWEEP_H
#define COHORT_SWEEP_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "learn/metrics.h"
#include "runs/trainer.h"
#include "sweep/slurm.h"

enum sweep_design { SWEEP_GRID, SWEEP_RANDOM, SWEEP_HALTON };

/* [sweep] of the file. */
struct sweep_options {
    int design;
    int64_t trials, seed, ranks, rungs;
    double factor;
};
extern const struct option sweep_table[];
extern const size_t n_sweep_table;

/* A setting that differs between trials: {a, b, c}, uniform(low, high) or log(low, high). */
struct sweep_dimension {
    char *section, *key;
    size_t n_values; /* of a list, or points of a range on a grid; 0: a range */
    char **values;
    double low, high;
    bool is_log, is_whole;
};

/* One choice of values. The id is a digest of its settings, so it is the same when the sweep
 * grows. */
struct sweep_trial {
    char id[17];
    char **values; /* one per dimension */
};

struct sweep {
    struct config *config; /* as the user wrote it */
    struct sweep_options options;
    char *directory, *text;                 /* directory; the sweep as stored there */
    size_t n_dimensions, n_trials, n_twins; /* twins: trials removed because of equal values */
    struct sweep_dimension *dimensions;
    struct sweep_trial *trials;
    int64_t epochs; /* of the last rung; 0: what each trial's defaults say */
    bool folds;     /* each trial is a cross-validation */
    int metric;     /* index into metrics_names */
    bool has_shape; /* the data set can be read: */
    struct data_shape shape;
};

/* If nothing but run= is set, reads the settings of the sweep in that directory. */
CHECKED enum status sweep_recall(struct config *config);

/* Takes ownership of `config`. Refuses whatever any trial would refuse, before anything is
 * written. */
CHECKED enum status sweep_create(struct sweep *sweep, struct config *config);
void sweep_destroy(struct sweep *sweep);

/* The settings of a trial for this many epochs (0: those of its settings), with its directory
 * inside the sweep's. */
CHECKED enum status sweep_settings(const struct sweep *sweep, size_t trial, int64_t epochs,
                                   struct settings *settings);

/* Successive halving: the number of epochs and of trials of rung 1 .. options.rungs. Without it
 * there is one rung. */
int64_t sweep_epochs(const struct sweep *sweep, int64_t rung);
size_t sweep_width(const struct sweep *sweep, int64_t rung);

/* Rank 0: creates the sweep's directory, or checks that it belongs to this sweep. */
CHECKED enum status sweep_open(const struct sweep *sweep);

/* Rank 0: notes the settings that may differ from start to start, which sweep.ini does not have,
 * in size.ini. */
CHECKED enum status sweep_note_size(const struct sweep *sweep);

/* Rank 0: waits until no other job writes the shared files; close `file` to release them. */
CHECKED enum status sweep_lock(const struct sweep *sweep, int *file);

/* The result of a trial at a rung: one file, written by rename. */
enum sweep_state { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_DONE, SWEEP_FAILED };
extern const char *const sweep_states[4];
struct sweep_result {
    enum sweep_state state;
    int64_t rung, epochs;
    struct score valid, valid_spread, test, test_spread; /* standard deviations over folds */
    double seconds;
    char *reason;         /* of a failure */
    char data_digest[33]; /* of its data set; "": unknown */
};
char *sweep_path(const struct sweep *sweep, size_t trial, const char *name); /* caller frees */
/* What differs between trials, as "section.key=value ...", after `first`; caller frees. */
char *sweep_describe(const struct sweep *sweep, size_t trial, const char *first);
CHECKED enum status sweep_write_result(const struct sweep *sweep, size_t trial,
                                       const struct sweep_result *result);
/* The result at a rung, or the state if there is none; the result of the last rung reached.
 * Free `reason`. */
void sweep_read_result(const struct sweep *sweep, size_t trial, int64_t rung,
                       struct sweep_result *result);
void sweep_read_last(const struct sweep *sweep, size_t trial, struct sweep_result *result);

/* The trials of a rung in numerical order: all of them at the first; at a later one, the best
 * of the previous rung that are done. Caller frees. */
size_t *sweep_rung(const struct sweep *sweep, int64_t rung, size_t *n);

/* How many of these trials have no result at the rung yet. */
size_t sweep_n_open(const struct sweep *sweep, int64_t rung, const size_t *trials, size_t n);

/* Collective. Runs missing trials by teams of options.ranks ranks. `pack` of `n_packs` (from
 * 1): only every n_packs-th trial. `rung` 0: all rungs. `retry`: failed trials too. */
struct sweep_order {
    int64_t pack, n_packs, rung;
    bool retry;
};
CHECKED enum status sweep_run(const struct sweep *sweep, const struct comm *comm,
                              const struct sweep_order *order);

/* Rank 0: submits missing trials to Slurm: for each rung, job arrays with one pack of trials
 * per array task; at the end, a job that collects the results when all others have ended.
 * Prints the job numbers. If Slurm refuses any job, all are cancelled and no files are left. */
struct sweep_submission {
    struct slurm_job job;
    int64_t packs;       /* array tasks per rung; 0: from the number of trials */
    int64_t throttle;    /* array tasks at once; 0: no limit */
    bool retry, dry_run; /* dry_run: only prints the scripts */
    struct names words;  /* the sweep's settings */
};
CHECKED enum status sweep_submit(const struct sweep *sweep,
                                 const struct sweep_submission *submission);

/* Rank 0: writes leaderboard.csv, effects.csv and best.ini, and fills the order of trials, best
 * first (n_trials numbers, caller frees). */
struct sweep_board {
    size_t *order;
    struct sweep_result *results; /* of all trials, by number */
    size_t n_by_state[4];
};
CHECKED enum status sweep_collect(const struct sweep *sweep, struct sweep_board *board);
void sweep_read_board(const struct sweep *sweep, struct sweep_board *board);
void sweep_board_free(const struct sweep *sweep, struct sweep_board *board);

/* The effect of a dimension on the score: its levels (values, or thirds of a range), the mean
 * score of the trials done at the first rung, and the fraction of the scores' variance between
 * levels. */
struct sweep_level {
    char *name;
    size_t n;
    double mean, best;
};
struct sweep_effect {
    size_t n_levels;
    struct sweep_level *levels;
    double share;
};
void sweep_effect(const struct sweep *sweep, size_t dimension, struct sweep_effect *effect);
void sweep_effect_free(struct sweep_effect *effect);

#endif
