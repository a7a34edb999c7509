/* Several trained models made into one. */
#ifndef COHORT_BLENDING_H
#define COHORT_BLENDING_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/metrics.h"
#include "runs/inference.h"

enum blend_method { BLEND_CONVEX, BLEND_LOGISTIC };
extern const char *const blend_methods[]; /* NULL-terminated */
enum { BLEND_MOST = 16 };

/* What the members say of the attempts with a known outcome that this rank holds, in one order:
 * the validation attempts (0) and the test attempts (1). */
struct blend_part {
    size_t n;
    struct prediction *list; /* all but the probability */
    float *p[BLEND_MOST];    /* p[m][i] of member m for attempt i */
};

struct blend {
    const struct comm *comm;
    size_t n_members;
    char *paths[BLEND_MOST], *kinds[BLEND_MOST], *settings[BLEND_MOST]; /* settings: JSON */
    char *data, *train; /* the data set's path; [train] lines that say what is held out */
    size_t n_refits;
    char *origins[BLEND_MOST]; /* the run that a member is a refit of, NULL: it is none */
    char checkpoints[BLEND_MOST][33]; /* digests of what the members were when they predicted */
    char *digests;                    /* of all origins' checkpoints, NULL: there are none */
    char data_digest[33];
    struct blend_part parts[2];
};

/* Weights of some of the members. */
struct blend_weights {
    enum blend_method method;
    size_t n, members[BLEND_MOST];
    double weights[BLEND_MOST], intercept;
};

/* Collective: opens each run and lets it predict; the validation attempts of a refit are
 * predicted by the run it is a refit of. All must have been trained on the same data set;
 * `data` says where it is now, "" where the runs say. Destroy after a failure too. */
CHECKED enum status blend_create(struct blend *blend, const struct comm *comm,
                                 const char *const *paths, size_t n, const char *data);
void blend_destroy(struct blend *blend);

/* Collective: the weights with the least log-loss on the validation attempts, for the members
 * and the method that `weights` names. The same bits on any number of ranks. */
void blend_fit(const struct blend *blend, struct blend_weights *weights);

/* Collective: the score of a blend, or of one member alone (weights 1), on a part. */
void blend_score(const struct blend *blend, const struct blend_weights *weights, int part,
                 bool skip_first, struct score *score);

/* Collective: saves the blend of all members as a run. */
CHECKED enum status blend_save(const struct blend *blend, const struct blend_weights *weights,
                               const char *directory);

#endif
