/* cohort sweep: trains many trials of a model and ranks their settings. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/slurm_flags.h"
#include "sweep/sweep.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

struct values {
    bool status, collect, submit, retry, json;
    const char *pack;
    int64_t rung, top;
    struct sweep_submission submission;
};

#define AT(field) offsetof(struct values, field)
#define JOB_AT(field) offsetof(struct values, submission.job.field)
static const struct flag flags[] = {
    {{"status", OPTION_SWITCH, AT(status), "no", 0, 0, NULL,
      "train nothing; print the progress of the sweep"},
     0,
     NULL},
    {{"collect", OPTION_SWITCH, AT(collect), "no", 0, 0, NULL,
      "train nothing; write and print the leaderboard of the finished trials"},
     0,
     NULL},
    {{"retry", OPTION_SWITCH, AT(retry), "no", 0, 0, NULL, "run failed trials again"}, 0, NULL},
    {{"pack", OPTION_TEXT, AT(pack), "", 0, 0, NULL,
      "train only every N-th trial, starting with the K-th, and write no leaderboard; with "
      "sweep.rungs it needs --rung"},
     0,
     "K/N"},
    {{"rung", OPTION_INTEGER, AT(rung), "0", 0, 20, NULL,
      "train only this rung of successive halving; 0: all"},
     0,
     NULL},
    {{"top", OPTION_INTEGER, AT(top), "10", 1, 1e6, NULL, "lines of the leaderboard to print"},
     0,
     NULL},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
    {{"submit", OPTION_SWITCH, AT(submit), "no", 0, 0, NULL,
      "submit the missing trials to Slurm as job arrays, followed by a job that collects; the "
      "options below apply to these jobs"},
     0,
     NULL},
    {{"packs", OPTION_INTEGER, AT(submission.packs), "0", 0, 1e6, NULL,
      "number of packs into which the trials are split, one per array task; 0: enough for "
      "about 20 trials per team of sweep.ranks"},
     0,
     NULL},
    {{"throttle", OPTION_INTEGER, AT(submission.throttle), "0", 0, 1e6, NULL,
      "limit on tasks that run at the same time; 0: no limit"},
     0,
     NULL},
    {{"dry-run", OPTION_SWITCH, AT(submission.dry_run), "no", 0, 0, NULL,
      "with --submit: print the scripts and submit nothing"},
     0,
     NULL},
    SLURM_FLAGS(JOB_AT),
};

static void print_counts(const struct sweep *sweep, const struct sweep_board *board)
{
    printf("%s: %zu trial%s: %zu done, %zu running, %zu failed, %zu waiting\n",
           sweep->directory, sweep->n_trials, sweep->n_trials == 1 ? "" : "s",
           board->n_by_state[SWEEP_DONE], board->n_by_state[SWEEP_RUNNING],
           board->n_by_state[SWEEP_FAILED], board->n_by_state[SWEEP_WAITING]);
    if (sweep->n_twins > 0)
        printf("duplicates skipped: %zu\n", sweep->n_twins);
}

static void print_settings(const struct sweep *sweep, size_t t)
{
    for (size_t d = 0; d < sweep->n_dimensions; d++)
        printf(" %s.%s=%s", sweep->dimensions[d].section, sweep->dimensions[d].key,
               sweep->trials[t].values[d]);
    putchar('\n');
}

static void print_failures(const struct sweep *sweep, const struct sweep_board *board)
{
    for (size_t t = 0; t < sweep->n_trials; t++)
        if (board->results[t].state == SWEEP_FAILED) {
            printf("\nfailed: %s", sweep->trials[t].id);
            print_settings(sweep, t);
            printf("  %s\n", board->results[t].reason);
        }
}

static void print_effects(const struct sweep *sweep)
{
    printf("\nEffect of the settings (validation %s of all trials%s):\n",
           metrics_names[sweep->metric], sweep->options.rungs > 1 ? " at the first rung" : "");
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        struct sweep_effect effect;
        sweep_effect(sweep, d, &effect);
        printf("  %s.%s", sweep->dimensions[d].section, sweep->dimensions[d].key);
        if (!isnan(effect.share))
            printf(": %.0f %% of the variance", 100 * effect.share);
        putchar('\n');
        for (size_t l = 0; l < effect.n_levels; l++)
            if (effect.levels[l].n > 0)
                printf("    %-22s %5zu trial%s, mean %.5f, best %.5f\n", effect.levels[l].name,
                       effect.levels[l].n, effect.levels[l].n == 1 ? " " : "s",
                       effect.levels[l].mean, effect.levels[l].best);
        sweep_effect_free(&effect);
    }
}

static void print_board(const struct sweep *sweep, struct sweep_board *board, int64_t top)
{
    print_counts(sweep, board);
    if (board->n_by_state[SWEEP_DONE] > 0) {
        const char *metric = metrics_names[sweep->metric];
        printf("\n%5s  %-16s  %6s  %-21s  %8s  %8s  settings\n", "place", "trial", "epochs",
               memcmp(metric, "log_loss", 8) == 0 ? "valid log-loss" : metric, "valid auc",
               "test auc");
    }
    for (size_t place = 0; place < sweep->n_trials && place < (size_t)top; place++) {
        const size_t t = board->order[place];
        struct sweep_result *result = &board->results[t];
        if (result->state != SWEEP_DONE)
            break;
        char score[64], spread[32] = "";
        if (sweep->folds)
            snprintf(spread, sizeof spread, " +- %.5f",
                     *metrics_value(&result->valid_spread, sweep->metric));
        snprintf(score, sizeof score, "%.6f%s", *metrics_value(&result->valid, sweep->metric),
                 spread);
        printf("%5zu  %-16s  %6" PRId64 "  %-21s  %8.4f", place + 1, sweep->trials[t].id,
               result->epochs, score, result->valid.auc);
        if (result->test.n > 0)
            printf("  %8.4f ", result->test.auc);
        else
            printf("  %8s ", "-");
        print_settings(sweep, t);
    }
    print_failures(sweep, board);
    if (board->n_by_state[SWEEP_DONE] > 1)
        print_effects(sweep);
}

static json_t *trial_json(const struct sweep *sweep, size_t t, struct sweep_result *result)
{
    json_t *object = json_object(), *settings = json_object();
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        char *key =
            memory_text("%s.%s", sweep->dimensions[d].section, sweep->dimensions[d].key);
        json_object_set_new(settings, key, command_json_text(sweep->trials[t].values[d]));
        memory_free(key);
    }
    json_object_set_new(object, "trial", json_string(sweep->trials[t].id));
    json_object_set_new(object, "state", json_string(sweep_states[result->state]));
    json_object_set_new(object, "rung", json_integer(result->rung));
    json_object_set_new(object, "epochs", json_integer(result->epochs));
    json_object_set_new(object, "settings", settings);
    if (result->state == SWEEP_DONE) {
        json_object_set_new(object, "score",
                            command_json_number(*metrics_value(&result->valid, sweep->metric)));
        if (sweep->folds)
            json_object_set_new(
                object, "spread",
                command_json_number(*metrics_value(&result->valid_spread, sweep->metric)));
        json_object_set_new(object, "valid_auc", command_json_number(result->valid.auc));
        json_object_set_new(object, "test_auc",
                            result->test.n > 0 ? command_json_number(result->test.auc)
                                               : json_null());
    }
    if (result->reason != NULL)
        json_object_set_new(object, "reason", command_json_text(result->reason));
    return object;
}

static void print_json(const struct sweep *sweep, struct sweep_board *board)
{
    json_t *object = json_object(), *trials = json_array();
    json_object_set_new(object, "directory", command_json_text(sweep->directory));
    json_object_set_new(object, "metric", json_string(metrics_names[sweep->metric]));
    json_object_set_new(object, "trials", json_integer((json_int_t)sweep->n_trials));
    for (size_t s = 0; s < COUNT(sweep_states); s++)
        json_object_set_new(object, sweep_states[s],
                            json_integer((json_int_t)board->n_by_state[s]));
    for (size_t place = 0; place < sweep->n_trials; place++) {
        const size_t t = board->order[place];
        json_array_append_new(trials, trial_json(sweep, t, &board->results[t]));
    }
    json_object_set_new(object, "leaderboard", trials);
    command_json_print(object);
}

/* Rank 0. */
static enum status show(const struct sweep *sweep, const struct values *values)
{
    struct sweep_board board = {0};
    enum status status = OK;
    if (values->status)
        sweep_read_board(sweep, &board);
    else
        status = sweep_collect(sweep, &board);
    if (status == OK && values->json) {
        print_json(sweep, &board);
    } else if (status == OK && values->status) {
        print_counts(sweep, &board);
        print_failures(sweep, &board);
    } else if (status == OK) {
        print_board(sweep, &board, values->top);
        if (board.n_by_state[SWEEP_DONE] > 0)
            log_say("wrote leaderboard.csv, effects.csv and best.ini in %s", sweep->directory);
    }
    sweep_board_free(sweep, &board);
    return status;
}

