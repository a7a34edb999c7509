/* Completion of command lines in a shell. The scripts in completions/ call
 *
 *     cohort help --complete WORDS... PART
 *
 * with the words after `cohort` up to the cursor, and offer the lines that it prints: what PART
 * may become, from the same tables as help. A line `@files` stands for the names of files; what
 * stands before the last = of PART stays. */
#include "base/config.h"
#include "base/job_files.h"
#include "commands/commands.h"
#include "data_tools/import.h"
#include "data_tools/simulate.h"
#include "data_tools/subcommand.h"
#include "learn/model.h"
#include "runs/settings.h"
#include "sweep/sweep.h"
#include <stdio.h>
#include <string.h>

struct line {
    const char *const *words;
    size_t n; /* words before the part */
    const char *part;
};

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Prints before + name + after, if that is what the part may become. */
static void offer(const struct line *line, const char *before, const char *name,
                  const char *after)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", before, name, after);
    if (begins(text, line->part))
        puts(text);
}

static void offer_files(void)
{
    puts("@files");
}

/* The values of a row, each after what stands before it. */
static void offer_values(const struct line *line, const char *before,
                         const struct option *option)
{
    static const char *const switches[] = {"yes", "no", NULL};
    const char *const *choices = option->type == OPTION_CHOICE   ? option->choices
                                 : option->type == OPTION_SWITCH ? switches
                                                                 : NULL;
    for (; choices != NULL && *choices != NULL; choices++)
        offer(line, before, *choices, "");
    if (option->type == OPTION_TEXT)
        offer_files();
}

static const struct command *command_named(const char *name)
{
    for (size_t c = 0; c < n_commands; c++)
        if (strcmp(commands[c]->name, name) == 0)
            return commands[c];
    return NULL;
}

/* The option that a word `--key`, `--key=...` or `-k` names. */
static const struct flag *flag_named(const struct command *command, const char *word)
{
    for (size_t f = 0; f < command->n_flags; f++) {
        const struct flag *flag = &command->flags[f];
        if (begins(word, "--") ? strcspn(word + 2, "=") == strlen(flag->option.key) &&
                                     begins(word + 2, flag->option.key)
                               : flag->short_key != 0 && word[0] == '-' &&
                                     word[1] == flag->short_key && word[2] == '\0')
            return flag;
    }
    return NULL;
}

static void offer_options(const struct line *line, const struct command *command)
{
    const char *equals = strchr(line->part, '=');
    const struct flag *flag = equals != NULL ? flag_named(command, line->part) : NULL;
    if (flag != NULL) {
        char before[128];
        snprintf(before, sizeof before, "%.*s", (int)(equals + 1 - line->part), line->part);
        offer_values(line, before, &flag->option);
        return;
    }
    for (size_t f = 0; f < command->n_flags; f++)
        offer(line, "--", command->flags[f].option.key, "");
    offer(line, "--", "help", "");
}

/* The value of a setting among the words before the part; NULL: it is not there. */
static const char *value_of(const struct line *line, const char *setting)
{
    const char *value = NULL;
    for (size_t w = 0; w < line->n; w++)
        if (begins(line->words[w], setting))
            value = line->words[w] + strlen(setting);
    return value;
}

/* A table of settings: its keys, or the values of the key that stands in the part. */
static void offer_table(const struct line *line, const struct option_group *group)
{
    for (size_t o = 0; o < group->n_options; o++) {
        char key[128];
        snprintf(key, sizeof key, "%s.%s=", group->section, group->options[o].key);
        if (begins(line->part, key))
            offer_values(line, key, &group->options[o]);
        else
            offer(line, key, "", "");
    }
}

static void offer_kinds(const struct line *line)
{
    for (size_t k = 0; k < n_model_kinds; k++)
        if (model_kinds[k]->made_by == NULL)
            offer(line, "model.kind=", model_kinds[k]->name, "");
}

/* The settings of [model]: those of the kind, or of all kinds if it is not set yet. */
static void offer_model(const struct line *line)
{
    const char *name = value_of(line, "model.kind=");
    const struct model_kind *kind = name != NULL ? model_find(name) : NULL;
    if (begins(line->part, "model.kind=")) {
        offer_kinds(line);
        return;
    }
    offer(line, "model.kind=", "", "");
    offer(line, "model.preset=", "", "");
    for (size_t k = 0; k < n_model_kinds; k++) {
        const struct model_kind *one = model_kinds[k];
        if ((kind != NULL && one != kind) || one->made_by != NULL)
            continue;
        for (size_t p = 0; p < one->n_presets && begins(line->part, "model.preset="); p++)
            offer(line, "model.preset=", one->presets[p].name, "");
        offer_table(line, &(struct option_group){"model", one->options, one->n_options, NULL});
    }
}

static void offer_settings(const struct line *line, bool is_sweep)
{
    static const char *const shorts[] = {"data=", "run=", "refit="};
    struct option_group groups[4];
    settings_help_groups(groups);
    for (size_t i = 0; i < COUNT(shorts); i++) {
        if (begins(line->part, shorts[i]))
            offer_files();
        else
            offer(line, shorts[i], "", "");
    }
    for (size_t g = 0; g < COUNT(groups); g++)
        offer_table(line, &groups[g]);
    offer_model(line);
    if (is_sweep)
        offer_table(line, &(struct option_group){"sweep", sweep_table, n_sweep_table, NULL});
    if (strchr(line->part, '=') != NULL)
        return;
    struct names files = {0};
    job_files_list(&files);
    for (size_t i = 0; i < files.n; i++)
        offer(line, "", names_get(&files, i), "");
    names_free(&files);
    offer_files();
}

static void offer_menu(const struct line *line, const struct subcommands *menu)
{
    for (size_t i = 0; i < menu->n; i++) {
        const struct subcommand *row =
            (const struct subcommand *)((const char *)menu->rows + i * menu->stride);
        offer(line, "", row->name, "");
    }
}

static void offer_help(const struct line *line)
{
    for (size_t c = 0; c < n_commands; c++)
        offer(line, "", commands[c]->name, "");
    for (const char *const *topic = help_topics(); *topic != NULL; topic++)
        offer(line, "", *topic, "");
    for (size_t k = 0; k < n_model_kinds; k++)
        if (command_named(model_kinds[k]->name) == NULL)
            offer(line, "", model_kinds[k]->name, "");
}

static void offer_arguments(const struct line *line, const struct command *command)
{
    const char *last = line->words[line->n - 1];
    const struct flag *flag =
        last[0] == '-' && strchr(last, '=') == NULL ? flag_named(command, last) : NULL;
    if (flag != NULL && flag->option.type != OPTION_SWITCH)
        offer_values(line, "", &flag->option);
    else if (line->part[0] == '-')
        offer_options(line, command);
    else if (command == &command_help_command)
        offer_help(line);
    else if (strstr(command->usage, "section.key=value") != NULL)
        offer_settings(line, command == &command_sweep);
    else if (command == &command_import && line->n == 1)
        offer_menu(line, &import_menu);
    else if (command == &command_simulate && line->n == 1)
        offer_menu(line, &simulate_menu);
    else
        offer_files();
}

void help_complete(const char *const *words, size_t n)
{
    const struct line line = {words, n > 0 ? n - 1 : 0, n > 0 ? words[n - 1] : ""};
    if (line.n == 0) {
        for (size_t c = 0; c < n_commands; c++)
            offer(&line, "", commands[c]->name, "");
        return;
    }
    const struct command *command = command_named(words[0]);
    if (command != NULL)
        offer_arguments(&line, command);
}
