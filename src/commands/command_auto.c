/* cohort auto: one command from a data set to the best model. */
#include "base/atomic_file.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/slurm_flags.h"
#include "report/report.h"
#include "runs/baseline.h"
#include "sweep/auto.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct values {
    int64_t trials;
    double minutes;
    bool refit, submit, dry_run;
    struct slurm_job job;
};

#define AT(field) offsetof(struct values, field)
#define JOB_AT(field) offsetof(struct values, job.field)
static const struct flag flags[] = {
    {{"trials", OPTION_INTEGER, AT(trials), "24", 1, 1000, NULL,
      "train at most this many settings in all"},
     0,
     NULL},
    {{"minutes", OPTION_NUMBER, AT(minutes), "0", 0, 1e6, NULL,
      "try no settings beyond the defaults that would take longer than this; 0: no limit"},
     0,
     NULL},
    {{"refit", OPTION_SWITCH, AT(refit), "no", 0, 0, NULL,
      "train the members of the blend again, on training and validation attempts together"},
     0,
     NULL},
    {{"submit", OPTION_SWITCH, AT(submit), "no", 0, 0, NULL,
      "submit this command to Slurm as a job, which continues by itself until it is done"},
     0,
     NULL},
    SLURM_FLAGS(JOB_AT),
    {{"dry-run", OPTION_SWITCH, AT(dry_run), "no", 0, 0, NULL,
      "with --submit: print the script and submit nothing"},
     0,
     NULL},
};

static bool has_intervals(const struct auto_result *result)
{
    return metrics_has_interval(result->paired.entries[0].score.n_students);
}

/* Whether the leader is better than a model by more than chance, in one word; none if that is not known. */
static const char *verdict(const struct auto_result *result, size_t entry, size_t best)
{
    if (entry == best)
        return "best";
    if (!has_intervals(result))
        return "";
    return paired_difference(&result->paired, entry, best, METRIC_LOG_LOSS).better > 0
               ? "worse"
               : "as good";
}

/* Models, then the blend if there is one, then the baselines. */
static size_t n_blends(const struct auto_result *result)
{
    return result->blended;
}

/* The entry of the choice: the blend, or the model with all the weight. */
static size_t choice_of(const struct auto_result *result)
{
    size_t only = 0;
    while (only + 1 < result->n && result->models[only].weight == 0)
        only++;
    return result->blended ? result->n : only;
}

static const char *name_of(const struct auto_result *result, size_t entry)
{
    static const char *const others[] = {"blend", "item means", "running means"};
    return entry < result->n ? result->models[entry].kind
                             : others[entry - result->n + 1 - n_blends(result)];
}

static const char *settings_of(const struct auto_result *result, size_t entry)
{
    if (entry >= result->n)
        return "";
    return result->models[entry].settings[0] != '\0' ? result->models[entry].settings
                                                     : "defaults";
}

static void print_board(const struct auto_result *result, const size_t *order)
{
    printf("\n%s attempts: %lld\n%5s  %-13s  %8s  %8s  %-32s  %-7s  %6s  settings\n",
           result->split == TEST ? "test" : "validation",
           (long long)result->paired.entries[0].score.n, "place", "model", "log-loss", "AUC",
           has_intervals(result) ? "log-loss above the best, 95 %" : "log-loss above the best",
           "", "weight");
    for (size_t place = 0; place < result->paired.n; place++) {
        const size_t e = order[place];
        const struct score *score = &result->paired.entries[e].score;
        const struct paired_difference above =
            paired_difference(&result->paired, e, order[0], METRIC_LOG_LOSS);
        char interval[64] = "", weight[16] = "";
        if (place > 0 && !has_intervals(result))
            snprintf(interval, sizeof interval, "%8.5f", above.value);
        else if (place > 0)
            snprintf(interval, sizeof interval, "%8.5f (%.5f to %.5f)", above.value, above.low,
                     above.high);
        if (e < result->n && result->models[e].weight > 0)
            snprintf(weight, sizeof weight, "%.3f", result->models[e].weight);
        printf("%5zu  %-13s  %8.5f  %8.4f  %-32s  %-7s  %6s  %s\n", place + 1,
               name_of(result, e), score->log_loss, score->auc, interval,
               verdict(result, e, order[0]), weight, settings_of(result, e));
    }
}