static enum status parse_order(const struct values *values, const struct sweep *sweep,
                               struct sweep_order *order)
{
    *order = (struct sweep_order){
        .pack = 1, .n_packs = 1, .rung = values->rung, .retry = values->retry};
    long long pack = 1, n_packs = 1;
    char rest = '\0';
    if (values->pack[0] != '\0' &&
        (sscanf(values->pack, "%lld/%lld%c", &pack, &n_packs, &rest) != 2 || pack < 1 ||
         n_packs < pack || n_packs > 1000000))
        return fail(BAD_USAGE, "sweep: --pack %s: expected K/N with K from 1 to N",
                    values->pack);
    if (values->rung > sweep->options.rungs)
        return fail(BAD_USAGE, "sweep: --rung %" PRId64 ": the sweep has %" PRId64 " rung%s",
                    values->rung, sweep->options.rungs, sweep->options.rungs == 1 ? "" : "s");
    if (values->pack[0] != '\0' && values->rung == 0 && sweep->options.rungs > 1)
        return fail(BAD_USAGE,
                    "sweep: --pack %s: the sweep has %" PRId64
                    " rungs, and all packs of a rung must end before the next begins; add "
                    "--rung, or use `cohort sweep --submit`, which makes an array per rung",
                    values->pack, sweep->options.rungs);
    order->pack = pack;
    order->n_packs = n_packs;
    return OK;
}

