/* cohort train: starts a run, continues it, or reports that it is finished. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "runs/cross_validation.h"
#include "runs/defaults.h"
#include "runs/run_find.h"
#include "runs/run_settings.h"
#include "runs/trainer.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct values {
    bool explain;
};

static const struct flag flags[] = {
    {{"explain", OPTION_SWITCH, offsetof(struct values, explain), "no", 0, 0, NULL,
      "print the settings that follow from the data, each with its reason, and do not train"},
     0,
     NULL},
};

/* How it ended, if not after train.epochs. Solvers should converge. */
static const char *ending(const struct settings *settings, const struct result *result)
{
    if (result->converged)
        return ", converged";
    if (result->stopped_early)
        return ", stopped early";
    return settings->model->kind->fit.learn != NULL && settings->refit.epochs == 0
               ? ", not converged: raise train.epochs to continue"
               : "";
}

static void report(const struct settings *settings, const struct result *result)
{
    char time[64];
    terminal_duration(result->seconds, time, sizeof time);
    if (result->was_finished)
        log_say(
            "%s is already finished after %lld epoch%s; nothing to do%s",
            settings->run.directory, (long long)result->epochs, result->epochs == 1 ? "" : "s",
            settings->refit.digest[0] != '\0' ? ""
            : result->converged               ? " (it has converged)"
            : result->stopped_early ? " (it stopped early; raise train.patience to continue it)"
                                    : " (raise train.epochs to continue it)");
    else
        log_say("done: %lld epoch%s in %s%s", (long long)result->epochs,
                result->epochs == 1 ? "" : "s", time, ending(settings, result));
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
    const int last = result->scores[TEST].n > 0 ? TEST : VALID;
    if (result->scores[last].n > 0)
        baseline_say(last == TEST ? "test" : "validation", result->scores[last].log_loss,
                     result->baselines[last]);
}

static void report_folds(const struct settings *settings, struct cross_validation *folds)
{
    if (log_muted())
        return;
    printf("%lld folds, test scores, mean and standard deviation:\n",
           (long long)settings->train.folds);
    for (int m = 0; m < N_METRICS; m++)
        printf("  %-18s %.5f +- %.5f\n", metrics_names[m],
               *metrics_value(&folds->mean[TEST], m), *metrics_value(&folds->spread[TEST], m));
}

/* Words that cannot be settings: directories, which are taken for runs. */
static enum status check_words(const char *const *words, int n)
{
    for (int w = 0; w < n; w++)
        if (strchr(words[w], '=') == NULL && file_is_directory(words[w])) {
            char *run = shell_quote_text("run=%s", words[w]);
            const enum status status =
                fail(BAD_USER,
                     "%s is a directory; expected a file of settings. To continue the run in "
                     "it, use %s",
                     words[w], run);
            memory_free(run);
            return status;
        }
    return OK;
}

static void print_shape(const char *file, const struct data_shape *shape)
{
    printf("%s: %.0f items, %.0f skills; for training %.0f answers of %.0f students, %.1f "
           "per student, %.1f per item;\n%.0f %% are to an item, %.0f %% to a skill, that "
           "the student has met before\n\n",
           file, shape->n_items, shape->n_skills, shape->n_answers, shape->n_students,
           shape->per_student, shape->per_item, 100 * shape->repeats, 100 * shape->practice);
    if (shape->n_skills == 0)
        printf("The data have no skills, so every item counts as a skill of its own.\n\n");
}

/* Rank 0: prints the defaults, unless a run with these settings would be refused. */
static enum status print_defaults(struct config *config, const struct data_shape *shape)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&text, &n);
    struct settings settings = {.config = config};
    enum status status = defaults_suggest(config, shape, out);
    fclose(out);
    if (status == OK) /* a directory is not needed to explain */
        status = config_suggest(config, "run.directory = none\n", "--explain");
    if (status == OK)
        status = settings_create(&settings, config, shape);
    if (status == OK) {
        const struct model_kind *kind = settings.model->kind;
        print_shape(settings.data.file, shape);
        if (kind->defaults != NULL)
            printf("%s    what suits %s on any data\n", kind->defaults, kind->name);
        fputs(text, stdout);
    }
    model_destroy(settings.model);
    free(text);
    return status;
}

/* Collective: prints the defaults for the data. */
static enum status explain(const struct comm *comm, const char *const *words, int n_words)
{
    struct config *config = config_create();
    struct data_shape shape;
    const struct model_kind *kind = NULL;
    enum status status = check_words(words, n_words);
    if (status == OK)
        status = config_read_words(config, words, (size_t)n_words);
    const char *file = config_get(config, "data", "file");
    if (status == OK && (file == NULL || file[0] == '\0'))
        status = fail(BAD_USAGE, "--explain needs data=DATA.h5: defaults follow from the data");
    if (status == OK && (config_get(config, "train", "refit") != NULL ||
                         config_get(config, "train", "update") != NULL))
        status = fail(BAD_USAGE, "--explain is for a new run: a refit or an update has the "
                                 "settings of its original run, which are in config.ini there");
    if (status == OK)
        status = model_choose(config, &kind);
    status = comm_agree(comm, status);
    if (status == OK)
        status = data_shape_read(&shape, file, comm);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? print_defaults(config, &shape) : OK);
    config_destroy(config);
    return status;
}

