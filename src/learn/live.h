/* Students of a trained model whose attempts come one by one. */
#ifndef COHORT_LIVE_H
#define COHORT_LIVE_H

#include "learn/model.h"

struct live;

/* Students of `model` with its view `work`, which nothing else may use meanwhile. The data set of
 * the view tells how many covariates an attempt has. */
struct live *live_create(const struct model *model, void *work, const struct dataset *dataset);
void live_destroy(struct live *live);

/* A new student; returns its number: 0, 1, 2, ... */
size_t live_add(struct live *live);
/* A new student who has made the attempts of student s. */
size_t live_copy(struct live *live, size_t s);
/* Makes student s a new one again. */
void live_restart(struct live *live, size_t s);

/* p[i]: the chance of a right answer of student s at items[i], if the attempt `when` were at it.
 * Has the bits of `predict`. */
void live_ask(struct live *live, size_t s, const struct live_attempt *when,
              const uint32_t *items, size_t n, real *p);

/* How many students should be asked and then told together, to be fast. */
size_t live_together(const struct live *live);

/* An attempt of each of n different students. */
void live_tell(struct live *live, size_t n, const size_t *students,
               const struct live_attempt *attempts);

/* Whether a model has a notion of knowing apart from answering right; then p is the chance that
 * student s knows skill (or item, see model_live) k. */
bool live_knows(const struct model *model);
void live_know(struct live *live, size_t s, uint32_t k, real *p);

/* Bytes that students take. */
size_t live_bytes(const struct live *live);

#endif
