/* Opens a run, measures it and closes it again, so that a page about several runs needs the
 * memory of one. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/split.h"
#include "report/report_internal.h"
#include "runs/refit.h"
#include "runs/run_find.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Collective: for each split, attempts with a known outcome, or students with a target. */
static void count_known(const struct inference *inference, int64_t n[N_SPLITS])
{
    const struct shard *shard = &inference->shard;
    const bool by_student = model_task(inference->model) != TASK_TRACE;
    for (int s = 0; s < N_SPLITS; s++)
        n[s] = 0;
    for (size_t s = 0; s < shard->n_students && by_student; s++)
        if (shard->first[s + 1] > shard->first[s] &&
            !isnan(inference->dataset.target[shard->first_student + s]))
            n[mark_split(shard->mark[shard->first[s + 1] - 1])]++;
    for (uint64_t t = 0; t < shard->n_attempts && !by_student; t++)
        if (mark_outcome(shard->mark[t]) != UNKNOWN)
            n[mark_split(shard->mark[t])]++;
    comm_sum_i64(inference->comm, n, N_SPLITS);
}

/* The requested split; if it is empty, the first non-empty one of test, validation,
 * training. */
static enum status choose_split(struct report_run *run, const struct inference *inference,
                                int asked)
{
    static const int order[] = {TEST, VALID, TRAIN};
    int64_t n[N_SPLITS];
    run->split = asked;
    TRY(inference_check_splits(inference, asked == REPORT_ALL ? 0 : 1u << asked));
    count_known(inference, n);
    if (n[TRAIN] + n[VALID] + n[TEST] == 0)
        return fail(
            BAD_USER, "%s: nothing to score: no %s; choose another data set with --data",
            inference->dataset.path,
            run->task == TASK_TRACE ? "attempt has a known outcome" : "student has a target");
    if (asked == REPORT_ALL || n[asked] > 0)
        return OK;
    for (size_t k = COUNT(order); k-- > 0;)
        if (n[order[k]] > 0)
            run->split = order[k];
    log_say("note: %s has nothing to score in split %s; the report uses split %s",
            inference->dataset.path, split_names[asked], split_names[run->split]);
    return OK;
}

static void describe(struct report_run *run, const struct inference *inference,
                     const char *path)
{
    const struct checkpoint *checkpoint = &inference->checkpoint;
    const bool is_file = strcmp(path, checkpoint->path) == 0;
    run->path = report_shown(path, is_file ? 2 : 1);
    run->label = memory_text("%s", is_file ? run->path : base_name(run->path));
    run->kind = inference->model->kind;
    run->task = model_task(inference->model);
    run->progress = checkpoint->progress;
    memcpy(run->digest, checkpoint->digest, sizeof run->digest);
    memcpy(run->data_digest, checkpoint->data_digest, sizeof run->data_digest);
    run->config = memory_text("%s", checkpoint->config);
    run->training = inference->training != NULL ? report_shown(inference->training, 1) : NULL;
    run->origin = inference->origin != NULL ? report_shown(inference->origin, 1) : NULL;
    run->n_parameters = (int64_t)params_count(&inference->model->params);
    run->n_trained_items = (int64_t)checkpoint->items.n;
    run->epochs = report_epochs(inference->config);
    run->monitor = report_monitor(inference->config);
    run->is_refit = refit_digest(inference->config) != NULL;
    run->own_data = inference->own_data;
    run->held_out = inference_held_out(inference);
    run->data.name = report_shown(inference->dataset.path, 1);
    memcpy(run->data.digest, inference->dataset.digest, sizeof run->data.digest);
    if (run->own_data)
        report_fold(inference->config, &run->data.fold, &run->data.n_folds);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Attempts per student; the same on every rank. */
static void count_lengths(struct report_data *data, const struct dataset *dataset)
{
    const size_t n = dataset->n_students;
    int64_t *length = NEW_SCRATCH(int64_t, n);
    for (size_t s = 0; s < n; s++) {
        length[s] = (int64_t)(dataset->first[s + 1] - dataset->first[s]);
        data->lengths[report_bucket((uint64_t)length[s])]++;
    }
    qsort(length, n, sizeof *length, compare);
    if (n > 0) {
        data->least = length[0];
        data->median = length[n / 2];
        data->most = length[n - 1];
    }
    memory_free(length);
}

/* Collective: the counts of the data set. To a fold, test attempts of the import are unknown ones
 * for training, which teach nothing (data/resplit.c). */
static void count_data(struct report_run *run, const struct inference *inference)
{
    const struct dataset *dataset = &inference->dataset;
    const struct shard *shard = &inference->shard;
    struct report_data *data = &run->data;
    data->n_students = (int64_t)dataset->n_students;
    data->n_items = (int64_t)dataset->n_items;
    data->n_skills = (int64_t)dataset->n_skills;
    data->n_groups = (int64_t)dataset->n_groups;
    data->n_attempts = (int64_t)dataset->n_attempts;
    count_lengths(data, dataset);
    for (size_t s = 0; s < dataset->n_students && dataset->target != NULL; s++)
        data->n_targets += !isnan(dataset->target[s]);
    int64_t *known = NEW(int64_t, 2 * dataset->n_items), *right = known + dataset->n_items;
    for (size_t s = 0; s < shard->n_students; s++) {
        bool has[N_SPLITS] = {false}, is_used = false;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const enum outcome outcome = mark_outcome(shard->mark[t]);
            const bool is_unused = data->fold > 0 && outcome == UNKNOWN;
            has[mark_split(shard->mark[t])] |= !is_unused;
            is_used |= !is_unused;
            data->unused_attempts += is_unused;
            data->attempts[mark_split(shard->mark[t])] += !is_unused;
            data->known += outcome != UNKNOWN;
            data->correct += outcome == CORRECT;
            if (stand_ins_basis(&inference->stand_ins, t) != BASIS_ITEM) {
                data->unseen += outcome != UNKNOWN;
                continue;
            }
            known[shard->item[t]] += outcome != UNKNOWN;
            right[shard->item[t]] += outcome == CORRECT;
        }
        for (int split = 0; split < N_SPLITS; split++)
            data->students[split] += has[split];
        data->unused_students += !is_used && shard->first[s + 1] > shard->first[s];
    }
    comm_sum_i64(inference->comm, known, 2 * dataset->n_items);
    int64_t *const sums[] = {&data->known, &data->correct, &data->unseen,
                             &data->unused_attempts, &data->unused_students};
    for (size_t k = 0; k < COUNT(sums); k++)
        comm_sum_i64(inference->comm, sums[k], 1);
    comm_sum_i64(inference->comm, data->attempts, N_SPLITS);
    comm_sum_i64(inference->comm, data->students, N_SPLITS);
    for (size_t i = 0; i < dataset->n_items; i++)
        if (known[i] > 0)
            data->shares[size_min((size_t)(right[i] * REPORT_BINS / known[i]),
                                  REPORT_BINS - 1)]++;
    memory_free(known);
}