/* Collective: every rank has read the files and made the trials. */
static enum status check_same(const struct comm *comm, const struct sweep *sweep)
{
    char *text = memory_text("ranks = %" PRId64 "\ntrials = %zu\n%s", sweep->options.ranks,
                             sweep->n_trials, sweep->text);
    const enum status status = comm_agree_on(comm, text, "the sweep");
    memory_free(text);
    return status;
}

static enum status work(const struct comm *comm, const struct sweep *sweep,
                        const struct values *values)
{
    struct sweep_order order;
    TRY(parse_order(values, sweep, &order));
    if (values->submit)
        return comm_agree(comm,
                          comm->rank == 0 ? sweep_submit(sweep, &values->submission) : OK);
    TRY(comm_agree(comm, comm->rank == 0 ? sweep_open(sweep) : OK));
    if (!values->status && !values->collect) {
        TRY(comm_agree(comm, comm->rank == 0 ? sweep_note_size(sweep) : OK));
        signals_catch();
        if (values->pack[0] == '\0')
            log_say("%s: %zu trial%s%s", sweep->directory, sweep->n_trials,
                    sweep->n_trials == 1 ? "" : "s",
                    sweep->options.rungs > 1 ? ", the best continue from rung to rung" : "");
        TRY(sweep_run(sweep, comm, &order));
        if (values->pack[0] != '\0')
            return OK;
    }
    return comm_agree(comm, comm->rank == 0 ? show(sweep, values) : OK);
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_sweep, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_sweep);
    const int n_wishes = values.status + values.collect + values.submit;
    if (status == OK && n_wishes + (values.pack != NULL && values.pack[0] != '\0') > 1)
        status = fail(BAD_USAGE,
                      "sweep: --status, --collect, --submit and --pack exclude each other; "
                      "choose one");
    if (status == OK && values.submission.dry_run && !values.submit)
        status = fail(BAD_USAGE, "sweep: --dry-run needs --submit");
    if (status == OK) {
        struct config *config = config_create();
        struct sweep sweep = {.config = config};
        status = config_read_words(config, words, (size_t)n_words);
        if (status == OK && (values.status || values.collect))
            status = comm_agree(comm, sweep_recall(config));
        values.submission.retry = values.retry;
        slurm_words(config, &values.submission.words);
        if (status == OK)
            status = sweep_create(&sweep, config);
        status = comm_agree(comm, status);
        if (status == OK)
            status = check_same(comm, &sweep);
        if (status == OK)
            status = work(comm, &sweep, &values);
        sweep_destroy(&sweep);
        names_free(&values.submission.words);
    }
    memory_free(words);
    return status;
}

