/* cohort predict: its options, and which of its tables to write (predict_*.c). */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "commands/commands.h"
#include "commands/predict_internal.h"
#include "data_tools/time_reader.h"
#include "runs/parallel_output.h"
#include <stddef.h>
#include <string.h>

const char *const predict_splits[] = {"train", "valid", "test", "all", NULL};

static const char *const next_kinds[] = {"no", "items", "skills", NULL};
static const char *const mastery_kinds[] = {"no", "now", "each", NULL};

#define AT(field) offsetof(struct predict_values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "", 0, 0, NULL,
      "write to this file, in the format of its ending: " OUTPUT_TABLE_ENDINGS "; - is CSV on "
      "standard output"},
     'o',
     "FILE"},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "predict this data set (new students, for example) instead of the one the run was "
      "trained on; items are matched by name"},
     0,
     "DATA.h5"},
    {{"split", OPTION_CHOICE, AT(split), "all", 0, 0, predict_splits,
      "which attempts to predict"},
     0,
     NULL},
    {{"next", OPTION_CHOICE, AT(next), "no", 0, 0, next_kinds,
      "write each student's chance at every item, or at every skill, as of now"},
     0,
     "[=items|skills]"},
    {{"mastery", OPTION_CHOICE, AT(mastery), "no", 0, 0, mastery_kinds,
      "write each student's mastery of every skill as of now, or, after each attempt, of the "
      "skills of its item"},
     0,
     "[=now|each]"},
    {{"follow", OPTION_SWITCH, AT(follow), "no", 0, 0, NULL,
      "answer attempts that come as lines on standard input; see FOLLOW"},
     0,
     NULL},
    {{"students", OPTION_INTEGER, AT(students), "1000000", 1, 4e9, NULL,
      "with --follow: the largest number of students to keep in memory"},
     0,
     NULL},
    {{"pseudonyms", OPTION_TEXT, AT(pseudonyms), "", 0, 0, NULL,
      "with --follow: find the students of a data set with pseudonyms by their names; the key "
      "that `cohort import --pseudonyms` used"},
     0,
     "KEYFILE"},
    {{"time-unit", OPTION_CHOICE, AT(time_unit), "auto", 0, 0, time_reader_units,
      "with --follow: unit of times that are numbers; auto: that of the data set, else by the "
      "size of the first one"},
     0,
     "UNIT"},
    {{"time-format", OPTION_TEXT, AT(time_format), "", 0, 0, NULL,
      "with --follow: format of times that are dates, as of strptime: '%d.%m.%Y %H:%M'"},
     0,
     "FORMAT"},
    {{"interval", OPTION_SWITCH, AT(interval), "no", 0, 0, NULL,
      "add the column deviation: how uncertain each probability is (bkt, blend, lme, vae)"},
     0,
     NULL},
    {{"strict", OPTION_SWITCH, AT(strict), "no", 0, 0, NULL,
      "refuse data with items that the model was not trained on, or with other skills or "
      "groups of items"},
     0,
     NULL},
};

/* Words after the run: a data set, or the value of an option that must be joined to it. */
static enum status refuse_words(const struct predict_values *values, const char *const *words,
                                int n)
{
    static const struct {
        const char *name;
        const char *const *kinds;
    } options[] = {{"next", next_kinds}, {"mastery", mastery_kinds}};
    const bool given[] = {values->next != NEXT_NONE, values->mastery != MASTERY_NONE};
    for (int w = 1; w < n; w++) {
        for (size_t o = 0; o < COUNT(options); o++)
            for (size_t k = 1; given[o] && options[o].kinds[k] != NULL; k++)
                for (int v = 0; v < n; v++)
                    if (strcmp(words[v], options[o].kinds[k]) == 0)
                        return fail(BAD_USAGE,
                                    "predict: '%s' is a second run; did you mean --%s=%s?",
                                    words[v], options[o].name, words[v]);
        if (file_ends_in(words[w], ".h5") || file_ends_in(words[w], ".csv")) {
            char *word = shell_quote_text("%s", words[w]);
            const enum status status = fail(
                BAD_USAGE, "predict: '%s' is a second run; did you mean --data %s, or -o %s?",
                words[w], word, word);
            memory_free(word);
            return status;
        }
    }
    return command_usage(&command_predict);
}

