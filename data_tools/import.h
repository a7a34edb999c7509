/* Converts files of answers into a data set. */
#ifndef COHORT_IMPORT_H
#define COHORT_IMPORT_H

#include "base/base.h"
#include "data/builder.h"
#include "data/dataset.h"
#include "data/name_index.h"
#include "data/origin.h"
#include "data/split.h"
#include "data_tools/subcommand.h"
#include "data_tools/text.h"

/* The options of `cohort import`; "" if not given. */
struct import_flags {
    const char *train, *valid, *test, *output;
    /* columns */
    const char *student, *item, *outcome, *time, *order, *skills, *group, *split_column,
        *target, *covariates, *factors;
    const char *delimiter, *skill_separator, *time_format, *threshold;
    int time_unit; /* enum time_unit */
    /* more files */
    const char *item_meta, *time_meta, *questions, *q_matrix, *item_names, *skill_names,
        *targets, *truth, *pseudonyms;
    /* how to treat the rows */
    const char *split;
    int64_t seed, n_items, session_gap;
    int step;
    bool withheld, skip_bad, merge_repeats, keep_repeats, shuffle_outcomes;
};

/* How a public format differs from a plain CSV. Columns are written "first choice|second|...",
 * with + to join columns and * for the rest of a name. */
struct import_preset {
    const char *student, *item, *outcome, *time, *order, *skills, *group;
    const char *key, *key_time;  /* of --time-meta: the shared column, the time */
    const char *meta_skills;     /* of --item-meta */
    const char *skill_separator; /* NULL: auto */
    const char *split;           /* default of --split */
    const char *last_order;      /* to sort by, if there is no time */
    const char *incorrect;       /* codes for incorrect, besides the usual words */
    const char *unknown;         /* codes for skipped, timed out, ... */
    bool outcome_may_lack;       /* without that column all outcomes are unknown */
    bool withheld, no_quotes;
    bool skills_may_be_items; /* if there is no column of items */
    bool says_columns;        /* prints which columns were found by name */
    enum builder_merge merge;
};

/* The usual names of the columns of a CSV file. */
extern const struct import_preset import_csv_preset;

/* The place of a name in a list of usual names, compared as columns are; SIZE_MAX: none. */
size_t import_columns_usual(const char *name, const char *usual);

enum { IMPORT_MOST_COVARIATES = 16 };

struct import_file {
    const char *path;
    enum split split;
};

struct pseudonym_key;
struct import {
    const struct import_format *format;
    const struct import_flags *flags;
    struct import_file *files; /* training files first, then validation, then test */
    size_t n_files;
    bool has_split; /* files or a column determine the split */
    bool split_is_default;
    const char *split; /* description of the split */
    char delimiter;    /* 0: detect */
    struct builder_plan plan;
    struct builder *builder; /* by import_begin */
    struct import_covariate {
        char *name;
        bool is_factor;
        struct name_index levels;         /* in the order of the rows */
    } covariates[IMPORT_MOST_COVARIATES]; /* of attempts: plan.n_covariates */
    struct name_index targeted;           /* students with a target, */
    double *target;                       /* and their targets */
    size_t target_capacity;
    struct origin origin; /* files, their first rows, and the format of times */
    size_t origin_capacity;
    uint64_t n_source;                /* rows of the source, as attempts remember them */
    const struct pseudonym_key *key;  /* NULL: students keep their names */
    uint64_t n_retargeted, n_retimed; /* rows that contradict an earlier target or time */
    uint64_t n_rows, n_bytes, n_bad, n_undescribed;
    char split_at[8];  /* first characters of the separators of skills that were guessed */
    bool said_whole;   /* that commas do not split skills */
    char *time_column; /* of numbers whose unit was guessed; NULL: none */
    char *first_bad;   /* NULL: none */
    double n_seconds;  /* for reading */
};

/* One row of the table of formats. */
struct import_format {
    struct subcommand entry;
    const struct import_preset *preset;
    enum status (*read)(struct import *import);
};
extern const struct subcommands import_menu;

/* Reads the files, writes the data set and prints a summary. Not collective. */
CHECKED enum status import_run(const struct import_format *format,
                               const struct import_flags *flags, const char *const *paths,
                               size_t n_paths);

/* For readers: */

/* Creates import->builder once import->plan is complete. Further calls do nothing. */
CHECKED enum status import_begin(struct import *import);

/* Begins a source file: attempts remember its rows. import_next_row is called for every row,
 * before its attempts are added, also for rows that are skipped later. */
void import_next_file(struct import *import, const char *path);
void import_next_row(struct import *import);

/* Reports a bad row: fails with file, line and text or, with --skip-bad, counts it and returns
 * OK. */
enum status import_bad_row(struct import *import, const char *path, uint64_t line,
                           struct span text, const char *format, ...) PRINTF(5, 6);

/* Sets the target of a student; the last one counts. */
void import_target(struct import *import, struct span student, double target);

/* Names the n-th student (from 1) of files without names: train-17, or 17. */
uint32_t import_number_student(struct import *import, enum split split, uint64_t n);

/* Shows progress: on a terminal at once, elsewhere as a line every half minute. */
void import_show_progress(const struct import *import, const struct text *text);

/* import_skills.c: gives the item the skills of a cell. `separator`: as of csv_cell_list;
 * `nothing`: a code for no skill, or NULL. Returns a hash that lists of the same skills share, 0 if
 * there are none. */
uint64_t import_skills_add(struct import *import, const char *path, uint32_t item,
                           struct span cell, const char *separator, const char *nothing);

/* import_report.c: says what was read and what looks wrong. */
void import_report(const struct import *import, const struct builder_result *result,
                   const struct split_plan *plan);

/* The readers. */
enum status import_columns(struct import *import);
enum status import_three_line(struct import *import);
enum status import_four_line(struct import *import);
enum status import_matrix(struct import *import);
enum status import_sequences(struct import *import);
enum status import_ednet(struct import *import);

#endif