enum status report_measure(struct report_run *run, const struct comm *comm, const char *path,
                           const struct report_plan *plan, struct report_pairs *pairs,
                           bool whole)
{
    struct inference inference;
    run->entry = SIZE_MAX;
    enum status status = inference_open_any(&inference, path, plan->data, comm);
    if (status == OK) {
        describe(run, &inference, path);
        status = choose_split(run, &inference, plan->split);
    }
    if (status == OK) {
        count_data(run, &inference);
        status = report_score(run, &inference, pairs, whole);
    }
    if (status == OK && whole)
        status = report_learned(run, &inference);
    if (status == OK && whole)
        status = report_members_measure(run, &inference);
    if (status == OK && whole)
        status = report_inside_measure(&run->inside, &inference, plan);
    if (status == OK && whole && !plan->compares)
        status = report_class_measure(&run->class, &inference, plan);
    if (status == OK && comm->rank == 0) {
        char *result = run_beside(path, "result.json");
        report_history_read(&run->history, path);
        run->is_unfinished = run->history.n > 0 && !file_exists(result);
        memory_free(result);
    }
    inference_close(&inference);
    return status;
}

enum status report_measure_scores(struct report_run *run, const struct inference *inference,
                                  const char *path, const struct report_plan *plan,
                                  struct report_pairs *pairs)
{
    int64_t n[N_SPLITS];
    run->entry = SIZE_MAX;
    describe(run, inference, path);
    count_known(inference, n);
    if (n[TRAIN] + n[VALID] + n[TEST] == 0)
        return OK;
    TRY(choose_split(run, inference, plan->split));
    return report_score(run, inference, pairs, false);
}

void report_run_free(struct report_run *run)
{
    memory_free(run->path);
    memory_free(run->label);
    memory_free(run->config);
    memory_free(run->training);
    memory_free(run->origin);
    memory_free(run->held_out);
    memory_free(run->data.name);
    names_free(&run->items);
    memory_free(run->item_n);
    memory_free(run->item_predicted);
    memory_free(run->final_target);
    memory_free(run->final_mean);
    report_history_free(&run->history);
    for (size_t k = 0; k < run->n_tables; k++)
        table_free(&run->tables[k]);
    memory_free(run->tables);
    memory_free(run->graph.gate);
    names_free(&run->graph.names);
    report_scale_free(&run->scales);
    names_free(&run->practice.names);
    names_free(&run->members.names);
    report_inside_free(&run->inside);
    report_class_free(&run->class);
    *run = (struct report_run){0};
}
