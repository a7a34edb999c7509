/* What a run says: the live line, and for each epoch a line and a record of log.jsonl. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "runs/split_score.h"
#include "runs/trainer_internal.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* "5.0 million", "820 thousand" or "640" attempts per second. */
static void describe_rate(double rate, char text[64])
{
    if (rate >= 999.5e3)
        snprintf(text, 64, "%.1f million attempts per second", rate / 1e6);
    else if (rate >= 999.5)
        snprintf(text, 64, "%.0f thousand attempts per second", rate / 1e3);
    else
        snprintf(text, 64, "%.0f attempts per second", rate);
}

void trainer_say_progress(const struct trainer *t)
{
    const double seconds = log_clock() - t->started;
    const int64_t steps = t->progress.all_steps - t->steps_at_start;
    const int64_t all = trainer_epochs(t) * (int64_t)t->stepper.lanes.n_steps;
    char best[128] = "", speed[64] = "", left[96] = "";
    const char *before = "";
    if (t->progress.best_epoch > 0)
        snprintf(best, sizeof best, "; best valid %s %.5f (epoch %lld)",
                 settings_monitor(t->settings), t->progress.best,
                 (long long)t->progress.best_epoch);
    if (steps > 0 && seconds > 0) {
        const double rate = (double)steps / seconds;
        const bool may_end = t->settings->train.patience > 0 || t->model->kind->fit.learn;
        char time[64];
        terminal_duration((double)(all - t->progress.all_steps) / rate, time, sizeof time);
        snprintf(left, sizeof left, ", %s%s left", may_end ? "at most " : "", time);
        describe_rate(rate * (double)t->stepper.n_training / (double)t->stepper.lanes.n_steps,
                      speed);
        before = "; ";
    }
    log_live("epoch %lld of %lld, step %lld of %zu%s%s%s%s", (long long)t->progress.epoch + 1,
             (long long)trainer_epochs(t), (long long)t->progress.step,
             t->stepper.lanes.n_steps, left, best, before, speed);
}

/* Whether the model predicts numbers, not probabilities. */
static bool is_score(const struct trainer *t)
{
    return model_task(t->model) == TASK_SCORE || model_task(t->model) == TASK_DENSITY;
}

/* Prints a line unless the last one is very recent: short epochs would flood the screen. */
static void print_epoch(struct trainer *t, double loss, bool best)
{
    const double now = log_clock();
    if (now - t->spoke < 0.5 && !t->progress.finished && t->progress.epoch > 1)
        return;
    t->spoke = now;
    char valid[128] = "", speed[64];
    if (t->valid.n > 0 && isfinite(t->likelihood))
        snprintf(valid, sizeof valid, ", valid log-likelihood per step %.4f%s", t->likelihood,
                 best ? " (best)" : "");
    else if (t->valid.n > 0)
        snprintf(valid, sizeof valid, ", valid %s %.5f, log-loss %.5f, %s %.4f%s",
                 is_score(t) ? "rmse" : "cbd", is_score(t) ? t->valid.rmse : t->valid.cbd,
                 t->valid.log_loss, is_score(t) ? "r2" : "auc",
                 is_score(t) ? t->valid.r2 : t->valid.auc, best ? " (best)" : "");
    describe_rate(t->rate, speed);
    log_say("epoch %lld: loss %.4f%s; %.2f s, %s", (long long)t->progress.epoch, loss, valid,
            t->trained, speed);
}

char *trainer_grid(const struct trainer *t)
{
    const struct model_kind *kind = t->model->kind;
    int n_rows = 0, n_columns = 0;
    if (kind->fit.grid == NULL)
        return NULL;
    kind->fit.grid(t->model, t->comm->size, &n_rows, &n_columns);
    return memory_text("%dx%d", n_rows, n_columns);
}

enum status trainer_say_epoch(struct trainer *t, double loss, bool best)
{
    print_epoch(t, loss, best);
    if (t->comm->rank != 0)
        return OK;
    json_t *record = json_object();
    json_object_set_new(record, "epoch", json_integer(t->progress.epoch));
    json_object_set_new(record, "step", json_integer(t->progress.all_steps));
    json_object_set_new(record, "loss", json_real(loss));
    if (t->valid.n > 0)
        json_object_set_new(record, "valid", score_json(&t->valid));
    if (t->valid.n > 0 && isfinite(t->likelihood))
        json_object_set_new(record, "likelihood", json_real(t->likelihood));
    char *grid = trainer_grid(t);
    if (grid != NULL) {
        json_object_set_new(record, "blas", json_string(machine_blas_kernel()));
        json_object_set_new(record, "grid", json_string(grid));
    }
    memory_free(grid);
    json_object_set_new(record, "seconds", json_real(t->trained));
    json_object_set_new(record, "attempts_per_second", json_real(t->rate));
    json_object_set_new(record, "elapsed", json_real(trainer_elapsed(t)));
    char *text = json_dumps(record, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    enum status status = run_log_add(&t->run, text);
    free(text);
    json_decref(record);
    return status;
}
