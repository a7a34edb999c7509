/* cohort simulate: options and help; data_tools/simulate.c does the work. */
#include "base/file.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/flag_rows.h"
#include "data_tools/simulate.h"
#include <stddef.h>

#define AT(field) offsetof(struct simulate_flags, field)
static const struct flag flags[] = {
    FLAG_OUTPUT,
    FLAG_INTEGER("students", n_students, "0", 0, 4e9,
                 "number of students; 0: the default of the kind"),
    FLAG_INTEGER("items", n_items, "0", 0, 4e6, "number of items; 0: the default of the kind"),
    FLAG_INTEGER("skills", n_skills, "0", 0, 1e5,
                 "number of skills; 0: the default of the kind"),
    FLAG_INTEGER("seed", seed, "1", 0, 9e15, "seed of the random numbers"),
    FLAG_CHOICE("model", model, "2pl", simulate_models, NULL,
                "irt: items differ in difficulty only (1pl), or also in discrimination (2pl)"),
    FLAG_NUMBER("correlation", correlation, "0", 0, 1,
                "irt: correlation of a student's abilities"),
    FLAG_NUMBER("missing", missing, "0", 0, 1,
                "irt: share of items that a student does not answer"),
    FLAG_INTEGER(
        "attempts", n_attempts, "0", 0, 1e6,
        "bkt: attempts per student, 0: 10 per skill; grockit: mean attempts per student, "
        "0: 38"),
    FLAG_NUMBER("forget", forget, "0", 0, 1,
                "bkt: probability of forgetting a skill per attempt"),
    FLAG_TEXT(
        "split", split, "", "SPLIT",
        "split of the attempts, as in `cohort import`; if omitted, by-student=80/10/10, and "
        "by-last for grockit"),
    FLAG_SWITCH(
        "shuffle-outcomes", shuffle_outcomes,
        "permute the outcomes at random, to check that a model learns nothing from them"),
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
    const bool replaces = status == OK && file_exists(values.output);
    if (status == OK)
        status = simulate_run(kind, &values);
    if (status == OK && replaces)
        subcommands_say_replaced(values.output);
    memory_free(words);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    extern const struct command command_simulate;
    return comm_agree(comm,
                      comm->rank == 0 ? make_and_write(&command_simulate, argc, argv) : OK);
}

static void print_kinds(struct manual *manual)
{
    subcommands_print(&simulate_menu, manual);
}

const struct command command_simulate = {
    .name = "simulate",
    .usage = "simulate KIND [--students N] [--items N] [--skills N] [--seed N] -o DATA.h5",
    .summary = "Simulate a class of students with known parameters",
    .details =
        "Write a data set whose true parameters are known. The truth (abilities, difficulties "
        "and so on) is stored in the group /truth of the file, in the order of the file's "
        "students and items; `cohort inspect RUN --truth` compares a trained model with it. "
        "The same options always give the same file, byte for byte.",
    .examples = "Simulate a class, train a model on it and compare it with the truth:\n\n"
                "  cohort simulate irt --students 2000 --items 50 -o class.h5\n"
                "  cohort train model.kind=vae model.preset=2pl data=class.h5 run=runs/vae\n"
                "  cohort inspect runs/vae --truth",
    .see_also = "cohort-import(1), cohort-inspect(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = print_kinds,
    .run = run,
};
