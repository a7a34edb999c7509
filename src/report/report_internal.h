/* Shared by the parts of a report. A run is measured first (report_measure.c and others:
 * collective, every number exact or summed in one fixed order). Rank 0 then prints the sections
 * from these structs. */
#ifndef COHORT_REPORT_INTERNAL_H
#define COHORT_REPORT_INTERNAL_H

#include "base/table.h"
#include "learn/metrics.h"
#include "plot/plot.h"
#include "report/report.h"
#include "report/report_curves.h"
#include "report/report_inside.h"
#include "report/report_mastery.h"
#include "runs/baseline.h"
#include "runs/inference.h"
#include "runs/paired.h"
#include <stdio.h>

/* Buckets for counts of answers: 0, 1, 2, 3-5, 6-10, 11-20, 21-50, ... */
enum { REPORT_BUCKETS = 12 };
extern const char *const report_bucket_names[REPORT_BUCKETS];
size_t report_bucket(uint64_t n);

enum {
    REPORT_BINS = 20,          /* of histograms of shares and probabilities */
    REPORT_TENTHS = 10,        /* bins of a student's share of correct answers so far */
    REPORT_SEEN = 3,           /* fewest answers for such a share */
    REPORT_RESAMPLINGS = 1000, /* bootstrap samples of students, on every page, as in evaluate:
                                  a run has the same intervals wherever it is shown */
    REPORT_SEED = 1,
    REPORT_FEWEST_SCORED = 20, /* answers without which a score proves nothing */
    REPORT_FEWEST_STUDENTS = 2 /* without which it has no interval */
};

/* Counts of a data set. */
struct report_data {
    char *name; /* as shown on the page */
    char digest[33];
    int64_t n_students, n_items, n_skills, n_groups, n_attempts;
    int64_t known, correct;
    int64_t unseen; /* known outcomes at items that the model was not trained on */
    int64_t attempts[N_SPLITS], students[N_SPLITS];
    int64_t fold, n_folds;                    /* 0: not of a cross-validation */
    int64_t unused_attempts, unused_students; /* by a fold; counted in no split */
    int64_t least, most, median;              /* attempts per student */
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
    char *blas, *grid; /* of the last record, with the BLAS kernels; NULL: not in the record */
    bool has_others;   /* earlier records have other kernels or another grid */
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
    bool is_choice;     /* of `cohort auto` */
    bool is_unfinished; /* training has not ended; set on rank 0 only */
    int split;          /* the scored split */
    char *held_out;     /* settings that decide which attempts are held out */
    size_t source;      /* the number of its path */
    size_t entry;       /* in struct report_pairs; SIZE_MAX: it has none */
    struct report_data data;

    bool has_item_mean; /* for targets: their mean, always true */
    struct report_rated model, item_mean;
    struct score running_mean;       /* its n is 0 if there is none */
    struct score valid[N_BASELINES]; /* of the validation answers; n is 0 if there are none */
    struct calibration_bin bins[N_CALIBRATION_BINS];
    int64_t chances[2][REPORT_BINS]; /* by outcome */
    struct report_part seen[REPORT_BUCKETS];
    struct report_tenth tenths[REPORT_TENTHS];

    /* The scored attempts by item. */
    struct names items;
    int64_t *item_n, *item_right;
    double *item_predicted; /* mean */
    int64_t n_unseen;       /* scored attempts at items that the model was not trained on */

    size_t n_finals; /* students with a target; on rank 0 */
    double *final_target, *final_mean;

    struct report_history history;
    struct table *tables;
    size_t n_tables;
    struct report_graph graph;
    struct report_scales scales;
    struct report_practice practice;
    struct report_members members;
    struct report_inside inside;
    struct report_class class; /* of a page about one run */
};

/* The runs that were scored on the answers of the first, and its baselines, on the same
 * bootstrap samples of students (runs/paired.c). */
