/* Shared by the files of the mixed model; not included elsewhere.
 *
 *     lme.c                 the model
 *     lme_view.c            its view of all attempts
 *     lme_units.c           the training attempts by unit
 *     lme_covariates.c      scaling of covariates
 *     lme_modes.c           the mode of the effects
 *     lme_laplace.c         the likelihood and its gradient
 *     lme_outer_products.c  sums of outer products in a distributed matrix
 *     lme_search.c          the search over fixed effects and standard deviations
 *     lme_learn.c           a pass
 *     lme_predict.c         predictions
 *     lme_rasch.c           the Rasch view */
#ifndef COHORT_LME_INTERNAL_H
#define COHORT_LME_INTERNAL_H

#include "learn/model.h"
#include "learn/scalapack.h"
#include <math.h>

enum { LINK_LOGIT, LINK_IDENTITY };
enum { ELIMINATE_AUTO, ELIMINATE_STUDENT, ELIMINATE_ITEM };
enum lme_factor_kind {
    FACTOR_STUDENT,
    FACTOR_ITEM,
    FACTOR_GROUP,
    FACTOR_SKILL,
    FACTOR_COVARIATE /* a factor of attempts */
};
enum lme_fixed_kind { FIXED_INTERCEPT, FIXED_POSITION, FIXED_PRACTICE, FIXED_COVARIATE };
enum {
    MOST_FACTORS = 8,
    MOST_FIXED = 11,
    MOST_SPREADS = MOST_FACTORS + 1,
    MOST_OUTER = MOST_FIXED + MOST_SPREADS
};

struct lme_options {
    int link, eliminate;
    const char *factors, *fixed, *grid;
    double tolerance;
};

/* A grouping of attempts. Its levels are columns first .. first + n of the dense part, unless
 * it is the eliminated factor. */
struct lme_factor {
    enum lme_factor_kind kind;
    char name[48];
    size_t covariate;   /* FACTOR_COVARIATE: index in the current data */
    const uint8_t *own; /* FACTOR_COVARIATE: levels of a single student; NULL: not known */
    size_t first, n;
    size_t effect_panel, error_panel; /* not for students */
};

struct lme_fixed {
    enum lme_fixed_kind kind;
    size_t covariate; /* index in the current data */
    char name[48];
};

struct lme_shape {
    bool logit;
    size_t n_factors; /* factor 0 is the student */
    struct lme_factor factors[MOST_FACTORS];
    size_t unit;      /* the eliminated factor: student or item */
    size_t n_columns; /* levels of all other factors */
    size_t n_fixed;
    struct lme_fixed fixed[MOST_FIXED];
    size_t n_spread; /* standard deviations: of factors; of the residual if link = identity */
    size_t n_outer;  /* what the likelihood is maximised over: n_fixed + n_spread */
    size_t fixed_panel, fixed_error_panel, spread_panel, total_panel, search_panel, n_search;
};
static inline const struct lme_shape *lme_shape(const struct model *model)
{
    return model->shape;
}

/* The factor that column j belongs to. */
static inline size_t lme_factor_of(const struct lme_shape *shape, size_t j)
{
    size_t f = 0;
    while (f == shape->unit || j - shape->factors[f].first >= shape->factors[f].n)
        f++;
    return f;
}

/* A student's effect during prediction; see lme_predict.c. */
enum { LME_TERMS = 8 };
struct lme_belief {
    size_t n;                 /* answers shown: work->shown, work->shown_outcome */
    double u;                 /* the mode */
    double anchor;            /* the series is in powers of u - anchor */
    double series[LME_TERMS]; /* sum over answers of sigma(eta + u) - outcome */
    double residuals;         /* link = identity: sum of outcome - eta */
    double variance, spread;  /* of students; of the residual if link = identity */
};

/* The mixed model's view of a shard, and this rank's part of all training attempts. These are
 * grouped by unit: a level of the eliminated factor. A cell is a unit and a column that some of
 * its attempts have; a unit's cells are sorted by column. The kind of an attempt is the list of
 * its columns. */
struct lme_work {
    const struct model *model;
    const struct shard *shard;
    const struct lme_shape *shape;
    double *x;      /* of all attempts of the shard: fixed effects except the intercept */
    double *effect; /* n_students: the students' effects after the last pass */
    struct lme_belief belief;
    double *shown; /* prediction: predictors and outcomes of shown attempts */
    uint8_t *shown_outcome;
    size_t shown_room;
    uint32_t *walked; /* a student whose attempts come one by one: items so far */
    size_t n_walked, walked_room;
    uint32_t *met; /* n_items: how often the item was seen, 0 between students */