/* Rank 0. A text is replaced if it has predictions, of whatever kind. */
static enum status check_output(const char *output)
{
    TRY(command_check_output(&command_predict, output, "the file to write"));
    TRY(output_table_check(output));
    return output_table_is_h5(output)
               ? OK
               : parallel_output_check_old(
                     output,
                     "^(student,([^\n]*,)?(probability|mastery|prediction)[,\n]|"
                     "(\\[\n)?[{]\"student\": [^\n]*\"(probability|mastery|prediction)\": )",
                     "a file of predictions");
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct predict_values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_predict, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = refuse_words(&values, words, n_words);
    if (status == OK && values.follow) {
        status = predict_follow(comm, words[0], &values);
        memory_free(words);
        return status;
    }
    if (status == OK && values.pseudonyms[0] != '\0')
        status = fail(BAD_USAGE, "predict: --pseudonyms goes with --follow; other predictions "
                                 "have the students' names as the data set has them");
    if (status == OK && (values.time_unit != UNIT_AUTO || values.time_format[0] != '\0'))
        status = fail(BAD_USAGE, "predict: --time-unit and --time-format go with --follow; a "
                                 "data set knows its times");
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? check_output(values.output) : OK);
    if (status == OK && values.next != NEXT_NONE && values.mastery != MASTERY_NONE)
        status = fail(BAD_USAGE, "predict: --next and --mastery write different tables; use "
                                 "one of them at a time");
    if (status == OK && values.interval &&
        (values.next != NEXT_NONE || values.mastery != MASTERY_NONE))
        status = fail(BAD_USAGE, "predict: --interval goes with the attempts of the data set, "
                                 "not with --next or --mastery");
    if (status == OK) {
        struct inference inference;
        status = (values.strict ? inference_open : inference_open_any)(&inference, words[0],
                                                                       values.data, comm);
        if (status == OK)
            status = inference_check_splits(&inference, predict_set(&values));
        if (status == OK && (values.next != NEXT_NONE || values.mastery != MASTERY_NONE))
            status = predict_standing(&inference, &values);
        else if (status == OK)
            status = model_task(inference.model) == TASK_TRACE
                         ? predict_attempts(&inference, &values)
                         : predict_targets(&inference, &values);
        inference_close(&inference);
    }
    memory_free(words);
    return status;
}

const struct command command_predict = {
    .name = "predict",
    .usage =
        "predict RUN_OR_CHECKPOINT [--data DATA.h5] [--split SPLIT] [--interval | --next | "
        "--mastery | --follow] -o FILE",
    .summary = "Write the probability of a correct answer for every attempt",
    .details =
        "Predict each attempt from the student's earlier attempts, and write one line per "
        "attempt, in the order of the data set. Outcomes of earlier attempts are used only if "
        "they are shown: known, and not withheld by `cohort import` (--withheld, --split "
        "by-last or by-attempt).\n\n"
        "Columns: student, item, time (in the form of the source; one form for all), outcome, "
        "probability, split "
        "(train, valid or test, as the data set has it, also of data that the model was never "
        "trained on), basis (see below), row (of the source file, from 1, without "
        "the header) and, "
        "where the data came from several files, file. A cell is empty (JSON: null) where its "
        "value is unknown, such as the row in data sets of earlier versions. A .json file is "
        "one array of objects, a .jsonl file has one object per line. An .h5 file has one "
        "array per column: student, item and file are numbers into the strings "
        "/students/names, /items/names and /files/names, from 0; time is the whole number "
        "that the data set has; outcome is -1 where it is unknown; split is 0 for train, 1 for "
        "valid, 2 for test; basis is 0 for item, 1 for skill, 2 for group, 3 for mean. A file "
        "that exists is replaced only if it has predictions.\n\n"
        "For new students, import their answers and name the file with --data. New items do "
        "not stop a prediction. An item that the model was not trained on is predicted as the "
        "mean chance over up to 8 items that it was trained on, from easy to hard; basis tells "
        "of which: of those that share most of its skills (skill), else of its group (group), "
        "else of all (mean). basis is item where the model knows the item. An answer to a new "
        "item counts in the student's later predictions as an answer to these items. Skills "
        "and groups of known items are always those of the model. --strict refuses such data "
        "instead.\n\n"
        "With --interval the column deviation is the standard deviation of the chance that the "
        "student would answer correctly, about the probability as its mean, given the earlier "
        "answers; where it is small against p and 1 - p, p plus or minus 1.96 deviations is a "
        "95 % interval. vae: of the posterior of the abilities. lme: of the student's effect, "
        "about normal. bkt: a chance is 1 - slip with probability P(known) and guess "
        "otherwise. blend: only how far its members disagree, so no such interval. Parameters "
        "count as "
        "known. For new items the differences between the items they are predicted from "
        "count too.\n\n"
        "A model that predicts one target per student (dkt with model.task=final) writes "
        "student, target, prediction and deviation "
        "instead: the known target, its predicted mean and its standard deviation, which is "
        "empty where "
        "the model does not predict it.\n\n"
        "The file is identical, byte for byte, for any number of ranks.",
    .examples = "Predict the test attempts:\n\n"
                "  cohort predict runs/rbm --split test -o test.csv\n\n"
                "Predict new students:\n\n"
                "  cohort import csv new.csv --split none -o new.h5\n"
                "  cohort predict runs/rbm --data new.h5 -o new_predictions.csv\n\n"
                "Where every student stands tonight, for teachers:\n\n"
                "  cohort import csv log.csv --split none -o today.h5\n"
                "  cohort predict runs/bkt --data today.h5 --mastery -o mastery.csv\n\n"
                "Answer attempts as they come:\n\n"
                "  cohort predict runs/dkt --data today.h5 --follow < attempts.csv",
    .exit_status = "With --follow, 3 if some lines could not be answered.",
    .more_help = predict_more_help,
    .see_also = "cohort-evaluate(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
