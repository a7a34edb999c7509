/* layer 3 (learning): what the files of DKT share: dkt.c (what it is), dkt_learn.c (the
 * gradient), dkt_predict.c. Nothing else includes this. */
#ifndef COHORT_DKT_PARTS_H
#define COHORT_DKT_PARTS_H

#include "model.h"
#include "recurrent.h"
#include "sequence.h"

enum { INPUT_ITEM, INPUT_SKILL, INPUT_BOTH };
enum { SEEN_WRONG, SEEN_RIGHT, SEEN_ONLY, N_SEEN }; /* what an attempt tells those after it */

enum { PREDICTED_TOGETHER = 48 };

struct dkt_options {
    int cell, input;
    int64_t hidden, layers, window;
    double dropout, smoothing;
};

/* Where things are in a declared model. Features are items, skills, or items and then skills.
 */
struct dkt_shape {
    struct recurrent stack;
    size_t input_panel, output_panel, n_features;
};

/* Sums of gradients for the rows of a panel that a block touches. */
struct touched {
    size_t row_size, n, capacity;
    uint32_t *row;  /* n: rows of the panel */
    int32_t *place; /* for each row of the panel: its place here, -1: none */
    real *sum;      /* n x row_size */
};

struct dkt_work {
    const struct shard *shard;
    struct dkt_shape shape;
    uint64_t *feature_first; /* n_items + 1 */
    uint32_t *feature; /* features of item i: feature[feature_first[i] .. feature_first[i+1]] */
    uint32_t *length;  /* of each student: attempts up to the last one to train on */
    struct sequence sequence;
    struct recurrent_run run;
    struct touched inputs, outputs;
    real *mask, *dropped, *u; /* of one row: units that are kept, scaled; what they make of h */
    struct recurrent_packed packed; /* prediction: the parameters as they are now, and */
    real *z, *h, *c, *scratch;      /* states of PREDICTED_TOGETHER students */
    uint32_t *whole_length;         /* of each student: all attempts */
};

struct dkt_shape dkt_shape_of(const struct model *model);
void dkt_read_attempt(const struct model *model, const struct dkt_work *work, uint32_t item,
                      uint8_t mark, real *z);
real dkt_logit(const struct model *model, const struct dkt_work *work, uint32_t item,
               const real *h);

void *dkt_attach(const struct model *model, const struct shard *shard);
void dkt_detach(void *work);
const uint32_t *dkt_lengths(const void *work);
void dkt_training(const void *work, bool *has_training, int64_t *n_attempts);
void dkt_accumulate(const struct model *model, void *work, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally);
void dkt_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
void dkt_predict_many(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *p);

#endif
