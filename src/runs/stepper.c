/* One training step:
 *
 *     lane 1: block -> tally \
 *     lane 2: block -> tally  +-- exact sum --> each rank updates its slice of the parameters
 *     ...                    /                  and shares it with all others
 *
 * The result of a step does not depend on the number of ranks. The trainer decides when to take
 * steps and what to keep. */
#include "runs/stepper.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "data/own_levels.h"
#include "data/resplit.h"
#include "runs/update.h"
#include <string.h>

/* Collective: whether any attempt, also for validation or test, has this outcome. */
static bool has_outcome(const struct stepper *stepper, enum outcome outcome)
{
    int64_t n = 0;
    for (uint64_t t = 0; t < stepper->shard.n_attempts; t++)
        n += mark_outcome(stepper->shard.mark[t]) == outcome;
    comm_sum_i64(stepper->comm, &n, 1);
    return n > 0;
}

/* Training needs both outcomes; with only one, every model would just learn to predict it. */
static enum status check_outcomes(const struct stepper *stepper,
                                  const struct item_counts *counts)
{
    int64_t n_right = 0, n_wrong = 0, n_new = 0;
    for (size_t i = 0; i < counts->n_items; i++) {
        n_right += counts->right[i];
        n_wrong += counts->wrong[i];
        n_new += counts->right[i] + counts->wrong[i] == 0;
    }
    if (n_right + n_wrong == 0)
        return fail(BAD_USER,
                    "%s: no training attempt has a known outcome, so there is nothing to learn "
                    "from; check `cohort inspect` and the split used for the import",
                    stepper->dataset.path);
    if (n_right == 0 || n_wrong == 0)
        return fail(
            BAD_USER,
            "%s: all %lld training outcomes are %s, so there is nothing to learn; check "
            "the %s of the import",
            stepper->dataset.path, (long long)(n_right + n_wrong),
            n_right > 0 ? "correct" : "incorrect",
            has_outcome(stepper, n_right > 0 ? INCORRECT : CORRECT)
                ? "split, since other attempts have other outcomes,"
                : "outcome column");
    if (n_new > 0)
        log_say("note: items without a training attempt: %lld of %zu; predictions for them "
                "depend on the student only, not on the item",
                (long long)n_new, counts->n_items);
    return OK;
}

/* A refit learns the validation attempts too. */
static enum status join(struct stepper *stepper)
{
    stepper->n_joined = resplit_join(&stepper->shard);
    comm_sum_i64(stepper->comm, &stepper->n_joined, 1);
    if (stepper->n_joined == 0)
        return fail(BAD_USER,
                    "%s: there are no validation attempts, so a refit of %s would change "
                    "nothing; import the data with validation attempts, as in --split "
                    "by-student=80/10/10",
                    stepper->dataset.path, stepper->settings->train.refit);
    return OK;
}

/* Students are assigned to folds at random, so with few students some folds may be empty. */
static enum status check_fold(const struct stepper *stepper)
{
    const struct train_options *o = &stepper->settings->train;
    int64_t n[N_SPLITS] = {0};
    for (uint64_t t = 0; t < stepper->shard.n_attempts; t++)
        n[mark_split(stepper->shard.mark[t])]++;
    comm_sum_i64(stepper->comm, n, N_SPLITS);
    if (n[VALID] > 0 && n[TEST] > 0)
        return OK;
    return fail(BAD_USER,
                "%s: no attempt is for %s in fold %lld of train.folds = %lld (students: %zu); "
                "use fewer folds",
                stepper->dataset.path, n[TEST] == 0 ? "test" : "validation", (long long)o->fold,
                (long long)o->folds, stepper->dataset.n_students);
}

