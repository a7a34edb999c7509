/* cohort help: everything there is to read, made from the same tables that parse command lines
 * and configurations, so that none of it can be out of date: for the terminal, as a man page
 * (roff) and as the reference part of the README (markdown). */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "cohort.h"
#include "commands/commands.h"
#include "learn/model.h"
#include "runs/trainer.h"
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct values {
    bool man, markdown;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"man", OPTION_SWITCH, AT(man), "no", 0, 0, NULL, "print the man page, cohort.1"}, 0},
    {{"markdown", OPTION_SWITCH, AT(markdown), "no", 0, 0, NULL,
      "print the reference of all commands and settings for a README"},
     0},
};

static const char about[] =
    "cohort trains models of student knowledge on logs of answers, on a laptop or a cluster,\n"
    "with the same bits at any number of ranks.";

/* Lists of a name and what it means. */
struct entry {
    const char *name, *meaning;
};

static const struct entry exit_codes[] = {
    {"0", "done"},
    {"1", "the user's mistake: a key, a value, a path; a sentence on stderr says which"},
    {"2", "a command line that makes no sense"},
    {"3", "bad or damaged data"},
    {"4", "training diverged"},
    {"70", "a mistake of cohort's own"},
    {"74", "disk full, or another failure of input or output"},
    {"85", "stopped by a signal after saving: the same command continues"},
};

static const struct entry files[] = {
    {"DATA.h5", "a data set: students, attempts, items, skills, splits, names, digest"},
    {"RUN/config.ini", "the complete settings of a run, as they were resolved"},
    {"RUN/log.jsonl", "a record for each epoch"},
    {"RUN/last.h5", "the newest checkpoint; previous.h5 is the one before"},
    {"RUN/best.h5",
     "the checkpoint of the best epoch by validation; previous_best.h5 is the one before"},
    {"RUN/result.json", "scores of the best epoch, written when the run is finished"},
    {"RUN/lock", "held while a job trains there; it may lie about otherwise"},
    {"RUN/fold-1, ...", "the runs of a cross-validation"},
};

static const struct entry environment[] = {
    {"COHORT_MPI",
     "no: never mind the launcher, each process is a command of its own; yes: start "
     "MPI under a launcher that leaves no sign of itself"},
    {"COHORT_ISA", "plain, avx2 or avx512: the vectors to use instead of the widest there are; "
                   "results do not depend on it"},
    {"OPENBLAS_CORETYPE",
     "the kernels OpenBLAS uses; set by cohort itself where OpenBLAS does not know the CPU"},
    {"OPENBLAS_NUM_THREADS", "cohort always uses one thread a rank"},
};

struct topic {
    const char *name, *head, *title;
    const struct entry *entries;
    size_t n_entries;
    void (*print)(FILE *out, bool markdown);
};

static void print_settings(FILE *out, bool markdown)
{
    struct option_group groups[5];
    settings_help_groups(groups);
    groups[4] =
        (struct option_group){"model", model_name_options, COUNT(model_name_options), NULL};
    fprintf(out,
            "%sSettings are `key = value` lines in sections, or section.key=value on the "
            "command\nline of `cohort train`, which wins.\n",
            markdown ? "\n" : "");
    config_help(out, groups, COUNT(groups), markdown);
    model_help(out, markdown);
}

static const struct topic topics[] = {
    {"models", "Models", "the kinds of models, their settings and presets", NULL, 0,
     model_help},
    {"settings", "Settings", "the settings of a run, section by section", NULL, 0,
     print_settings},
    {"exit-codes", "Exit codes", "how the program ends", exit_codes, COUNT(exit_codes), NULL},
    {"files", "Files", "what is in the files", files, COUNT(files), NULL},
    {"environment", "Environment", "variables it looks at", environment, COUNT(environment),
     NULL},
};
enum { FIRST_PART = 1 }; /* of man page and markdown: the models are among the settings */

