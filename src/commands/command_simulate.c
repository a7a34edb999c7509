/* cohort simulate: flags and wording; data_tools/simulate.c does the work. */
#include "base/memory.h"
#include "commands/commands.h"
#include "data_tools/simulate.h"
#include <stddef.h>

#define INTEGER(key, field, standard, least, most, help)                                       \
    {                                                                                          \
        {key,                                                                                  \
         OPTION_INTEGER,                                                                       \
         offsetof(struct simulate_flags, field),                                               \
         standard,                                                                             \
         least,                                                                                \
         most,                                                                                 \
         NULL,                                                                                 \
         help},                                                                                \
            0                                                                                  \
    }
#define NUMBER(key, field, standard, least, most, help)                                        \
    {                                                                                          \
        {key,  OPTION_NUMBER, offsetof(struct simulate_flags, field), standard, least, most,   \
         NULL, help},                                                                          \
            0                                                                                  \
    }

static const struct flag flags[] = {
    {{"output", OPTION_TEXT, offsetof(struct simulate_flags, output), "", 0, 0, NULL,
      "the data set to write"},
     'o'},
    INTEGER("students", n_students, "0", 0, 4e9,
            "how many students; 0 is the kind's own number"),
    INTEGER("items", n_items, "0", 0, 4e6, "how many items; 0 is the kind's own number"),
    INTEGER("skills", n_skills, "0", 0, 1e5, "how many skills; 0 is the kind's own number"),
    INTEGER("seed", seed, "1", 0, 9e15, "another seed is another class"),
    {{"model", OPTION_CHOICE, offsetof(struct simulate_flags, model), "2pl", 0, 0,
      simulate_models, "irt: items differ in difficulty alone, or in discrimination too"},
     0},
    NUMBER("correlation", correlation, "0", 0, 1, "irt: between a student's abilities"),
    NUMBER("missing", missing, "0", 0, 1, "irt: share of items a student does not answer"),
    INTEGER("attempts", n_attempts, "0", 0, 1e6,
            "bkt: of each student, 0 is 10 a skill; grockit: on average, 0 is 38"),
    NUMBER("forget", forget, "0", 0, 1, "bkt: probability to forget a skill at an attempt"),
    {{"split", OPTION_TEXT, offsetof(struct simulate_flags, split), "", 0, 0, NULL,
      "as in `cohort import`; by-student=80/10/10, for grockit by-last"},
     0},
    {{"shuffle-outcomes", OPTION_SWITCH, offsetof(struct simulate_flags, shuffle_outcomes),
      "no", 0, 0, NULL,
      "deal the outcomes out at random: nothing can be learned then, and nothing must be"},
     0},
};

static enum status make_and_write(const struct command *command, int argc, char **argv)
{
    struct simulate_flags values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    const void *kind = NULL;
    int n_words = 0;
    enum status status = command_parse(command, argc, argv, &values, words, &n_words);
    if (status == OK)
        status = n_words != 1 ? command_usage(command)
                              : subcommands_find(&simulate_menu, words[0], &kind);
    if (status == OK)
        status = subcommands_check_flags(&simulate_menu, kind, argc, argv);
    if (status == OK)
        status = subcommands_check_output(&simulate_menu, values.output);
    if (status == OK)
        status = simulate_run(kind, &values);
    memory_free(words);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    extern const struct command command_simulate;
    return comm_agree(comm,
                      comm->rank == 0 ? make_and_write(&command_simulate, argc, argv) : OK);
}

static void print_kinds(FILE *out, bool markdown)
{
    subcommands_print(&simulate_menu, out, markdown);
}

const struct command command_simulate = {
    .name = "simulate",
    .usage = "simulate KIND [--students N] [--items N] [--skills N] [--seed N] -o DATA.h5",
    .summary = "Makes a class with a known truth, which is stored beside the data",
    .details = "The class is a function of the flags, bit for bit. Its truth (abilities, "
               "difficulties,\n"
               "...) is in the group /truth of the file, in the order of the file's students "
               "and items,\n"
               "to compare with what a model finds.",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = print_kinds,
    .run = run,
};
