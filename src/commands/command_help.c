/* cohort help: prints the pages of the manual, made from the same tables that parse command
 * lines and settings, so none of it can be out of date. `make install` writes the same pages as
 * roff for man:
 *
 *     cohort(1)                         all commands, exit status, environment
 *     cohort-COMMAND(1)                 commands.c
 *     cohort-files(5)                   help_files.c
 *     cohort-models(7)                  model_help of every kind
 *     cohort-settings(7)                the tables of [data], [train] and so on */
#include "base/fail.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "learn/model.h"
#include "runs/trainer.h"
#include "sweep/sweep.h"
#include <stddef.h>
#include <string.h>

struct values {
    bool man;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"man", OPTION_SWITCH, AT(man), "no", 0, 0, NULL,
      "print the page as roff, the source form of man pages"},
     0,
     NULL},
};

static const char about[] =
    "cohort trains models of student knowledge on answer logs, on a laptop or a cluster. The "
    "results are bit-identical for any number of ranks (MPI processes), except that those of "
    "lme "
    "depend on model.grid and on the BLAS kernel.";

static const char first_run[] =
    "Simulate a class, train a model on it with 2 ranks, and evaluate it:\n\n"
    "  cohort simulate irt --students 2000 --items 50 -o class.h5\n"
    "  mpirun -n 2 cohort train model.kind=rbm data=class.h5 run=runs/rbm\n"
    "  cohort evaluate runs/rbm";

/* A list of names and what they mean. */
struct entry {
    const char *name, *meaning;
};

static const struct entry exit_codes[] = {
    {"0", "success"},
    {"1", "a wrong setting, value or path; the message on standard error says which"},
    {"2", "a wrong command line"},
    {"3", "bad or damaged data"},
    {"4", "training diverged"},
    {"70", "a bug in cohort"},
    {"74", "disk full, or another input or output error"},
    {"85", "stopped by a signal after saving; run the same command to continue"},
};

static const struct entry environment[] = {
    {"COHORT_MPI", "no: do not start MPI, even under mpirun or srun, so that each process runs "
                   "the command alone; yes: start MPI even if no launcher is detected"},
    {"COHORT_LIVE",
     "yes or no: show progress as one line that is overwritten, as on a terminal, "
     "or as plain lines, as in a log: at most two per second about epochs, which skips "
     "some of short ones, and one every half minute in anything that takes longer; by "
     "default cohort finds out, under mpirun too"},
    {"COHORT_ISA", "plain, avx2 or avx512: use these vector instructions instead of the widest "
                   "that the CPU supports; the results do not change"},
    {"OPENBLAS_CORETYPE",
     "the kernels of OpenBLAS; cohort sets it where OpenBLAS does not recognize the CPU"},
    {"OPENBLAS_NUM_THREADS", "ignored: cohort uses one thread per rank"},
};

static const struct entry files[] = {
    {"DATA.h5", "a data set"},
    {"RUN/", "a run directory: settings, log, checkpoints and result"},
    {"RUN/*.h5", "checkpoints: last.h5, previous.h5, best.h5"},
};

static void add_entries(struct manual *manual, const struct entry *entries, size_t n)
{
    for (size_t e = 0; e < n; e++)
        manual_item(manual, entries[e].name, entries[e].meaning, NULL);
}

static void exit_codes_page(struct manual *manual)
{
    manual_heading(manual, "EXIT STATUS");
    add_entries(manual, exit_codes, COUNT(exit_codes));
}

static void environment_page(struct manual *manual)
{
    manual_heading(manual, "ENVIRONMENT");
    add_entries(manual, environment, COUNT(environment));
}

static void models_page(struct manual *manual)
{
    manual_heading(manual, "DESCRIPTION");
    manual_paragraph(
        manual, "`model.kind` selects the model of a run; its settings are the keys of the "
                "section [model]. A preset sets several of them at once; any setting given "
                "in a file or on the command line takes precedence over it. `cohort help "
                "KIND` prints the part of one kind.");
    for (size_t k = 0; k < n_model_kinds; k++)
        manual_item(manual, model_kinds[k]->name, model_kinds[k]->title, NULL);
    for (size_t k = 0; k < n_model_kinds; k++)
        model_help(manual, model_kinds[k]);
}