    /* set by lme_solver_create */
    struct lme_solver *solver;
    size_t first_unit, n_units; /* levels first_unit .. first_unit + n_units are here */
    uint64_t *first;            /* n_units + 1: training attempts */
    uint8_t *outcome;
    double *trained_x;     /* as x, for the training attempts, scaled by lme_covariates.c */
    uint32_t *kind;        /* of an attempt */
    uint64_t *place_first; /* attempts + 1 */
    uint32_t *place;       /* cells of an attempt, relative to the first of its unit */
    size_t n_kinds;
    uint64_t *kind_first;  /* n_kinds + 1 */
    uint32_t *kind_column; /* ascending within a kind */
    uint64_t *cell_first;  /* n_units + 1 */
    uint32_t *cell_column;

    /* at the effects evaluated last */
    double *residual, *weight; /* training attempts: (mu - y) / dispersion; -l'' */
    double *slope;             /* leverage times l''' */
    double *cell_weight, *cell_product, *kind_weight, *kind_product;
    double *unit;  /* N_UNIT_NUMBERS per unit */
    int64_t n_bad; /* numbers too large for fixed point */
};

/* The numbers of a unit: U, its old value, the Newton step; sums of residuals and weights; its
 * diagonal element of the curvature H, its right side, its diagonal element of H^-1. */
enum {
    AT_U,
    AT_OLD,
    AT_STEP,
    AT_RESIDUAL,
    AT_WEIGHT,
    AT_CURVE,
    AT_PULL,
    AT_VARIANCE,
    N_UNIT_NUMBERS
};
static inline double *lme_unit(const struct lme_work *work, size_t s)
{
    return work->unit + s * N_UNIT_NUMBERS;
}

/* The state of training, equal on all ranks; vectors are by column. */
struct lme_solver {
    const struct comm *comm;
    struct scalapack_grid grid;
    struct scalapack_matrix matrix;
    int64_t n_training;             /* over all ranks */
    int64_t most_column, most_cell; /* most training attempts in any column, in any cell */
    double centre[MOST_FIXED], width[MOST_FIXED];   /* scaling of trained_x: lme_covariates.c */
    double fixed[MOST_FIXED], spread[MOST_SPREADS]; /* beta; sigma, signed */
    double unit_spread;                             /* sigma of the eliminated factor */
    double dispersion;                              /* identity: residual variance; else 1 */
    double *column_spread;                          /* sigma of the column's factor */
    double *u, *old, *step, *effect;                /* columns; effect = sigma u */
    double *pull;                                   /* right sides */
    double *diagonal;                               /* of the inverse */
    int64_t *sums;                                  /* scratch: 2 columns */
    double penalised, log_determinant;
};
/* The grid of model.grid; for auto, that of n_ranks ranks. */
void lme_grid(const struct model *model, int n_ranks, int *n_rows, int *n_columns);
/* Collective: distributes the training attempts by unit and allocates the dense part. */
CHECKED enum status lme_solver_create(struct lme_work *work, const struct comm *comm);
void lme_solver_destroy(struct lme_work *work);
/* Sets the point to evaluate: fixed effects, standard deviations, log of the residual's. */
void lme_solver_set(struct lme_work *work, const double *outer);

/* Collective: finds the best unit for each covariate, and scales it. */
void lme_scale_fit(struct lme_work *work);
/* Fixed effect k in the unit of the data, and its standard error, from the solver's (and their
 * covariance). */
double lme_scale_back(const struct lme_work *work, const double *fixed, size_t k);
double lme_scale_error(const struct lme_work *work, const double *covariance, size_t k);