static void print_entries(FILE *out, const struct entry *entries, size_t n, bool markdown)
{
    if (markdown && n > 0)
        fprintf(out, "\n| | |\n|---|---|\n");
    for (size_t e = 0; e < n; e++)
        fprintf(out, markdown ? "| `%s` | %s |\n" : "  %-22s %s\n", entries[e].name,
                entries[e].meaning);
}

static void print_topic(FILE *out, const struct topic *topic, bool markdown)
{
    print_entries(out, topic->entries, topic->n_entries, markdown);
    if (topic->print != NULL)
        topic->print(out, markdown);
}

static void print_overview(FILE *out)
{
    fprintf(out, "%s\n\nusage: cohort COMMAND ...\n\n", about);
    for (size_t c = 0; c < n_commands; c++)
        fprintf(out, "  %-12s %s\n", commands[c]->name, commands[c]->summary);
    fprintf(out, "\n`cohort help COMMAND` says more, and so does `cohort help TOPIC`:\n\n");
    for (size_t t = 0; t < COUNT(topics); t++)
        fprintf(out, "  %-12s %s\n", topics[t].name, topics[t].title);
    fprintf(out, "\nA first run:\n\n"
                 "  cohort simulate irt --students 2000 --items 50 --skills 3 -o class.h5\n"
                 "  mpirun -n 2 cohort train model.kind=rbm data=class.h5 run=runs/rbm\n"
                 "  cohort evaluate runs/rbm\n");
}

/* Text for roff: a backslash is written \e, a hyphen \- so that it can be copied, and a dot or
 * a quote at the start of a line must not look like a request. */
static void roff_text(FILE *out, const char *text)
{
    bool line_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (line_start && (*c == '.' || *c == '\''))
            fputs("\\&", out);
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-')
            fputs("\\-", out);
        else
            fputc(*c, out);
        line_start = *c == '\n';
    }
}

static void roff_lines(FILE *out, const char *text)
{
    fputs(".nf\n", out);
    roff_text(out, text + strspn(text, "\n"));
    if (text[0] == '\0' || text[strlen(text) - 1] != '\n')
        fputc('\n', out);
    fputs(".fi\n", out);
}

static void roff_item(FILE *out, const char *name, const char *meaning, const char *more)
{
    fputs(".TP\n.B ", out);
    roff_text(out, name);
    fputc('\n', out);
    roff_text(out, meaning);
    roff_text(out, more);
    fputc('\n', out);
}

/* What a function prints for the terminal, as lines of roff. */
static void roff_printed(FILE *out, void (*print)(FILE *, bool))
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    if (memory == NULL)
        fail_abort(BAD_IO, "out of memory for the man page");
    print(memory, false);
    fclose(memory);
    roff_lines(out, text);
    free(text);
}

static void roff_command(FILE *out, const struct command *command)
{
    fprintf(out, ".SS %s\n.B cohort\n", command->name);
    roff_text(out, command->usage);
    fputs("\n.PP\n", out);
    roff_text(out, command->summary);
    fputs(".\n.PP\n", out);
    roff_lines(out, command->details);
    for (size_t f = 0; f < command->n_flags; f++) {
        const struct option *option = &command->flags[f].option;
        char name[80], more[256] = "";
        const char short_key = command->flags[f].short_key;
        if (short_key != 0)
            snprintf(name, sizeof name, "-%c, --%s", short_key, option->key);
        else
            snprintf(name, sizeof name, "--%s", option->key);
        if (option->type == OPTION_CHOICE) {
            snprintf(more, sizeof more, ": ");
            for (const char *const *choice = option->choices; *choice != NULL; choice++)
                snprintf(more + strlen(more), sizeof more - strlen(more), "%s%s",
                         choice > option->choices ? ", " : "", *choice);
        }
        if (option->type != OPTION_SWITCH && option->standard != NULL && option->standard[0])
            snprintf(more + strlen(more), sizeof more - strlen(more), " (standard: %s)",
                     option->standard);
        roff_item(out, name, option->help, more);
    }
    if (command->more_help != NULL && command != &command_train) {
        fputs(".PP\n", out);
        roff_printed(out, command->more_help);
    }
}

