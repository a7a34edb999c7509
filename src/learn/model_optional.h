/* The optional parts of a model, grouped by purpose; see model.h. A member that is zero is not
 * offered by the kind. */
#ifndef COHORT_MODEL_OPTIONAL_H
#define COHORT_MODEL_OPTIONAL_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "base/table.h"
#include "data/dataset.h"
#include "data/lanes.h"
#include "learn/exact_sum.h"

struct model;
struct pass;
struct likelihood;
struct likelihood_plan;
struct rasch;
struct sample_sink;

/* Properties of items, and of attempts, that a model may use besides their identity. */
enum { MODEL_SKILLS = 1, MODEL_GROUPS = 2, MODEL_TIMES = 4 };

struct model_setup {
    /* Before the settings are resolved: reads external files they name (a file of numbers) into
     * `config`, so that a run is self-contained. */
    enum status (*prepare)(struct config *config);
    /* The bits MODEL_SKILLS, ... that a declared model uses; without this function,
     * none. */
    unsigned (*uses)(const struct model *model);
    /* Frees what declare allocated and keeps in model->shape. */
    void (*release)(struct model *model);
};

struct model_fit {
    /* Collective, instead of accumulate and the optimizer: EM, direct solvers. An epoch is one
     * pass, and the last pass is the result. */
    enum status (*learn)(struct model *model, void *work, struct pass *pass);
    bool keeps_best; /* with learn: the result is the epoch that validates best, not the last */
    /* Of a kind that trains with the BLAS: the grid of ranks that n_ranks ranks factor a matrix
     * on. The last bits of a run depend on the BLAS kernel and on this grid. */
    void (*grid)(const struct model *model, int n_ranks, int *n_rows, int *n_columns);
    /* State that belongs to students and moves with them between ranks and checkpoints: bytes
     * in the order of students. */
    void *(*state)(void *work, size_t *n_bytes);
};

struct model_speed {
    /* Lengths of the shard's students, for models that want blocks of similar length. */
    const uint32_t *(*lengths)(const void *work);
    /* Collective: how wide a tally must be so that no sum over `most_students` students
     * overflows; without it, 64 bits. */
    void (*measure)(const struct model *model, const void *work, const struct comm *comm,
                    size_t most_students, bool *wide, int *bits);
    /* predict for n students of the shard at once; p[a] is for attempt a of the shard. The bits
     * are those of predict, whatever the other students are. */
    void (*predict_many)(const struct model *model, void *work, const uint32_t *students,
                         size_t n, unsigned splits, real *p);
};

struct model_view {
    /* What was learned: table k of n_tables, with its caption; the caller frees it. A table
     * without rows is not shown. */
    size_t n_tables;
    void (*table)(const struct model *model, size_t k, struct table *table);
    /* Collective: computes from the training data what tables show in addition (standard
     * errors), and leaves it in tensors declared by params_examined. */
    enum status (*examine)(struct model *model, const struct shard *shard,
                           const struct comm *comm);

    /* Hidden activations of a student after all shown attempts, n_hidden numbers; the name of
     * number j (without it: h1, h2, ...). */
    size_t (*n_hidden)(const struct model *model);
    void (*hidden)(const struct model *model, void *work, size_t s, real *activation);
    void (*hidden_name)(const struct model *model, size_t j, char name[32]);
    /* Whether these numbers are probabilities; without it, they are not. */
    bool (*hidden_is_chance)(const struct model *model);
    /* The weights by which hidden numbers move the log-odds of a right answer at an item.
     * Returns how many of the hidden numbers have one, the first of them; `row` may be NULL. */
    size_t (*loadings)(const struct model *model, void *work, uint32_t item, real *row);
    /* An answer at one item moves the chance at another by numbers learned about both, not only
     * through one ability of the student or a skill that they share. */
    bool relates_items;

    /* Difficulties and abilities, for a kind whose tables have them in parts, given its
     * training data; `rasch` is zero on entry. */
    void (*rasch)(const struct model *model, void *work, struct rasch *rasch);

    /* How uncertain predict is, for n students of the shard as in predict_many: the standard
     * deviation of the chance, given what was shown before; its mean is the prediction. */
    void (*deviation)(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *deviation);

    /* A directed graph that the model has learned: gate[a * n + b] is how open the edge from
     * node a to node b is; nodes are skills, or items if by_item. 0 nodes: none. */
    size_t (*n_nodes)(const struct model *model, bool *by_item);
    void (*graph)(const struct model *model, real *gate, real *strength);
};

struct model_sequence {
    /* log P of the known outcomes of student s in `splits`, step by step, given what was shown
     * in the steps before and, in the same step, outside `splits`. */
    void (*likelihood)(const struct model *model, void *work, size_t s, unsigned splits,
                       const struct likelihood_plan *plan, struct likelihood *sum);
    /* Samples a student from the model: the items of student s, answered as the model predicts,
     * with `n_gibbs` Gibbs steps where a step cannot be sampled exactly; `who` names the random
     * numbers. */
    void (*sample)(const struct model *model, void *work, size_t s, uint64_t seed, uint32_t who,
                   int64_t n_gibbs, const struct sample_sink *sink);
};

