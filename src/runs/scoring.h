/* Predictions of a model for the attempts of a shard. */
#ifndef COHORT_SCORING_H
#define COHORT_SCORING_H

#include "base/base.h"
#include "learn/metrics.h"
#include "learn/model.h"
#include "runs/stand_ins.h"

/* Probabilities for all attempts of the shard whose split is in the set of bits `splits`,
 * including those with an unknown outcome; `place[i]` is the attempt's index in the shard. Not
 * collective. */
struct predictions {
    size_t n;
    struct prediction *list;
    uint64_t *place;
    const struct stand_ins *stand_ins; /* in passes of which they are the means; NULL: none */
};
CHECKED enum status scoring_predict(const struct model *model, void *work,
                                    const struct shard *shard, unsigned splits,
                                    struct predictions *predictions);
/* The same for those students s of the shard of which only[s] is true. */
CHECKED enum status scoring_predict_some(const struct model *model, void *work,
                                         const struct shard *shard, unsigned splits,
                                         const bool *only, struct predictions *predictions);
void scoring_free(struct predictions *predictions);

/* Removes attempts with an unknown outcome and, if asked, each student's first attempt. */
void scoring_keep(struct predictions *predictions, const struct shard *shard, bool skip_first);

/* The predictions excluding each student's first attempt; caller frees. */
struct prediction *scoring_rest(const struct prediction *list, size_t n, size_t *n_rest);

#endif
