/* How likely the steps of students are under a model. */
#ifndef COHORT_LIKELIHOOD_H
#define COHORT_LIKELIHOOD_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/model.h"

struct likelihood_result {
    int64_t n_steps, n_students;
    int64_t n_sampled;      /* steps whose chance was estimated by sampling */
    int64_t n_impossible;   /* of these, chances clearly above 1 */
    int64_t n_temperatures; /* that were enough, or the most allowed; 0: none */
    bool settled;           /* twice as many would make no difference that counts */
    double mean;            /* nats a step */
    double bias;            /* by which sampling makes the mean too high, about */
    double standard_error;  /* of the mean, from sampling, bias included; 0: nothing sampled */
    double spread_error;    /* of the mean, from which students there are */
};

/* Collective: over all students of all ranks' shards; the same bits at any number of ranks. The
 * model's kind must offer it. */
void likelihood_measure(const struct comm *comm, const struct model *model, void *work,
                        const struct shard *shard, unsigned splits,
                        const struct likelihood_plan *plan, struct likelihood_result *result);

#endif
