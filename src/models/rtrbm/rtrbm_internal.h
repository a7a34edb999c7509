/* Shared by the files of the RTRBM; not included elsewhere.
 *
 *     rtrbm.c             the model
 *     rtrbm_view.c        steps of students
 *     rtrbm_learn.c       the gradient through time
 *     rtrbm_exact.c       the gradient of one step, exactly
 *     rtrbm_cd.c          the gradient of steps by contrastive divergence
 *     rtrbm_structure.c   gates between skills
 *     rtrbm_predict.c     predictions
 *     rtrbm_dense.c       means of whole frames
 *     rtrbm_likelihood.c  probabilities of steps
 *     rtrbm_ais.c         their sums over states
 *     rtrbm_sample.c      samples */
#ifndef COHORT_RTRBM_INTERNAL_H
#define COHORT_RTRBM_INTERNAL_H

#include "data/sequence.h"
#include "kernels/matmul.h"
#include "kernels/rbm_rows.h"
#include "kernels/vec.h"
#include "learn/model.h"
#include "learn/row_sums.h"

enum { VISIBLE_BERNOULLI, VISIBLE_SOFTMAX };
enum { GRADIENT_EXACT, GRADIENT_CD };
enum { STRUCTURE_NONE, STRUCTURE_SKILLS, STRUCTURE_ITEMS };
enum {
    PANEL_VISIBLE,
    PANEL_VISIBLE_BIAS,
    PANEL_BIAS,
    PANEL_FIRST,
    PANEL_RECURRENT,
    PANEL_GATES
};
enum { MOST_UNITS = 8 }; /* of a step whose states are all summed: 2^8 */

struct rtrbm_options {
    int visible, gradient, structure;
    int64_t hidden, skill_units, cd_steps, chains, sweeps;
    const char *cd_schedule;
    bool dense, recompute;
    double scale, loop, spread, sharpness, penalty;
};

/* Hidden units: the shared ones first, then `group_size` for each group (skill or item). */
struct rtrbm_shape {
    struct row_shape rows; /* of the table of weights: stride = width */
    size_t hidden, width;
    size_t n_groups, n_shared, group_size;
};

/* The attempts of one step by their role, as units 2 * item + outcome. */
struct rtrbm_step {
    size_t n_shown, n_targets, n_clamped;
    uint32_t *shown;   /* form r, the state after the step */
    uint32_t *targets; /* learned from */
    uint32_t *clamped; /* shown but not learned from: given */
};

/* Tables of a stretch of steps: row r is a step of a student, as in struct sequence. */
struct rtrbm_rows {
    size_t capacity;
    real *x; /* input of the hidden units without the step's own answers; then e, then e + g */
    real *r; /* state after the step */
};

/* Scratch for steps in which all items are visible: one row per step of a stretch. */
struct rtrbm_frames {
    size_t capacity, stride; /* rows; items, padded */
    real *data, *model;      /* visible units */
    real *mean, *hidden;     /* hidden units: means and samples */
    real *first;             /* hidden means of the data */
    real *u, *bias;          /* one row */
    real *gradient, *bias_gradient;
    bool *learned; /* whether a step is learned from */
};

/* Prediction where all items are visible: rows are chains, or the states of a few units. */
struct rtrbm_dense {
    size_t n, stride;       /* rows; items, padded */
    real *v, *h, *u;        /* n rows each */
    real *bias, *p;         /* one row */
    double *chance;         /* of each row: log-probability, then weight */
    struct packed up, down; /* W and its transpose */
};

struct rtrbm_work {
    const struct shard *shard;
    const struct rtrbm_shape *shape;
    bool dense;
    uint64_t *first_step; /* n_students + 1: steps of student s are first_step[s] .. */
    uint64_t *step;       /* n_steps + 1: attempts of step q are step[q] .. step[q + 1] */
    uint32_t *length;     /* of each student: steps up to the last training step */

    /* The weights in effect: the parameters themselves, or masked and gated copies. */
    const real *visible, *recurrent;
    real *own_visible, *own_recurrent, *gate;

    struct packed forth, back; /* U packed for products, and its transpose */
    struct packed up, down;    /* dense: the visible weights, and their transpose */

    struct sequence sequence;
    size_t stretch; /* steps of a stretch, about the square root of the number of steps */
    struct rtrbm_rows rows;
    real *borders; /* recompute: states before each stretch, n rows each */
    size_t border_capacity;
    real *before, *after; /* rows for dU: states before steps, derivatives by inputs */
    size_t n_outer, outer_capacity, outer_room;
    real *carry, *through, *through_g; /* n rows: derivatives passed to the step before */
    size_t row_capacity;
    real *gradient;                       /* of the recurrent weights */
    real *first_gradient, *bias_gradient; /* of the hidden biases */
    struct row_sums weights, biases;

    struct rtrbm_step now;
    uint8_t *count;
    real *logit, *u; /* room for any step */
    real *zero;      /* a row of zeros: the weights of bernoulli units that are off */
    real *z, *s0, *s1, *h, *base, *sum; /* a row each */
    real *enumerated;                   /* means by unit and outcome, 2 * MOST_UNITS rows */
    struct rtrbm_frames frames;
    struct rtrbm_dense dense_rows;
};

static inline const struct rtrbm_shape *rtrbm_shape(const struct model *model)
{
    return model->shape;
}
int64_t rtrbm_cd_steps(const struct rtrbm_options *options, int64_t epoch);