/* Rank 0. */
static enum status write_board(const struct auto_result *result, const size_t *order,
                               const char *directory)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&text, &n);
    fputs("place,model,split,log_loss,auc,accuracy,above_best,low,high,verdict,weight,run,"
          "settings\n",
          out);
    for (size_t place = 0; place < result->paired.n; place++) {
        const size_t e = order[place];
        const struct score *score = &result->paired.entries[e].score;
        const struct paired_difference above =
            paired_difference(&result->paired, e, order[0], METRIC_LOG_LOSS);
        fprintf(out, "%zu,%s,%s,%.9g,%.9g,%.9g,%.9g,", place + 1, name_of(result, e),
                result->split == TEST ? "test" : "valid", score->log_loss, score->auc,
                score->accuracy, above.value);
        if (has_intervals(result))
            fprintf(out, "%.9g,%.9g,", above.low, above.high);
        else
            fputs(",,", out);
        fprintf(out, "%s,", verdict(result, e, order[0]));
        if (e < result->n)
            fprintf(out, "%.9g", result->models[e].weight);
        fputc(',', out);
        csv_quote(out, e < result->n                      ? result->models[e].run
                       : e < result->n + n_blends(result) ? result->best
                                                          : "");
        fputc(',', out);
        csv_quote(out, settings_of(result, e));
        fputc('\n', out);
    }
    fclose(out);
    char *path = memory_text("%s/leaderboard.csv", directory);
    const enum status status = atomic_file_write(path, text, n);
    memory_free(path);
    free(text);
    return status;
}

/* The difference between the choice and the single model that is best on validation. */
static void say_gain(const struct auto_result *result, const struct paired_difference *gain,
                     const char *lead)
{
    printf("On the %s attempts the choice differs from %s by %+.5f in log-loss",
           result->split == TEST ? "test" : "validation", lead, gain->value);
    if (has_intervals(result))
        printf(" (%+.5f to %+.5f): %s", gain->low, gain->high,
               gain->better < 0   ? "it is better"
               : gain->better > 0 ? "it is worse"
                                  : "that may be chance");
    printf(".\n");
}

/* In plain words: what was chosen, and why. */
static void say_choice(const struct auto_result *result, const char *directory)
{
    size_t lead = 0, heaviest = 0, n_members = 0;
    for (size_t m = 0; m < result->n; m++) {
        n_members += result->models[m].weight > 0;
        if (result->models[m].weight > result->models[heaviest].weight)
            heaviest = m;
        if (result->models[m].valid < result->models[lead].valid)
            lead = m;
    }
    const size_t choice = choice_of(result);
    const struct paired_difference gain =
        paired_difference(&result->paired, choice, lead, METRIC_LOG_LOSS);
    printf("\nThe choice is %s", result->best);
    if (result->n < 2)
        printf(", the only model, %s.\n", result->models[0].kind);
    else if (!result->blended)
        printf(", a link to %s: no other model has weight in a blend that is fitted on the "
               "validation attempts.\n",
               result->models[choice].kind);
    else if (n_members == 1)
        printf(", a blend in which %s has all the weight: an earlier blend is written again.\n",
               result->models[heaviest].kind);
    else
        printf(", a blend of %zu models with weights fitted on the validation attempts.\nOf "
               "single models, %s has the best validation log-loss.\n",
               n_members, result->models[lead].kind);
    if (result->n > 1 && choice != lead)
        say_gain(result, &gain, result->models[lead].kind);
    char *best = shell_quote_text("%s", result->best);
    printf("Predict with: cohort predict %s --data NEW.h5 -o predictions.csv\nSee: "
           "%s/report.html, %s/leaderboard.csv\n",
           best, directory, directory);
    memory_free(best);
}

/* Warns if no model beats item means on validation, or the choice no baseline on the attempts
 * that are compared. */
static void check_choice(const struct auto_result *result)
{
    const double lead = result->models[0].valid;
    if (lead >= result->item_means) {
        log_warn("no model is better than predicting each item's mean (validation log-loss "
                 "%.5f, item means %.5f): check the data",
                 lead, result->item_means);
        return;
    }
    const struct paired_entry *entries = result->paired.entries;
    const size_t first = result->n + n_blends(result);
    const double log_loss = entries[choice_of(result)].score.log_loss;
    double baselines[N_BASELINES], least = INFINITY;
    if (result->paired.n < first + N_BASELINES)
        return;
    for (size_t b = 0; b < N_BASELINES; b++) {
        baselines[b] = entries[first + b].score.log_loss;
        least = fmin(least, baselines[b]);
    }
    if (log_loss >= least)
        baseline_say(result->split == TEST ? "test" : "validation", log_loss, baselines);
}

/* Collective. */
static enum status write_report(const struct comm *comm, const struct auto_result *result,
                                const char *directory)
{
    char *output = memory_text("%s/report.html", directory);
    const struct report_plan plan = {.data = "",
                                     .title = "",
                                     .output = output,
                                     .figures = "",
                                     .student = "",
                                     .split = result->split,
                                     .n_rows = 20};
    const enum status status = report_write(comm, &directory, 1, &plan);
    memory_free(output);
    return status;
}

static enum status show(const struct comm *comm, const struct auto_result *result,
                        const char *directory)
{
    size_t *order = paired_ranking(&result->paired, METRIC_LOG_LOSS);
    enum status status = comm->rank == 0 ? write_board(result, order, directory) : OK;
    status = comm_agree(comm, status);
    if (status == OK)
        status = write_report(comm, result, directory);
    if (status == OK && comm->rank == 0) {
        print_board(result, order);
        metrics_say_few(result->paired.entries[0].score.n_students);
        say_choice(result, directory);
        check_choice(result);
    }
    memory_free(order);
    return status;
}

