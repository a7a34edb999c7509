/* Dropout of a vector, forward and backward. */
#ifndef COHORT_DROPOUT_H
#define COHORT_DROPOUT_H

#include "base/base.h"
#include "base/rng.h"

/* For one vector at a time: backward must follow its own forward. */
struct dropout {
    double rate; /* of numbers that become zero; 0: nothing is done */
    size_t n;    /* a multiple of WIDTH */
    real *u, *mask, *y;
};

void dropout_create(struct dropout *dropout, double rate, size_t n);
void dropout_free(struct dropout *dropout);

/* x with numbers dropped, in memory of the layer; x itself at rate 0. `rng` names the draw. */
const real *dropout_forward(struct dropout *dropout, const struct rng *rng, const real *x);

/* Derivatives by the result are replaced by those by x. */
void dropout_backward(const struct dropout *dropout, real *dx);

#endif
