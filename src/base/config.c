/* Options live in tables (struct option): one row gives the key, its type and range, its
 * default and what it means. Reading files and command lines, checking ranges, --help, the man
 * pages and the copy inside a checkpoint all come from these rows.
 *
 * A file consists of lines: `[section]`, `key = value`, empty ones, and comments that begin with
 * # or ;. Outside a section a key has the section before a dot, as in `model.hidden = 3`. */
#include "base/config.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/job_files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *section, *key, *value, *origin;
    bool suggested; /* ranks below what the user set and what was suggested before */
};

struct config {
    struct entry *entries;
    size_t n, capacity;
};

struct config *config_create(void)
{
    return NEW(struct config, 1);
}

void config_destroy(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t e = 0; e < config->n; e++) {
        memory_free(config->entries[e].section);
        memory_free(config->entries[e].key);
        memory_free(config->entries[e].value);
        memory_free(config->entries[e].origin);
    }
    memory_free(config->entries);
    memory_free(config);
}

struct span {
    const char *start;
    size_t n;
};

static struct span trim(const char *start, const char *end)
{
    while (start < end && isspace((unsigned char)*start))
        start++;
    while (start < end && isspace((unsigned char)end[-1]))
        end--;
    return (struct span){start, (size_t)(end - start)};
}

static char *copy(struct span span)
{
    return memory_text("%.*s", (int)span.n, span.start);
}

static bool is_word(struct span span)
{
    for (size_t i = 0; i < span.n; i++)
        if (!isalnum((unsigned char)span.start[i]) && strchr("_-.", span.start[i]) == NULL)
            return false;
    return span.n > 0;
}

static void add(struct config *config, struct span section, struct span key, struct span value,
                const char *origin, bool suggested)
{
    GROW(config->entries, config->n, config->capacity);
    config->entries[config->n++] = (struct entry){copy(section), copy(key), copy(value),
                                                  memory_text("%s", origin), suggested};
}

/* A key that occurs twice in one text is a slip; which value is meant? */
static enum status check_once(const struct config *config, size_t n_before)
{
    const struct entry *last = &config->entries[config->n - 1];
    for (size_t e = n_before; e + 1 < config->n; e++) {
        const struct entry *entry = &config->entries[e];
        if (strcmp(entry->section, last->section) == 0 && strcmp(entry->key, last->key) == 0)
            return fail(BAD_USER, "%s: %s.%s is set again, after %s; remove one of them",
                        last->origin, last->section, last->key, entry->origin);
    }
    return OK;
}

static const char *const shorts[][3] = {{"data", "data", "file"},
                                        {"run", "run", "directory"},
                                        {"refit", "train", "refit"},
                                        {"update", "train", "update"}};

/* The full name of a short one, else an example of a full name. */
static enum status no_section_above(struct span key, const char *origin, int line)
{
    const char *section = "model", *full = "kind";
    for (size_t i = 0; i < COUNT(shorts); i++)
        if (key.n == strlen(shorts[i][0]) && memcmp(key.start, shorts[i][0], key.n) == 0) {
            section = shorts[i][1];
            full = shorts[i][2];
        }
    return fail(BAD_USER,
                "%s:%d: '%.*s' has no section; expected a line [section] above it, or "
                "section.key = value, as in %s.%s = ...",
                origin, line, (int)size_min(key.n, 80), key.start, section, full);
}

static enum status read_lines(struct config *config, const char *text, const char *origin,
                              bool suggested)
{
    const size_t n_before = config->n;
    struct span section = {"", 0};
    int number = 0;
    for (const char *line = text; *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const struct span all = trim(line, end);
        line = *end == '\0' ? end : end + 1;
        number++;
        if (all.n == 0 || all.start[0] == '#' || all.start[0] == ';')
            continue;
        if (all.start[0] == '[') {
            section = trim(all.start + 1, all.start + all.n - 1);
            if (all.start[all.n - 1] != ']' || !is_word(section))
                return fail(BAD_USER, "%s:%d: '%.*s' is not a section; expected [name]", origin,
                            number, (int)size_min(all.n, 80), all.start);
            continue;
        }
        const char *equals = memchr(all.start, '=', all.n);
        if (equals == NULL)
            return fail(BAD_USER,
                        "%s:%d: '%.*s' has no '='; expected key = value, or [section]", origin,
                        number, (int)size_min(all.n, 80), all.start);
        const struct span key = trim(all.start, equals);
        const struct span value = trim(equals + 1, all.start + all.n);
        if (!is_word(key))
            return fail(BAD_USER, "%s:%d: '%.*s' is not a key; expected letters, digits and _",
                        origin, number, (int)size_min(key.n, 80), key.start);
        const char *dot = memchr(key.start, '.', key.n);
        if (section.n == 0 && dot == NULL)
            return no_section_above(key, origin, number);
        char *place = memory_text("%s:%d", origin, number);
        if (section.n == 0) /* `model.hidden = 3` outside any section */
            add(config, trim(key.start, dot), trim(dot + 1, key.start + key.n), value, place,
                suggested);
        else
            add(config, section, key, value, place, suggested);
        memory_free(place);
        TRY(check_once(config, n_before));
    }
    return OK;
}

