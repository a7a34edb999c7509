/* cohort import: flags and wording; data_tools/import.c does the work. */
#include "base/memory.h"
#include "commands/commands.h"
#include "data_tools/import.h"
#include <stddef.h>

static const char *const time_units[] = {"s", "ms", "us", "ns", NULL};
static const char *const steps[] = {"every", "time", "session", NULL};

#define TEXT(key, field, standard, help)                                                       \
    {                                                                                          \
        {key, OPTION_TEXT, offsetof(struct import_flags, field), standard, 0, 0, NULL, help},  \
            0                                                                                  \
    }
#define SWITCH(key, field, help)                                                               \
    {                                                                                          \
        {key, OPTION_SWITCH, offsetof(struct import_flags, field), "no", 0, 0, NULL, help}, 0  \
    }
#define INTEGER(key, field, standard, least, most, help)                                       \
    {                                                                                          \
        {                                                                                      \
            key,                                                                               \
            OPTION_INTEGER,                                                                    \
            offsetof(struct import_flags, field),                                              \
            standard,                                                                          \
            least,                                                                             \
            most,                                                                              \
            NULL,                                                                              \
            help},                                                                             \
            0                                                                                  \
    }
#define CHOICE(key, field, standard, choices, help)                                            \
    {                                                                                          \
        {key,     OPTION_CHOICE, offsetof(struct import_flags, field), standard, 0, 0,         \
         choices, help},                                                                       \
            0                                                                                  \
    }

static const struct flag flags[] = {
    {{"output", OPTION_TEXT, offsetof(struct import_flags, output), "", 0, 0, NULL,
      "the data set to write"},
     'o'},
    TEXT("train", train, "", "file whose attempts are for training; the same as FILES"),
    TEXT("valid", valid, "", "file whose attempts are for validation"),
    TEXT("test", test, "", "file whose attempts are for tests"),
    SWITCH("withheld", withheld,
           "single attempts are held out: what is not for training is not shown to later "
           "attempts"),
    TEXT("split", split, "",
         "none, by-student=80/10/10, by-order=80/10/10, by-last, by-time=80/10/10, "
         "by-attempt=80/10/10, folds=K/F"),
    INTEGER("seed", seed, "1", 0, 9e15, "of splits and of the order of students"),
    SWITCH("skip-bad", skip_bad, "leave rows that make no sense out and count them"),
    SWITCH("shuffle-outcomes", shuffle_outcomes,
           "deal the outcomes out at random: nothing can be learned then, and nothing must be"),
    TEXT("student", student, "", "column of the student"),
    TEXT("item", item, "", "column of the item; A+B joins two"),
    TEXT("outcome", outcome, "", "column of the outcome"),
    TEXT("time", time, "", "column of the time: a number, or YYYY-MM-DD HH:MM:SS"),
    CHOICE("time-unit", time_unit, "s", time_units, "of times that are numbers"),
    TEXT("order", order, "", "column to sort a student's attempts by that is not a time"),
    TEXT("skills", skills, "", "column of the item's skills"),
    TEXT("skill-separator", skill_separator, "",
         "between skills in a cell: any text, space, comma, semicolon, none or auto"),
    TEXT("group", group, "", "column of the item's group"),
    TEXT("target", target, "",
         "column of a number to be predicted for the whole student; the last row's counts"),
    TEXT("covariates", covariates, "",
         "columns of numbers that go with every attempt, as in COLUMN,NAME=COLUMN; for "
         "model.fixed of lme and model.features of ktm"),
    TEXT("factors", factors, "",
         "columns of names that group attempts (a teacher, a session), as in "
         "COLUMN,NAME=COLUMN; for model.factors of lme and model.features of ktm; an empty "
         "cell is in no group"),
    TEXT("targets", targets, "", "file of two columns: a student, its target"),
    TEXT("split-column", split_column, "", "column that says train, valid or test"),
    TEXT("delimiter", delimiter, "auto",
         "between cells: one letter, tab, comma, semicolon, space"),
    SWITCH("merge-repeats", merge_repeats,
           "rows of one student, item and time are one attempt"),
    TEXT("item-meta", item_meta, "", "CSV of items with their --skills and --group"),
    TEXT("time-meta", time_meta, "", "CSV of answers with their times"),
    TEXT("item-names", item_names, "", "file of two columns: an item, what to call it"),
    TEXT("skill-names", skill_names, "", "file of two columns: a skill, what to call it"),
    TEXT("q-matrix", q_matrix, "", "CSV of 0 and 1: which item needs which skill"),
    TEXT("truth", truth, "",
         "NAME=FILE,...: CSV files of what simulated answers were made from, stored as "
         "/truth/NAME "
         "for `cohort inspect --truth`; NAME=-FILE changes the sign"),
    TEXT("questions", questions, "", "EdNet's questions.csv"),
    INTEGER("items", n_items, "0", 0, 1e6, "number of keys in sequences"),
    CHOICE("step", step, "every", steps,
           "what begins a new step: every attempt, a new time, a pause"),
    INTEGER("session-gap", session_gap, "1800", 0, 9e15,
            "seconds of pause that end a session, for --step session"),
};

