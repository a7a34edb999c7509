/* The contract between a model and the engine.
 *
 * A model maps a block of students to statistics, and predicts. The engine does everything
 * else: it splits the students into blocks, sums the statistics of all ranks exactly, updates
 * the parameters, saves, restarts, scores and reports.
 *
 *     declare      names and shapes of the tensors                 settings  -> params
 *     init         initial values                                  seed      -> params
 *     attach       the model's own view of this rank's students    shard     -> work
 *     training     which students have training attempts           work      -> students
 *     accumulate   loss and gradient of a block of students        block     -> tally
 *     predict      p(t) from what was shown before t               student   -> p
 *     detach       frees the view
 *
 * These seven make a complete model; src/models/README.md walks through the smallest one. All
 * other members are optional, and zero if a kind does not have them: model_optional.h.
 *
 * Sign. A tally holds the gradient of the objective to be *maximised*: minus the
 *             derivative of the loss. The optimizer adds it: w += rate * gradient. The loss
 *             itself (tally_add_loss) is to be small.
 * Ownership. The engine owns model, params, shape, shard and tally. A kind owns what attach
 *             returned, until detach. Pointers into the shard and the data set stay valid
 *             while the view exists. `const struct model *` is meant literally: parameters
 *             change between calls, never during one.
 * Collective. Functions that all ranks call at the same time, and that may communicate, have
 *             a comm or a pass among their arguments. All others must not communicate, and
 *             each rank calls them as often as it likes.
 * Bits. What a student adds, and what is predicted for it, depends on that student, the
 *             parameters and the draw alone: not on the block, the rank or the order. */
#ifndef COHORT_MODEL_H
#define COHORT_MODEL_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "data/dataset.h"
#include "learn/exact_sum.h"
#include "learn/item_counts.h"
#include "learn/model_optional.h"
#include "learn/params.h"

struct model {
    const struct model_kind *kind;
    void *options; /* the kind's own struct, filled from its table of options */
    void *shape;   /* the kind's own struct of shape_size bytes, filled by declare: sizes and
                    * places of tensors, and whatever else follows from the options */
    struct params params;
    size_t n_students, n_items, n_skills; /* of the training data set */
    uint64_t most_params; /* capacity of the file they are loaded from; 0: no file */
    /* items with their skills; NULL after loading without data */
    const struct dataset *dataset;
    const struct covariates *covariates; /* of the training data */
};

/* The purpose of a view. A view for prediction need not keep what only training reads. */
enum model_use { TO_TRAIN, TO_PREDICT };

/* A named set of settings, as lines of a configuration file. */
struct preset {
    const char *name, *help, *text;
};

struct model_kind {
    const char *name;   /* model.kind */
    const char *title;  /* one line */
    const char *source; /* the publications it follows */
    const char *loss;   /* what tally.loss is, and its unit */
    const struct option *options;
    size_t n_options, options_size, shape_size;
    const struct preset *presets;
    size_t n_presets;
    const char *defaults; /* settings of other sections that suit the kind (NULL: none) */
    const char *made_by;  /* the command that makes it, for kinds that are not trained */
    void (*more_help)(struct manual *manual); /* what its options refer to (NULL: nothing) */

    /* Declares tensors from options, n_items and n_skills, and fills model->shape. Options that
     * contradict each other or the data are refused with a sentence. */
    enum status (*declare)(struct model *model);

    /* Sets all parameters; deterministic in (seed, counts). */
    void (*init)(struct model *model, uint64_t seed, const struct item_counts *counts);

    /* The kind's own view of a shard, and scratch memory. */
    void *(*attach)(const struct model *model, const struct shard *shard, enum model_use use);
    void (*detach)(void *work);

    /* has_training[s]: whether student s of the shard is part of blocks; n_attempts: how many
     * attempts they are trained on. */
    void (*training)(const void *work, bool *has_training, int64_t *n_attempts);

    /* Adds loss and gradient of n students of the shard, with at most one tally_add to any
     * place. Kinds that solve for their parameters have fit.learn instead. */
    void (*accumulate)(const struct model *model, void *work, const uint32_t *students,
                       size_t n, const struct draw *draw, struct tally *tally);

    /* p[t] = P(correct at t | what was shown before t), for attempts t of student s whose split
     * is in the bit set `splits`; other p[t] are left unchanged. */
    void (*predict)(const struct model *model, void *work, size_t s, unsigned splits, real *p);

    struct model_setup setup;       /* files it reads, which item properties it uses */
    struct model_fit fit;           /* training by other means than accumulate */
    struct model_speed speed;       /* speeds up the engine */
    struct model_view view;         /* tables and other results to show */
    struct model_sequence sequence; /* likelihoods and samples of sequences */
    struct model_live live;         /* students whose attempts come one by one */
    struct model_target target;     /* one number per student instead of a trace */
};

extern const struct model_kind *const model_kinds[];
extern const size_t n_model_kinds;
const struct model_kind *model_find(const char *name);

/* The kind named by model.kind in `config`. Adds its preset, if model.preset names one, as
 * suggestions. */
CHECKED enum status model_choose(struct config *config, const struct model_kind **kind);

/* Refuses a key of [model] that other kinds have and this one has not. */
CHECKED enum status model_check_keys(const struct config *config,
                                     const struct model_kind *kind);

/* The [model] table of a kind for config_resolve: `kind` and `preset` come before the kind's
 * own. */
struct model_names {
    const char *kind, *preset;
};
extern const struct option model_name_options[2];

/* Adds a kind to a page: a section with its settings and presets. */
void model_help(struct manual *manual, const struct model_kind *kind);

/* speed.predict_many of the kind, or predict for one student after the other. */
void model_predict(const struct model *model, void *work, const struct shard *shard,
                   const uint32_t *students, size_t n, unsigned splits, real *p);

static inline unsigned model_uses(const struct model *model)
{
    return model->kind->setup.uses != NULL ? model->kind->setup.uses(model) : 0;
}

static inline enum model_task model_task(const struct model *model)
{
    return model->kind->target.task != NULL ? model->kind->target.task(model) : TASK_TRACE;
}

/* model_declare uses the covariates of `dataset`; without data they must have been set. */
struct model *model_create(const struct model_kind *kind);
CHECKED enum status model_declare(struct model *model, const struct dataset *dataset,
                                  size_t n_students, size_t n_items, size_t n_skills);
void model_destroy(struct model *model);

/* The index in the current data of column k of model->covariates, or k itself without data. A
 * column that is missing, or of the other type, is an error. */
CHECKED enum status model_column(const struct model *model, size_t k, size_t *found);

/* Names the next rows of a table after the levels of a factor of attempts. */
void model_name_levels(const struct model *model, const char *factor, struct table *table);

#endif