static void settings_page(struct manual *manual)
{
    struct option_group groups[6];
    settings_help_groups(groups);
    groups[4] =
        (struct option_group){"model", model_name_options, COUNT(model_name_options), NULL};
    groups[5] = (struct option_group){"sweep", sweep_table, n_sweep_table, NULL};
    manual_heading(manual, "DESCRIPTION");
    manual_paragraph(manual,
                     "`cohort train`, `cohort submit` and `cohort sweep` read settings from "
                     "files and from the command line. A file has sections and one setting per "
                     "line. Empty lines, and lines that begin with # or ;, are ignored:");
    manual_lines(manual,
                 "# a restricted Boltzmann machine\n[model]\nkind = rbm\nhidden = 30\n\n"
                 "[train]\nepochs = 50");
    manual_paragraph(
        manual, "On the command line a setting is one word, such as train.epochs=50. data=, "
                "run= and refit= are short for data.file=, run.directory= and train.refit=. "
                "Where yes and no are the choices, true and false, on and off, 1 and 0 are "
                "accepted too.");
    manual_paragraph(manual, "A setting that is given more than once has the value that comes "
                             "first in this list:");
    manual_item(manual, "1.", "the command line; of repeated settings the last one counts",
                NULL);
    manual_item(manual, "2.", "files; the last file counts", NULL);
    manual_item(manual, "3.", "config.ini of a run that is continued", NULL);
    manual_item(manual, "4.", "the preset (model.preset)", NULL);
    manual_item(manual, "5.", "the defaults of the kind of model: see cohort-models(7)", NULL);
    manual_item(
        manual, "6.",
        "what follows from the data: `cohort train ... --explain` prints it with reasons",
        NULL);
    manual_item(manual, "7.", "the defaults below", NULL);
    manual_heading(manual, "SETTINGS");
    manual_paragraph(manual, "The further keys of [model] depend on the kind: see "
                             "cohort-models(7). [sweep] is for `cohort sweep` only.");
    config_help(manual, groups, COUNT(groups));
}

/* What is not a command. Section 0: part of cohort(1). */
static const struct topic {
    const char *name, *title;
    int section;
    void (*print)(struct manual *manual);
    const char *see_also;
} topics[] = {
    {"models", "The kinds of models, with their settings and presets", 7, models_page,
     "cohort-settings(7), cohort-train(1)"},
    {"settings", "The settings of a run, section by section", 7, settings_page,
     "cohort-models(7), cohort-train(1), cohort-sweep(1)"},
    {"files", "The formats of data sets, run directories, checkpoints and predictions", 5,
     help_files, "cohort-inspect(1), cohort-verify(1)"},
    {"exit-codes", "The exit codes of all commands", 0, exit_codes_page, NULL},
    {"environment", "The environment variables that cohort reads", 0, environment_page, NULL},
};

const char *const *help_topics(void)
{
    static const char *names[COUNT(topics) + 2];
    for (size_t t = 0; t < COUNT(topics); t++)
        names[t] = topics[t].name;
    names[COUNT(topics)] = "cohort";
    return names;
}

static void add_lists(struct manual *manual)
{
    const size_t list = manual->list;
    manual->list = 17;
    manual_heading(manual, "COMMANDS");
    for (size_t c = 0; c < n_commands; c++)
        manual_item(manual, commands[c]->name, commands[c]->summary, NULL);
    manual_paragraph(manual,
                     "`cohort help COMMAND` prints the manual of a command, and so does "
                     "`cohort COMMAND --help`. `cohort help TOPIC` prints one of these:");
    for (size_t t = 0; t < COUNT(topics); t++)
        manual_item(manual, topics[t].name, topics[t].title, NULL);
    manual_item(manual, "KIND", "One kind of model: rbm, dkt and so on", NULL);
    manual->list = list;
    manual_heading(manual, "EXAMPLES");
    manual_prose(manual, first_run);
}

/* `cohort help` alone: the most useful part of cohort(1). */
static void print_overview(struct manual *manual)
{
    manual_paragraph(manual, "%s", about);
    manual_synopsis(manual, "usage: cohort", "COMMAND [ARGUMENTS]");
    add_lists(manual);
}

static void print_main(struct manual *manual)
{
    manual_title(manual, "cohort", 1, "train models of student knowledge on answer logs");
    manual_heading(manual, "SYNOPSIS");
    manual_synopsis(manual, "cohort", "COMMAND [ARGUMENTS]");
    manual_synopsis(manual, "mpirun -n 4 cohort", "COMMAND [ARGUMENTS]");
    manual_heading(manual, "DESCRIPTION");
    manual_paragraph(manual, "%s", about);
    manual_paragraph(manual, "Results go to standard output, messages to standard error.");
    add_lists(manual);
    exit_codes_page(manual);
    environment_page(manual);
    manual_heading(manual, "FILES");
    manual_paragraph(manual, "cohort-files(5) describes their formats.");
    add_entries(manual, files, COUNT(files));
    manual_heading(manual, "SEE ALSO");
    char *pages = memory_text("cohort-files(5), cohort-models(7), cohort-settings(7)");
    for (size_t c = 0; c < n_commands; c++) {
        char *more = memory_text("%s, cohort-%s(1)", pages, commands[c]->name);
        memory_free(pages);
        pages = more;
    }
    manual_paragraph(manual, "%s", pages);
    memory_free(pages);
}