static enum status read_and_write(const struct command *command, int argc, char **argv)
{
    struct import_flags values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    const void *format = NULL;
    int n_words = 0;
    enum status status = command_parse(command, argc, argv, &values, words, &n_words);
    if (status == OK)
        status = n_words == 0 ? command_usage(command)
                              : subcommands_find(&import_menu, words[0], &format);
    if (status == OK)
        status = subcommands_check_flags(&import_menu, format, argc, argv);
    if (status == OK)
        status = subcommands_check_output(&import_menu, values.output);
    if (status == OK)
        status = import_run(format, &values, words + 1, (size_t)n_words - 1);
    memory_free(words);
    return status;
}

/* One rank does it: reading text is bound by the file and by the names' hash tables. */
static enum status run(const struct comm *comm, int argc, char **argv)
{
    extern const struct command command_import;
    return comm_agree(comm, comm->rank == 0 ? read_and_write(&command_import, argc, argv) : OK);
}

static void print_formats(FILE *out, bool markdown)
{
    subcommands_print(&import_menu, out, markdown);
}

const struct command command_import = {
    .name = "import",
    .usage = "import FORMAT FILES... [--valid FILE] [--test FILE] [FLAGS] -o DATA.h5",
    .summary = "Makes a data set of files of answers, plain or gzipped",
    .details =
        "Reads one of the formats below and writes an HDF5 data set: students in a random "
        "order\n"
        "that depends on --seed and their names alone, each student's attempts in time order "
        "(or,\n"
        "without times, in the order of the rows; training files first, then validation, then\n"
        "tests). Files and --split say which attempts are for training, validation and tests;\n"
        "where nothing is said it is by-student=80/10/10, for grockit by-last:\n"
        "\n"
        "  by-student=80/10/10   whole students, by a hash of seed and name\n"
        "  by-order=80/10/10     whole students, in the order in which they come in the files\n"
        "  by-last               each student's last known attempt is test, the one before "
        "valid;\n"
        "                        the first known attempt always trains\n"
        "  by-time=80/10/10      the past for training, the future for tests\n"
        "  by-attempt=80/10/10   single attempts at random\n"
        "  folds=K/F             students in K folds: F (or 1) is test, the next valid\n"
        "  none                  all for training\n"
        "\n"
        "A row that makes no sense stops the import with its file and line; --skip-bad counts "
        "such\n"
        "rows instead. Skills in one cell are separated by what --skill-separator says; auto "
        "takes\n"
        "~~, ; or | where there is one, a blank or a comma between numbers, and lists like [1, "
        "5].",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = print_formats,
    .run = run,
};
