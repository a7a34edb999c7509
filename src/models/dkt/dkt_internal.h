/* What the files of DKT share: dkt.c (what it is), dkt_learn.c (the gradient), dkt_target.c
 * (one target per student), dkt_penalty.c (DKT+), dkt_predict.c. Nothing else includes this. */
#ifndef COHORT_DKT_INTERNAL_H
#define COHORT_DKT_INTERNAL_H

#include "data/sequence.h"
#include "learn/layers/dropout.h"
#include "learn/layers/embedding.h"
#include "learn/layers/recurrent.h"
#include "learn/model.h"
#include "learn/row_sums.h"

enum { INPUT_ITEM, INPUT_SKILL, INPUT_BOTH };
enum { SEEN_WRONG, SEEN_RIGHT, SEEN_ONLY, N_SEEN }; /* what an attempt tells those after it */

enum { PREDICTED_TOGETHER = 48 };

enum { DKT_TRACE, DKT_FINAL };
enum { LOSS_CROSS_ENTROPY, LOSS_SQUARED, LOSS_GAUSSIAN };

struct dkt_options {
    int cell, input, task, loss;
    int64_t hidden, layers, window, after;
    double dropout, smoothing, center, unit;
    double reconstruction, waviness, waviness2;
    bool common;
};

/* Where things are. Features are items, skills, or items and then skills; then the common
 * one. */
struct dkt_shape {
    struct recurrent stack;
    struct embedding input, output; /* output: rows of features, or of the target */
    size_t n_features;
};

struct dkt_work {
    const struct shard *shard;
    const struct dkt_shape *shape;
    bool is_final;
    uint64_t *feature_first; /* n_items + 1 */
    uint32_t *feature; /* features of item i: feature[feature_first[i] .. feature_first[i+1]] */
    uint32_t *length; /* of each student: rows to learn from; trace: attempts up to the last one
                         to train on, final: attempts that are read, and one more */
    struct sequence sequence;
    struct recurrent_run run;
    struct row_sums inputs, outputs;
    struct dropout dropout;         /* of the state when an answer is predicted */
    struct recurrent_packed packed; /* prediction: the parameters as they are now, and */
    real *z, *h, *c, *scratch;      /* states of PREDICTED_TOGETHER students */
    uint32_t *n_read;               /* of each student: attempts that a prediction reads */
    struct dkt_waves *waves;        /* see dkt_penalty.c */
};

static inline const struct dkt_shape *dkt_shape(const struct model *model)
{
    return model->shape;
}
/* What an attempt shows to those after it; z += its rows. */
size_t dkt_seen(uint8_t mark);
void dkt_read_attempt(const struct model *model, const struct dkt_work *work, uint32_t item,
                      uint8_t mark, real *z);
real dkt_logit(const struct model *model, const struct dkt_work *work, uint32_t item,
               const real *h);

/* The state h of student s before step t after dropout. */
const real *dkt_drop(struct dkt_work *work, const struct draw *draw, size_t s, size_t t,
                     const real *h);

/* `weight` times the cross-entropy of outcome y of an item at state h, and its derivatives by
 * the output rows (gathered) and by h (added to dh). Returns the loss. */
double dkt_add_answer(const struct model *model, struct dkt_work *work, uint32_t item, double y,
                      double weight, const real *h, real *dh);

/* The penalties of DKT+ for the block, with all their derivatives. */
void dkt_add_penalties(const struct model *model, struct dkt_work *work, struct tally *tally);
void dkt_free_waves(struct dkt_waves *waves);

/* The loss of the target of student s at a row, and its derivatives. */
enum status dkt_check_targets(const struct model *model);
void dkt_add_final(const struct model *model, struct dkt_work *work, size_t s, size_t t,
                   size_t row, const struct draw *draw, struct tally *tally);
bool dkt_trains_final(const struct shard *shard, size_t s);
enum model_task dkt_task(const struct model *model);
void dkt_predict_target(const struct model *model, void *work, const uint32_t *students,
                        size_t n, double *mean, double *variance);

/* Reads n_read attempts of at most PREDICTED_TOGETHER students (group: by n_read); their states
 * are then in work->h. p[a - origin] receives the chances of attempts a of the shard. */
void dkt_predict_group(const struct model *model, struct dkt_work *work,
                       const struct sequence *group, unsigned splits, uint64_t origin, real *p);

void *dkt_attach(const struct model *model, const struct shard *shard, enum model_use use);
void dkt_detach(void *work);
const uint32_t *dkt_lengths(const void *work);
void dkt_training(const void *work, bool *has_training, int64_t *n_attempts);
void dkt_accumulate(const struct model *model, void *work, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally);
void dkt_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
void dkt_predict_many(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *p);

size_t dkt_live_size(const struct model *model);
void dkt_live_ready(const struct model *model, void *work);
void dkt_live_begin(const struct model *model, void *work, void *state);
void dkt_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void dkt_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

#endif
