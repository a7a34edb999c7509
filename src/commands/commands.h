/* The subcommands; each file of src/commands ends in one of these. */
#ifndef COHORT_COMMANDS_H
#define COHORT_COMMANDS_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include <stdio.h>

/* A command-line flag, from the same kind of table as a configuration key: `--key value`, or
 * `--key` alone for a switch; `short_key` is one letter or 0. */
struct flag {
    struct option option;
    char short_key;
};

struct command {
    const char *name;
    const char *usage;   /* "evaluate RUN [--split SPLIT] ..." */
    const char *summary; /* one line */
    const char *details; /* paragraphs for --help and the man page */
    const struct flag *flags;
    size_t n_flags;
    void (*more_help)(FILE *out, bool markdown); /* further tables, may be NULL */
    /* Collective. argv[0] is the command's name. */
    enum status (*run)(const struct comm *comm, int argc, char **argv);
};

extern const struct command command_import, command_simulate, command_train, command_sweep,
    command_submit, command_evaluate, command_predict, command_blend, command_report,
    command_inspect, command_export, command_sample, command_verify, command_doctor,
    command_help_command;

extern const struct command *const commands[];
extern const size_t n_commands;

/* Sorts argv[1..] into flags (parsed into `target`) and other words (words[0..n_words), in
 * order, with room for argc). Unknown flags are an error that names the nearest one. */
CHECKED enum status command_parse(const struct command *command, int argc, char **argv,
                                  void *target, const char **words, int *n_words);

/* A BAD_USAGE failure that shows the usage line. */
enum status command_usage(const struct command *command);
void command_help(FILE *out, const struct command *command, bool markdown);

/* JSON for people's programs: a text (bytes that are not UTF-8 become question marks), a number
 * (null if it is none), and the one object a command prints with --json, which is released. */
struct json_t *command_json_text(const char *text);
struct json_t *command_json_number(double value);
void command_json_print(struct json_t *object);

#endif
