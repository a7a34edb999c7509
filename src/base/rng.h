/* Random numbers that have names instead of an order. */
#ifndef COHORT_RNG_H
#define COHORT_RNG_H

#include "base/base.h"

/* What a number is for. New purposes go at the end: the value is part of every number's
 * name. */
enum rng_purpose {
    RNG_ORDER,      /* order of students in an epoch */
    RNG_INIT,       /* initial values of parameters */
    RNG_HIDDEN,     /* samples of hidden units */
    RNG_VISIBLE,    /* samples of visible units */
    RNG_SPLIT,      /* which attempts are held out */
    RNG_RESAMPLE,   /* bootstrap weights */
    RNG_SIMULATE,   /* simulated classes */
    RNG_FILE_ORDER, /* order of students in a data set */
    RNG_DROPOUT,    /* which units are dropped */
    RNG_SWEEP       /* points of a sweep */
};

/* The name of a stream of numbers; index 0, 1, 2, ... counts within it. */
struct rng {
    uint64_t seed;
    enum rng_purpose purpose;
    uint32_t part; /* below 2^24: a Gibbs step, a tensor, ... */
    uint32_t when; /* epoch or step */
    uint32_t who;  /* student, lane, ... */
};

/* Four words, number `index` of the stream: Philox4x32-10. */
void rng_words(const struct rng *rng, uint32_t index, uint32_t words[4]);

/* Single numbers: 64 bits, a uniform number in (0, 1), a standard normal, an integer below n.
 * Each uses one index of the stream. */
uint64_t rng_bits(const struct rng *rng, uint32_t index);
double rng_uniform(const struct rng *rng, uint32_t index);
double rng_normal(const struct rng *rng, uint32_t index);
uint64_t rng_below(const struct rng *rng, uint32_t index, uint64_t n);

/* values[0..n) = a random permutation of 0..n-1. */
void rng_order(const struct rng *rng, uint32_t *values, size_t n);

#endif
