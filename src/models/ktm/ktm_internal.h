/* Shared by the files of the knowledge tracing machine; included elsewhere only by tests.
 *
 *     ktm.c           the model
 *     ktm_features.c  the language of features
 *     ktm_walk.c      features of attempts
 *     ktm_cache.c     features kept between passes
 *     ktm_learn.c     Newton's method
 *     ktm_solve.c     its vectors
 *     ktm_student.c   a student's own weight and factors at prediction
 *     ktm_live.c      students whose attempts come one by one
 *     ktm_rasch.c     the Rasch view */
#ifndef COHORT_KTM_INTERNAL_H
#define COHORT_KTM_INTERNAL_H

#include "kernels/fm_kernels.h"
#include "learn/model.h"

enum { KTM_MOST_FEATURES = 40, KTM_BINS = 42 };
enum ktm_what {
    KTM_STUDENT,
    KTM_ITEM,
    KTM_SKILL,
    KTM_LEVEL,  /* a level of a factor of attempts */
    KTM_NUMBER, /* a numeric covariate of attempts */
    KTM_PREVIOUS,
    KTM_ATTEMPTS,
    KTM_WINS,
    KTM_FAILS,
    KTM_TIME
};
enum ktm_of { KTM_OF_ALL, KTM_OF_ITEM, KTM_OF_SKILL };
enum ktm_value { KTM_RAW, KTM_LOG, KTM_BINNED };

struct ktm_options {
    const char *features;
    int64_t factors, products;
    double l2, l2_factors, scale, tolerance;
    bool weights_first;
};

/* One word of model.features: what is counted (what), over which earlier attempts (of), the
 * form of the count (value), and what its rows belong to (by). */
struct ktm_feature {
    enum ktm_what what;
    enum ktm_of of, by;
    enum ktm_value value;
    double decay;    /* 1: counts do not decay */
    uint64_t within; /* counts cover this many seconds; 0: all time */
    double l2, l2_factors;
    size_t column, n_levels; /* KTM_LEVEL, KTM_NUMBER: which covariate of the current data */
    const uint8_t *own;      /* KTM_LEVEL: levels of a single student; NULL: not known */
    size_t first_row, n_rows;
    size_t n_each;       /* rows per item or skill it acts by: bins, previous items */
    bool said_of_skills; /* named skills in data without skills, so items are meant */
    char name[48];       /* of its tensors */
};

/* Counts of earlier attempts, wins or fails. */
bool ktm_feature_is_count(const struct ktm_feature *feature);

struct ktm_design {
    size_t n;
    struct ktm_feature list[KTM_MOST_FEATURES]; /* students, if present, come last */
    size_t n_common;                            /* rows except students; row 0 is the bias */
    size_t n_rows;
    bool has_students;
};

/* The features of a model, given its items, skills and students. */
CHECKED enum status ktm_design_make(struct ktm_design *design, const struct model *model);
static inline const struct ktm_design *ktm_design(const struct model *model)
{
    return model->shape;
}
unsigned ktm_design_uses(const struct model *model); /* of a declared model */
void ktm_design_help(struct manual *manual);

/* A count kept for an item or a skill (or for all) along one student's attempts. */
struct ktm_past {
    double value;
    uint64_t walk;           /* the walk it belongs to; void in any other */
    uint32_t oldest, newest; /* counts with a window: the moments counted now */
};

/* The moments counted by counts with a window, all of the current student. Each links to the
 * next one of the same item or skill. */
struct ktm_moment {
    int64_t time;
    uint32_t next;
};
struct ktm_moments {
    struct ktm_moment *list;
    size_t n, room;
};

/* The features of a student's attempts, made while walking along them. */
struct ktm_walk {
    const struct ktm_design *design;
    const struct dataset *dataset;
    uint8_t *own; /* rows that are not trained, see ktm_own.c; NULL: none */
    struct ktm_past *past[KTM_MOST_FEATURES];
    struct ktm_moments moments[KTM_MOST_FEATURES];
    uint64_t number;
    int64_t last_item;           /* of the previous attempt, -1: none */
    uint32_t last_seen;          /* its outcome, 2: not shown */
    struct fm_features attempts; /* of the last student */
    uint32_t *place;             /* index of each of these attempts */
    uint32_t *first, *row;
    real *x;
    size_t n, room; /* attempts with features, and how many there is room for */
    size_t most_skills, entry_room;
};

/* One attempt as the features see it. */
struct ktm_sight {
    uint32_t item;
    uint8_t mark;
    bool wanted;   /* its features are requested */
    bool learning; /* for training, not for prediction */
    bool asked;    /* it is not made: later attempts know nothing of it */
    int64_t time;
    size_t student_row;
    const double *columns;  /* its covariates */
    const uint32_t *skills; /* filled in */
    size_t n_skills;
};
void ktm_walk_create(struct ktm_walk *walk, const struct ktm_design *design,
                     const struct model *model, size_t longest);
