/* A data set in its HDF5 file, and the part of it that one rank holds. */
#ifndef COHORT_DATASET_H
#define COHORT_DATASET_H

#include "base/base.h"
#include "base/comm.h"
#include "base/names.h"
#include "data/covariates.h"
#include <stdio.h>

enum outcome { INCORRECT = 0, CORRECT = 1, UNKNOWN = 2 };
enum split { TRAIN = 0, VALID = 1, TEST = 2, N_SPLITS = 3 };

/* The mark byte of an attempt, in the file and in memory:
 *
 *     bit   7  6    5     4      3 2    1 0
 *           0  own  step  shown  split  outcome
 *
 * own: nothing may be learned from it (own_levels.h; in memory only); step: the attempt starts a new
 * step; shown: later attempts may use its outcome. */
enum { MARK_SHOWN = 1 << 4, MARK_STEP = 1 << 5, MARK_OWN = 1 << 6 };

static inline enum outcome mark_outcome(uint8_t mark)
{
    return (enum outcome)(mark & 3);
}
static inline enum split mark_split(uint8_t mark)
{
    return (enum split)(mark >> 2 & 3);
}
static inline bool mark_is_shown(uint8_t mark)
{
    return (mark & MARK_SHOWN) != 0;
}
/* An attempt to learn from: in the training split, with a known outcome. */
static inline bool mark_trains(uint8_t mark)
{
    return mark_split(mark) == TRAIN && mark_outcome(mark) != UNKNOWN && !(mark & MARK_OWN);
}
static inline uint8_t mark_make(enum outcome outcome, enum split split, bool shown, bool step)
{
    return (uint8_t)((unsigned)outcome | (unsigned)split << 2 | (shown ? MARK_SHOWN : 0u) |
                     (step ? MARK_STEP : 0u));
}

/* The items of a data set or a trained model, as a view of its arrays. `first` NULL: only the
 * names of skills and groups are known. */
struct item_table {
    const struct names *items, *skills, *groups;
    const uint64_t *first; /* items + 1 */
    const uint32_t *skill; /* skills of item i: skill[first[i] .. first[i+1]] */
    const int32_t *group;  /* -1: none */
};

/* Items of a file that the model was not trained on, see dataset_renumber. */
struct unseen_items {
    bool allowed; /* set before dataset_renumber; otherwise such an item is an error */
    struct names items;
    size_t n_skills; /* skills of the file that the model was not trained on */
    uint64_t *first; /* items + 1 */
    uint32_t *skill; /* those skills of item i that the model knows: as in struct dataset */
    int32_t *group;  /* -1: none; after dataset_show_groups */
    struct names group_names; /* of these items, "" without one */
    struct names
        file_groups;     /* groups of the file, and of its known items, if the file and the */
    int32_t *file_group; /* model disagree; else none */
};

/* The largest covariate or target: squares can still be summed. */
#define DATASET_MOST 1e30

/* What every rank holds of a data set: all but the attempts and the students' names. */
struct dataset {
    char *path;
    const struct comm *comm;
    size_t n_students, n_items, n_skills, n_groups;
    uint64_t n_attempts;
    bool has_time, withheld; /* withheld: single attempts are held out, not students */
    char digest[33];         /* of the content, in hexadecimal */
    char *source;            /* where it came from, human-readable */
    uint64_t *first;      /* n_students + 1: attempts of student s are first[s] .. first[s+1] */
    uint64_t *item_first; /* n_items + 1 */
    uint32_t *item_skills; /* skills of item i: item_skills[item_first[i] .. item_first[i+1]] */
    int32_t *item_group;   /* -1: none */
    double *target;        /* n_students, NaN: none; NULL: the file has no targets */
    struct names items, skills, groups;
    struct covariates covariates; /* of attempts; usually none */
    /* Two numbers per piece: see dataset_digest.c. NULL: a file of version 1. */
    uint64_t *attempt_digests, *student_digests;
    uint32_t *item_map;   /* from items of the file, after dataset_renumber; else NULL */
    uint32_t **level_map; /* likewise per covariate, for levels; INDEX_NONE: unknown */
    /* After dataset_renumber: an error message about an item on which the file and the model
     * disagree; NULL: they agree. */
    char *other_skills, *other_groups;
    struct unseen_items unseen; /* numbered from n_items on, after dataset_renumber */
};