static void more_help(struct manual *manual)
{
    const struct option_group group = {"sweep", sweep_table, n_sweep_table, NULL};
    manual_heading(manual, "SETTINGS");
    config_help(manual, &group, 1);
}

const struct command command_sweep = {
    .name = "sweep",
    .usage =
        "sweep FILE.ini... [section.key=value...] [--status | --collect | --submit] [--retry] "
        "[--json]",
    .summary = "Train many trials and rank their settings",
    .details =
        "Read a settings file as for `cohort train`, in which some values are lists or "
        "ranges:\n\n"
        "  model.hidden = {15, 30, 60}\n"
        "  optimizer.rate = log(1e-4, 1e-2)\n"
        "  model.dropout = uniform(0, 0.5)\n\n"
        "A grid needs ranges with a number of points, as in log(1e-4, 1e-2, 5).\n\n"
        "With --status and --collect, run=RUN is enough: the sweep in that directory is read "
        "from there.\n\n"
        "Each trial is trained in RUN/trials/ID; its ID depends on its settings alone. The "
        "ranks are split into teams of sweep.ranks, which take the next trial when they are "
        "free. Run the same command again to train only what is missing. Trials are compared "
        "by their validation score (train.monitor), or by its mean over folds "
        "(train.folds).\n\n"
        "The results are the leaderboard (printed, and leaderboard.csv), the effect of each "
        "setting (effects.csv) and the settings of the best trial (best.ini, ready for `cohort "
        "train`). They do not depend on which team trained which trial.\n\n"
        "With --submit the trials go to Slurm as job arrays (from the template sweep.sbatch), "
        "one pack of "
        "trials per array task, and are collected at the end. The logs of the jobs are in "
        "RUN/slurm. On USR1, TERM or Ctrl-C a sweep saves and exits with code 85.",
    .examples = "Sweep on 8 ranks, then train the best settings:\n\n"
                "  mpirun -n 8 cohort sweep sweep_rbm.ini data=class.h5 run=sweeps/rbm\n"
                "  cohort train sweeps/rbm/best.ini run=runs/best\n\n"
                "Submit it to Slurm instead, and look at its progress:\n\n"
                "  cohort sweep sweep_rbm.ini data=class.h5 run=sweeps/rbm \\\n"
                "      --submit --ranks 16 --time 4:00:00\n"
                "  cohort sweep run=sweeps/rbm --status",
    .exit_status = "85 if a signal stopped it after saving: run the same command to continue.",
    .see_also = "cohort-train(1), cohort-settings(7), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = more_help,
    .run = run,
};