struct report_pairs {
    struct paired paired;
    const struct report_run *first;
    size_t baseline[N_BASELINES]; /* entries; SIZE_MAX: none */
};

/* What a directory of several runs is. */
enum report_whole { WHOLE_RUNS, WHOLE_FOLDS, WHOLE_AUTO, WHOLE_SWEEP };

/* The runs that the paths of a page stand for (report_sources.c). */
struct report_sources {
    enum report_whole whole;
    struct names paths; /* of an auto: what it chose comes first */
    int64_t n_folds;    /* train.folds of a cross-validation */
};
/* Collective. Free the paths. */
CHECKED enum status report_sources_find(struct report_sources *sources, const struct comm *comm,
                                        const char *const *paths, size_t n);

/* The page. The first `n` of all runs are drawn: the best ones, if all can be compared. Of the
 * others only scores are known. */
struct report {
    const struct report_plan *plan;
    enum report_whole whole;
    char *path;      /* of a cross-validation or an auto, as shown on the page; else NULL */
    int64_t n_folds; /* train.folds of a cross-validation */
    struct report_run *runs;
    size_t n, n_all;
    struct report_pairs pairs;
    bool same_data, comparable; /* all runs were scored on the same attempts */
    int metric;                 /* that runs are compared by */
};

/* Entry a minus entry b of the comparison; nothing is certain where scores have no interval. */
struct paired_difference report_difference(const struct report *report, size_t a, size_t b,
                                           enum metric metric);
/* The run that others are compared with: what `cohort auto` chose, or the best one. */
const struct report_run *report_reference(const struct report *report);

/* Collective. `pairs`: the comparison that the run joins if it can; NULL: it gets no intervals.
 * `whole`: measures all sections of the page, not only the scores. Call report_run_free also
 * after a failure. */
CHECKED enum status report_measure(struct report_run *run, const struct comm *comm,
                                   const char *path, const struct report_plan *plan,
                                   struct report_pairs *pairs, bool whole);
void report_run_free(struct report_run *run);
/* Collective: only the scores, with a model and data that are open. Leaves a run without scores
 * if no outcome is known. */
CHECKED enum status report_measure_scores(struct report_run *run,
                                          const struct inference *inference, const char *path,
                                          const struct report_plan *plan,
                                          struct report_pairs *pairs);

/* Collective: scores the answers, or targets, of run->split. */
CHECKED enum status report_score(struct report_run *run, const struct inference *inference,
                                 struct report_pairs *pairs, bool whole);

/* Targets are numbers, neither right nor wrong. */
bool report_is_number(const struct report_run *run);

/* Words and axes for metrics (report_metric.c). */
extern const enum metric report_metric_shown[N_METRICS]; /* columns of tables */
const char *report_metric_words(int metric);             /* -1: the likelihood */
int report_metric_digits(int metric);
/* The score of a coin, of which nothing worse is worth an axis; NaN: none. */
double report_metric_coin(int metric);
/* The axis for n such scores, NaN skipped, and how many are worse than it shows. `chances`: of
 * what is right or wrong, where there is a coin. */
extern const char report_beyond[]; /* in the legend of a plot with such an axis */
size_t report_metric_axis(struct plot_axis *axis, int metric, bool chances,
                          const double *values, size_t n);
double report_metric_value(const struct score *score, int metric);
/* The 95 % interval of a share of n independent answers (Wilson); NaN if n is 0. */
void report_wilson(double share, int64_t n, double *low, double *high);

/* A probability in units of 2^-30, and the mean of n of them. */
int64_t report_score_fixed(float probability);
double report_score_mean(int64_t sum, int64_t n);

/* The scored splits, as bits. */
unsigned report_score_splits(const struct report_run *run);

/* Collective: the tables and the graph of the model. */
CHECKED enum status report_learned(struct report_run *run, const struct inference *inference);

/* Rank 0: reads the log of a run; the history stays empty if there is none. */
void report_history_read(struct report_history *history, const char *path);
void report_history_free(struct report_history *history);