static void print_topic(struct manual *manual, const struct topic *topic)
{
    char name[64];
    snprintf(name, sizeof name, "cohort-%s", topic->name);
    manual_title(manual, name, topic->section > 0 ? topic->section : 7, topic->title);
    topic->print(manual);
    manual_heading(manual, "SEE ALSO");
    manual_paragraph(manual, "cohort(1)%s%s", topic->see_also ? ", " : "",
                     topic->see_also ? topic->see_also : "");
}

static void print_kind(struct manual *manual, const struct model_kind *kind)
{
    char name[64];
    snprintf(name, sizeof name, "cohort-%s", kind->name);
    manual_title(manual, name, 7, kind->title);
    model_help(manual, kind);
    manual_heading(manual, "SEE ALSO");
    manual_paragraph(manual, "cohort-models(7), cohort-settings(7), cohort-train(1)");
}

static enum status print_word(struct manual *manual, const char *word)
{
    const char *names[64];
    size_t n = 0;
    if (strcmp(word, "cohort") == 0) {
        print_main(manual);
        return OK;
    }
    for (size_t c = 0; c < n_commands; c++) {
        names[n++] = commands[c]->name;
        if (strcmp(commands[c]->name, word) == 0) {
            command_help(manual, commands[c]);
            return OK;
        }
    }
    for (size_t t = 0; t < COUNT(topics); t++) {
        names[n++] = topics[t].name;
        if (strcmp(topics[t].name, word) == 0) {
            print_topic(manual, &topics[t]);
            return OK;
        }
    }
    for (size_t k = 0; k < n_model_kinds; k++) {
        names[n++] = model_kinds[k]->name;
        if (strcmp(model_kinds[k]->name, word) == 0) {
            print_kind(manual, model_kinds[k]);
            return OK;
        }
    }
    const char *nearest = config_nearest(word, names, n);
    return fail(BAD_USAGE, "help: unknown command or topic '%s'%s%s%s; `cohort help` lists all",
                word, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?" : "");
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--complete") == 0) { /* for shells, not for people */
        if (comm->rank == 0)
            help_complete((const char *const *)argv + 2, (size_t)argc - 2);
        return OK;
    }
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status =
        command_parse(&command_help_command, argc, argv, &values, words, &n_words);
    if (status == OK && n_words > 1)
        status = command_usage(&command_help_command);
    if (status == OK && comm->rank == 0) {
        struct manual manual =
            values.man ? manual_as_roff(stdout) : manual_for_terminal(stdout);
        if (n_words > 0)
            status = print_word(&manual, words[0]);
        else if (values.man)
            print_main(&manual);
        else
            print_overview(&manual);
    }
    memory_free(words);
    return comm_agree(comm, status);
}

static void more_help(struct manual *manual)
{
    manual_heading(manual, "TOPICS");
    for (size_t t = 0; t < COUNT(topics); t++)
        manual_item(manual, topics[t].name, topics[t].title, NULL);
    for (size_t k = 0; k < n_model_kinds; k++)
        if (strcmp(model_kinds[k]->name, "blend") != 0) /* that is a command too */
            manual_item(manual, model_kinds[k]->name, model_kinds[k]->title, NULL);
    manual_item(manual, "cohort", "All commands, exit status and environment", NULL);
}

const struct command command_help_command = {
    .name = "help",
    .usage = "help [COMMAND|TOPIC] [--man]",
    .summary = "List the commands, or print the manual of a command or topic",
    .details = "The same text is installed as man pages: cohort(1), cohort-COMMAND(1), "
               "cohort-files(5), cohort-models(7) and cohort-settings(7). `cohort COMMAND "
               "--help` prints the same as `cohort help COMMAND`.",
    .examples = "Read about a command, and about the settings of one kind of model:\n\n"
                "  cohort help train\n"
                "  cohort help rbm\n\n"
                "Read a page with man, without installing it:\n\n"
                "  cohort help train --man | man -l -",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = more_help,
    .run = run,
};