/* Answers that training must not see are hidden in the shard, and still shown in `scored`. */
static void hide_own(struct stepper *stepper)
{
    struct shard *shard = &stepper->shard;
    if (stepper->dataset.n_students == 1 && own_levels_matter(shard))
        log_warn(
            "only one student: the model learns from answers after those that test it, so its "
            "scores are too good; import the data with --split by-time");
    stepper->n_hidden = own_levels_mark(shard);
    if (stepper->n_hidden == 0)
        return;
    stepper->scored = *shard;
    stepper->scored.mark = NEW_SCRATCH(uint8_t, shard->n_attempts);
    memcpy(stepper->scored.mark, shard->mark, shard->n_attempts);
    own_levels_hide(shard);
    log_say("note: training skips %lld answer%s at items, skills or groups of only one student "
            "around held-out attempts of that student: a model would reveal later answers to "
            "earlier predictions (--split by-time and by-last avoid this)",
            (long long)stepper->n_hidden, stepper->n_hidden == 1 ? "" : "s");
}

static enum status read_data(struct stepper *stepper)
{
    const struct train_options *o = &stepper->settings->train;
    size_t first = 0, n = 0;
    TRY(dataset_open(&stepper->dataset, stepper->settings->data.file, stepper->comm));
    if (stepper->settings->update.digest[0] != '\0')
        TRY(update_open(stepper->settings, stepper->comm, &stepper->dataset,
                        &stepper->original));
    TRY(lanes_create(&stepper->lanes, &stepper->dataset, (size_t)o->batch, (size_t)o->block,
                     &first, &n));
    TRY(dataset_read(&stepper->dataset, first, n, &stepper->shard));
    if (o->fold > 0) {
        resplit_folds(&stepper->shard, o->folds, o->fold, (uint64_t)o->seed);
        TRY(check_fold(stepper));
    }
    if (stepper->settings->refit.digest[0] != '\0')
        TRY(join(stepper));
    hide_own(stepper);
    return OK;
}

/* Linux grants memory it does not have and kills the process that uses it. So before any is
 * touched, the minimum that training needs is compared with what there is. Each parameter has
 * its value, the optimizer's slots, a checkpoint of these in two forms, and each rank's
 * tally. */
static enum status check_memory(const struct stepper *stepper)
{
    const size_t n = params_count(&stepper->model->params);
    const double stored =
        (double)n * sizeof(real) * (stepper->model->kind->fit.learn != NULL ? 1 : 2);
    const double need =
        3 * stored + (double)n * sizeof(int32_t) * comm_neighbours(stepper->comm);
    const double memory = machine_memory();
    return need <= memory ? OK
                          : fail(BAD_USER,
                                 "the settings need %zu parameters, and training them needs "
                                 "%.1f GB of memory, but there are only %.1f GB; use fewer "
                                 "hidden units, layers or factors",
                                 n, need / 1e9, memory / 1e9);
}

static enum status start_model(struct stepper *stepper)
{
    const struct train_options *o = &stepper->settings->train;
    const struct model_kind *kind = stepper->model->kind;
    TRY(model_declare(stepper->model, &stepper->dataset, stepper->dataset.n_students,
                      stepper->dataset.n_items, stepper->dataset.n_skills));
    TRY(comm_agree(stepper->comm, check_memory(stepper)));
    struct item_counts counts;
    item_counts_take(&counts, &stepper->shard);
    enum status status = check_outcomes(stepper, &counts);
    if (status == OK)
        kind->init(stepper->model, (uint64_t)o->seed, &counts);
    memory_free(counts.right);
    if (status == OK && stepper->settings->update.digest[0] != '\0')
        status = update_start(stepper->settings, stepper->comm, &stepper->dataset,
                              &stepper->original);
    TRY(status);

