/* cohort train: starts a run, continues it, or finds it finished. */
#include "base/fail.h"
#include "base/log.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "runs/cross_validation.h"
#include "runs/refit.h"
#include "runs/run.h"
#include "runs/trainer.h"
#include <math.h>
#include <string.h>

/* How it ended, if not by the last epoch that was asked for. Solvers are to converge. */
static const char *ending(const struct settings *settings, const struct result *result)
{
    if (result->converged)
        return ", converged";
    if (result->stopped_early)
        return ", stopped early";
    return settings->model->kind->fit.learn != NULL && settings->refit.epochs == 0
               ? ", not converged: more train.epochs would go on"
               : "";
}

static void report(const struct settings *settings, const struct result *result)
{
    if (result->was_finished)
        log_say("%s is finished already after %lld epochs; nothing to do%s",
                settings->run.directory, (long long)result->epochs,
                settings->refit.digest[0] != '\0' ? ""
                : result->converged               ? " (it has converged)"
                : result->stopped_early
                    ? " (it stopped early; a larger train.patience would continue it)"
                    : " (more train.epochs would continue it)");
    else
        log_say("done: %lld epochs in %.1f s%s", (long long)result->epochs, result->seconds,
                ending(settings, result));
    if (log_muted())
        return;
    if (result->best_epoch > 0)
        printf("best epoch %lld by validation %s\n", (long long)result->best_epoch,
               settings_monitor(settings));
    static const char *const names[] = {"train", "valid", "test"};
    for (int split = VALID; split < N_SPLITS; split++) {
        const struct score *score = &result->scores[split];
        if (score->n > 0 && isnan(score->auc) && !isnan(score->r2))
            printf("%-5s  n %lld  log-loss %.5f  rmse %.5g  r2 %.4f\n", names[split],
                   (long long)score->n, score->log_loss, score->rmse, score->r2);
        else if (score->n > 0)
            printf(
                "%-5s  n %lld  cbd %.5f  log-loss %.5f  auc %.4f  accuracy %.4f  rmse %.4f\n",
                names[split], (long long)score->n, score->cbd, score->log_loss, score->auc,
                score->accuracy, score->rmse);
    }
}

static void report_folds(const struct settings *settings, struct cross_validation *folds)
{
    if (log_muted())
        return;
    printf("%lld folds, test of each:\n", (long long)settings->train.folds);
    for (int m = 0; m < N_METRICS; m++)
        printf("  %-18s %.5f +- %.5f\n", metrics_names[m],
               *metrics_value(&folds->mean[TEST], m), *metrics_value(&folds->spread[TEST], m));
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    if (argc < 2)
        return command_usage(&command_train);
    struct config *config = config_create();
    struct settings settings = {0};
    enum status status = comm_agree(
        comm, config_read_words(config, (const char *const *)argv + 1, (size_t)argc - 1));
    if (status == OK)
        status = run_recall(comm, config);
    if (status == OK) {
        status = comm_agree(comm, refit_settings(comm, &settings, config));
    } else {
        config_destroy(config);
    }
    if (status == OK) {
        signals_catch();
        if (settings.train.folds > 0 && settings.train.fold == 0) {
            struct cross_validation folds;
            status = cross_validation_run(comm, &settings, &folds);
            if (status == OK)
                report_folds(&settings, &folds);
        } else {
            struct result result;
            status = trainer_run(comm, &settings, &result);
            if (status == OK)
                report(&settings, &result);
        }
    }
    settings_destroy(&settings);
    return status;
}

static void more_help(FILE *out, bool markdown)
{
    struct option_group groups[4];
    settings_help_groups(groups);
    config_help(out, groups, COUNT(groups), markdown);
    model_help(out, markdown);
}

const struct command command_train = {
    .name = "train",
    .usage = "train FILE.ini... [section.key=value...]",
    .summary = "Trains a model; the same command continues a run that was stopped",
    .details =
        "  Settings come from files of `key = value` lines in sections and from the command "
        "line,\n"
        "  which wins; data=, run= and refit= are short for data.file=, run.directory= and\n"
        "  train.refit=. A run directory holds config.ini, log.jsonl (a record for each "
        "epoch),\n"
        "  last.h5, previous.h5, best.h5 and, at the end, result.json. USR1 or TERM: finish "
        "the\n"
        "  step, save, exit with code 85. With train.folds = k the run is a cross-validation "
        "in\n"
        "  directories fold-1 ... fold-k.\n"
        "  A run that is continued keeps the settings that are not said again, so run=RUN is\n"
        "  enough to continue it (a cross-validation needs its settings again); of those that "
        "are\n"
        "  said only train.epochs, train.patience and places may differ.\n"
        "  refit=RUN trains the model of a finished run again, on its training and validation\n"
        "  attempts together, when validation has served its purpose: its settings, its data\n"
        "  set, as many epochs as its best took, the schedule of the rate as it was. Only "
        "data=\n"
        "  (the same data, elsewhere) and [run] may be said beside it; other settings may be\n"
        "  repeated but not changed. Nothing is validated, so nothing stops it early.",
    .more_help = more_help,
    .run = run,
};
