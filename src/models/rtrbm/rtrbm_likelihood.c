/* The log-likelihood of a student's steps under an RTRBM; symbols as in rtrbm.c.
 *
 *     log P(v_t | past) = c . v_t + sum_j S(x_j + W_j v_t) - log Z(x_t),   S(z) = log(1 + e^z)
 *
 * rtrbm_ais.c computes log Z. Where every item is visible, v_t is the whole frame. Otherwise it
 * is the known answers of the requested splits, given the other shown answers of the step. */
#include "kernels/rbm_marginal.h"
#include "models/rtrbm/rtrbm_internal.h"
#include <math.h>
#include <string.h>

/* Sorts the attempts of step q: targets are scored, clamped ones are given, shown ones form the
 * state. */
static void read_step(struct rtrbm_work *work, uint64_t q, unsigned splits)
{
    const struct shard *shard = work->shard;
    struct rtrbm_step *now = &work->now;
    now->n_shown = now->n_targets = now->n_clamped = 0;
    for (uint64_t a = work->step[q]; a < work->step[q + 1]; a++) {
        const uint8_t mark = shard->mark[a];
        const uint32_t unit = 2 * shard->item[a] + (mark_outcome(mark) == CORRECT);
        const bool asked = splits >> mark_split(mark) & 1 && mark_outcome(mark) != UNKNOWN;
        if (mark_is_shown(mark))
            now->shown[now->n_shown++] = unit;
        if (asked)
            now->targets[now->n_targets++] = unit;
        else if (mark_is_shown(mark))
            now->clamped[now->n_clamped++] = unit;
    }
}

/* log P of work->now.targets. work->z has the input of the hidden units and is overwritten. */
static double score_step(const struct model *model, struct rtrbm_work *work,
                         struct rtrbm_bits *bits, const struct likelihood_plan *plan,
                         uint32_t who, uint32_t when, double *variance, double *lack)
{
    const struct rtrbm_step *now = &work->now;
    rtrbm_add_units(work, now->clamped, now->n_clamped, work->z);
    rtrbm_bits_fill(model, work, now->targets, now->n_targets, work->z, bits);
    double log_chance = -rtrbm_log_sum(work->shape, bits, plan, who, when, variance, lack);
    rtrbm_add_units(work, now->targets, now->n_targets, work->z);
    log_chance += (double)rbm_marginal->worth(work->z, work->shape->width);
    for (size_t a = 0; a < now->n_targets; a++)
        log_chance += rtrbm_bias(model, now->targets[a]);
    return log_chance;
}

void rtrbm_likelihood(const struct model *model, void *memory, size_t s, unsigned splits,
                      const struct likelihood_plan *plan, struct likelihood *sum)
{
    struct rtrbm_work *work = memory;
    struct rtrbm_bits bits = {0};
    const size_t width = work->shape->width;
    const uint32_t who = (uint32_t)(work->shard->first_student + s);
    *sum = (struct likelihood){0};
    rtrbm_walk_begin(model, work);
    for (uint64_t q = work->first_step[s]; q < work->first_step[s + 1]; q++) {
        read_step(work, q, splits);
        memcpy(work->z, work->base, width * sizeof *work->z);
        if (work->now.n_targets > 0) {
            double variance = 0, lack = 0;
            if (work->dense)
                rtrbm_read_whole(model, work);
            const double log_chance =
                score_step(model, work, &bits, plan, who, (uint32_t)(q - work->first_step[s]),
                           &variance, &lack);
            sum->log_chance += log_chance;
            sum->variance += variance;
            sum->bias += lack;
            sum->n_sampled += variance > 0;
            sum->n_annealed += variance > 0;
            sum->n_impossible += log_chance > 3 * sqrt(variance) && variance > 0;
            sum->n_steps++;
            memcpy(work->z, work->base, width * sizeof *work->z);
        }
        rtrbm_add_units(work, work->now.shown, work->now.n_shown, work->z);
        rtrbm_walk_on(model, work);
    }
    rtrbm_bits_free(&bits);
}
