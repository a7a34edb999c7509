/* The commands; each src/commands/command_*.c ends in one of these. */
#ifndef COHORT_COMMANDS_H
#define COHORT_COMMANDS_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "base/manual.h"

/* A command-line option, a row like those of settings: `--key value`, or `--key` alone for a
 * switch. */
struct flag {
    struct option option;
    char short_key; /* one letter, or 0 */
    /* What help calls the value, such as "FILE"; NULL: by its type. "[=a|b]": `--key=a` or
     * `--key=b`, and `--key` alone is the first. */
    const char *value;
};

struct command {
    const char *name;
    const char *usage;       /* "evaluate RUN [--split SPLIT] ..." */
    const char *summary;     /* one line; the first word is a verb */
    const char *details;     /* paragraphs: see manual_prose */
    const char *examples;    /* likewise: command lines that work, and what they do */
    const char *exit_status; /* what the exit code tells besides cohort(1), may be NULL */
    const char *see_also;    /* pages, may be NULL */
    const struct flag *flags;
    size_t n_flags;
    void (*more_help)(struct manual *manual); /* further sections, may be NULL */
    /* Collective. argv[0] is the command's name. */
    enum status (*run)(const struct comm *comm, int argc, char **argv);
};

extern const struct command command_import, command_simulate, command_auto, command_train,
    command_update, command_sweep, command_submit, command_evaluate, command_predict,
    command_blend, command_report, command_inspect, command_export, command_sample,
    command_verify, command_doctor, command_help_command;

extern const struct command *const commands[];
extern const size_t n_commands;

/* Sorts argv[1..] into options (parsed into `target`) and other words (words[0..n_words), in
 * order, with room for argc). For an unknown option the failure suggests the nearest. An empty
 * value is refused. */
CHECKED enum status command_parse(const struct command *command, int argc, char **argv,
                                  void *target, const char **words, int *n_words);

/* A BAD_USAGE failure that shows the usage line. */
enum status command_usage(const struct command *command);

/* Refuses an output that was not given, or is a directory where a file is expected; `what` it
 * is to be, as in "the file to write". */
CHECKED enum status command_check_output(const struct command *command, const char *path,
                                         const char *what);

/* Writes the command's page. */
void command_help(struct manual *manual, const struct command *command);

/* Further pages of `cohort help`, in their files help_*.c. */
void help_files(struct manual *manual);

/* The sections of `cohort help report` (report_help.c). */
void report_more_help(struct manual *manual);

/* Prints what the last of n words, of those after `cohort`, may become, for shells
 * (help_complete.c); and the topics of help, NULL-terminated. */
void help_complete(const char *const *words, size_t n);
const char *const *help_topics(void);

/* JSON output: a text (bytes that are not UTF-8 become question marks), a number (null if it is
 * NaN or infinite), and the one object that a command prints with --json, which is released. */
struct json_t *command_json_text(const char *text);
struct json_t *command_json_number(double value);
void command_json_print(struct json_t *object);

#endif