    own_levels_find(&stepper->dataset, &stepper->shard);
    stepper->work = kind->attach(stepper->model, &stepper->shard, TO_TRAIN);
    bool *has_training = NEW(bool, stepper->shard.n_students);
    kind->training(stepper->work, has_training, &stepper->n_training);
    status = lanes_fill(&stepper->lanes, &stepper->shard, has_training,
                        kind->speed.lengths ? kind->speed.lengths(stepper->work) : NULL,
                        (size_t)o->batch);
    memory_free(has_training);
    TRY(status);
    comm_sum_i64(stepper->comm, &stepper->n_training, 1);
    exact_slices_create(&stepper->slices, stepper->comm, &stepper->model->params);
    if (kind->fit.learn != NULL) {
        stepper->lanes.n_steps = 1;
        return OK;
    }
    optimizer_create(&stepper->optimizer, &stepper->settings->optimizer,
                     &stepper->model->params, &stepper->slices, o->epochs,
                     (double)stepper->lanes.n_training / (double)stepper->lanes.n_steps);
    bool wide = true;
    int bits = 32;
    if (kind->speed.measure != NULL)
        kind->speed.measure(stepper->model, stepper->work, stepper->comm,
                            stepper->lanes.most_students, &wide, &bits);
    tally_create(&stepper->tally, stepper->model->params.n, wide, bits, &stepper->slices);
    tally_expect(&stepper->tally, stepper->lanes.most_blocks);
    return OK;
}

enum status stepper_create(struct stepper *stepper, const struct comm *comm,
                           const struct settings *settings)
{
    *stepper = (struct stepper){.comm = comm,
                                .settings = settings,
                                .model = settings->model,
                                .share = 1,
                                .original = {.file = -1}};
    enum status status = read_data(stepper);
    if (status == OK)
        status = start_model(stepper);
    checkpoint_close(&stepper->original);
    return status;
}

void stepper_destroy(struct stepper *stepper)
{
    tally_destroy(&stepper->tally);
    optimizer_destroy(&stepper->optimizer);
    exact_slices_destroy(&stepper->slices);
    if (stepper->work != NULL)
        stepper->model->kind->detach(stepper->work);
    memory_free(stepper->scored.mark);
    shard_free(&stepper->shard);
    lanes_destroy(&stepper->lanes);
    dataset_close(&stepper->dataset);
}

struct view stepper_open_view(const struct stepper *stepper)
{
    if (stepper->n_hidden == 0)
        return (struct view){&stepper->shard, stepper->work};
    return (struct view){&stepper->scored, stepper->model->kind->attach(
                                               stepper->model, &stepper->scored, TO_PREDICT)};
}

void stepper_close_view(const struct stepper *stepper, struct view *view)
{
    if (view->work != stepper->work)
        stepper->model->kind->detach(view->work);
}

void stepper_begin_epoch(struct stepper *stepper, int64_t epoch)
{
    lanes_shuffle(&stepper->lanes, (uint64_t)stepper->settings->train.seed, (uint32_t)epoch);
}

static enum status pass(struct stepper *stepper, const struct draw *draw)
{
    struct pass pass = {.comm = stepper->comm,
                        .slices = &stepper->slices,
                        .lanes = &stepper->lanes,
                        .draw = *draw,
                        .share = 1};
    TRY(stepper->model->kind->fit.learn(stepper->model, stepper->work, &pass));
    stepper->tally.loss += pass.loss;
    stepper->tally.n_scored += pass.n_scored;
    stepper->converged = pass.converged;
    stepper->share = pass.share;
    return OK;
}

enum status stepper_step(struct stepper *stepper, int64_t epoch, int64_t step)
{
    const struct draw draw = {.seed = (uint64_t)stepper->settings->train.seed,
                              .epoch = (uint32_t)epoch};
    if (stepper->model->kind->fit.learn != NULL)
        return pass(stepper, &draw);
    const int64_t n_steps = (int64_t)stepper->lanes.n_steps;
    tally_clear(&stepper->tally);
    for (size_t l = 0; l < stepper->lanes.n_own; l++) {
        size_t n = 0;
        const uint32_t *students = lanes_block(&stepper->lanes, l, (size_t)step, &n);
        stepper->model->kind->accumulate(stepper->model, stepper->work, students, n, &draw,
                                         &stepper->tally);
    }
    exact_sum(&stepper->slices, &stepper->tally);
    optimizer_step(&stepper->optimizer, &stepper->tally, epoch * n_steps + step, n_steps);
    return OK;
}
