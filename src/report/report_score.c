/* Scores a model on all attempts, and on attempts grouped by the number of earlier answers of
 * the student, by their share of correct ones, by probability and by item. Only integers are
 * summed over ranks: probabilities are first rounded to multiples of 2^-30. */
#include "base/fail.h"
#include "base/memory.h"
#include "report/report_internal.h"
#include "runs/baseline.h"
#include "runs/scoring.h"
#include "runs/targets.h"
#include <math.h>

#define FIXED_ONE 0x1p30

static int64_t fixed(float probability)
{
    return llrint((double)probability * FIXED_ONE);
}

static double mean_of(int64_t sum, int64_t n)
{
    return n > 0 ? (double)sum / FIXED_ONE / (double)n : NAN;
}

/* The predictions with keep[i] == key. */
static size_t choose(const struct prediction *list, const uint8_t *keep, uint8_t key, size_t n,
                     struct prediction *some)
{
    size_t n_some = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i] == key)
            some[n_some++] = list[i];
    return n_some;
}

static void interval(const struct comm *comm, const struct prediction *list, size_t n,
                     struct score *low, struct score *high)
{
    metrics_interval(comm, list, n, REPORT_RESAMPLINGS, 1, low, high);
}

static void rate(const struct comm *comm, const struct prediction *list, size_t n,
                 struct report_rated *rated)
{
    struct prediction *rest = NEW_SCRATCH(struct prediction, n);
    size_t n_rest = 0;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_first)
            rest[n_rest++] = list[i];
    metrics_score(comm, list, n, &rated->all);
    metrics_score(comm, rest, n_rest, &rated->rest);
    interval(comm, list, n, &rated->low, &rated->high);
    memory_free(rest);
}

/* The student's answers shown to the model before an attempt: those of earlier steps. */
struct past {
    uint32_t n, right;
};

static struct past *past_of(const struct shard *shard)
{
    struct past *past = NEW_SCRATCH(struct past, shard->n_attempts);
    for (size_t s = 0; s < shard->n_students; s++) {
        struct past before = {0, 0}, now = {0, 0};
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            if (shard->mark[t] & MARK_STEP)
                before = now;
            past[t] = before;
            if (mark_is_shown(shard->mark[t]) && mark_outcome(shard->mark[t]) != UNKNOWN) {
                now.n++;
                now.right += mark_outcome(shard->mark[t]) == CORRECT;
            }
        }
    }
    return past;
}

/* By the number of answers seen before. */
static void rate_seen(struct report_run *run, const struct comm *comm,
                      const struct predictions *predictions, const struct prediction *items,
                      const struct past *past)
{
    const size_t n = predictions->n;
    uint8_t *bucket = NEW_SCRATCH(uint8_t, n);
    for (size_t i = 0; i < n; i++)
        bucket[i] = (uint8_t)report_bucket(past[predictions->place[i]].n);
    struct prediction *some = NEW_SCRATCH(struct prediction, n);
    for (size_t b = 0; b < REPORT_BUCKETS; b++) {
        struct report_part *part = &run->seen[b];
        size_t n_some = choose(predictions->list, bucket, (uint8_t)b, n, some);
        metrics_score(comm, some, n_some, &part->model);
        if (part->model.n == 0)
            continue;
        interval(comm, some, n_some, &part->low, &part->high);
        if (items != NULL) {
            n_some = choose(items, bucket, (uint8_t)b, n, some);
            metrics_score(comm, some, n_some, &part->item_mean);
        }
    }
    memory_free(some);
    memory_free(bucket);
}

/* By the share of correct answers among those seen before. */
static void rate_tenths(struct report_run *run, const struct comm *comm,
                        const struct predictions *predictions, const struct prediction *items,
                        const struct past *past)
{
    int64_t sums[REPORT_TENTHS][4] = {{0}};
    for (size_t i = 0; i < predictions->n; i++) {
        const struct past *before = &past[predictions->place[i]];
        if (before->n < REPORT_SEEN)
            continue;
        const size_t tenth =
            size_min((size_t)before->right * REPORT_TENTHS / before->n, REPORT_TENTHS - 1);
        sums[tenth][0]++;
        sums[tenth][1] += predictions->list[i].correct;
        sums[tenth][2] += fixed(predictions->list[i].probability);
        sums[tenth][3] += items != NULL ? fixed(items[i].probability) : 0;
    }
    comm_sum_i64(comm, &sums[0][0], REPORT_TENTHS * 4);
    for (size_t k = 0; k < REPORT_TENTHS; k++)
        run->tenths[k] = (struct report_tenth){
            .n = sums[k][0],
            .correct = sums[k][0] > 0 ? (double)sums[k][1] / (double)sums[k][0] : NAN,
            .model = mean_of(sums[k][2], sums[k][0]),
            .item_mean = items != NULL ? mean_of(sums[k][3], sums[k][0]) : NAN};
}

