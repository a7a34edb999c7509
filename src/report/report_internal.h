/* What the parts of a report share. A run is measured first (report_measure.c and others:
 * collective, every number exact or added up in one order); the sections then only print, on
 * rank 0, what stands in these structs. */
#ifndef COHORT_REPORT_INTERNAL_H
#define COHORT_REPORT_INTERNAL_H

#include "base/table.h"
#include "learn/metrics.h"
#include "report/report.h"
#include "runs/inference.h"
#include <stdio.h>

/* Numbers of answers in buckets: 0, 1, 2, 3-5, 6-10, 11-20, 21-50, ... */
enum { REPORT_BUCKETS = 12 };
extern const char *const report_bucket_names[REPORT_BUCKETS];
size_t report_bucket(uint64_t n);

enum {
    REPORT_BINS = 20,        /* of shares and chances */
    REPORT_TENTHS = 10,      /* of a student's share of correct answers so far */
    REPORT_SEEN = 3,         /* answers that make such a share */
    REPORT_RESAMPLINGS = 200 /* of students, for intervals */
};

/* A data set in numbers. */
struct report_data {
    char *name; /* as a page shows it */
    char digest[33];
    int64_t n_students, n_items, n_skills, n_groups, n_attempts;
    int64_t known, correct;
    int64_t attempts[N_SPLITS], students[N_SPLITS];
    int64_t least, most, median; /* attempts of a student */
    int64_t lengths[REPORT_BUCKETS], shares[REPORT_BINS];
    int64_t n_targets;
};

/* Scores of all attempts with their interval, and of all but each student's first. */
struct report_rated {
    struct score all, low, high, rest;
};

/* Some of the attempts. */
struct report_part {
    struct score model, low, high, item_mean;
};
struct report_tenth {
    int64_t n;
    double correct, model, item_mean; /* means */
};

/* What log.jsonl tells; NaN: not in a record. */
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
    char *path, *label; /* as a page shows them; the label is short */
    const struct model_kind *kind;
    enum model_task task;
    struct progress progress;
    char digest[33], data_digest[33];
    char *config, *training, *origin; /* training, origin: as a page shows them, or NULL */
    int64_t n_parameters, n_trained_items;
    int64_t epochs; /* train.epochs */
    int monitor;    /* a metric, -1: the likelihood */
    bool is_refit, own_data;
    bool is_unfinished; /* a run whose training has not ended; rank 0 knows */
    int split;          /* that was scored */
    struct report_data data;

    bool has_item_mean; /* of targets: their mean, which there always is */
    struct report_rated model, item_mean;
    struct calibration_bin bins[N_CALIBRATION_BINS];
    int64_t chances[2][REPORT_BINS]; /* by outcome */
    struct report_part seen[REPORT_BUCKETS];
    struct report_tenth tenths[REPORT_TENTHS];

    /* Of the scored attempts, by item. */
    struct names items;
    int64_t *item_n, *item_right;
    double *item_predicted; /* mean */

    size_t n_finals; /* on rank 0 */
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

/* Collective. To be freed after a failure too. */
CHECKED enum status report_measure(struct report_run *run, const struct comm *comm,
                                   const char *path, const struct report_plan *plan);
void report_run_free(struct report_run *run);

/* Collective: answers, or targets, of the split that run->split says. */
CHECKED enum status report_score(struct report_run *run, const struct inference *inference);

/* Collective: what the model shows of itself. */
CHECKED enum status report_learned(struct report_run *run, const struct inference *inference);

/* Rank 0: the log of a run, nothing where there is none. */
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

/* "test answers", "answers it was trained on", ... */
const char *report_split_words(const struct report_run *run);

#endif