/* An attempt outside a shard: one that was made or, without its outcome, one that may come. */
struct live_attempt {
    uint32_t item;
    uint8_t mark;            /* as in a shard; MARK_STEP: it begins a step */
    int64_t time;            /* 0 without times */
    const double *covariate; /* of the current data set; NaN: empty */
};

/* A student whose attempts come one by one, at any time (learn/live.h has the engine's side):
 *
 *     begin             nothing is known
 *     ask, ask, ...     the chance of a right answer at any item, as of now
 *     tell              an attempt was made
 *
 * ask gives the bits of `predict` for an attempt at this point. Where a state is small and of
 * fixed size, the engine keeps one for each student (`size`). Otherwise it is in `work`, which
 * holds one student at a time, and the engine tells a student's attempts again whenever another
 * student was there. */
struct model_live {
    void (*ready)(const struct model *model, void *work); /* once, before all others */
    size_t (*size)(const struct model *model);            /* bytes; without it, in `work` */
    void (*begin)(const struct model *model, void *work, void *state);
    /* One attempt for each of n different students; n is 1 without `size`. */
    void (*tell)(const struct model *model, void *work, size_t n, void *const *state,
                 const struct live_attempt *attempts);
    /* p[i]: the chance at items[i], each as if the attempt `when` were at it (when->item and
     * the outcome are not read). */
    void (*ask)(const struct model *model, void *work, const void *state,
                const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

    /* The chance that skill k (or item k, if know_items says so) is known, for kinds in which
     * that is not the same as answering right. */
    void (*know)(const struct model *model, void *work, const void *state, uint32_t k, real *p);
    bool (*knows_items)(const struct model *model);

    /* A model made of others has these two instead: part m (its model and view; false: there is
     * none), and the chance from those of its parts, which are `stride` apart. */
    bool (*part)(const struct model *model, void *work, size_t m, const struct model **part,
                 void **part_work);
    real (*combine)(const struct model *model, const real *of_part, size_t stride);
};

/* What a model predicts: the probability of a correct answer at every attempt, or one number
 * per student: a probability, a score, or a score with its variance. */
enum model_task { TASK_TRACE, TASK_CHANCE, TASK_SCORE, TASK_DENSITY };

struct model_target {
    /* Without it, TASK_TRACE. All but TASK_TRACE have no `predict`. */
    enum model_task (*task)(const struct model *model);
    /* For n students of the shard, the mean of the target (TASK_CHANCE: the probability that it
     * is 1) and, for TASK_DENSITY, its variance. */
    void (*predict)(const struct model *model, void *work, const uint32_t *students, size_t n,
                    double *mean, double *variance);
};

/* One pass over the students. Random numbers are named by it and by the student. */
struct draw {
    uint64_t seed;
    uint32_t epoch;
};

/* A pass over all training students, for kinds that train themselves. */
struct pass {
    const struct comm *comm;
    const struct exact_slices *slices; /* new values go through exact_slices_publish */
    const struct lanes *lanes;         /* this rank's students, in parts that no rank splits */
    struct draw draw;
    /* Filled by the kind: this rank's part of the loss (LOSS_BITS) and of the attempts in it,
     * and whether training has converged, on which all ranks agree. */
    int64_t loss, n_scored;
    bool converged;
    double share; /* fraction of the training attempts used; 1 unless the kind sets it */
};

/* How to estimate the probability of a step with too many states to sum: annealed importance
 * sampling, n_chains chains along n_temperatures temperatures. */
struct likelihood_plan {
    int64_t n_chains, n_temperatures;
    int64_t most_temperatures; /* likelihood_measure doubles them until the mean settles */
    int most_bits; /* the smaller side of a step is summed state by state up to 2^most_bits */
    uint64_t seed;
};

/* The log-likelihood of some steps of a student. */
struct likelihood {
    int64_t n_steps, n_sampled; /* n_sampled of them by sampling */
    int64_t n_annealed;         /* of these, by annealing: more temperatures may change them */
    int64_t n_impossible; /* sampled probabilities above 1 by more than 3 standard errors */
    double log_chance;    /* nats; sum over steps */
    double variance;      /* of that sum, from sampling */
    double bias;          /* approximate upward bias of that sum from few chains */
};

/* Receives the answers of a sampled student, one by one. */
struct sample_sink {
    void (*take)(void *arg, uint32_t item, bool correct, bool begins_step);
    void *arg;
};

/* A model's items and students as a Rasch model:
 *
 *     logit P(correct) = theta_student - b_item */
struct rasch {
    double *b, *theta; /* items; students of the shard, NAN: not known. Caller frees. */
    double *error;     /* standard errors of theta, or NULL. Caller frees. */
    double spread;     /* the model's standard deviation of theta; 0: it has none */
    char b_is[256], theta_is[64]; /* how they follow from the model */
    const char *why_not;          /* NULL, or why this model has no such view */
};

#endif
