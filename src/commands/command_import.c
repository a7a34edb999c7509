/* cohort import: options and help; data_tools/import.c does the work. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "commands/commands.h"
#include "commands/flag_rows.h"
#include "data_tools/import.h"
#include "data_tools/time_reader.h"
#include <stddef.h>

static const char *const steps[] = {"every", "time", "session", NULL};

#define AT(field) offsetof(struct import_flags, field)
static const struct flag flags[] = {
    FLAG_OUTPUT,
    FLAG_TEXT("train", train, "", "FILE", "read attempts for training; the same as FILES"),
    FLAG_TEXT("valid", valid, "", "FILE", "read attempts for validation"),
    FLAG_TEXT("test", test, "", "FILE", "read attempts for testing"),
    FLAG_SWITCH(
        "withheld", withheld,
        "hold out single attempts: predictions of a student's later attempts do not use the "
        "outcomes of validation and test attempts; by-last and by-attempt always do this"),
    FLAG_TEXT("split", split, "", "SPLIT",
              "split the attempts into training, validation and test: see SPLITS below"),
    FLAG_INTEGER("seed", seed, "1", 0, 9e15, "seed for splits and for the order of students"),
    FLAG_SWITCH("skip-bad", skip_bad, "skip and count rows that cannot be read"),
    FLAG_SWITCH(
        "shuffle-outcomes", shuffle_outcomes,
        "permute the outcomes at random, to check that a model learns nothing from them"),
    FLAG_TEXT("student", student, "", "COLUMN", "column of the student"),
    FLAG_TEXT("item", item, "", "COLUMN", "column of the item; A+B joins two columns"),
    FLAG_TEXT("outcome", outcome, "", "COLUMN", "column of the outcome"),
    FLAG_TEXT("time", time, "", "COLUMN",
              "column of the time: numbers or dates; see TIMES below"),
    FLAG_CHOICE("time-unit", time_unit, "auto", time_reader_units, "UNIT",
                "unit of times that are numbers; auto: by their size"),
    FLAG_TEXT("time-format", time_format, "", "FORMAT",
              "format of times that are dates, as of strptime: '%d.%m.%Y %H:%M'"),
    FLAG_TEXT("threshold", threshold, "", "SCORE",
              "read outcomes as scores: correct from this score on, incorrect below it"),
    FLAG_TEXT("order", order, "", "COLUMN",
              "column to sort a student's attempts by, where it is not a time"),
    FLAG_TEXT("skills", skills, "", "COLUMN", "column of the item's skills"),
    FLAG_TEXT("skill-separator", skill_separator, "", "TEXT",
              "separator of skills in a cell: any text, space, comma, semicolon, none or auto"),
    FLAG_TEXT("group", group, "", "COLUMN", "column of the item's group"),
    FLAG_TEXT(
        "target", target, "", "COLUMN",
        "column of a number to predict once per student, such as an exam score; the student's "
        "last row counts"),
    FLAG_TEXT("covariates", covariates, "", "COLUMNS",
              "columns of numbers to store with every attempt, as in COLUMN,NAME=COLUMN; for "
              "model.fixed of lme and model.features of ktm"),
    FLAG_TEXT(
        "factors", factors, "", "COLUMNS",
        "columns of names that group attempts (a teacher, a session), as in "
        "COLUMN,NAME=COLUMN; for model.factors of lme and model.features of ktm; an empty "
        "cell belongs to no group"),
    FLAG_TEXT("targets", targets, "", "FILE", "file of two columns: student, target"),
    FLAG_TEXT("split-column", split_column, "", "COLUMN",
              "column that contains train, valid or test"),
    FLAG_TEXT("delimiter", delimiter, "auto", "CHARACTER",
              "separator of cells: one character, or tab, comma, semicolon, space, auto"),
    FLAG_SWITCH(
        "merge-repeats", merge_repeats,
        "merge rows of the same student, item and time into one attempt with the skills of "
        "all; without times, adjacent rows of a student with the same item and outcome"),
    FLAG_SWITCH("keep-repeats", keep_repeats,
                "make an attempt of every row, also of rows that differ in their skills only"),
    FLAG_TEXT(
        "pseudonyms", pseudonyms, "", "KEYFILE",
        "store students under keyed hashes of their names (HMAC-SHA-256) with the key in this "
        "file; a missing file is created with a new key"),
    FLAG_TEXT("item-meta", item_meta, "", "FILE",
              "CSV of items with their --skills and --group"),
    FLAG_TEXT("time-meta", time_meta, "", "FILE", "CSV of answers with their times"),
    FLAG_TEXT("item-names", item_names, "", "FILE", "file of two columns: item, its name"),
    FLAG_TEXT("skill-names", skill_names, "", "FILE", "file of two columns: skill, its name"),
    FLAG_TEXT(
        "q-matrix", q_matrix, "", "FILE",
        "CSV of 0 and 1: which item needs which skill; its first column may name the items, "
        "its first line the skills"),
    FLAG_TEXT(
        "truth", truth, "", "NAME=FILE,...",
        "CSV files of the true parameters of simulated answers, stored as /truth/NAME for "
        "`cohort inspect --truth`; NAME=-FILE changes the sign"),
    FLAG_TEXT("questions", questions, "", "FILE", "EdNet's questions.csv"),
    FLAG_INTEGER("items", n_items, "0", 0, 1e6, "number of keys in sequences"),
    FLAG_CHOICE("step", step, "every", steps, NULL,
                "which attempts begin a new step, the group of attempts that an rtrbm models "
                "together: every attempt, each new time, or each new session"),
    FLAG_INTEGER("session-gap", session_gap, "1800", 0, 9e15,
                 "with --step session: a pause of this many seconds ends a session"),
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
    if (status == BAD_USAGE && n_words > 0 && file_is_plain(words[0])) {
        fail_clear();
        char *file = shell_quote_text("%s", words[0]);
        status =
            fail(BAD_USAGE,
                 "import: '%s' is a file, and the format comes first; did you mean `cohort "
                 "import csv %s ...`? `cohort import --help` lists the formats",
                 words[0], file);
        memory_free(file);
    }
    if (status == OK)
        status = subcommands_check_flags(&import_menu, format, argc, argv);
    if (status == OK)
        status = subcommands_check_output(&import_menu, values.output);
    const bool replaces = status == OK && file_exists(values.output);
    if (status == OK)
        status = import_run(format, &values, words + 1, (size_t)n_words - 1);
    if (status == OK && replaces)
        subcommands_say_replaced(values.output);
    memory_free(words);
    return status;
}

/* One rank does it: the file and the hash tables of names limit the speed. */
static enum status run(const struct comm *comm, int argc, char **argv)
{
    extern const struct command command_import;
    return comm_agree(comm, comm->rank == 0 ? read_and_write(&command_import, argc, argv) : OK);
}

