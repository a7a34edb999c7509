/* A student whose attempts come one by one: the walk goes on from attempt to attempt, and the
 * student's own numbers are found again whenever something is asked. */
#include "kernels/vec.h"
#include "models/ktm/ktm_internal.h"

static struct ktm_sight sight_of(const struct live_attempt *attempt, uint32_t item)
{
    return (struct ktm_sight){.item = item,
                              .mark = attempt->mark,
                              .time = attempt->time,
                              .columns = attempt->covariate};
}

void ktm_live_begin(const struct model *model, void *memory, void *state)
{
    (void)state;
    struct ktm_work *work = memory;
    ktm_reserve(model, work, 1);
    ktm_walk_begin(&work->walk);
    if (work->student != NULL)
        ktm_student_begin(work->student);
}

void ktm_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    (void)state;
    struct ktm_work *work = memory;
    const struct fm_point point = ktm_point(model);
    for (size_t i = 0; i < n; i++) {
        const uint8_t mark = attempts[i].mark;
        struct ktm_sight sight = sight_of(&attempts[i], attempts[i].item);
        sight.wanted = work->student != NULL && mark_is_shown(mark);
        ktm_walk_clear(&work->walk);
        ktm_walk_attempt(&work->walk, &sight);
        if (!sight.wanted)
            continue;
        fm_kernels->score(&work->walk.attempts, &point, work->sum, work->score);
        ktm_student_show(work->student, (double)work->score[0], work->sum,
                         mark_outcome(mark) == CORRECT);
    }
}

void ktm_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)state;
    struct ktm_work *work = memory;
    const struct fm_point point = ktm_point(model);
    ktm_reserve(model, work, n);
    ktm_walk_clear(&work->walk);
    for (size_t i = 0; i < n; i++) {
        struct ktm_sight sight = sight_of(when, items[i]);
        sight.wanted = sight.asked = true;
        ktm_walk_attempt(&work->walk, &sight);
    }
    fm_kernels->score(&work->walk.attempts, &point, work->sum, work->score);
    for (size_t i = 0; work->student != NULL && i < n; i++)
        work->score[i] = (real)((double)work->score[i] +
                                ktm_student_score(work->student, work->sum + i * point.stride));
    vec->sigmoid(work->score, size_padded(n));
    for (size_t i = 0; i < n; i++)
        p[i] = work->score[i];
}