enum status config_read(struct config *config, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order: some editors put it there */
    static const char binary[] = "\x89HDF";
    TRY(file_read(path, &text, &n));
    const bool is_h5 = n > strlen(binary) && memcmp(text, binary, strlen(binary)) == 0;
    const size_t skip = strncmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
    char *data = shell_quote_text("data=%s", path);
    enum status status =
        is_h5
            ? fail(BAD_USER,
                   "%s: this is an HDF5 file; expected a file of settings. A data set is given "
                   "as %s",
                   path, data)
        : strlen(text) < n ? fail(BAD_USER, "%s: not a text file: it contains a NUL byte", path)
                           : read_lines(config, text + skip, path, false);
    memory_free(data);
    memory_free(text);
    return status;
}

enum status config_read_text(struct config *config, const char *text, const char *origin)
{
    return read_lines(config, text, origin, false);
}

enum status config_suggest(struct config *config, const char *text, const char *origin)
{
    return read_lines(config, text, origin, true);
}

static enum status no_section(struct span word, const char *origin)
{
    const char *names[COUNT(shorts)];
    for (size_t i = 0; i < COUNT(shorts); i++)
        names[i] = shorts[i][0];
    char *name = copy(word);
    const char *nearest = config_nearest(name, names, COUNT(names));
    const enum status status =
        fail(BAD_USAGE, "%s: '%s' has no section; expected section.key=value%s%s%s", origin,
             name, nearest ? "; did you mean " : "", nearest ? nearest : "",
             nearest ? "=?" : ", such as model.kind=rbm (`cohort help settings` lists all)");
    memory_free(name);
    return status;
}

enum status config_set(struct config *config, const char *assignment, const char *origin)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL)
        return fail(BAD_USAGE, "%s: '%s' has no '='; expected section.key=value", origin,
                    assignment);
    const struct span left = trim(assignment, equals);
    const struct span value = trim(equals + 1, equals + strlen(equals));
    if (memchr(value.start, '\n', value.n) != NULL)
        return fail(BAD_USAGE,
                    "%s: the value of '%.*s' contains a line break; expected one line", origin,
                    (int)left.n, left.start);
    for (size_t i = 0; i < COUNT(shorts); i++)
        if (left.n == strlen(shorts[i][0]) && memcmp(left.start, shorts[i][0], left.n) == 0) {
            add(config, (struct span){shorts[i][1], strlen(shorts[i][1])},
                (struct span){shorts[i][2], strlen(shorts[i][2])}, value, origin, false);
            return OK;
        }
    const char *dot = memchr(left.start, '.', left.n);
    if (dot == NULL || !is_word(left))
        return no_section(left, origin);
    add(config, trim(left.start, dot), trim(dot + 1, left.start + left.n), value, origin,
        false);
    return OK;
}

static const struct entry *find(const struct config *config, const char *section,
                                const char *key)
{
    const struct entry *found = NULL;
    for (size_t e = 0; e < config->n; e++) {
        const struct entry *entry = &config->entries[e];
        if (strcmp(entry->section, section) == 0 && strcmp(entry->key, key) == 0 &&
            (found == NULL || !entry->suggested))
            found = entry;
    }
    return found;
}

/* Notes settings that the command line has twice, with two values. */
static void say_repeats(const struct config *config, size_t first)
{
    for (size_t e = first; e < config->n; e++) {
        const struct entry *last =
            find(config, config->entries[e].section, config->entries[e].key);
        const struct entry *next = &config->entries[e];
        if (last != next && strcmp(last->value, next->value) != 0)
            log_say("note: %s.%s is given twice, as %s and %s; the last one counts",
                    next->section, next->key, next->value, last->value);
    }
}

enum status config_read_words(struct config *config, const char *const *words, size_t n_words)
{
    size_t first = config->n;
    for (int pass = 0; pass < 2; pass++)
        for (size_t w = 0; w < n_words; w++) {
            const bool assignment = strchr(words[w], '=') != NULL;
            if (assignment != (pass == 1))
                continue;
            if (assignment) {
                TRY(config_set(config, words[w], "command line"));
                continue;
            }
            char *path = NULL;
            TRY(job_files_find(words[w], &path));
            const enum status status = config_read(config, path);
            memory_free(path);
            TRY(status);
            first = config->n;
        }
    say_repeats(config, first);
    return OK;
}

