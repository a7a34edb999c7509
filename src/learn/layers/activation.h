/* Activation functions of layers, forward and backward. */
#ifndef COHORT_ACTIVATION_H
#define COHORT_ACTIVATION_H

#include "base/base.h"

enum activation { ACTIVATION_TANH, ACTIVATION_SIGMOID, ACTIVATION_RELU };

/* z is replaced by y = f(z); n is a multiple of WIDTH. */
void activation_forward(enum activation f, size_t n, real *z);

/* y = f(z) is replaced by the derivative by z, from dy, the derivative by y. */
void activation_backward(enum activation f, size_t n, const real *dy, real *y);

#endif
