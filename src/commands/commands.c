/* The list of commands, and what they share: sorting a command line into flags and words, and
 * help. */
#include "commands/commands.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

const struct command *const commands[] = {
    &command_import, &command_simulate, &command_train,        &command_sweep,
    &command_submit, &command_evaluate, &command_predict,      &command_blend,
    &command_report, &command_inspect,  &command_export,       &command_sample,
    &command_verify, &command_doctor,   &command_help_command,
};
const size_t n_commands = COUNT(commands);

static const struct flag *find_flag(const struct command *command, const char *word)
{
    for (size_t f = 0; f < command->n_flags; f++) {
        const struct flag *flag = &command->flags[f];
        const bool is_long = strncmp(word, "--", 2) == 0 &&
                             strcspn(word + 2, "=") == strlen(flag->option.key) &&
                             strncmp(word + 2, flag->option.key, strlen(flag->option.key)) == 0;
        const bool is_short = flag->short_key != 0 && word[0] == '-' &&
                              word[1] == flag->short_key && word[2] == '\0';
        if (is_long || is_short)
            return flag;
    }
    return NULL;
}

static enum status unknown_flag(const struct command *command, const char *word)
{
    const char *names[64];
    for (size_t f = 0; f < command->n_flags; f++)
        names[f] = command->flags[f].option.key;
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
             word + strspn(word, "-"));
    const char *nearest = config_nearest(bare, names, command->n_flags);
    return fail(BAD_USAGE, "%s: there is no flag %s%s%s%s; `cohort %s --help` lists them",
                command->name, word, nearest ? "; did you mean --" : "", nearest ? nearest : "",
                nearest ? "?" : "", command->name);
}

enum status command_parse(const struct command *command, int argc, char **argv, void *target,
                          const char **words, int *n_words)
{
    *n_words = 0;
    for (size_t f = 0; f < command->n_flags; f++)
        if (command->flags[f].option.standard != NULL)
            TRY(config_parse(&command->flags[f].option, command->flags[f].option.standard,
                             command->name, target));
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (word[0] != '-' || word[1] == '\0') {
            words[(*n_words)++] = word;
            continue;
        }
        const struct flag *flag = find_flag(command, word);
        if (flag == NULL)
            return unknown_flag(command, word);
        const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
        const char *value = equals ? equals + 1 : "yes";
        if (equals == NULL && flag->option.type != OPTION_SWITCH) {
            if (i + 1 >= argc)
                return fail(BAD_USAGE, "%s: %s wants a value: %s", command->name, word,
                            flag->option.help);
            value = argv[++i];
        }
        TRY(config_parse(&flag->option, value, word, target));
    }
    return OK;
}

enum status command_usage(const struct command *command)
{
    return fail(BAD_USAGE, "usage: cohort %s  (`cohort %s --help` says more)", command->usage,
                command->name);
}

/* Paragraphs, which may begin with blanks all over; lines that stand out from them are lists,
 * which are code in markdown. */
static void print_details(FILE *out, const char *text, bool markdown)
{
    const size_t margin = strspn(text, " ");
    while (*text != '\0') {
        text += size_min(margin, strspn(text, " "));
        const size_t n = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", markdown && text[0] == ' ' ? "    " : "", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void print_flag(FILE *out, const struct flag *flag, bool markdown)
{
    const struct option *option = &flag->option;
    const bool has_standard = option->type != OPTION_SWITCH && option->standard != NULL &&
                              option->standard[0] != '\0';
    const char *standard = has_standard ? option->standard : "";
    char name[64], choices[256] = "";
    snprintf(name, sizeof name, "%s%c%s--%s", flag->short_key ? "-" : "",
             flag->short_key ? flag->short_key : ' ', flag->short_key ? ", " : "   ",
             option->key);
    for (size_t c = 0; option->type == OPTION_CHOICE && option->choices[c] != NULL; c++)
        snprintf(choices + strlen(choices), sizeof choices - strlen(choices), "%s%s",
                 c > 0 ? ", " : ": ", option->choices[c]);
    if (markdown)
        fprintf(out, "| `%s` | %s | %s%s |\n", name + strspn(name, " "), standard, option->help,
                choices);
    else
        fprintf(out, "  %-22s %s%s%s%s%s\n", name, option->help, choices,
                has_standard ? " (standard: " : "", standard, has_standard ? ")" : "");
}

void command_help(FILE *out, const struct command *command, bool markdown)
{
    if (markdown)
        fprintf(out, "\n### cohort %s\n\n%s.\n\n    cohort %s\n\n", command->name,
                command->summary, command->usage);
    else
        fprintf(out, "cohort %s\n\n  %s.\n\n", command->usage, command->summary);
    print_details(out, command->details, markdown);
    if (command->n_flags > 0)
        fprintf(out,
                markdown ? "\n| flag | standard | meaning |\n|---|---|---|\n" : "\nFlags:\n");
    for (size_t f = 0; f < command->n_flags; f++)
        print_flag(out, &command->flags[f], markdown);
    if (command->more_help != NULL)
        command->more_help(out, markdown);
}

json_t *command_json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL)
        return string;
    char *plain = memory_text("%s", text);
    for (char *c = plain; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(plain);
    memory_free(plain);
    return string;
}

json_t *command_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void command_json_print(json_t *object)
{
    json_dumpf(object, stdout, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(object);
}