static void print_man(FILE *out)
{
    fprintf(out,
            ".TH COHORT 1 \"\" \"cohort %s\" \"User Commands\"\n"
            ".SH NAME\ncohort \\- trains models of student knowledge\n"
            ".SH SYNOPSIS\n.B cohort\n.I COMMAND\n.RI [ arguments ]\n.br\n"
            ".B mpirun \\-n 4 cohort\n.I COMMAND\n.RI [ arguments ]\n.SH DESCRIPTION\n",
            COHORT_VERSION);
    roff_text(out, about);
    fputs("\nResults go to standard output, talk to standard error.\n.SH COMMANDS\n", out);
    for (size_t c = 0; c < n_commands; c++)
        roff_command(out, commands[c]);
    for (size_t t = FIRST_PART; t < COUNT(topics); t++) {
        fputs(".SH ", out);
        for (const char *c = topics[t].head; *c != '\0'; c++)
            fputc(toupper((unsigned char)*c), out);
        fputc('\n', out);
        for (size_t e = 0; e < topics[t].n_entries; e++)
            roff_item(out, topics[t].entries[e].name, topics[t].entries[e].meaning, "");
        if (topics[t].print != NULL)
            roff_printed(out, topics[t].print);
    }
}

static void print_markdown(FILE *out)
{
    fputs("## Commands\n", out);
    for (size_t c = 0; c < n_commands; c++) {
        struct command command = *commands[c];
        if (commands[c] == &command_train)
            command.more_help = NULL; /* its settings have a part of their own */
        command_help(out, &command, true);
    }
    for (size_t t = FIRST_PART; t < COUNT(topics); t++) {
        fprintf(out, "\n## %s\n", topics[t].head);
        print_topic(out, &topics[t], true);
    }
}

static enum status print_word(const char *word)
{
    const char *names[64];
    size_t n = 0;
    for (size_t c = 0; c < n_commands; c++) {
        names[n++] = commands[c]->name;
        if (strcmp(commands[c]->name, word) == 0) {
            command_help(stdout, commands[c], false);
            return OK;
        }
    }
    for (size_t t = 0; t < COUNT(topics); t++) {
        names[n++] = topics[t].name;
        if (strcmp(topics[t].name, word) == 0) {
            print_topic(stdout, &topics[t], false);
            return OK;
        }
    }
    const char *nearest = config_nearest(word, names, n);
    return fail(BAD_USAGE,
                "help: there is no command or topic '%s'%s%s%s; `cohort help` lists "
                "them",
                word, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?" : "");
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status =
        command_parse(&command_help_command, argc, argv, &values, words, &n_words);
    if (status == OK && n_words > 1)
        status = command_usage(&command_help_command);
    if (status == OK && comm->rank == 0) {
        if (values.man)
            print_man(stdout);
        else if (values.markdown)
            print_markdown(stdout);
        else if (n_words == 0)
            print_overview(stdout);
        else
            status = print_word(words[0]);
    }
    memory_free(words);
    return comm_agree(comm, status);
}

static void more_help(FILE *out, bool markdown)
{
    fprintf(out, "\nTopics:\n\n");
    for (size_t t = 0; t < COUNT(topics); t++)
        fprintf(out, markdown ? "- `%s`: %s\n" : "  %-22s %s\n", topics[t].name,
                topics[t].title);
}

const struct command command_help_command = {
    .name = "help",
    .usage = "help [COMMAND|TOPIC] [--man] [--markdown]",
    .summary = "Lists the commands, or says more about one of them",
    .details = "`cohort COMMAND --help` says the same as `cohort help COMMAND`.",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = more_help,
    .run = run,
};
