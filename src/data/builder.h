/* Builds a data set from rows that arrive in any order of students. */
#ifndef COHORT_BUILDER_H
#define COHORT_BUILDER_H

#include "base/base.h"
#include "data/dataset.h"

/* What starts a new step of a student: every attempt, a new time, a pause, or the rows'
 * marks. */
enum builder_step { STEP_EVERY, STEP_TIME, STEP_SESSION, STEP_GIVEN };

/* Which rows of one student and item are one attempt. Where rows have times, they must agree;
 * otherwise only adjacent rows with the same outcome and split are merged. */
enum builder_merge {
    MERGE_NONE,
    MERGE_SKILLS, /* rows with the same outcome, each with skills of its own */
    MERGE_ALL
};

struct builder_plan {
    uint64_t seed;        /* for the order of students */
    bool has_time;        /* rows have times; a student's attempts are sorted by them */
    bool drop_time;       /* times are for sorting only */
    int64_t time_divisor; /* stored time = time / divisor, rounded down; 0 is 1 */
    int64_t time_rest; /* microseconds per unit of time, of what rounding loses; 0: forget it */
    bool keep_order;   /* items, skills and groups keep the order of the rows; else by name */
    enum builder_merge merge;
    bool count_repeats; /* count rows that repeat an attempt and are not merged */
    enum builder_step step;
    size_t n_covariates; /* numbers per row */
    int64_t pause;       /* STEP_SESSION: the longest pause within a session, in stored time */
    /* Students are stored under other names: the text of rename(arg, name). Caller frees. */
    char *(*rename)(void *arg, const char *name, size_t length);
    void *rename_arg;
    bool has_rows; /* attempts remember their rows: see builder_row */
};

struct builder;
struct builder *builder_create(const struct builder_plan *plan);
void builder_destroy(struct builder *builder);

/* Map a name, new or known, to its number. builder_find_item: INDEX_NONE if unknown. */
uint32_t builder_student(struct builder *builder, const char *name, size_t length);
uint32_t builder_item(struct builder *builder, const char *name, size_t length);
uint32_t builder_skill(struct builder *builder, const char *name, size_t length);
uint32_t builder_group(struct builder *builder, const char *name, size_t length);
uint32_t builder_find_item(const struct builder *builder, const char *name, size_t length);
const struct names *builder_items(const struct builder *builder);

/* Adds an attempt. Uses the outcome and the split of `mark`, and the step with STEP_GIVEN. */
void builder_add(struct builder *builder, uint32_t student, uint32_t item, uint8_t mark,
                 int64_t time);

/* The covariates of the row that is added next. */
void builder_covariates(struct builder *builder, const double *values);

/* The row of the source that the next attempts come from, counted from 0 over all files. */
void builder_row(struct builder *builder, uint64_t row);

/* Which of the item's lists of skills the next attempt's row has: 0 for no skills, 1 for the
 * first list, ... */
enum { BUILDER_MOST_VARIANTS = 63 };
void builder_variant(struct builder *builder, uint8_t variant);

/* All times are equal: they are neither stored nor decide which rows repeat an attempt. */
void builder_forget_times(struct builder *builder);

/* Adds an attempt by the student's name. Faster than builder_student and builder_add for many
 * students in mixed order: names are looked up in batches, so that cache misses overlap. */
void builder_add_named(struct builder *builder, const char *name, size_t length, uint32_t item,
                       uint8_t mark, int64_t time);

/* An item collects all its skills, but keeps its first group. */
void builder_item_skill(struct builder *builder, uint32_t item, uint32_t skill);
void builder_item_group(struct builder *builder, uint32_t item, uint32_t group);

/* Readable names: the item or skill called `name` will be called `title`. False if the name is
 * unknown. */
bool builder_title_item(struct builder *builder, const char *name, size_t length,
                        const char *title, size_t title_length);
bool builder_title_skill(struct builder *builder, const char *name, size_t length,
                         const char *title, size_t title_length);

/* The finished data set, and what happened to the rows. */
struct builder_result {
    struct dataset_content content; /* the caller adds `source` and truths */
    uint8_t *mark;                  /* content.mark, writable for splits */
    uint32_t *student_number;       /* by student: the number from builder_student */
    /* For the content's origin, which the caller makes: rows, NULL without plan.has_rows or
     * beyond 2^32 rows; microseconds, NULL if all are 0. */
    uint32_t *row, *microsecond;
    uint64_t n_merged;        /* rows that repeat another */
    uint64_t n_merged_skills; /* of these, with other skills */
    uint64_t n_merged_other;  /* of these, with another outcome, which is lost */
    uint64_t n_repeats;       /* rows that repeat another and are kept */
    uint64_t n_reskilled;     /* items whose attempts, after merging, have different skills */
    uint64_t n_half_skilled; /* other items, of whose attempts some have skills and some none */
    uint64_t n_converted;    /* names that were not UTF-8; the caller adds levels of factors */
    uint64_t n_united;       /* of these, names that also occur as UTF-8 */
    uint64_t n_next, n_falls; /* rows after another of their student; of these, earlier ones */
    bool forgot_times;        /* by builder_forget_times */
    uint64_t n_idle_students; /* skipped: no attempts */
    uint64_t n_regrouped;     /* items with another group in another row */
    uint64_t n_retitled;      /* titles that replace another */
};

/* Empties the builder, which can only be destroyed afterwards. */
void builder_finish(struct builder *builder, struct builder_result *result);
void builder_result_free(struct builder_result *result);

/* Reorders rows of `width` numbers, one per student as builder_student numbered them, to the
 * order of the data set; skips students without attempts. Caller frees. */
double *builder_rows_of_students(const struct builder_result *result, const double *values,
                                 size_t width);

/* Shuffles the known outcomes: only the share of correct answers stays. */
void builder_shuffle_outcomes(struct builder_result *result, uint64_t seed);

#endif
