/* Several trained models combined into one. */
#ifndef COHORT_BLENDING_H
#define COHORT_BLENDING_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/metrics.h"
#include "runs/inference.h"

enum blend_method { BLEND_CONVEX, BLEND_LOGISTIC };
extern const char *const blend_methods[]; /* NULL-terminated */
enum { BLEND_MOST = 16 };

/* The members' predictions for this rank's attempts with a known outcome, in one order: the
 * validation attempts (part 0) and the test attempts (part 1). */
struct blend_part {
    size_t n;
    struct prediction *list; /* without probabilities */
    float *p[BLEND_MOST];    /* p[m][i]: member m, attempt i */
};

struct blend {
    const struct comm *comm;
    size_t n_members;
    char *paths[BLEND_MOST], *kinds[BLEND_MOST], *settings[BLEND_MOST]; /* settings: JSON */
    char *data, *train; /* the data set's path; [train] lines of what is held out */
    size_t n_refits;
    char *origins[BLEND_MOST];        /* original run of a refit; NULL: not a refit */
    char checkpoints[BLEND_MOST][33]; /* digests of the members when they predicted */
    char *digests;                    /* of all original runs' checkpoints; NULL: none */
    char data_digest[33];
    struct blend_part parts[2];
};

/* Weights of some of the members. */
struct blend_weights {
    enum blend_method method;
    size_t n, members[BLEND_MOST];
    double weights[BLEND_MOST], intercept;
};

/* Collective: opens each run and predicts with it; for a refit, its original run predicts the
 * validation attempts. All must have been trained on the same data set; `data` is its path, "":
 * the path that the runs name. Destroy after a failure too. */
CHECKED enum status blend_create(struct blend *blend, const struct comm *comm,
                                 const char *const *paths, size_t n, const char *data);
void blend_destroy(struct blend *blend);

/* Collective: fits the weights with the smallest log-loss on the validation attempts, for the
 * members and method in `weights`. The same bits on any number of ranks. */
void blend_fit(const struct blend *blend, struct blend_weights *weights);

/* Collective: the score on a part of a blend, or of a single member (weight 1). */
void blend_score(const struct blend *blend, const struct blend_weights *weights, int part,
                 bool skip_first, struct score *score);

/* Collective: saves the blend of all members as a run. */
CHECKED enum status blend_save(const struct blend *blend, const struct blend_weights *weights,
                               const char *directory);

#endif