/* Rank 0: the same command as a job. */
static enum status submit(const struct auto_plan *plan, const struct values *values)
{
    struct names words = {0};
    char *list[] = {memory_text("%s", plan->data), memory_text("run=%s", plan->directory),
                    memory_text("--trials=%lld", (long long)plan->trials),
                    memory_text("--minutes=%g", plan->minutes),
                    plan->refit ? memory_text("--refit") : NULL};
    for (size_t w = 0; w < COUNT(list); w++)
        if (list[w] != NULL)
            names_add(&words, list[w], strlen(list[w]));
    char *log = slurm_log(plan->directory, "slurm.log"), *text = NULL;
    const struct slurm_script script = {.template = SLURM_TRAIN,
                                        .job = &values->job,
                                        .name = slurm_name(plan->directory),
                                        .log = log,
                                        .made_by = "cohort auto --submit",
                                        .command = "auto",
                                        .words = &words};
    enum status status = slurm_write(&script, &text);
    if (status == OK && values->dry_run)
        fputs(text, stdout);
    else if (status == OK)
        status = slurm_hand_over(text, plan->directory, log);
    for (size_t w = 0; w < COUNT(list); w++)
        memory_free(list[w]);
    memory_free(text);
    memory_free(log);
    names_free(&words);
    return status;
}

static enum status train(const struct comm *comm, const struct auto_plan *plan)
{
    struct auto_result result;
    signals_catch();
    enum status status = auto_run(comm, plan, &result);
    if (status == OK)
        status = show(comm, &result, plan->directory);
    auto_free(&result);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    struct auto_plan plan = {0};
    enum status status = command_parse(&command_auto, argc, argv, &values, words, &n_words);
    for (int w = 0; status == OK && w < n_words; w++) {
        if (strncmp(words[w], "run=", 4) == 0 && words[w][4] != '\0')
            plan.directory = words[w] + 4;
        else if (strncmp(words[w], "data=", 5) == 0 && words[w][5] != '\0')
            plan.data = words[w] + 5;
        else if (strchr(words[w], '=') == NULL && plan.data == NULL)
            plan.data = words[w];
        else
            status = fail(BAD_USAGE,
                          "auto: '%s': expected DATA.h5 and run=DIRECTORY; settings are chosen "
                          "by the command itself",
                          words[w]);
    }
    if (status == OK && n_words > 0 && (plan.data == NULL || plan.directory == NULL))
        status = fail(BAD_USAGE, "auto: %s; expected `cohort auto DATA.h5 run=DIRECTORY`",
                      plan.data == NULL ? "no data set is given" : "run= is not given");
    if (status == OK && n_words == 0)
        status = command_usage(&command_auto);
    plan.trials = values.trials;
    plan.minutes = values.minutes;
    plan.refit = values.refit;
    if (status == OK && values.submit)
        status = comm_agree(comm, comm->rank == 0 ? submit(&plan, &values) : OK);
    else if (status == OK)
        status = train(comm, &plan);
    memory_free(words);
    return status;
}

const struct command command_auto = {
    .name = "auto",
    .usage =
        "auto DATA.h5 run=DIRECTORY [--trials N] [--minutes M] [--refit] [--submit --ranks N "
        "--time T]",
    .summary = "Find the best model for a data set, without any settings",
    .details =
        "Train every kind of model that fits the data with its defaults; for the best kinds, "
        "try settings around them, the better half of them to the end; then blend the two "
        "best runs of each kind, with weights fitted on the validation attempts; runs without "
        "weight are skipped.\n\n"
        "The leaderboard compares all of them on the test attempts (or, if there are none, on "
        "validation), with 95 % intervals of the differences from resampled students: `as "
        "good` means that the interval includes 0. One student gives no interval.\n\n"
        "DIRECTORY/best is the run to predict with: the blend, or a link to a model if it has "
        "all the weight. leaderboard.csv and report.html are next "
        "to it, models/KIND is the best run of a kind, models/KIND-2 the second best, kinds "
        "and around-KIND are sweeps. Run "
        "the same command again to continue after "
        "a stop. With --trials the leaderboard is identical, byte for byte, for any number of "
        "ranks; with --minutes it depends on the speed of the machine. With n ranks, n trials "
        "are trained at the same time.",
    .examples = "From a log of answers to predictions for new students:\n\n"
                "  cohort import csv answers.csv -o answers.h5\n"
                "  mpirun -n 4 cohort auto answers.h5 run=best --minutes 10\n"
                "  cohort predict best/best --data new.h5 -o new.csv",
    .exit_status = "85 if a signal stopped it after saving: run the same command to continue.",
    .see_also = "cohort-train(1), cohort-sweep(1), cohort-blend(1), cohort-evaluate(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
