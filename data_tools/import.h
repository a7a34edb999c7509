/* Answers in somebody's files become a data set. */
#ifndef COHORT_IMPORT_H
#define COHORT_IMPORT_H

#include "base/base.h"
#include "data/builder.h"
#include "data/dataset.h"
#include "data/name_index.h"
#include "data/split.h"
#include "data_tools/subcommand.h"
#include "data_tools/text.h"

/* What the user asked for: the flags of `cohort import`, "" where nothing was said. */
struct import_flags {
    const char *train, *valid, *test, *output;
    /* columns */
    const char *student, *item, *outcome, *time, *order, *skills, *group, *split_column,
        *target, *covariates, *factors;
    const char *delimiter, *skill_separator;
    int time_unit;
    /* further files */
    const char *item_meta, *time_meta, *questions, *q_matrix, *item_names, *skill_names,
        *targets, *truth;
    /* what to do with the rows */
    const char *split;
    int64_t seed, n_items, session_gap;
    int step;
    bool withheld, skip_bad, merge_repeats, shuffle_outcomes;
};

/* How a public format differs from a plain CSV. Columns are given as "first choice|second|...",
 * joined ones with +, and * for the rest of a name. */
struct import_preset {
    const char *student, *item, *outcome, *time, *order, *skills, *group;
    const char *key, *key_time;  /* of --time-meta: the column both files share, its time */
    const char *meta_skills;     /* of --item-meta */
    const char *skill_separator; /* NULL: auto */
    const char *split;           /* if no other was asked for */
    const char *incorrect;       /* letters that mean incorrect beside the usual words */
    const char *unknown;         /* letters that mean skipped, timed out, ... */
    bool outcome_may_lack;       /* a file without that column has unknown outcomes */
    bool merge_repeats, withheld, no_quotes;
};

enum { IMPORT_MOST_COVARIATES = 16 };

struct import_file {
    const char *path;
    enum split split;
};

struct import {
    const struct import_format *format;
    const struct import_flags *flags;
    struct import_file *files; /* for training first, then validation, then tests */
    size_t n_files;
    bool has_split;    /* files or a column say what is for training, validation and tests */
    const char *split; /* how it is split, for people */
    char delimiter;    /* 0: to be guessed */
    struct builder_plan plan;
    struct builder *builder; /* by import_begin */
    struct import_covariate {
        char *name;
        bool is_factor;
        struct name_index levels;         /* in the order they came */
    } covariates[IMPORT_MOST_COVARIATES]; /* of attempts: plan.n_covariates */
    struct name_index targeted;           /* students who were given a target, */
    double *target;                       /* and these */
    size_t target_capacity;
    uint64_t n_rows, n_bytes, n_bad, n_undescribed;
    char *first_bad;  /* NULL: none */
    double n_seconds; /* that reading took */
};

/* One row of the table of formats. */
struct import_format {
    struct subcommand entry;
    const struct import_preset *preset;
    enum status (*read)(struct import *import);
};
extern const struct subcommands import_menu;

/* Reads the files, makes the data set and writes it, says what it did. Not collective. */
CHECKED enum status import_run(const struct import_format *format,
                               const struct import_flags *flags, const char *const *paths,
                               size_t n_paths);

/* For readers: */

/* Makes import->builder, when import->plan says all that the files do; once. */
CHECKED enum status import_begin(struct import *import);

/* A row that makes no sense: a failure with file, line and text; or, with --skip-bad, OK and a
 * count. */
enum status import_bad_row(struct import *import, const char *path, uint64_t line,
                           struct span text, const char *format, ...) PRINTF(5, 6);

/* The target of a student: whatever is said last counts. */
void import_target(struct import *import, struct span student, double target);

/* A name for the n-th student (from 1) of files that name none: train-17, or 17. */
uint32_t import_number_student(struct import *import, enum split split, uint64_t n);

/* After some rows: a live line now and then. */
void import_show_progress(const struct import *import, const struct text *text);

/* The readers. */
enum status import_columns(struct import *import);
enum status import_three_line(struct import *import);
enum status import_matrix(struct import *import);
enum status import_sequences(struct import *import);
enum status import_ednet(struct import *import);

#endif
