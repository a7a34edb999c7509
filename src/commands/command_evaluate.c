/* cohort evaluate: how well models predict, compared with baselines (evaluate_run.c) and with
 * each other (evaluate_compare.c). */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/evaluate_internal.h"
#include <stddef.h>

const char *const evaluate_splits[] = {"train", "valid", "test", "all", NULL};

#define AT(field) offsetof(struct evaluate_values, field)
static const struct flag flags[] = {
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "score this data set instead of the one the run was trained on; items are matched by "
      "name"},
     0,
     "DATA.h5"},
    {{"split", OPTION_CHOICE, AT(split), "test", 0, 0, evaluate_splits,
      "which attempts to score"},
     0,
     NULL},
    {{"strict", OPTION_SWITCH, AT(strict), "no", 0, 0, NULL,
      "refuse data with items that the model was not trained on, or with other skills or "
      "groups of items"},
     0,
     NULL},
    {{"skip-first", OPTION_SWITCH, AT(skip_first), "no", 0, 0, NULL,
      "exclude first attempts from all scores"},
     0,
     NULL},
    {{"groups", OPTION_SWITCH, AT(groups), "no", 0, 0, NULL,
      "also score each group of items separately"},
     0,
     NULL},
    {{"calibration", OPTION_SWITCH, AT(calibration), "no", 0, 0, NULL,
      "also compare predicted probability and observed share correct, in 15 bins"},
     0,
     NULL},
    {{"confidence", OPTION_INTEGER, AT(replicates), "0", 0, 1e6, NULL,
      "add 95 % intervals from this many bootstrap samples of the students; 1000 is usually "
      "enough, and is used for the differences between several runs"},
     0,
     NULL},
    {{"seed", OPTION_INTEGER, AT(seed), "1", 0, 9e15, NULL,
      "seed for the bootstrap and for the sampling of --likelihood"},
     0,
     NULL},
    {{"likelihood", OPTION_SWITCH, AT(likelihood), "no", 0, 0, NULL,
      "also compute the joint log-likelihood of the answers (rtrbm: per step; vae: per "
      "student)"},
     0,
     NULL},
    {{"enumerate", OPTION_INTEGER, AT(most_bits), "12", 0, 30, NULL,
      "likelihood of an rtrbm: compute the exact sum for steps with at most this many visible "
      "or hidden units"},
     0,
     NULL},
    {{"chains", OPTION_INTEGER, AT(n_chains), "16", 2, 1e5, NULL,
      "likelihood of an rtrbm: annealed importance sampling chains for each larger step"},
     0,
     NULL},
    {{"temperatures", OPTION_INTEGER, AT(n_temperatures), "200", 1, 1e6, NULL,
      "likelihood of an rtrbm: initial number of temperatures per chain, doubled until the "
      "estimate is stable"},
     0,
     NULL},
    {{"most-temperatures", OPTION_INTEGER, AT(most_temperatures), "6400", 1, 1e6, NULL,
      "likelihood of an rtrbm: maximum number of temperatures per chain"},
     0,
     NULL},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
};

unsigned evaluate_set(const struct evaluate_values *values)
{
    return values->split == EVALUATE_ALL ? (1u << N_SPLITS) - 1 : 1u << values->split;
}

static enum status evaluate(const struct comm *comm, const char *path,
                            const struct evaluate_values *values)
{
    struct inference inference;
    log_live("evaluating %s", path);
    enum status status = (values->strict ? inference_open : inference_open_any)(
        &inference, path, values->data, comm);
    if (status == OK)
        status = model_task(inference.model) == TASK_TRACE
                     ? evaluate_run(&inference, values)
                     : evaluate_targets(&inference, values);
    inference_close(&inference);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct evaluate_values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_evaluate, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_evaluate);
    if (status == OK)
        status = n_words == 1 ? evaluate(comm, words[0], &values)
                              : evaluate_compare(comm, words, (size_t)n_words, &values);
    memory_free(words);
    return status;
}

const struct command command_evaluate = {
    .name = "evaluate",
    .usage = "evaluate RUN_OR_CHECKPOINT ... [--data DATA.h5] [--split SPLIT] [--json] ...",
    .summary = "Score models' predictions on attempts they have not seen",
    .details =
        "Predict each attempt from the student's earlier attempts, and compare with the "
        "outcome. Outcomes of earlier attempts are used only if they are shown: known, and not "
        "withheld by `cohort import` (--withheld, --split by-last or by-attempt). For a run "
        "directory, the checkpoint of the best epoch is "
        "used (best.h5), or the last one where nothing was validated.\n\n"
        "Items that the model was not trained on are predicted from others, as `cohort help "
        "predict` describes; a note says how many attempts there are, and --json counts the "
        "scored ones by basis.\n\n"
        "Scores: capped binomial deviance (CBD: base 10, probabilities capped to [0.01, "
        "0.99]; 0.30103 is a coin flip), log-loss in nats, area under the ROC curve (AUC), "
        "accuracy at 0.5, root mean squared error (RMSE) and calibration error (mean distance "
        "between probability and share correct over 15 bins). Each is given for all attempts "
        "and excluding each student's first attempt, for which a model knows only the item. "
        "Two "
        "baselines follow. `item mean`: (correct + 1) / (all + 2) of each item's training "
        "answers. "
        "`running mean`: the student's earlier answers to the skill, as an untrained `average` "
        " model predicts. Prints a warning unless the model beats both.\n\n"
        "Several runs are compared on the same attempts. They must hold out the same attempts "
        "of "
        "one data set, or --data names a data set for all. The table is sorted by log-loss. "
        "Below it are the differences from the best in log-loss and AUC, with 95 % intervals. "
        "The same bootstrap samples of students are used for all runs and baselines, so that "
        "what is difficult for all of them cancels. A difference is real if its interval "
        "excludes 0. Each interval is for its pair alone: of 20 pairs of equally good runs, "
        "about one looks different. --json has all pairs and all scores; a difference there is "
        "that of run `a` minus run `b`. With --data the baselines are those of the run that "
        "was "
        "trained on these data, else of the one with the most training answers; a line names "
        "it.\n\n"
        "--likelihood adds the joint log-likelihood of the scored answers, in nats per step. "
        "For an rtrbm, a step is scored given the steps before it. The sum over its states "
        "is exact for steps with at most --enumerate visible or hidden units; for larger steps "
        "it is estimated by annealed importance sampling. For a vae, all scored answers of a "
        "student are one step, given the shown ones outside the split. The integral over "
        "abilities is computed on a grid for up to 3 dimensions, and by importance sampling "
        "for more. Other models have no joint likelihood.\n\n"
        "A model that predicts one target per student (dkt with model.task=final) is scored on "
        "the targets instead and compared with "
        "the mean of the training targets: log-loss (for scores: minus the log of the "
        "predicted density), RMSE, and AUC and accuracy (passing) or R2 (scores).\n\n"
        "All numbers are bit-identical for any number of ranks.",
    .examples = "Score the test attempts, with 95 % intervals:\n\n"
                "  cohort evaluate runs/rbm --confidence 1000\n\n"
                "Compare three runs, and find out which differences are real:\n\n"
                "  cohort evaluate runs/rbm runs/dkt runs/bkt\n\n"
                "Score students of another data set on 4 ranks, for a program:\n\n"
                "  mpirun -n 4 cohort evaluate runs/rbm --data new.h5 --split all --json",
    .see_also = "cohort-predict(1), cohort-report(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
