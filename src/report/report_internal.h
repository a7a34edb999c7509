/* Shared by the parts of a report. A run is measured first (report_measure.c and others:
 * collective, every number exact or summed in one fixed order). Rank 0 then prints the sections
 * from these structs. */
#ifndef COHORT_REPORT_INTERNAL_H
#define COHORT_REPORT_INTERNAL_H

#include "base/table.h"
#include "learn/metrics.h"
#include "report/report.h"
#include "runs/inference.h"
#include <stdio.h>

/* Buckets for counts of answers: 0, 1, 2, 3-5, 6-10, 11-20, 21-50, ... */
enum { REPORT_BUCKETS = 12 };
extern const char *const report_bucket_names[REPORT_BUCKETS];
size_t report_bucket(uint64_t n);

enum {
    REPORT_BINS = 20,        /* of histograms of shares and probabilities */
    REPORT_TENTHS = 10,      /* bins of a student's share of correct answers so far */
    REPORT_SEEN = 3,         /* fewest answers for such a share */
    REPORT_RESAMPLINGS = 200 /* bootstrap samples of students, for intervals */
};

/* Counts of a data set. */
struct report_data {
    char *name; /* as shown on the page */
    char digest[33];
    int64_t n_students, n_items, n_skills, n_groups, n_attempts;
    int64_t known, correct;
    int64_t attempts[N_SPLITS], students[N_SPLITS];
    int64_t least, most, median; /* attempts per student */
    int64_t lengths[REPORT_BUCKETS], shares[REPORT_BINS];
    int64_t n_targets;
};

/* Scores of all attempts with their interval, and scores excluding first attempts. */
struct report_rated {
    struct score all, low, high, rest;
};

/* Scores of a subset of the attempts. */
struct report_part {
    struct score model, low, high, item_mean;
};
struct report_tenth {
    int64_t n;
    double correct, model, item_mean; /* means */
};

/* The records of log.jsonl; NaN: not in the record. */
struct report_history {
    size_t n;
    double *epoch, *loss, *likelihood, *valid[N_METRICS];
};

struct report_graph {
    size_t n;
    bool by_item;
    double *gate;
    struct names names;
};

struct report_run {
    char *path, *label; /* as shown on the page; the label is short */
    const struct model_kind *kind;
    enum model_task task;
    struct progress progress;
    char digest[33], data_digest[33];
    char *config, *training, *origin; /* training, origin: as shown on the page, or NULL */
    int64_t n_parameters, n_trained_items;
    int64_t epochs; /* train.epochs */
    int monitor;    /* a metric; -1: the likelihood */
    bool is_refit, own_data;
    bool is_unfinished; /* training has not ended; set on rank 0 only */
    int split;          /* the scored split */
    struct report_data data;

    bool has_item_mean; /* for targets: their mean, always true */
    struct report_rated model, item_mean;
    struct calibration_bin bins[N_CALIBRATION_BINS];
    int64_t chances[2][REPORT_BINS]; /* by outcome */
    struct report_part seen[REPORT_BUCKETS];
    struct report_tenth tenths[REPORT_TENTHS];

    /* The scored attempts by item. */
    struct names items;
    int64_t *item_n, *item_right;
    double *item_predicted; /* mean */

    size_t n_finals; /* students with a target; on rank 0 */
    double *final_target, *final_mean;

    struct report_history history;
    struct table *tables;
    size_t n_tables;
    struct report_graph graph;
};

/* The page. */
struct report {
    const struct report_plan *plan;
    struct report_run runs[REPORT_MOST_RUNS];
    size_t n;
    bool same_data, comparable; /* all runs were scored on the same attempts */
};

/* Collective. Call report_run_free also after a failure. */
CHECKED enum status report_measure(struct report_run *run, const struct comm *comm,
                                   const char *path, const struct report_plan *plan);
void report_run_free(struct report_run *run);

/* Collective: scores the answers, or targets, of run->split. */
CHECKED enum status report_score(struct report_run *run, const struct inference *inference);

/* Collective: the tables and the graph of the model. */
CHECKED enum status report_learned(struct report_run *run, const struct inference *inference);

/* Rank 0: reads the log of a run; the history stays empty if there is none. */
void report_history_read(struct report_history *history, const char *path);
void report_history_free(struct report_history *history);

/* Sections of the page. */
void report_show_data(FILE *out, const struct report *report);
void report_show_scores(FILE *out, const struct report *report);
void report_show_history(FILE *out, const struct report *report);
void report_show_chances(FILE *out, const struct report *report);
void report_show_students(FILE *out, const struct report *report);
void report_show_items(FILE *out, const struct report *report);
void report_show_learned(FILE *out, const struct report *report);
void report_show_settings(FILE *out, const struct report *report);

/* What n of the scored ones are called: "test answers", "validation student", ... */
const char *report_split_words(const struct report_run *run, int64_t n);

#endif