static void more_help(struct manual *manual)
{
    static const char *const splits[][2] = {
        {"by-student=80/10/10", "whole students, by a hash of seed and name"},
        {"by-order=80/10/10", "whole students, in the order of the files"},
        {"by-last", "of each student's attempts with a known outcome, the last is for test, "
                    "the one before it for validation; the first is always for training"},
        {"by-time=80/10/10", "earlier attempts for training, later ones for test"},
        {"by-attempt=80/10/10", "single attempts at random"},
        {"folds=K/F", "students in K folds: fold F (1 if omitted) is for test, the next for "
                      "validation"},
        {"none", "all for training"},
    };
    manual_heading(manual, "TIMES");
    manual_paragraph(
        manual,
        "The format of times is recognized from the first megabyte, and every row must have "
        "it: "
        "seconds since 1970 or of any clock; milliseconds and smaller units since 1970; dates "
        "of 1990 to 2099 in 8, 12 or 14 digits (20120928, 20120928151100); ISO "
        "8601 with fractions and offsets (2012-09-28T15:11:00.5+02:00); other dates, such as "
        "28.09.2012 15:11, 9/28/2012 3:11 PM or 28 September 2012. In 9/28/2012 the number "
        "over "
        "12 is the day. If no number is over 12, the month is first with slashes, the day with "
        "hyphens, and a message says so. Dates without an offset are UTC. Times that are all "
        "equal are ignored. --time-format knows %%Y %%y %%m %%d %%b %%B %%a %%A %%H %%I %%p "
        "%%M %%S %%f %%z "
        "%%s %%F %%T %%D %%R; a fraction after %%S is read too. Times are kept to the "
        "microsecond, "
        "and `cohort predict` writes them in the form of the column.");
    manual_heading(manual, "SPLITS");
    manual_paragraph(manual,
                     "Numbers are percentages for training, validation and test. With --test "
                     "and without --valid, --split by-student=90/10 (or by-order, by-time, "
                     "by-attempt, by-last) takes validation out of the training files.");
    for (size_t s = 0; s < COUNT(splits); s++)
        manual_item(manual, splits[s][0], splits[s][1], NULL);
    subcommands_print(&import_menu, manual);
}

const struct command command_import = {
    .name = "import",
    .usage = "import FORMAT FILES... [--valid FILE] [--test FILE] [OPTIONS] -o DATA.h5",
    .summary = "Convert answer logs into a data set",
    .details =
        "Read files in one of the formats below, plain or gzipped, and write an HDF5 data set. "
        "Students are stored in a random order that depends on --seed and their names alone. "
        "Each student's attempts are in time order or, without times, in the order of the "
        "rows: training files first, then validation, then test.\n\n"
        "The files (--train, --valid, --test), --split-column or --split decide which attempts "
        "are for training, validation and test. The default is "
        "by-student=80/10/10, and by-last for grockit.\n\n"
        "A row that cannot be read stops the import, with its file and line; --skip-bad skips "
        "and counts such rows. --skill-separator sets the text between the skills of a cell. "
        "With auto, cells are split at ~~, ; or |, and cells that hold only numbers also at "
        "blanks and commas; lists like [1, 5] are read too, and a line says what was split.\n\n"
        "Names are stored as UTF-8; names that are not UTF-8 are read as Latin-1, and counted. "
        "A "
        "line break within a quoted name stays part of it.",
    .examples = "Import a CSV file with the usual names of columns:\n\n"
                "  cohort import csv answers.csv -o answers.h5\n\n"
                "Import one whose columns have other names:\n\n"
                "  cohort import csv log.csv.gz --student user --item problem \\\n"
                "      --outcome correct --time timestamp --skills topic -o log.h5\n\n"
                "Import files that are split already:\n\n"
                "  cohort import three-line --train train.csv --valid valid.csv \\\n"
                "      --test test.csv -o class.h5\n\n"
                "Look at the result:\n\n"
                "  cohort inspect class.h5",
    .see_also = "cohort-simulate(1), cohort-inspect(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = more_help,
    .run = run,
};
