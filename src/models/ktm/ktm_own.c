/* Rows that only one student trains.
 *
 * Weights of counts, waiting times and previous attempts act through rows that items and skills
 * alone do not show: "this skill was practised within the last hour" may be one student's even
 * where many practised the skill. Such a row would hold that student's later answers, and
 * earlier predictions would read them there (see data/own_levels.h). So it is not trained: its
 * weight and factors are zero.
 *
 * Items, skills and levels of factors are dealt with for all models alike, and a student's own
 * row is found anew for each prediction (ktm_student.c). */
#include "base/memory.h"
#include "data/own_levels.h"
#include "models/ktm/ktm_solve.h"

uint8_t *ktm_own_rows(struct ktm_work *work, const struct comm *comm)
{
    const struct ktm_design *design = work->design;
    const struct shard *shard = work->shard;
    if (!own_levels_matter(shard))
        return NULL;
    const size_t n = design->n_common;
    int64_t *count = NEW(int64_t, n);
    uint32_t *last = NEW(uint32_t, n);
    for (size_t s = 0; s < shard->n_students; s++) {
        ktm_walk_student(&work->walk, shard, s, 1u << TRAIN, true, 0);
        const struct fm_features *attempts = &work->walk.attempts;
        for (size_t e = 0; e < attempts->first[attempts->n]; e++)
            own_levels_count(count, last, attempts->row[e], s);
    }
    comm_sum_i64(comm, count, n);
    uint8_t *own = NEW(uint8_t, design->n_rows);
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        for (size_t row = f->first_row;
             f->what >= KTM_PREVIOUS && row < f->first_row + f->n_rows; row++)
            own[row] = count[row] == 1;
    }
    memory_free(last);
    memory_free(count);
    return own;
}