/* rtrbm_view.c */
void *rtrbm_attach(const struct model *model, const struct shard *shard, enum model_use use);
void rtrbm_detach(void *work);
const uint32_t *rtrbm_lengths(const void *work);
void rtrbm_training(const void *work, bool *has_training, int64_t *n_attempts);
void rtrbm_read_step(struct rtrbm_work *work, size_t s, size_t t);
void rtrbm_add_units(const struct rtrbm_work *work, const uint32_t *unit, size_t n, real *x);
static inline const real *rtrbm_row(const struct rtrbm_work *work, uint32_t unit)
{
    const size_t width = work->shape->width;
    if (work->shape->rows.per_item == 2)
        return work->visible + (size_t)unit * width;
    return unit & 1 ? work->visible + (size_t)(unit >> 1) * width : work->zero;
}
static inline double rtrbm_bias(const struct model *model, uint32_t unit)
{
    const struct panel *panel = &model->params.panels[PANEL_VISIBLE_BIAS];
    const real *bias =
        params_rows(&model->params, PANEL_VISIBLE_BIAS) + (size_t)(unit >> 1) * panel->stride;
    const bool both =
        ((const struct rtrbm_options *)model->options)->visible == VISIBLE_SOFTMAX;
    return both ? (double)bias[unit & 1] : unit & 1 ? (double)bias[0] : 0;
}
/* Statistics of a unit: its row (NULL where it has none), and its bias. */
real *rtrbm_touch(struct rtrbm_work *work, uint32_t unit);
void rtrbm_touch_bias(struct rtrbm_work *work, uint32_t unit, real value);

/* One step: replaces x by e, adds loss and statistics of the visible units of work->now. */
void rtrbm_learn_one(const struct model *model, struct rtrbm_work *work, real *x,
                     struct tally *tally);
void rtrbm_learn_states(const struct model *model, struct rtrbm_work *work, real *x,
                        struct tally *tally);
void rtrbm_learn_cd(const struct model *model, struct rtrbm_work *work, size_t s, size_t t,
                    const struct draw *draw, real *x, struct tally *tally);
/* All steps of a stretch at once, where all items are visible. */
void rtrbm_learn_frames(const struct model *model, struct rtrbm_work *work, size_t from,
                        size_t to, const struct draw *draw, real *x, struct tally *tally);
void rtrbm_read_frame(const struct rtrbm_work *work, real *row);
void rtrbm_read_whole(const struct model *model, struct rtrbm_work *work);
void rtrbm_frames_reserve(const struct model *model, struct rtrbm_work *work, size_t n_rows);
void rtrbm_frames_free(struct rtrbm_frames *frames);

/* rtrbm_learn.c */
void rtrbm_accumulate(const struct model *model, void *work, const uint32_t *students, size_t n,
                      const struct draw *draw, struct tally *tally);

/* rtrbm_structure.c */
void rtrbm_mask_row(const struct rtrbm_shape *shape, const struct model *model, size_t item,
                    real *row);
void rtrbm_weigh(const struct model *model, struct rtrbm_work *work);
void rtrbm_mask_weights(const struct model *model, struct rtrbm_work *work);
void rtrbm_add_recurrent(const struct model *model, struct rtrbm_work *work, int64_t n_scored,
                         struct tally *tally);

/* rtrbm_predict.c: a walk along a student's steps. work->base is the input of the hidden units
 * of the next step. */
void rtrbm_walk_begin(const struct model *model, struct rtrbm_work *work);
void rtrbm_walk_on(const struct model *model, struct rtrbm_work *work);
void rtrbm_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
void rtrbm_hidden(const struct model *model, void *work, size_t s, real *activation);
size_t rtrbm_live_size(const struct model *model);
void rtrbm_live_ready(const struct model *model, void *work);
void rtrbm_live_begin(const struct model *model, void *work, void *state);
void rtrbm_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                     const struct live_attempt *attempts);
void rtrbm_live_ask(const struct model *model, void *work, const void *state,
                    const struct live_attempt *when, const uint32_t *items, size_t n, real *p);

/* rtrbm_dense.c: the means of all visible units given work->base; `when` names the random
 * numbers. */
void rtrbm_dense_reserve(const struct model *model, struct rtrbm_work *work);
void rtrbm_dense_free(struct rtrbm_dense *dense);
const real *rtrbm_dense_means(const struct model *model, struct rtrbm_work *work,
                              uint32_t when);

/* rtrbm_likelihood.c, rtrbm_ais.c, rtrbm_sample.c */
void rtrbm_likelihood(const struct model *model, void *work, size_t s, unsigned splits,
                      const struct likelihood_plan *plan, struct likelihood *sum);
void rtrbm_sample(const struct model *model, void *work, size_t s, uint64_t seed, uint32_t who,
                  int64_t n_gibbs, const struct sample_sink *sink);
size_t rtrbm_n_nodes(const struct model *model, bool *by_item);
void rtrbm_graph(const struct model *model, real *gate, real *strength);

/* The RBM of one step with its units as bits:
 *
 *     log Z = first + log sum over v of exp(bias . v) prod_j (1 + e^(x_j + v . W_j)) */
struct rtrbm_bits {
    size_t n, stride;   /* units; n padded */
    double first;       /* log weight of the state in which all outcomes are 0 */
    const real *weight; /* n rows of `width` */
    real *own_weight, *bias, *x;
    size_t capacity;
};
void rtrbm_bits_fill(const struct model *model, const struct rtrbm_work *work,
                     const uint32_t *unit, size_t n, const real *x, struct rtrbm_bits *bits);
void rtrbm_bits_free(struct rtrbm_bits *bits);
/* `lack`: how much too small sampling makes the result, estimated from halves of the chains. */
double rtrbm_log_sum(const struct rtrbm_shape *shape, const struct rtrbm_bits *bits,
                     const struct likelihood_plan *plan, uint32_t who, uint32_t when,
                     double *variance, double *lack);

#endif
