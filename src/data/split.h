/* Splits attempts into training, validation and test. */
#ifndef COHORT_SPLIT_H
#define COHORT_SPLIT_H

#include "base/base.h"
#include "data/dataset.h"

enum split_way {
    SPLIT_GIVEN,      /* by the attempts' marks */
    SPLIT_NONE,       /* all for training */
    SPLIT_BY_STUDENT, /* students by a hash of seed and name */
    SPLIT_BY_ORDER,   /* students in the order of the files */
    SPLIT_BY_LAST,    /* each student's last known attempt is test, the one before valid */
    SPLIT_BY_TIME,    /* attempts by time */
    SPLIT_BY_ATTEMPT, /* attempts at random */
    SPLIT_FOLDS       /* students in folds: one is test, the next valid */
};

struct split_plan {
    enum split_way way;
    int percent[N_SPLITS];
    int n_folds, fold; /* folds count from 1 */
    bool
        within_train; /* split only attempts that are given for training, none of them for test */
    uint64_t seed;
    const uint32_t *student_number; /* by-order: increasing in the order of the files */
};

extern const char *const split_names[N_SPLITS]; /* train, valid, test */

/* "none", "by-student=80/10/10", "by-order=80/10/10", "by-last", "by-time=80/10/10",
 * "by-attempt=80/10/10", "folds=5" or "folds=5/2"; leaves the seed alone. split_parse_train
 * splits the attempts that are given for training into training and validation, as in
 * "by-student=90/10". */
CHECKED enum status split_parse(const char *text, struct split_plan *plan);
CHECKED enum status split_parse_train(const char *text, struct split_plan *plan);

/* "train", "valid", "test" and their usual synonyms, in upper or lower case. */
bool split_find(const char *name, size_t length, enum split *split);

/* Whether it holds out single attempts, not students or the future. */
bool split_withholds(const struct split_plan *plan);

/* Sets the split in every `mark` (content's marks), and the bit that shows the outcome to later
 * attempts: if it is known and, with head.withheld, not held out. */
CHECKED enum status split_apply(const struct split_plan *plan,
                                const struct dataset_content *content, uint8_t *mark);

/* A student's 64-bit random number, which depends only on seed and name. */
uint64_t split_key(uint64_t seed, const char *name);

/* places[s] = the place of student s, 0 .. n - 1, in the order of split_key. */
void split_places(uint64_t seed, const struct names *students, uint32_t *places);

#endif
