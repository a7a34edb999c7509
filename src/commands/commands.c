/* The list of commands, and what they share: sorting a command line into options and words, and
 * their man pages. */
#include "commands/commands.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

const struct command *const commands[] = {
    &command_import,       &command_simulate, &command_auto,   &command_train,
    &command_update,       &command_sweep,    &command_submit, &command_evaluate,
    &command_predict,      &command_blend,    &command_report, &command_inspect,
    &command_export,       &command_sample,   &command_verify, &command_doctor,
    &command_help_command,
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

/* Whether a command takes settings of runs. */
static bool has_settings(const struct command *command)
{
    return strstr(command->usage, "section.key=value") != NULL;
}

static enum status unknown_option(const struct command *command, const char *word)
{
    const char *names[64];
    for (size_t f = 0; f < command->n_flags; f++)
        names[f] = command->flags[f].option.key;
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
             word + strspn(word, "-"));
    const char *nearest = config_nearest(bare, names, command->n_flags);
    if (nearest == NULL && has_settings(command))
        return fail(BAD_USAGE,
                    "%s: unknown option %s; settings are given as section.key=value, such as "
                    "train.epochs=20 (`cohort help settings` lists all)",
                    command->name, word);
    return fail(BAD_USAGE, "%s: unknown option %s%s%s%s; `cohort %s --help` lists all",
                command->name, word, nearest ? "; did you mean --" : "", nearest ? nearest : "",
                nearest ? "?" : "", command->name);
}

static bool value_is_optional(const struct flag *flag)
{
    return flag->value != NULL && flag->value[0] == '[';
}

enum status command_parse(const struct command *command, int argc, char **argv, void *target,
                          const char **words, int *n_words)
{
    uint64_t given = 0; /* a bit for each option: no command has more than 64 */
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
            return unknown_option(command, word);
        const uint64_t bit = UINT64_C(1) << (flag - command->flags);
        if (flag->option.type != OPTION_SWITCH && (given & bit) != 0)
            return fail(BAD_USAGE, "%s: --%s is given twice; expected one value", command->name,
                        flag->option.key);
        given |= bit;
        const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
        const bool alone = equals == NULL && value_is_optional(flag);
        char first[32] = "";
        if (alone)
            snprintf(first, sizeof first, "%.*s", (int)strcspn(flag->value + 2, "|]"),
                     flag->value + 2);
        const char *value = equals ? equals + 1 : alone ? first : "yes";
        if (equals == NULL && flag->option.type != OPTION_SWITCH && !alone) {
            if (i + 1 >= argc)
                return fail(BAD_USAGE, "%s: %s needs a value: %s", command->name, word,
                            flag->option.help);
            value = argv[++i];
        }
        if (value[0] == '\0') /* "" of an unset variable must not pass for an omitted option */
            return fail(BAD_USAGE,
                        "%s: the value of --%s is empty; give a value or omit the option",
                        command->name, flag->option.key);
        TRY(config_parse(&flag->option, value, word, target));
    }
    return OK;
}

enum status command_usage(const struct command *command)
{
    return fail(BAD_USAGE, "usage: cohort %s  (see `cohort %s --help`)", command->usage,
                command->name);
}

enum status command_check_output(const struct command *command, const char *path,
                                 const char *what)
{
    if (path[0] == '\0')
        return fail(BAD_USAGE, "%s: no output; name %s with -o", command->name, what);
    if (file_is_directory(path))
        return fail(BAD_USER, "%s: -o %s is a directory; expected %s", command->name, path,
                    what);
    char *directory = memory_text("%s", path), *slash = strrchr(directory, '/');
    enum status status = OK;
    if (slash != NULL && slash > directory) {
        *slash = '\0';
        if (!file_is_directory(directory))
            status = fail(BAD_USER, "%s: -o %s: there is no directory %s; create it first",
                          command->name, path, directory);
    }
    memory_free(directory);
    return status;
}

/* "-o, --output FILE": the value is called as the table has it, or by its type. */
static void option_name(const struct flag *flag, char *name, size_t size)
{
    static const char *const values[] = {[OPTION_INTEGER] = "N", [OPTION_NUMBER] = "X"};
    const struct option *option = &flag->option;
    int n = 0;
    if (flag->short_key != 0)
        n = snprintf(name, size, "-%c, ", flag->short_key);
    n += snprintf(name + n, size - (size_t)n, "--%s", option->key);
    if (option->type == OPTION_SWITCH)
        return;
    if (value_is_optional(flag)) {
        snprintf(name + n, size - (size_t)n, "%s", flag->value);
        return;
    }
    name[n++] = ' ';
    const char *value = flag->value                    ? flag->value
                        : option->type < COUNT(values) ? values[option->type]
                                                       : option->key;
    const int end = n + snprintf(name + n, size - (size_t)n, "%s", value);
    for (; value == option->key && n < end; n++)
        name[n] = (char)toupper((unsigned char)name[n]);
}

static void print_options(struct manual *manual, const struct command *command)
{
    manual_heading(manual, "OPTIONS");
    for (size_t f = 0; f < command->n_flags; f++) {
        const struct option *option = &command->flags[f].option;
        const bool plain = option->type == OPTION_SWITCH ||
                           (option->type == OPTION_TEXT && option->standard[0] == '\0');
        char name[128], facts[768] = "";
        option_name(&command->flags[f], name, sizeof name);
        if (!plain)
            config_facts(option, facts, sizeof facts);
        manual_item(manual, name, option->help, facts);
    }
}

void command_help(struct manual *manual, const struct command *command)
{
    char name[64];
    snprintf(name, sizeof name, "cohort-%s", command->name);
    manual_title(manual, name, 1, command->summary);
    manual_heading(manual, "SYNOPSIS");
    snprintf(name, sizeof name, "cohort %s", command->name);
    manual_synopsis(manual, name, command->usage + strlen(command->name));
    manual_heading(manual, "DESCRIPTION");
    manual_prose(manual, command->details);
    if (command->n_flags > 0)
        print_options(manual, command);
    if (command->more_help != NULL)
        command->more_help(manual);
    manual_heading(manual, "EXAMPLES");
    manual_prose(manual, command->examples);
    if (command->exit_status != NULL) {
        manual_heading(manual, "EXIT STATUS");
        manual_prose(manual, command->exit_status);
    }
    manual_heading(manual, "SEE ALSO");
    manual_paragraph(manual, "cohort(1)%s%s", command->see_also ? ", " : "",
                     command->see_also ? command->see_also : "");
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
