/* Vectors over the rows one rank needs to train a knowledge tracing machine. */
#ifndef COHORT_KTM_SOLVE_H
#define COHORT_KTM_SOLVE_H

#include "models/ktm/ktm_internal.h"

/* A vector has a number for each weight and each factor of the common rows, which every rank
 * has, and of the own students' rows, which no other rank has: weights first (padded), then
 * rows of `stride` factors. Common parts have the same bits on all ranks. */
struct ktm_space {
    const struct comm *comm;
    size_t n_common, n_rows; /* rows; those from n_common on are the rank's own students */
    size_t k, stride, n_weights, n;
    bool has_students;
};

void ktm_space_make(struct ktm_space *space, const struct ktm_design *design,
                    const struct model *model, const struct shard *shard,
                    const struct comm *comm);
struct fm_point ktm_space_point(const struct ktm_space *space, real *vector);

/* Collective: a . b over all rows of all ranks, with the same bits for any number of ranks. */
double ktm_space_dot(const struct ktm_space *space, const real *a, const real *b);

/* The parameters as a vector, and (collective) back; `flat` has the parameters' layout. */
void ktm_space_take(const struct ktm_space *space, const struct model *model,
                    size_t first_student, const real *flat, real *vector);
void ktm_space_put(const struct ktm_space *space, const struct model *model, const real *vector,
                   real *flat);

/* The curvature between the weights of the first rows, those of features with few rows. Its
 * inverse preconditions the conjugate gradients. */
enum { KTM_MOST_DENSE = 1000 };
struct ktm_block {
    size_t n;       /* rows; all others are treated as independent */
    int64_t *sums;  /* lower triangle, row by row, fixed point */
    double *matrix; /* its Cholesky factor, in scaled variables */
    double *side;   /* a vector */
};
void ktm_block_create(struct ktm_block *block, const struct ktm_design *design);
void ktm_block_free(struct ktm_block *block);
void ktm_block_clear(struct ktm_block *block);
void ktm_block_add(struct ktm_block *block, const struct fm_features *attempts,
                   const real *weight);

/* Collective: sums over all ranks and factors the matrix; `penalty` and `scale` are vectors. */
void ktm_block_factor(struct ktm_block *block, const struct ktm_space *space,
                      const real *penalty, const real *scale);
/* z = an approximate inverse of the scaled curvature times r. */
void ktm_block_apply(const struct ktm_block *block, const struct ktm_space *space,
                     const real *r, real *z);

#endif