const char *config_get(const struct config *config, const char *section, const char *key)
{
    const struct entry *entry = find(config, section, key);
    return entry ? entry->value : NULL;
}

bool config_is_given(const struct config *config, const char *section, const char *key)
{
    const struct entry *entry = find(config, section, key);
    return entry != NULL && !entry->suggested;
}

size_t config_count(const struct config *config)
{
    return config->n;
}

struct config_entry config_entry(const struct config *config, size_t e)
{
    const struct entry *entry = &config->entries[e];
    return (struct config_entry){entry->section, entry->key, entry->value, entry->origin};
}

bool config_setting(const struct config *config, size_t e, struct config_entry *entry)
{
    *entry = config_entry(config, e);
    entry->value = config_get(config, entry->section, entry->key);
    for (size_t other = 0; other < config_count(config); other++) {
        const struct config_entry same = config_entry(config, other);
        if (strcmp(same.section, entry->section) != 0 || strcmp(same.key, entry->key) != 0)
            continue;
        if (other < e)
            return false;
        if (same.value == entry->value)
            entry->origin = same.origin;
    }
    return true;
}

static enum status out_of_range(const struct option *option, const char *value,
                                const char *origin, const char *noun)
{
    char range[128];
    config_range_text(option, range, sizeof range);
    return fail(BAD_USER, "%s: %s = %s: expected %s, %s", origin, option->key, value, noun,
                range);
}

static enum status parse_choice(const struct option *option, const char *value,
                                const char *origin, int *place)
{
    size_t n = 0;
    for (; option->choices[n] != NULL; n++)
        if (strcmp(option->choices[n], value) == 0) {
            *place = (int)n;
            return OK;
        }
    char list[256];
    config_choices_text(option, list, sizeof list);
    const char *nearest = config_nearest(value, option->choices, n);
    return fail(BAD_USER, "%s: %s = %s: expected one of %s%s%s%s", origin, option->key, value,
                list, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?" : "");
}

static enum status parse_switch(const struct option *option, const char *value,
                                const char *origin, bool *place)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t w = 0; w < COUNT(words); w++)
        if (strcmp(words[w], value) == 0) {
            *place = w % 2 == 1;
            return OK;
        }
    return fail(BAD_USER, "%s: %s = %s: expected yes or no", origin, option->key, value);
}

enum status config_parse(const struct option *option, const char *value, const char *origin,
                         void *target)
{
    void *place = (char *)target + option->offset;
    char *end = NULL;
    errno = 0;
    switch (option->type) {
    case OPTION_INTEGER: {
        const long long number = strtoll(value, &end, 10);
        if (end == value || *end != '\0' || errno == ERANGE || (double)number < option->least ||
            (double)number > option->most)
            return out_of_range(option, value, origin, "a whole number");
        *(int64_t *)place = number;
        return OK;
    }
    case OPTION_NUMBER: {
        const double number = strtod(value, &end);
        if (end == value || *end != '\0' || !isfinite(number) || number < option->least ||
            number > option->most)
            return out_of_range(option, value, origin, "a number");
        *(double *)place = number;
        return OK;
    }
    case OPTION_SWITCH:
        return parse_switch(option, value, origin, place);
    case OPTION_CHOICE:
        return parse_choice(option, value, origin, place);
    case OPTION_TEXT:
        *(const char **)place = value;
        return OK;
    }
    return OK;
}

static const struct option *known(const struct option_group *groups, size_t n_groups,
                                  const struct entry *entry)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t o = 0; o < groups[g].n_options; o++)
            if (strcmp(groups[g].section, entry->section) == 0 &&
                strcmp(groups[g].options[o].key, entry->key) == 0)
                return &groups[g].options[o];
    return NULL;
}

static enum status unknown_key(const struct option_group *groups, size_t n_groups,
                               const struct entry *entry)
{
    char full[256], best[256] = "";
    int least = 1000;
    snprintf(full, sizeof full, "%s.%s", entry->section, entry->key);
    for (size_t g = 0; g < n_groups; g++)
        for (size_t o = 0; o < groups[g].n_options; o++) {
            char name[256];
            snprintf(name, sizeof name, "%s.%s", groups[g].section, groups[g].options[o].key);
            const bool elsewhere = strcmp(entry->key, groups[g].options[o].key) == 0;
            const int d = elsewhere ? 0 : config_distance(full, name);
            if (d < least) { /* the same key in another section is nearest */
                least = d;
                snprintf(best, sizeof best, "%s", name);
            }
        }
    const bool is_near = least <= 1 + (int)strlen(full) / 3;
    return fail(BAD_USER, "%s: unknown setting %s%s%s (`cohort help %s` lists all)",
                entry->origin, full, is_near ? "; the nearest is " : "", is_near ? best : "",
                strcmp(entry->section, "model") == 0 ? "models" : "settings");
}