static void rate_items(struct report_run *run, const struct inference *inference,
                       const struct predictions *predictions)
{
    const size_t n_items = inference->dataset.n_items;
    int64_t *sums = NEW(int64_t, 3 * n_items), *right = sums + n_items,
            *chance = right + n_items;
    for (size_t i = 0; i < predictions->n; i++) {
        const uint32_t item = inference->shard.item[predictions->place[i]];
        sums[item]++;
        right[item] += predictions->list[i].correct;
        chance[item] += fixed(predictions->list[i].probability);
    }
    comm_sum_i64(inference->comm, sums, 3 * n_items);
    names_copy(&run->items, &inference->dataset.items);
    run->item_n = sums;
    run->item_right = right;
    run->item_predicted = NEW_SCRATCH(double, n_items);
    for (size_t i = 0; i < n_items; i++)
        run->item_predicted[i] = mean_of(chance[i], sums[i]);
}

/* Calibration, and the histograms of probabilities by outcome. */
static void rate_chances(struct report_run *run, const struct comm *comm,
                         const struct prediction *list, size_t n)
{
    metrics_calibration(comm, list, n, run->bins);
    for (size_t i = 0; i < n; i++)
        run->chances[list[i].correct][size_min(
            (size_t)((double)list[i].probability * REPORT_BINS), REPORT_BINS - 1)]++;
    comm_sum_i64(comm, &run->chances[0][0], 2 * REPORT_BINS);
}

static unsigned split_set(const struct report_run *run)
{
    return run->split == REPORT_ALL ? (1u << N_SPLITS) - 1 : 1u << run->split;
}

static enum status score_answers(struct report_run *run, const struct inference *inference)
{
    const struct comm *comm = inference->comm;
    struct predictions predictions;
    TRY(inference_predict(inference, split_set(run), &predictions));
    scoring_keep(&predictions, &inference->shard, false);
    struct item_counts counts;
    struct prediction *items = NULL;
    if (inference_counts(inference, &counts)) {
        items = baseline_predict(BASELINE_ITEMS, inference->model, &inference->shard, &counts,
                                 &predictions);
        memory_free(counts.right);
    }
    struct past *past = past_of(&inference->shard);
    run->has_item_mean = items != NULL;
    rate(comm, predictions.list, predictions.n, &run->model);
    if (items != NULL)
        rate(comm, items, predictions.n, &run->item_mean);
    rate_chances(run, comm, predictions.list, predictions.n);
    rate_seen(run, comm, &predictions, items, past);
    rate_tenths(run, comm, &predictions, items, past);
    rate_items(run, inference, &predictions);
    memory_free(past);
    memory_free(items);
    scoring_free(&predictions);
    return OK;
}

/* Rank 0 keeps an even selection of at most MOST_POINTS students with their targets. */
enum { MOST_POINTS = 600 };

static void keep_points(struct report_run *run, const struct comm *comm,
                        const struct target_prediction *targets, size_t n)
{
    size_t n_bytes = 0;
    struct target_prediction *all = comm_gather(comm, targets, n * sizeof *targets, &n_bytes);
    const size_t n_all = n_bytes / sizeof *all;
    if (comm->rank == 0) {
        size_t n_known = 0;
        for (size_t i = 0; i < n_all; i++)
            if (!isnan(all[i].target))
                all[n_known++] = all[i];
        run->n_finals = size_min(n_known, MOST_POINTS);
        run->final_target = NEW_SCRATCH(double, run->n_finals);
        run->final_mean = NEW_SCRATCH(double, run->n_finals);
        for (size_t i = 0; i < run->n_finals; i++) {
            const struct target_prediction *one = &all[size_cut(n_known, i, run->n_finals)];
            run->final_target[i] = one->target;
            run->final_mean[i] = one->mean;
        }
    }
    memory_free(all);
}

static enum status score_targets(struct report_run *run, const struct inference *inference)
{
    const struct comm *comm = inference->comm;
    struct target_prediction *targets = NULL;
    size_t n = 0;
    TRY(comm_agree(comm, targets_predict(inference->model, inference->work, &inference->shard,
                                         split_set(run), &targets, &n)));
    targets_score(comm, inference->model, targets, n, &run->model.all);
    keep_points(run, comm, targets, n);
    struct prediction *list = NEW_SCRATCH(struct prediction, n);
    size_t n_known = 0;
    for (size_t i = 0; i < n && run->task == TASK_CHANCE; i++)
        if (!isnan(targets[i].target))
            list[n_known++] = (struct prediction){.probability = (float)targets[i].mean,
                                                  .student = targets[i].student,
                                                  .group = -1,
                                                  .correct = targets[i].target > 0.5};
    if (run->task == TASK_CHANCE) {
        rate_chances(run, comm, list, n_known);
        interval(comm, list, n_known, &run->model.low, &run->model.high);
    }
    const struct baseline_target target = baseline_target(inference);
    for (size_t i = 0; i < n; i++) {
        targets[i].mean = target.mean;
        targets[i].variance = target.variance;
    }
    targets_score(comm, inference->model, targets, n, &run->item_mean.all);
    run->has_item_mean = true;
    memory_free(list);
    memory_free(targets);
    return OK;
}

enum status report_score(struct report_run *run, const struct inference *inference)
{
    return run->task == TASK_TRACE ? score_answers(run, inference)
                                   : score_targets(run, inference);
}
