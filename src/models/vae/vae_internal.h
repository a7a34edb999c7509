/* What the files of the ML2P-VAE share: vae.c (what it is), vae_prior.c (the prior),
 * vae_encoder.c, vae_learn.c (the bound and its gradient), vae_predict.c, vae_errors.c
 * (standard errors). Nothing else includes this. */
#ifndef COHORT_VAE_INTERNAL_H
#define COHORT_VAE_INTERNAL_H

#include "learn/layers/dense.h"
#include "learn/layers/embedding.h"
#include "learn/model.h"
#include "learn/row_sums.h"

enum { A_NONNEGATIVE, A_SIGNED, A_EQUAL, A_ONE };
enum { POSTERIOR_INDEPENDENT, POSTERIOR_FULL };
enum { GRADIENT_DOUBLE, GRADIENT_PLAIN };
enum { PREDICTION_INTEGRATED, PREDICTION_PLUG_IN };
enum { VAE_MOST_DIMS = 64, VAE_MOST_LAYERS = 8 };

struct vae_options {
    int discrimination, posterior, gradient, prediction;
    int64_t dimensions, hidden, layers, samples, prefixes, kl_warm_up;
    const char *prior_correlation;
    double prior_a, prior_b;
};

/* Where things are. Columns of the decoder's panel: a (K), q (K), b, number of answers, and the
 * standard errors of a and b. */
struct vae_shape {
    size_t n_dims, n_out, hidden, width, n_layers; /* width: padded hidden; n_out padded too */
    size_t decoder, common, bias, count;           /* panels */
    struct embedding input;
    struct dense layer[VAE_MOST_LAYERS + 1]; /* 1, 2, ...; number n_layers is the last */
    size_t column_q, column_b, column_n, column_error;
    bool full;
};

/* The posterior of one student: N(mean, L L^T), L lower triangular, rows of K numbers. */
struct vae_posterior {
    real mean[VAE_MOST_DIMS], *root; /* K x K */
    double log_det;                  /* sum of log L_kk */
};

/* The prior N(0, Sigma) by its whitening W, Sigma^-1 = W^T W, and P = W^T W. */
struct vae_prior {
    size_t n_dims;
    double *whitening, *precision; /* K x K */
    double log_det;                /* sum of log W_kk */
};

/* One row for each history that the encoder reads: all answers of a student, or the first few.
 */
struct vae_row {
    uint32_t student; /* of the shard */
    uint32_t n;       /* answers */
    bool whole;
};

struct vae_work {
    const struct shard *shard;
    const struct vae_shape *shape;
    struct vae_prior prior;
    uint64_t *first; /* n_students + 1 */
    uint32_t *unit;  /* training answers: 2 * item + outcome, first[s] .. first[s+1] */

    struct vae_row *rows; /* of a block */
    size_t n_rows, row_capacity;
    real *h[VAE_MOST_LAYERS], *dh, *out, *d_out; /* rows x width; rows x n_out */
    real *gradient;                              /* one matrix */
    struct dense_packed packed[VAE_MOST_LAYERS + 1];
    struct row_sums inputs, items;

    /* one student at a time; `capacity` answers */
    size_t capacity;
    real *a, *b, *y, *e, *da, *db;
    real *epsilon, *theta;
    double *log_weight;
    size_t n_samples, n_residuals; /* room in epsilon, theta and log_weight; in e */
    struct vae_posterior posterior;
    real *sum; /* of rows of the first layer */
};

static inline const struct vae_shape *vae_shape(const struct model *model)
{
    return model->shape;
}

/* a_ik, from the item's row of the decoder and the row of discriminations that are equal. */
static inline real vae_discrimination(const struct vae_options *o,
                                      const struct vae_shape *shape, const real *row,
                                      const real *common, size_t k)
{
    const real a = o->discrimination == A_ONE     ? 1
                   : o->discrimination == A_EQUAL ? common[k]
                                                  : row[k];
    return row[shape->column_q + k] == 0 ? 0 : o->discrimination == A_SIGNED || a > 0 ? a : -a;
}

CHECKED enum status vae_prior_prepare(struct config *config);
CHECKED enum status vae_prior_create(struct vae_prior *prior, const char *text, size_t n_dims);
void vae_prior_free(struct vae_prior *prior);

/* log p(theta) - log q(theta) at theta = m + L epsilon. */
double vae_log_ratio(const struct vae_prior *prior, const struct vae_posterior *posterior,
                     const real *epsilon, const real *theta);
/* Weights that add up to one in place of their logarithms; returns log of their mean. */
double vae_normalize(double *log_weight, size_t n);
double vae_prior_kl(const struct vae_prior *prior, const struct vae_posterior *posterior);

/* Room for the encoder's rows; matrices packed for products, to be done again when they have
 * changed. */
void vae_encoder_reserve(struct vae_work *work, size_t n_rows);
void vae_encoder_pack(const struct model *model, struct vae_work *work, bool back);

/* Row r begins from the sum of the rows of n answers; then n rows go through the layers, to
 * work->out. */
void vae_encoder_start(const struct model *model, struct vae_work *work, size_t r,
                       const real *sum, size_t n);
void vae_encoder_finish(const struct model *model, struct vae_work *work, size_t n);

/* The rows of a block in training, forward and backward. */
void vae_encoder_forward(const struct model *model, struct vae_work *work);
void vae_encoder_backward(const struct model *model, struct vae_work *work,
                          struct tally *tally);

/* The posterior of n answers. */
void vae_encoder_read(const struct model *model, struct vae_work *work, const uint32_t *unit,
                      size_t n, struct vae_posterior *posterior);
void vae_posterior_of(const struct vae_shape *shape, const real *out,
                      struct vae_posterior *posterior);
void vae_posterior_draw(const struct vae_shape *shape, const struct vae_posterior *posterior,
                        const real *epsilon, real *theta);

void *vae_attach(const struct model *model, const struct shard *shard, enum model_use use);
void vae_detach(void *work);
void vae_training(const void *work, bool *has_training, int64_t *n_attempts);
void vae_accumulate(const struct model *model, void *work, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally);
void vae_draw_epsilon(struct vae_work *work, const struct draw *draw, uint32_t part, size_t s,
                      size_t n_samples);
/* Room for a student's answers (a padded number), samples, and samples whose residuals are kept
 * together. */
void vae_reserve(struct vae_work *work, size_t n_answers, size_t n_samples, size_t n_residuals);
size_t vae_collect_items(const struct model *model, struct vae_work *work, const uint32_t *unit,
                         size_t n);

void vae_predict_many(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *p);
void vae_deviation(const struct model *model, void *work, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation);
void vae_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
size_t vae_live_size(const struct model *model);
void vae_live_ready(const struct model *model, void *work);
void vae_live_begin(const struct model *model, void *work, void *state);
void vae_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void vae_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);
void vae_hidden(const struct model *model, void *work, size_t s, real *activation);
void vae_likelihood(const struct model *model, void *work, size_t s, unsigned splits,
                    const struct likelihood_plan *plan, struct likelihood *sum);

enum status vae_examine(struct model *model, const struct shard *shard,
                        const struct comm *comm);

#endif
