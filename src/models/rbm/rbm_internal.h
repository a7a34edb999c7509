/* Shared by the files of the RBM: rbm.c (the model), rbm_cd.c (contrastive divergence) and
 * rbm_predict.c (prediction). Not included elsewhere. */
#ifndef COHORT_RBM_INTERNAL_H
#define COHORT_RBM_INTERNAL_H

#include "kernels/rbm_rows.h"
#include "kernels/vec.h"
#include "learn/model.h"

enum { VISIBLE_BERNOULLI, VISIBLE_SOFTMAX };
enum rbm_hidden { HIDDEN_BINARY, HIDDEN_GAUSSIAN, HIDDEN_RELU };
enum { REPEATS_EACH, REPEATS_LAST };
enum { START_ZERO, START_LOG_ODDS };
enum { PREDICTION_EXACT, PREDICTION_MEAN_FIELD };
enum { PANEL_VISIBLE, PANEL_HIDDEN, PANEL_SEEN, PANEL_FACTORS, PANEL_COMMON };

struct rbm_options {
    int visible, hidden_kind, repeats, start, prediction;
    int64_t copies, hidden, factors, cd_steps, window;
    const char *cd_schedule;
    bool conditional, persistent, common;
    double scale;
};

struct rbm_shape {
    /* the table of visible units: weights and, in column `dims`, the bias */
    struct row_shape rows;
    size_t m, stride; /* hidden units; length of a padded vector of them, at least m + 1 */
    size_t dims, n_factors; /* columns of a row: n_factors if there are any, else m */
    enum rbm_hidden hidden_kind;
};

/* The RBM's view of a shard, and scratch memory for one student at a time. */
struct rbm_work {
    const struct shard *shard;
    const struct rbm_shape *shape;
    uint64_t *first; /* n_students + 1 */
    /* training units of student s: 2 * item + outcome, first[s] .. first[s + 1] */
    uint32_t *unit;
    uint8_t *chain; /* persistent: correct copies of each unit in the last state of the chain */
    uint64_t *seen_first;
    uint32_t *seen; /* conditional: the items student s saw, each once */
    /* prediction: units shown so far; the first n_added are in the sum */
    uint32_t *shown;
    size_t n_shown, n_added, shown_room;
    uint32_t *met; /* items with a `last` */
    size_t n_met, met_room;
    int64_t n_known[2]; /* incorrect and correct answers in the sum */
    int64_t *last;      /* scratch by item: position of its last answer, -1 between students */

    real *base, *x, *h, *f, *g, *logit, *u; /* vectors; logit and u have room for any student */
    real *mean, *mean_data, *f_data;
    uint8_t *count;
    int32_t *q_data, *q_model, *q_hidden, *scratch;
    real *factor_statistics; /* of a block, C rows */
};

static inline const struct rbm_shape *rbm_shape(const struct model *model)
{
    return model->shape;
}
void rbm_lift(const struct rbm_shape *shape, const struct model *model, const real *f,
              const real *base, real *x);
void rbm_add_common(const struct rbm_shape *shape, const struct model *model, int64_t n_right,
                    int64_t n_wrong, real *f);
void rbm_lower(const struct rbm_shape *shape, const struct model *model, const real *h,
               real *g);
void rbm_visible_input(const struct rbm_shape *shape, const struct model *model,
                       const uint32_t *unit, size_t n, const real *g, real *logit);
void rbm_mean(const struct rbm_shape *shape, const real *x, real *mean);
int64_t rbm_cd_steps(const struct rbm_options *options, int64_t epoch);

void *rbm_attach(const struct model *model, const struct shard *shard, enum model_use use);
void rbm_detach(void *work);
void rbm_training(const void *work, bool *has_training, int64_t *n_attempts);
void rbm_measure(const struct model *model, const void *work, const struct comm *comm,
                 size_t most_students, bool *wide, int *bits);
void rbm_accumulate(const struct model *model, void *work, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally);
void *rbm_state(void *work, size_t *n_bytes);
void rbm_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
void rbm_hidden(const struct model *model, void *work, size_t s, real *activation);
void rbm_live_begin(const struct model *model, void *work, void *state);
void rbm_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void rbm_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

#endif