/* x in units of `unit`; counts numbers that do not fit. */
static inline int64_t lme_fixed_point(double x, double unit, int64_t *n_bad)
{
    const double scaled = x * unit;
    if (!(scaled > -0x1p62 && scaled < 0x1p62)) {
        ++*n_bad;
        return 0;
    }
    return (int64_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
}

/* The same for sums over all attempts: comm_sum_i128. */
static inline __int128 lme_fixed_wide(double x, double unit, int64_t *n_bad)
{
    const double scaled = x * unit;
    if (!(fabs(scaled) < 0x1p92)) {
        ++*n_bad;
        return 0;
    }
    return (__int128)(scaled + (scaled < 0 ? -0.5 : 0.5));
}

/* Lists of columns with values; each rank has its own. */
struct lme_records {
    size_t n;
    const uint64_t *first;
    const uint32_t *column; /* ascending within a record */
    const double *value;    /* NULL: all are 1 */
    const double *scale;
};
/* Collective. matrix += sum over all ranks' records of scale value value^T, in fixed point.
 * Single terms stay below 2^51 units unless they are `large`, and sums below 2^62. */
void lme_outer_add(struct lme_solver *solver, const struct lme_records *records, double unit,
                   bool large);
/* Collective. product = matrix value, record by record, only at the columns of the record. */
void lme_outer_multiply(const struct lme_solver *solver, const struct lme_records *records,
                        double *product, int64_t *n_bad);

/* Collective. The mode of all effects given fixed effects and standard deviations, starting
 * from the current effects. Leaves the Cholesky factor at the mode in the matrix. */
CHECKED enum status lme_modes_find(struct lme_work *work);
/* A power of 2 such that `most` terms of size `size` in these units stay below 2^room. */
double lme_modes_unit(double most, double size, int room);
/* This rank's kinds of attempts, as records. */
struct lme_records lme_modes_kinds(const struct lme_work *work, const double *scale);

/* -2 log of the Laplace likelihood, its gradient over the n_outer, the information on the fixed
 * effects (n_fixed x n_fixed), and the effective number of effects for each standard
 * deviation. */
struct lme_laplace {
    double deviance, gradient[MOST_OUTER], information[MOST_FIXED * MOST_FIXED];
    double freedom[MOST_SPREADS];
};
/* Collective, after lme_modes_find. Replaces the matrix by its inverse, scaled by sigma. */
void lme_laplace_evaluate(struct lme_work *work, struct lme_laplace *laplace);

/* Quasi-Newton search for the minimum of the deviance; its state is a list of numbers. */
struct lme_search {
    double phase, deviance, promise, n_rejected;
    double n_probed;   /* sigmas, from the first, whose zero has been checked */
    double n_attempts; /* training attempts in the deviance */
    double x[MOST_OUTER], gradient[MOST_OUTER], trial[MOST_OUTER];
    double inverse[MOST_OUTER * MOST_OUTER];
    bool without_students; /* their sigma stays zero: see lme_check.c */
};
enum { SEARCH_FRESH, SEARCH_RUNNING, SEARCH_PROBING, SEARCH_DONE, N_SEARCH_PHASES };
size_t lme_search_size(size_t n_outer);
void lme_search_load(struct lme_search *search, size_t n, const real *pairs);
void lme_search_store(const struct lme_search *search, size_t n, real *pairs);
/* Records the result at the trial point, and sets the next one. Returns whether it was
 * accepted. */
bool lme_search_advance(struct lme_search *search, const struct lme_shape *shape,
                        const struct lme_laplace *found, double tolerance);

/* lme_check.c, for link = logit. Collective. */
struct lme_check {
    double wrong, right; /* training answers */
    double error;        /* of the deviance: the integral over students minus Laplace's */
    double alike;        /* deviance of one chance for all answers */
};
void lme_check(const struct model *model, struct lme_work *work, const struct comm *comm,
               struct lme_check *check);

/* Cholesky factor of a small matrix, in place (lower). Returns the first row that depends on
 * those before it; n: none. */
size_t lme_search_factor(double *a, size_t n);
void lme_search_invert(double *a, size_t n);

void *lme_attach(const struct model *model, const struct shard *shard, enum model_use use);
void lme_detach(void *work);
void lme_training(const void *work, bool *has_training, int64_t *n_attempts);
void *lme_state(void *work, size_t *n_bytes);
enum status lme_learn(struct model *model, void *work, struct pass *pass);
void lme_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
/* All but the student's effect; x: of the fixed effects except the intercept. */
double lme_predictor(const struct model *model, const struct lme_work *work, uint32_t item,
                     const double *x, const double *covariates);
void lme_deviation(const struct model *model, void *work, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation);
void lme_rasch(const struct model *model, void *work, struct rasch *rasch);
void lme_hidden(const struct model *model, void *work, size_t s, real *activation);
/* The standard error of the effect of the student traced last. */
double lme_effect_error(const struct lme_work *work);

/* The covariates of attempt t of the shard. */
static inline const double *lme_covariates(const struct shard *shard, uint64_t t)
{
    return shard->covariate + t * shard->dataset->covariates.names.n;
}

/* x of a fixed effect at an attempt after `position` others, `met` of them at its item. */
double lme_fixed_x(const struct lme_fixed *fixed, uint64_t position, uint64_t met,
                   const double *covariates);

void lme_live_begin(const struct model *model, void *work, void *state);
void lme_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void lme_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

#endif