/* From the settings of a run: the score that selects the best epoch (a metric; -1: the
 * likelihood), and the number of epochs, at most. */
int report_monitor(const struct config *config);
int64_t report_epochs(const struct config *config);
/* Whether a model assumes that a student's ability does not change over the attempts. */
bool report_is_fixed(const struct model_kind *kind, const struct config *config);
extern const char report_fixed_words[]; /* what a rising line means then */
/* The fold of a cross-validation, and how many there are; 0: not of one. */
void report_fold(const struct config *config, int64_t *fold, int64_t *n_folds);

/* A path as shown on the page: of an absolute one, which would reveal private details of the
 * machine, only the last n_parts. Caller frees. */
char *report_shown(const char *path, int n_parts);

/* Sections of the page. */
void report_show_lead(FILE *out, const struct report *report);
/* Whether a run was scored on so few answers that its scores prove nothing. */
bool report_proves_nothing(const struct report_run *run);
/* Why what a run says is not to be relied on, as the end of a sentence; NULL: it may be. */
const char *report_distrust(const struct report *report, const struct report_run *run);
/* Advice to train longer, in a list: where the epoch used was the last one allowed, else "". */
const char *report_longer(const struct report *report);
void report_show_warnings(FILE *out, const struct report *report);
/* The same on a page for the teacher of one student. */
void report_warn_teacher(FILE *out, const struct report *report);
void report_show_data(FILE *out, const struct report *report);
void report_show_scores(FILE *out, const struct report *report);
void report_show_differences(FILE *out, const struct report *report);
void report_practice_show(FILE *out, const struct report *report);
void report_show_history(FILE *out, const struct report *report);
void report_show_chances(FILE *out, const struct report *report);
void report_show_students(FILE *out, const struct report *report);
void report_show_class(FILE *out, const struct report *report);
void report_show_items(FILE *out, const struct report *report);
void report_show_learned(FILE *out, const struct report *report);
void report_show_settings(FILE *out, const struct report *report);

/* Collective: the page of a sweep. */
CHECKED enum status report_sweep_write(const struct comm *comm, const char *path,
                                       const struct report_plan *plan);

/* The head of the page of `cohort auto`. */
void report_auto_lead(FILE *out, const struct report *report);

/* Sections of a cross-validation. */
void report_folds_lead(FILE *out, const struct report *report);
void report_folds_warn(FILE *out, const struct report *report);
void report_folds_show(FILE *out, const struct report *report);

/* A cell with a score and below it its interval, if it has one. */
void report_cell(FILE *out, int digits, double value, double low, double high);
/* What metrics mean; `answers`: baselines of answers too. */
void report_show_meanings(FILE *out, bool answers, bool chances, bool numbers);

/* Draws the validation scores by epoch of n runs and horizontal lines for their baselines;
 * `valid`: those of N_BASELINES, or NULL. */
struct report_curve {
    const char *name;
    const struct report_history *history;
};
/* The caption of the training loss, which is another one if a model predicts targets. */
void report_history_say_loss(FILE *out, const struct model_kind *kind, bool is_final,
                             const char *more);
extern const char report_memorizing[]; /* how to see it in the curve of validation scores */
/* Whether any epoch has a score of this metric; -1: a likelihood. */
bool report_history_is_validated(const struct report_history *history, int metric);
/* Of runs of which at least one was validated. */
void report_history_draw(FILE *out, const struct report_curve *curves, size_t n, int metric,
                         const struct score *valid);

/* Rank 0: keeps the pictures of a page as files. */
CHECKED enum status report_figures(const struct report_plan *plan,
                                   void (*print)(FILE *out, size_t row, const void *arg),
                                   const void *arg);

/* What n of the scored ones are called: "test answers", "validation student", ... */
const char *report_split_words(const struct report_run *run, int64_t n);

#endif