/* Collective: reads files and settings, and those of the run that is continued. */
static enum status read_settings(const struct comm *comm, struct config *config,
                                 struct settings *settings, const char *const *words,
                                 int n_words)
{
    enum status status = check_words(words, n_words);
    if (status == OK)
        status = config_read_words(config, words, (size_t)n_words);
    status = comm_agree(comm, status);
    if (status == OK)
        status = run_recall(comm, config);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? run_check(config) : OK);
    if (status == OK)
        return comm_agree(comm, run_settings(comm, settings, config));
    config_destroy(config);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    struct settings settings = {0};
    struct values values = {0};
    enum status status = command_parse(&command_train, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_train);
    if (status == OK && values.explain) {
        status = explain(comm, words, n_words);
        memory_free(words);
        return status;
    }
    if (status == OK)
        status = read_settings(comm, config_create(), &settings, words, n_words);
    memory_free(words);
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

static void more_help(struct manual *manual)
{
    struct option_group groups[5];
    settings_help_groups(groups);
    groups[4] =
        (struct option_group){"model", model_name_options, COUNT(model_name_options), NULL};
    manual_heading(manual, "SETTINGS");
    manual_paragraph(manual, "Each kind of model has further settings in [model]: see "
                             "cohort-models(7), or `cohort help rbm` for one kind.");
    config_help(manual, groups, COUNT(groups));
}

const struct command command_train = {
    .name = "train",
    .usage = "train [FILE.ini...] [section.key=value...] [--explain]",
    .summary = "Train a model; run the same command again to continue it",
    .details =
        "Settings come from files of `key = value` lines in sections and from the command "
        "line, which takes precedence. A file that does not exist here may be one that comes "
        "with cohort, such as rbm.ini. data=, run= and refit= are short for data.file=, "
        "run.directory= and train.refit=. update=RUN trains a "
        "finished run further on new data: see cohort-update(1).\n\n"
        "data=, run= and model.kind= are enough: settings that are not given follow from the "
        "shape of the data, by rules that --explain prints with their reasons. config.ini has "
        "them all.\n\n"
        "The run directory holds config.ini, log.jsonl (one record per epoch), the checkpoints "
        "last.h5, previous.h5 and best.h5 and, at the end, result.json. On USR1, TERM or "
        "Ctrl-C "
        "the run finishes its step, saves and exits with code 85 (mpirun allows a second for "
        "that, or as many as OMPI_MCA_odls_base_sigkill_timeout says; if the signal goes to "
        "mpirun, the exit code is mpirun's own, 1 after Ctrl-C). With train.folds = K "
        "the run is "
        "a cross-validation in the directories fold-1 to fold-K.\n\n"
        "Run the same command again to continue a run. A continued run keeps its settings, so "
        "run=RUN is enough. Of the settings "
        "given again, only train.epochs, train.patience and paths may differ.\n\n"
        "refit=RUN trains the model of a finished run again, on its training and validation "
        "attempts together. It uses the settings and data set of that run, the number of "
        "epochs of its best epoch, and the same schedule of the learning rate. Besides refit=, "
        "only [run] and data= (for a data set that has moved) may be set; other settings may "
        "be repeated but not changed. A refit has no validation and does not stop early.",
    .examples = "Train a restricted Boltzmann machine on 2 ranks:\n\n"
                "  mpirun -n 2 cohort train model.kind=rbm data=class.h5 run=runs/rbm\n\n"
                "Continue it for more epochs:\n\n"
                "  cohort train run=runs/rbm train.epochs=40\n\n"
                "Train with the settings of a file, and refit on all training and validation "
                "attempts:\n\n"
                "  cohort train rbm.ini data=class.h5 run=runs/a\n"
                "  cohort train refit=runs/a run=runs/a-refit",
    .exit_status =
        "85 if a signal stopped the run after saving: run the same command to "
        "continue. Under mpirun, USR1 gives 85 too, but after Ctrl-C or TERM mpirun has "
        "an exit code of its own (Open MPI 4: 1); the run is saved all the same. 4 if "
        "training diverged.",
    .see_also = "cohort-evaluate(1), cohort-submit(1), cohort-sweep(1), cohort-files(5), "
                "cohort-models(7), cohort-settings(7)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = more_help,
    .run = run,
};
