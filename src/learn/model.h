/* What every model is to the engine. */
#ifndef COHORT_MODEL_H
#define COHORT_MODEL_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "base/table.h"
#include "data/dataset.h"
#include "data/lanes.h"
#include "learn/exact_sum.h"
#include "learn/params.h"

/* Every block of students adds its share to some statistics, the shares are summed exactly, and
 * the sum moves the parameters. A model is that share, and a way to predict. */

/* Counts of training outcomes by item, over the whole data set: where biases start, and a
 * baseline. */
struct item_counts {
    size_t n_items;
    int64_t *right, *wrong;
};
/* Collective: of the training attempts of all ranks' shards. Caller frees `right`. */
void item_counts_take(struct item_counts *counts, const struct shard *shard);

struct model {
    const struct model_kind *kind;
    void *options; /* the kind's own struct, filled from its table */
    struct params params;
    size_t n_students, n_items, n_skills; /* of the data set it is trained on */
    uint64_t most_params; /* that a file can hold from which they come; 0: from none */
    const struct dataset
        *dataset; /* items with their skills; NULL after loading without data */
    const struct covariates *covariates; /* of the data it is trained on */
};

/* Which pass over the students this is: random numbers are named by it and by the student. */
struct draw {
    uint64_t seed;
    uint32_t epoch;
};

/* One pass over all training students, for kinds that move their parameters themselves. */
struct pass {
    const struct comm *comm;
    const struct exact_slices *slices; /* new values go through exact_slices_publish */
    const struct lanes *lanes;         /* this rank's students, in parts that no rank cuts */
    struct draw draw;
    /* Filled by the kind: this rank's share of loss (LOSS_BITS) and of the attempts it is over,
     * and whether there is nothing left to learn, on which all ranks agree. */
    int64_t loss, n_scored;
    bool converged;
    double share; /* of the training attempts that were looked at; 1 unless the kind says so */
};

/* How the chance of a step is found where its states are too many to be summed: annealed
 * importance sampling, so many chains along so many temperatures. */
struct likelihood_plan {
    int64_t n_chains, n_temperatures;
    int64_t most_temperatures; /* likelihood_measure doubles them until the mean settles */
    int most_bits; /* the smaller side of a step is summed state by state up to 2^most_bits */
    uint64_t seed;
};

/* Of some steps of a student. */
struct likelihood {
    int64_t n_steps, n_sampled; /* n_sampled of them by sampling */
    int64_t n_annealed;         /* of these, by annealing: more temperatures may change them */
    int64_t n_impossible;       /* sampled chances above 1 by more than 3 standard errors */
    double log_chance;          /* nats; sum over steps */
    double variance;            /* of that sum, from sampling */
    double bias;                /* by which few chains make that sum too large, about */
};

/* Takes one answer of a sampled student. */
struct sample_sink {
    void (*take)(void *arg, uint32_t item, bool correct, bool begins_step);
    void *arg;
};

/* What a model knows of items and students as Rasch's model has it:
 *
 *     logit P(correct) = theta_student - b_item */
struct rasch {
    double *b, *theta; /* items; students of the shard, NAN: not known. Caller frees. */
    char b_is[256], theta_is[64]; /* what of the model they are, for people */
    const char *why_not;          /* there is no such view of this model: why; else NULL */
};

/* A named set of settings, as lines of a configuration file. */
struct preset {
    const char *name, *help, *text;
};

/* What a model is asked for: the chance of a correct answer at every attempt, or one number for
 * a student: a chance, a score, or a score with its variance. */
enum model_task { TASK_TRACE, TASK_CHANCE, TASK_SCORE, TASK_DENSITY };

/* What of items a model may know besides who they are. */
enum { MODEL_SKILLS = 1, MODEL_GROUPS = 2 };

struct model_kind {
    const char *name;   /* model.kind */
    const char *title;  /* a line for people */
    const char *source; /* whose model it is */
    const char *loss;   /* what `tally.loss` is, for people */
    const struct option *options;
    size_t n_options, options_size;
    const struct preset *presets;
    size_t n_presets;
    const char *defaults; /* settings of other sections that suit the kind (NULL: none) */
    const char *made_by;  /* the command that makes it, for kinds that are not trained */
    void (*more_help)(struct manual *manual); /* what its options refer to (NULL: nothing) */

    /* Before the settings are resolved (NULL: nothing to do): what they name outside, a file of
     * numbers say, is taken into `config`, so that a run needs nothing but itself. */
    enum status (*prepare)(struct config *config);

    /* Names and shapes of the tensors, from options, n_items, n_skills; refuses contradictions.
     */
    enum status (*declare)(struct model *model);
    /* What of items a declared model makes use of, as bits MODEL_SKILLS, MODEL_GROUPS (NULL:
     * nothing). */
    unsigned (*uses)(const struct model *model);
    /* What declare put into the options beside settings (NULL: nothing). */
    void (*release)(struct model *model);
    /* First values; deterministic in (seed, counts). */
    void (*init)(struct model *model, uint64_t seed, const struct item_counts *counts);

    /* The model's own view of a shard, and scratch memory. `attach` keeps what it needs of the
     * shard's training attempts; has_training (n_students) says who has any. */
    void *(*attach)(const struct model *model, const struct shard *shard);
    void (*detach)(void *work);
    void (*training)(const void *work, bool *has_training, int64_t *n_attempts);

    /* Lengths of the shard's students for models that want blocks of like length (NULL: none).
     */
    const uint32_t *(*lengths)(const void *work);

    /* Collective: how wide a tally must be so that no sum over `most_students` students
     * overflows. */
    void (*measure)(const struct model *model, const void *work, const struct comm *comm,
                    size_t most_students, bool *wide, int *bits);

