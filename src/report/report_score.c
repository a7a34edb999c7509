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
#include <string.h>

#define FIXED_ONE 0x1p30

int64_t report_score_fixed(float probability)
{
    return llrint((double)probability * FIXED_ONE);
}

double report_score_mean(int64_t sum, int64_t n)
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
    metrics_interval(comm, list, n, REPORT_RESAMPLINGS, REPORT_SEED, low, high);
}

/* Whether the run is scored on the attempts of the first run of the comparison. Attempts of
 * data with one digest differ only if other ones are held out. */
static bool is_same(const struct report_run *run, const struct report_run *first)
{
    return run->task == first->task && run->split == first->split &&
           strcmp(run->data.digest, first->data.digest) == 0 &&
           (run->split == REPORT_ALL || strcmp(run->held_out, first->held_out) == 0);
}

static enum status join(struct report_pairs *pairs, const struct prediction *list, size_t n,
                        size_t *entry, struct report_rated *rated)
{
    TRY(paired_add(&pairs->paired, list, n));
    *entry = pairs->paired.n - 1;
    rated->low = pairs->paired.entries[*entry].low;
    rated->high = pairs->paired.entries[*entry].high;
    return OK;
}

/* Collective: intervals of the model, and of the baselines if it is the first to join. */
static enum status compare(struct report_run *run, struct report_pairs *pairs,
                           const struct comm *comm, const struct prediction *list,
                           struct prediction *const baselines[N_BASELINES], size_t n)
{
    if (pairs == NULL)
        return OK;
    if (pairs->first != NULL && !is_same(run, pairs->first)) {
        interval(comm, list, n, &run->model.low, &run->model.high);
        return OK;
    }
    TRY(join(pairs, list, n, &run->entry, &run->model));
    struct report_rated unused = {0};
    for (int b = 0; pairs->first == NULL && b < N_BASELINES; b++)
        if (baselines[b] != NULL)
            TRY(join(pairs, baselines[b], n, &pairs->baseline[b],
                     b == BASELINE_ITEMS ? &run->item_mean : &unused));
    if (pairs->first == NULL)
        pairs->first = run;
    return OK;
}

static void rate(const struct comm *comm, const struct prediction *list, size_t n,
                 struct report_rated *rated)
{
    size_t n_rest = 0;
    struct prediction *rest = scoring_rest(list, n, &n_rest);
    metrics_score(comm, list, n, &rated->all);
    metrics_score(comm, rest, n_rest, &rated->rest);
    memory_free(rest);
}

/* The baselines on the validation answers, for the curves of training. */
static void rate_valid(struct report_run *run, const struct inference *inference,
                       const struct item_counts *counts)
{
    const struct shard *shard = &inference->shard;
    struct predictions valid = {0};
    size_t n = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        n += mark_split(shard->mark[t]) == VALID && mark_outcome(shard->mark[t]) != UNKNOWN;
    valid.list = NEW_SCRATCH(struct prediction, n);
    valid.place = NEW_SCRATCH(uint64_t, n);
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            if (mark_split(shard->mark[t]) == VALID &&
                mark_outcome(shard->mark[t]) != UNKNOWN) {
                valid.place[valid.n] = t;
                valid.list[valid.n++] =
                    (struct prediction){.student = (uint32_t)(shard->first_student + s),
                                        .group = -1,
                                        .correct = mark_outcome(shard->mark[t]) == CORRECT};
            }
    for (int b = 0; b < N_BASELINES; b++) {
        struct prediction *list =
            baseline_predict((enum baseline)b, inference->model, shard, counts, &valid);
        metrics_score(inference->comm, list, valid.n, &run->valid[b]);
        memory_free(list);
    }
    scoring_free(&valid);
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
        sums[tenth][2] += report_score_fixed(predictions->list[i].probability);
        sums[tenth][3] += items != NULL ? report_score_fixed(items[i].probability) : 0;
    }
    comm_sum_i64(comm, &sums[0][0], REPORT_TENTHS * 4);
    for (size_t k = 0; k < REPORT_TENTHS; k++)
        run->tenths[k] = (struct report_tenth){
            .n = sums[k][0],
            .correct = sums[k][0] > 0 ? (double)sums[k][1] / (double)sums[k][0] : NAN,
            .model = report_score_mean(sums[k][2], sums[k][0]),
            .item_mean = items != NULL ? report_score_mean(sums[k][3], sums[k][0]) : NAN};
}

