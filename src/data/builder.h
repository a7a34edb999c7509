/* Makes a data set of rows that come in any order of students. */
#ifndef COHORT_BUILDER_H
#define COHORT_BUILDER_H

#include "base/base.h"
#include "data/dataset.h"

/* What begins a new step of a student: every attempt, a new time, a pause; or the rows say it.
 */
enum builder_step { STEP_EVERY, STEP_TIME, STEP_SESSION, STEP_GIVEN };

struct builder_plan {
    uint64_t seed;        /* of the order of students */
    bool has_time;        /* rows bring times; a student's attempts are sorted by them */
    bool drop_time;       /* times were for sorting only */
    int64_t time_divisor; /* stored time = time / divisor, rounded down; 0 is 1 */
    bool keep_order;      /* items, skills and groups stay as they came; else sorted by name */
    bool merge_repeats;   /* rows of one student, item and time are one attempt */
    enum builder_step step;
    size_t n_covariates; /* numbers that every row brings */
    int64_t pause;       /* STEP_SESSION: the longest pause within a session, in stored time */
};

struct builder;
struct builder *builder_create(const struct builder_plan *plan);
void builder_destroy(struct builder *builder);

/* Numbers of names, new or known; builder_find_item gives INDEX_NONE for an unknown one. */
uint32_t builder_student(struct builder *builder, const char *name, size_t length);
uint32_t builder_item(struct builder *builder, const char *name, size_t length);
uint32_t builder_skill(struct builder *builder, const char *name, size_t length);
uint32_t builder_group(struct builder *builder, const char *name, size_t length);
uint32_t builder_find_item(const struct builder *builder, const char *name, size_t length);
const struct names *builder_items(const struct builder *builder);

/* One attempt. Of `mark` the outcome and the split count, and with STEP_GIVEN the step. */
void builder_add(struct builder *builder, uint32_t student, uint32_t item, uint8_t mark,
                 int64_t time);

/* The plan's covariates of the row that is added next. */
void builder_covariates(struct builder *builder, const double *values);

/* The same by the student's name. Faster than builder_student and builder_add where students
 * are many and come in no order: names are looked up in bunches, so that cache misses overlap.
 */
void builder_add_named(struct builder *builder, const char *name, size_t length, uint32_t item,
                       uint8_t mark, int64_t time);

/* Skills of an item add up; of its groups the first stays. */
void builder_item_skill(struct builder *builder, uint32_t item, uint32_t skill);
void builder_item_group(struct builder *builder, uint32_t item, uint32_t group);

/* Other names for people: the item or skill called `name` will be called `title`. False if
 * there is none of that name. */
bool builder_title_item(struct builder *builder, const char *name, size_t length,
                        const char *title, size_t title_length);
bool builder_title_skill(struct builder *builder, const char *name, size_t length,
                         const char *title, size_t title_length);

/* The finished data set, and what became of the rows. */
struct builder_result {
    struct dataset_content content; /* `source` and truths are the caller's to add */
    uint8_t *mark;                  /* content.mark, for those who set splits */
    uint32_t *student_number;       /* the number builder_student gave, for each student */
    uint64_t n_merged;              /* rows that repeated another */
    uint64_t n_idle_students;       /* left out: they had no attempts */
    uint64_t n_regrouped;           /* rows whose item was in another group already */
};

/* Takes the rows out of the builder, which is of no further use but to be destroyed. */
void builder_finish(struct builder *builder, struct builder_result *result);
void builder_result_free(struct builder_result *result);

/* Rows of `width` numbers for students as builder_student numbered them, in the order of the
 * data set, without those who have no attempts. Caller frees. */
double *builder_rows_of_students(const struct builder_result *result, const double *values,
                                 size_t width);

/* Deals the known outcomes out again at random: the share correct stays, all else is gone. */
void builder_shuffle_outcomes(struct builder_result *result, uint64_t seed);

#endif