    /* Adds loss and statistics of a block of students (of the shard), at most one tally_add to
     * any place. The model is not changed. */
    void (*accumulate)(const struct model *model, void *work, const uint32_t *students,
                       size_t n, const struct draw *draw, struct tally *tally);

    /* Collective, instead of accumulate and the optimizer (NULL: those): EM, direct solvers. An
     * epoch is one pass, and the last pass is the result. */
    enum status (*learn)(struct model *model, void *work, struct pass *pass);
    bool keeps_best; /* with learn: the epoch that validates best is the result, not the last */
    bool by_blas;    /* learns by the BLAS, so that its last bits are those of a kernel */

    /* State that belongs to students and moves with them (NULL: none): bytes in student order.
     */
    void *(*state)(void *work, size_t *n_bytes);

    /* p[t] = P(correct at t | what was shown before t), for attempts t of student s whose split
     * is in the set of bits `splits`; other p[t] are left alone. */
    void (*predict)(const struct model *model, void *work, size_t s, unsigned splits, real *p);

    /* The same for n students of the shard at once, where that is faster (NULL: it is not);
     * p[a] is of attempt a of the shard. Bits are those of `predict`, whoever is beside whom.
     */
    void (*predict_many)(const struct model *model, void *work, const uint32_t *students,
                         size_t n, unsigned splits, real *p);

    /* What is asked of this model (NULL: TASK_TRACE). All but TASK_TRACE have no `predict`, but
     * give, for n students of the shard, the target's mean (TASK_CHANCE: the chance that it is
     * 1) and, TASK_DENSITY, its variance. */
    enum model_task (*task)(const struct model *model);
    void (*predict_target)(const struct model *model, void *work, const uint32_t *students,
                           size_t n, double *mean, double *variance);

    /* Hidden activations of a student after all shown attempts, n_hidden numbers (NULL: none).
     */
    size_t (*n_hidden)(const struct model *model);
    void (*hidden)(const struct model *model, void *work, size_t s, real *activation);
    /* What number j of them is called (NULL: h1, h2, ...). */
    void (*hidden_name)(const struct model *model, size_t j, char name[32]);

    /* Collective: finds out, with the training data at hand, what tables show besides (standard
     * errors), and leaves it in tensors that are not trained (NULL: nothing). */
    enum status (*examine)(struct model *model, void *work, const struct comm *comm);

    /* What was learned, for people: table k of n_tables (0: none). One without rows is not
     * shown. Caller frees. */
    size_t n_tables;
    void (*table)(const struct model *model, size_t k, struct table *table);

    /* Difficulties and abilities of a kind whose tables have them in parts, with the data it
     * was trained on at hand; `rasch` comes as zeros (NULL: not of this kind). */
    void (*rasch)(const struct model *model, void *work, struct rasch *rasch);

    /* log P of the known outcomes of student s in `splits`, a step at a time, given what was
     * shown in the steps before and, in the same step, outside `splits` (NULL: not offered). */
    void (*likelihood)(const struct model *model, void *work, size_t s, unsigned splits,
                       const struct likelihood_plan *plan, struct likelihood *sum);

    /* A student drawn from the model: asked what student s was asked, answering as the model
     * says, with `n_gibbs` Gibbs steps where one step cannot be drawn exactly; `who` names the
     * random numbers (NULL: not offered). */
    void (*sample)(const struct model *model, void *work, size_t s, uint64_t seed, uint32_t who,
                   int64_t n_gibbs, const struct sample_sink *sink);

    /* A directed graph that the model has learned: the openness of the edge from node a to node
     * b in gate[a * n + b]; nodes are skills, or items if by_item (NULL, or 0 nodes: none). */
    size_t (*n_nodes)(const struct model *model, bool *by_item);
    void (*graph)(const struct model *model, real *gate, real *strength);
};

extern const struct model_kind *const model_kinds[];
extern const size_t n_model_kinds;
const struct model_kind *model_find(const char *name);

/* The kind from model.kind of `config`; its preset, if model.preset names one, is suggested
 * there. */
CHECKED enum status model_choose(struct config *config, const struct model_kind **kind);

/* The [model] table of a kind for config_resolve: `kind` and `preset` come before the kind's
 * own. */
struct model_names {
    const char *kind, *preset;
};
extern const struct option model_name_options[2];

/* Adds a kind to a page: a section with its settings and presets. */
void model_help(struct manual *manual, const struct model_kind *kind);

/* predict_many of the kind, or predict of one student after the other. */
void model_predict(const struct model *model, void *work, const struct shard *shard,
                   const uint32_t *students, size_t n, unsigned splits, real *p);

static inline unsigned model_uses(const struct model *model)
{
    return model->kind->uses != NULL ? model->kind->uses(model) : 0;
}

static inline enum model_task model_task(const struct model *model)
{
    return model->kind->task != NULL ? model->kind->task(model) : TASK_TRACE;
}

/* model_declare takes the covariates from `dataset`; without data they must have been set. */
struct model *model_create(const struct model_kind *kind);
CHECKED enum status model_declare(struct model *model, const struct dataset *dataset,
                                  size_t n_students, size_t n_items, size_t n_skills);
void model_destroy(struct model *model);

/* Where the data at hand have column k of model->covariates: its number there, or k itself if
 * there are no data. A column that is missing, or of the other kind, is an error. */
CHECKED enum status model_column(const struct model *model, size_t k, size_t *found);

/* Names the next rows of a table after the levels of a factor that attempts bring. */
void model_name_levels(const struct model *model, const char *factor, struct table *table);

#endif
