/* What the files of `cohort evaluate` share. Nothing else includes this. */
#ifndef COHORT_EVALUATE_INTERNAL_H
#define COHORT_EVALUATE_INTERNAL_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/metrics.h"
#include "runs/baseline.h"
#include "runs/inference.h"
#include "runs/likelihood.h"
#include "runs/scoring.h"
#include <jansson.h>

struct evaluate_values {
    const char *data;
    int split;
    bool skip_first, groups, calibration, likelihood, json, strict;
    int64_t replicates, seed, n_chains, n_temperatures, most_temperatures, most_bits;
};

enum { EVALUATE_ALL = N_SPLITS };                            /* --split all */
extern const char *const evaluate_splits[];                  /* NULL-terminated */
unsigned evaluate_set(const struct evaluate_values *values); /* of splits, as bits */

/* A row of the table. */
struct evaluate_row {
    struct score score, low, high; /* low and high: with --confidence */
};

/* Of all attempts, and excluding first attempts. */
struct evaluate_twice {
    struct evaluate_row all, rest;
};

struct evaluate_report {
    const struct inference *inference;
    const struct evaluate_values *values;
    struct evaluate_twice model, baselines[N_BASELINES];
    int64_t n_by_basis[N_BASES]; /* scored attempts, by what they were predicted from */
    bool has_baselines;
    struct evaluate_row
        *groups; /* n_groups + 1, the first for items in no group; NULL: not asked for */
    struct calibration_bin bins[N_CALIBRATION_BINS];
    struct likelihood_result likelihood;
};

/* Collective: one run. The second is for models that predict one target per student. */
CHECKED enum status evaluate_run(const struct inference *inference,
                                 const struct evaluate_values *values);
CHECKED enum status evaluate_targets(const struct inference *inference,
                                     const struct evaluate_values *values);

/* Collective: several runs on the same attempts. */
CHECKED enum status evaluate_compare(const struct comm *comm, const char *const *paths,
                                     size_t n, const struct evaluate_values *values);

/* Collective: the predictions of attempts to score; fails if there are none. The caller frees
 * them. */
CHECKED enum status evaluate_predict(const struct inference *inference,
                                     const struct evaluate_values *values,
                                     struct predictions *predictions);

/* Rank 0: the result of one run. */
void evaluate_print(const struct evaluate_report *report);

/* A score as JSON, its 95 % interval (null: of too few students), and as columns of a table: their
 * titles, then the numbers and a line break. */
json_t *evaluate_score_json(const struct score *score);
json_t *evaluate_interval_json(const struct score *score, const struct score *low,
                               const struct score *high);
void evaluate_print_titles(bool with_correct);
void evaluate_print_numbers(const struct score *score, bool with_correct);

#endif
