/* The log-likelihood of students' steps under a model. */
#ifndef COHORT_LIKELIHOOD_H
#define COHORT_LIKELIHOOD_H

#include "base/base.h"
#include "base/comm.h"
#include "learn/model.h"

struct likelihood_result {
    int64_t n_steps, n_students;
    int64_t n_sampled;      /* steps whose probability was estimated by sampling */
    int64_t n_impossible;   /* of these, with a probability clearly above 1 */
    int64_t n_temperatures; /* that sufficed, or the most allowed; 0: none */
    bool settled;           /* doubling them would make no relevant difference */
    double mean;            /* nats per step */
    double bias;            /* approximate excess of the mean due to sampling */
    double standard_error;  /* of the mean, from sampling, bias included; 0: nothing sampled */
    double spread_error;    /* of the mean, from the choice of students */
};

/* Collective: over the students of all ranks' shards; the same bits on any number of ranks. The
 * model kind must support it. */
void likelihood_measure(const struct comm *comm, const struct model *model, void *work,
                        const struct shard *shard, unsigned splits,
                        const struct likelihood_plan *plan, struct likelihood_result *result);

#endif