/* The attempts of a contiguous range of students, held by one rank, each student's in time
 * order. Indices are local: student s here is student first_student + s of the data set. */
struct shard {
    const struct dataset *dataset;
    size_t first_student, n_students, n_attempts;
    uint64_t *first; /* n_students + 1, first[0] = 0 */
    uint32_t *item;
    uint8_t *mark;
    int64_t *time;     /* NULL if the data set has no times */
    double *covariate; /* n_attempts x covariates */
};

/* Collective over `comm`, which must outlive the data set. */
CHECKED enum status dataset_open(struct dataset *dataset, const char *path,
                                 const struct comm *comm);
void dataset_close(struct dataset *dataset);

/* Collective: every rank reads its own range of students. */
CHECKED enum status dataset_read(const struct dataset *dataset, size_t first_student,
                                 size_t n_students, struct shard *shard);
void shard_free(struct shard *shard);

/* Names of students first .. first + n, on any one rank. */
CHECKED enum status dataset_read_names(const struct dataset *dataset, size_t first, size_t n,
                                       struct names *names);

/* Notes what the file has other than the model, as dataset_renumber found it; `which` are used:
 * "the model's are used". */
void dataset_say_others(const struct dataset *dataset, bool skills, bool groups,
                        const char *which);

/* Renumbers items, skills, groups and levels of factors to match a trained model with `items`
 * and `covariates`. Call it before dataset_read, which then uses these numbers. Items get the
 * model's skills and groups; see other_skills for files that disagree. An item unknown to the
 * model is an error, or one of `unseen` if they are allowed: attempts of a shard then have items
 * from n_items on. An unknown level becomes NaN. */
CHECKED enum status dataset_renumber(struct dataset *dataset, const struct item_table *items,
                                     const struct covariates *covariates);

/* The same for training a model further: items, skills and groups of the file that the model
 * does not know are numbered behind its own, as known ones. */
CHECKED enum status dataset_extend(struct dataset *dataset, const struct item_table *items);

/* For fitting a model anew: the file's items keep their numbers, and those without skills or
 * without a group get them from the model's item of this name. Nothing changes if the model was
 * stored without them. */
CHECKED enum status dataset_complete(struct dataset *dataset, const struct item_table *items);

/* After dataset_renumber with unseen items allowed, and after the model was declared: numbers
 * the groups of unseen items, new groups last, and uses the file's groups of known items if
 * `files`, where they are not the model's. */
void dataset_show_groups(struct dataset *dataset, bool files);

struct item_table dataset_items(const struct dataset *dataset);

/* First student of worker w of n_workers, when students are split into contiguous ranges with
 * about the same number of attempts; w = n_workers gives n_students. */
size_t dataset_cut(const struct dataset *dataset, size_t w, size_t n_workers);

/* Reads everything and compares it with the stored digests. Not collective. `note`: what cannot
 * be checked in a file of an earlier version; NULL in it: nothing. */
CHECKED enum status dataset_verify(const char *path, const char **note);

/* A table of doubles stored with the data: the true parameters of a simulated class. */
struct truth {
    const char *name;
    int rank;
    uint64_t shape[3];
    const double *values;
};

/* A complete data set in memory, from an importer or a simulator. dataset_write stores it by
 * temporary file, fsync and rename, and fills in its digest. Not collective: one rank calls it.
 * The caller still owns the arrays. */
struct origin;
struct dataset_content {
    struct dataset head; /* counts, withheld, has_time, source, first, target, item_*, names */
    struct names students;
    const uint32_t *item;
    const uint8_t *mark;
    const int64_t *time;
    const double *covariate;
    const struct truth *truths;
    size_t n_truths;
    const struct origin *origin; /* data/origin.h, with one row per attempt; NULL: none */
};
CHECKED enum status dataset_write(struct dataset_content *content, const char *path);

#endif
