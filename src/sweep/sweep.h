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

/* One choice of values. The id is made from all settings, so it stays when the sweep grows. */
struct sweep_trial {
    char id[17];
    char **values; /* one for each dimension */
};

struct sweep {
    struct config *config; /* as the user wrote it */
    struct sweep_options options;
    char *directory, *text;                 /* where; the sweep as stored there */
    size_t n_dimensions, n_trials, n_twins; /* twins: trials left out because of equal values */
    struct sweep_dimension *dimensions;
    struct sweep_trial *trials;
    int64_t epochs; /* of the last rung */
    bool folds;     /* each trial is a cross-validation */
    int metric;     /* index into metrics_names */
};

/* Takes over `config`. Refuses whatever any trial would refuse, before anything is written. */
CHECKED enum status sweep_create(struct sweep *sweep, struct config *config);
void sweep_destroy(struct sweep *sweep);

/* Settings of a trial, for so many epochs, with its directory in the sweep's. */
CHECKED enum status sweep_settings(const struct sweep *sweep, size_t trial, int64_t epochs,
                                   struct settings *settings);

/* Successive halving: rungs 1 .. options.rungs; without it there is one. How many epochs and
 * how many trials a rung has. */
int64_t sweep_epochs(const struct sweep *sweep, int64_t rung);
size_t sweep_width(const struct sweep *sweep, int64_t rung);

/* Rank 0: makes the sweep's directory, or finds that it is this sweep's. */
CHECKED enum status sweep_open(const struct sweep *sweep);

/* Rank 0: waits until no other job writes what all of them share; close `file` to let them. */
CHECKED enum status sweep_lock(const struct sweep *sweep, int *file);

/* What a trial came to at a rung: one file, written by rename. */
enum sweep_state { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_DONE, SWEEP_FAILED };
extern const char *const sweep_states[4];
struct sweep_result {
    enum sweep_state state;
    int64_t rung, epochs;
    struct score valid, valid_spread, test, test_spread; /* spread: over folds */
    double seconds;
    char *reason;         /* of a failure */
    char data_digest[33]; /* of what it was trained on; "": not known */
};
char *sweep_path(const struct sweep *sweep, size_t trial, const char *name); /* caller frees */
CHECKED enum status sweep_write_result(const struct sweep *sweep, size_t trial,
                                       const struct sweep_result *result);
/* The result at a rung, or what else is known; the furthest one. Destroy `reason`. */
void sweep_read_result(const struct sweep *sweep, size_t trial, int64_t rung,
                       struct sweep_result *result);
void sweep_read_last(const struct sweep *sweep, size_t trial, struct sweep_result *result);

/* The trials of a rung in the order of their numbers: all of the first; of a later one the best
 * of the one before, as far as they are done. Caller frees. */
size_t *sweep_rung(const struct sweep *sweep, int64_t rung, size_t *n);

/* How many of these trials have come to no result at the rung yet. */
size_t sweep_n_open(const struct sweep *sweep, int64_t rung, const size_t *trials, size_t n);

/* Collective. Runs what is missing by teams of options.ranks ranks; `pack` of `n_packs` (from
 * 1): only every n_packs-th trial; `rung` 0: all rungs. `retry`: failed trials too. */
struct sweep_order {
    int64_t pack, n_packs, rung;
    bool retry;
};
CHECKED enum status sweep_run(const struct sweep *sweep, const struct comm *comm,
                              const struct sweep_order *order);

/* Rank 0: hands what is missing to Slurm: for each rung arrays of jobs, a pack of trials to a
 * task, and a job that collects when all have ended, however they did. Prints the numbers of
 * the jobs. If Slurm refuses any of them, none is left and nothing is made. */
struct sweep_submission {
    struct slurm_job job;
    int64_t packs, throttle; /* tasks of a rung's array, 0: by the trials; how many at once */
    bool retry, dry_run;     /* dry_run: prints the scripts */
    struct names words;      /* the sweep's settings */
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

/* What a dimension does to the score: its levels (values, or thirds of a range), the mean score
 * of the trials done at the first rung, and the share of the scores' variance between levels.
 */
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