void ktm_walk_free(struct ktm_walk *walk);

/* A new student; room for the features of n attempts; removes them, but not what is counted. */
void ktm_walk_begin(struct ktm_walk *walk);
void ktm_walk_reserve(struct ktm_walk *walk, size_t n);
void ktm_walk_clear(struct ktm_walk *walk);
/* The next attempt. Its features, if wanted, become the last of walk->attempts. */
void ktm_walk_attempt(struct ktm_walk *walk, struct ktm_sight *sight);

/* Features of the attempts of student s of the shard whose split is in `splits`. In training
 * only attempts with known outcomes count; in prediction levels of a single student are ignored
 * (see own_levels.h). student_row: the row of this student, 0: none. */
void ktm_walk_student(struct ktm_walk *walk, const struct shard *shard, size_t s,
                      unsigned splits, bool learning, size_t student_row);

/* The features of a student's training attempts with known outcomes, and the index of each of
 * these attempts. Valid until the next walk. */
struct ktm_seen {
    struct fm_features attempts;
    const uint32_t *place;
};

/* Those of a shard's students, kept once made up to a total of `most` bytes. */
#define KTM_KEPT_LEAST ((size_t)512 << 20)
struct ktm_cache;
struct ktm_cache *ktm_cache_create(size_t n_students, size_t most);
/* Collective: what a rank may keep, its share of a third of the machine's memory, and
 * KTM_KEPT_LEAST if that is smaller or not known. */
size_t ktm_cache_most(const struct comm *comm);
void ktm_cache_free(struct ktm_cache *kept);
struct ktm_seen ktm_cache_student(struct ktm_cache *kept, struct ktm_walk *walk,
                                  const struct shard *shard, size_t s, size_t student_row);

/* The number of training attempts of student s of the shard. */
int64_t ktm_count_training(const struct shard *shard, size_t s);

/* The most probable weight and k factors of a student, given what has been shown; see
 * ktm_student.c. Exact (to 1e-6) up to KTM_EXACT answers. */
enum { KTM_EXACT = 1000 };
struct ktm_student;
/* With the penalties of students' rows; `most`: attempts of the longest student. */
struct ktm_student *ktm_student_create(size_t k, double l2, double l2_factors, size_t most);
void ktm_student_free(struct ktm_student *student);
/* Starts a new student with nothing known. */
void ktm_student_begin(struct ktm_student *student);
/* What the student's own weight and factors add to the score of an attempt; `sum` is the sum of
 * its other factors. */
double ktm_student_score(struct ktm_student *student, const real *sum);
/* Shows an answer; offset: the attempt's score without the student. */
void ktm_student_show(struct ktm_student *student, double offset, const real *sum,
                      bool correct);

struct ktm_learner;
struct ktm_work {
    const struct shard *shard;
    const struct ktm_design *design;
    struct ktm_walk walk;
    real *score, *sum;           /* of the attempts of a student */
    struct ktm_student *student; /* NULL: students have no rows */
    real *own_score;             /* scores with the student's own part */
    size_t room;                 /* of these: attempts */
    struct ktm_learner *learner;
};

/* Collective: 1 for rows (of the design) that only one student trains; NULL: none. */
uint8_t *ktm_own_rows(struct ktm_work *work, const struct comm *comm);

/* Room for the features and scores of n attempts. */
void ktm_reserve(const struct model *model, struct ktm_work *work, size_t n);

/* ktm_live.c */
void ktm_live_begin(const struct model *model, void *work, void *state);
void ktm_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void ktm_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

/* The parameters as rows of weights and factors. */
struct fm_point ktm_point(const struct model *model);
/* Random first values of the factors, in a vector in the layout of the parameters. */
void ktm_scatter_factors(const struct model *model, uint64_t seed, real *flat);

/* One step of Newton's method; see ktm_learn.c. */
CHECKED enum status ktm_learn(struct model *model, void *work, struct pass *pass);
void ktm_learner_free(struct ktm_learner *learner);

/* As Rasch's model has it; see ktm_rasch.c. */
void ktm_rasch(const struct model *model, void *work, struct rasch *rasch);

/* Passes over the attempts so far. */
int64_t ktm_passes(const void *work);

/* Collective, for tests: the penalised loss of the training attempts, in nats, and its
 * gradient in the layout of the parameters. */
CHECKED enum status ktm_gradient(const struct model *model, void *work, const struct pass *pass,
                                 double *loss, real *gradient);

#endif