enum status config_resolve(const struct config *config, const struct option_group *groups,
                           size_t n_groups)
{
    for (size_t e = 0; e < config->n; e++)
        if (known(groups, n_groups, &config->entries[e]) == NULL)
            return unknown_key(groups, n_groups, &config->entries[e]);
    return config_resolve_some(config, groups, n_groups);
}

/* The name that is written on a command line is the short one. */
static enum status not_set(const char *section, const struct option *option)
{
    for (size_t i = 0; i < COUNT(shorts); i++)
        if (strcmp(shorts[i][1], section) == 0 && strcmp(shorts[i][2], option->key) == 0)
            return fail(
                BAD_USER,
                "%s= is not set: %s; set %s=... on the command line, or %s.%s in a file",
                shorts[i][0], option->help, shorts[i][0], section, option->key);
    return fail(BAD_USER,
                "%s.%s is not set: %s; set %s.%s=... on the command line or in a file", section,
                option->key, option->help, section, option->key);
}

enum status config_resolve_some(const struct config *config, const struct option_group *groups,
                                size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t o = 0; o < groups[g].n_options; o++) {
            const struct option *option = &groups[g].options[o];
            const struct entry *entry = find(config, groups[g].section, option->key);
            const char *value = entry ? entry->value : option->standard;
            if (value == NULL)
                return not_set(groups[g].section, option);
            TRY(config_parse(option, value, entry ? entry->origin : "default",
                             groups[g].target));
        }
    return OK;
}

enum status config_resolve_only(const struct config *config, const struct option_group *group)
{
    for (size_t e = 0; e < config->n; e++)
        if (strcmp(config->entries[e].section, group->section) == 0 &&
            known(group, 1, &config->entries[e]) == NULL)
            return unknown_key(group, 1, &config->entries[e]);
    return config_resolve_some(config, group, 1);
}

/* The shortest decimal form that reads back as the same number. */
static void number_text(double value, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

static void value_text(const struct option *option, const void *target, FILE *out)
{
    const void *place = (const char *)target + option->offset;
    char number[64];
    switch (option->type) {
    case OPTION_INTEGER:
        fprintf(out, "%lld", (long long)*(const int64_t *)place);
        break;
    case OPTION_NUMBER:
        number_text(*(const double *)place, number, sizeof number);
        fputs(number, out);
        break;
    case OPTION_SWITCH:
        fputs(*(const bool *)place ? "yes" : "no", out);
        break;
    case OPTION_CHOICE:
        fputs(option->choices[*(const int *)place], out);
        break;
    case OPTION_TEXT:
        fputs(*(const char *const *)place, out);
        break;
    }
}

/* Whether a section (key NULL) or one of its keys is in a list of what is left out. */
static bool is_listed(const char *const *list, const char *section, const char *key)
{
    const size_t n = strlen(section);
    for (const char *const *name = list; name != NULL && *name != NULL; name++)
        if (key == NULL ? strcmp(*name, section) == 0
                        : strncmp(*name, section, n) == 0 && (*name)[n] == '.' &&
                              strcmp(*name + n + 1, key) == 0)
            return true;
    return false;
}

char *config_text(const struct option_group *groups, size_t n_groups,
                  const char *const *leave_out)
{
    char *buffer = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&buffer, &n);
    const char *section = "";
    for (size_t g = 0; g < n_groups; g++) {
        if (is_listed(leave_out, groups[g].section, NULL) || groups[g].n_options == 0)
            continue;
        if (strcmp(section, groups[g].section) != 0)
            fprintf(out, "%s[%s]\n", section[0] ? "\n" : "", groups[g].section);
        section = groups[g].section;
        for (size_t o = 0; o < groups[g].n_options; o++) {
            if (is_listed(leave_out, groups[g].section, groups[g].options[o].key))
                continue;
            fprintf(out, "%s = ", groups[g].options[o].key);
            value_text(&groups[g].options[o], groups[g].target, out);
            fputc('\n', out);
        }
    }
    fclose(out);
    char *text = memory_text("%s", buffer);
    free(buffer);
    return text;
}