/* Answers to items that the model was not trained on are those of no item. */
static void rate_items(struct report_run *run, const struct inference *inference,
                       const struct predictions *predictions)
{
    const size_t n_items = inference->dataset.n_items;
    int64_t *sums = NEW(int64_t, 3 * n_items), *right = sums + n_items,
            *chance = right + n_items;
    for (size_t i = 0; i < predictions->n; i++) {
        const uint64_t t = predictions->place[i];
        const uint32_t item = inference->shard.item[t];
        if (stand_ins_basis(&inference->stand_ins, t) != BASIS_ITEM) {
            run->n_unseen++;
            continue;
        }
        sums[item]++;
        right[item] += predictions->list[i].correct;
        chance[item] += report_score_fixed(predictions->list[i].probability);
    }
    comm_sum_i64(inference->comm, sums, 3 * n_items);
    comm_sum_i64(inference->comm, &run->n_unseen, 1);
    names_copy(&run->items, &inference->dataset.items);
    run->item_n = sums;
    run->item_right = right;
    run->item_predicted = NEW_SCRATCH(double, n_items);
    for (size_t i = 0; i < n_items; i++)
        run->item_predicted[i] = report_score_mean(chance[i], sums[i]);
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

unsigned report_score_splits(const struct report_run *run)
{
    return run->split == REPORT_ALL ? (1u << N_SPLITS) - 1 : 1u << run->split;
}

/* The other sections of the page. */
static void rate_parts(struct report_run *run, const struct inference *inference,
                       const struct predictions *predictions, const struct prediction *items)
{
    const struct comm *comm = inference->comm;
    struct past *past = past_of(&inference->shard);
    rate_chances(run, comm, predictions->list, predictions->n);
    rate_seen(run, comm, predictions, items, past);
    rate_tenths(run, comm, predictions, items, past);
    rate_items(run, inference, predictions);
    memory_free(past);
}

static enum status score_answers(struct report_run *run, const struct inference *inference,
                                 struct report_pairs *pairs, bool whole)
{
    const struct comm *comm = inference->comm;
    struct predictions predictions;
    TRY(inference_predict(inference, report_score_splits(run), &predictions));
    scoring_keep(&predictions, &inference->shard, false);
    struct item_counts counts;
    struct prediction *baselines[N_BASELINES] = {NULL};
    run->has_item_mean = inference_counts(inference, &counts);
    for (int b = 0; b < N_BASELINES && run->has_item_mean; b++)
        baselines[b] = baseline_predict((enum baseline)b, inference->model, &inference->shard,
                                        &counts, &predictions);
    rate(comm, predictions.list, predictions.n, &run->model);
    if (run->has_item_mean) {
        rate(comm, baselines[BASELINE_ITEMS], predictions.n, &run->item_mean);
        metrics_score(comm, baselines[BASELINE_AVERAGE], predictions.n, &run->running_mean);
        if (whole)
            rate_valid(run, inference, &counts);
        memory_free(counts.right);
    }
    const enum status status =
        compare(run, pairs, comm, predictions.list, baselines, predictions.n);
    if (status == OK && whole) {
        rate_parts(run, inference, &predictions, baselines[BASELINE_ITEMS]);
        report_practice_measure(run, inference, &predictions);
    }
    for (int b = 0; b < N_BASELINES; b++)
        memory_free(baselines[b]);
    scoring_free(&predictions);
    return status;
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

/* Targets that are right or wrong, with the probabilities given. */
static size_t list_targets(const struct target_prediction *targets, size_t n,
                           struct prediction *list)
{
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(targets[i].target))
            list[n_known++] = (struct prediction){.probability = (float)targets[i].mean,
                                                  .student = targets[i].student,
                                                  .group = -1,
                                                  .correct = targets[i].target > 0.5};
    return n_known;
}

static enum status score_targets(struct report_run *run, const struct inference *inference,
                                 struct report_pairs *pairs, bool whole)
{
    const struct comm *comm = inference->comm;
    struct target_prediction *targets = NULL;
    enum status status = OK;
    size_t n = 0;
    TRY(comm_agree(comm, targets_predict(inference->model, inference->work, &inference->shard,
                                         report_score_splits(run), &targets, &n)));
    targets_score(comm, inference->model, targets, n, &run->model.all);
    if (whole)
        keep_points(run, comm, targets, n);
    struct prediction *list = NEW_SCRATCH(struct prediction, n),
                      *means[N_BASELINES] = {NEW_SCRATCH(struct prediction, n)};
    const size_t n_known = list_targets(targets, n, list);
    const struct baseline_target target = baseline_target(inference);
    for (size_t i = 0; i < n; i++) {
        targets[i].mean = target.mean;
        targets[i].variance = target.variance;
    }
    targets_score(comm, inference->model, targets, n, &run->item_mean.all);
    run->has_item_mean = true;
    if (run->task == TASK_CHANCE) {
        rate_chances(run, comm, list, n_known);
        list_targets(targets, n, means[BASELINE_ITEMS]);
        status = compare(run, pairs, comm, list, means, n_known);
    }
    memory_free(means[BASELINE_ITEMS]);
    memory_free(list);
    memory_free(targets);
    return status;
}

/* Bootstrap samples of one student are all the same: there is no interval. */
static void drop_interval(const struct score *score, struct score *low, struct score *high)
{
    if (score->n_students >= REPORT_FEWEST_STUDENTS)
        return;
    low->n = high->n = 0;
    for (int m = 0; m < N_METRICS; m++)
        *metrics_value(low, m) = *metrics_value(high, m) = NAN;
}

enum status report_score(struct report_run *run, const struct inference *inference,
                         struct report_pairs *pairs, bool whole)
{
    const enum status status = run->task == TASK_TRACE
                                   ? score_answers(run, inference, pairs, whole)
                                   : score_targets(run, inference, pairs, whole);
    drop_interval(&run->model.all, &run->model.low, &run->model.high);
    drop_interval(&run->model.all, &run->item_mean.low, &run->item_mean.high);
    for (size_t b = 0; b < REPORT_BUCKETS; b++)
        drop_interval(&run->seen[b].model, &run->seen[b].low, &run->seen[b].high);
    return status;
}
