/* What help and errors tell about a row of a table: its default, and its range or choices. */
#include "base/config.h"
#include "base/manual.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool near_edge(double value)
{
    return fabs(value) >= 9e18;
}

/* 1e9 and not 1000000000. */
static void limit_text(double limit, char *text, size_t size)
{
    enum { MANY = 6 };
    const bool whole = limit == floor(limit) && !near_edge(limit);
    snprintf(text, size, whole ? "%.0f" : "%.15g", limit);
    size_t n = strlen(text), zeros = 0;
    while (zeros < n && text[n - 1 - zeros] == '0')
        zeros++;
    if (zeros >= MANY && zeros < n && strpbrk(text, ".e") == NULL)
        snprintf(text + n - zeros, size - (n - zeros), "e%zu", zeros);
}

/* "1 to 100", "at least 1" ... */
void config_range_text(const struct option *option, char *text, size_t size)
{
    if (near_edge(option->least) && near_edge(option->most))
        snprintf(text, size, "any number");
    else if (near_edge(option->most))
        snprintf(text, size, "at least %g", option->least);
    else {
        char least[32], most[32];
        limit_text(option->least, least, sizeof least);
        limit_text(option->most, most, sizeof most);
        snprintf(text, size, "%s to %s", least, most);
    }
}

void config_choices_text(const struct option *option, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (const char *const *choice = option->choices; *choice != NULL && n < size; choice++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", *choice);
}

void config_facts(const struct option *option, char *text, size_t size)
{
    const char *value = option->standard;
    const size_t n = value == NULL      ? (size_t)snprintf(text, size, "required")
                     : value[0] == '\0' ? (size_t)snprintf(text, size, "default: empty")
                                        : (size_t)snprintf(text, size, "default: %s", value);
    if (n >= size)
        return;
    char range[512] = "";
    switch (option->type) {
    case OPTION_CHOICE:
        config_choices_text(option, range, sizeof range);
        snprintf(text + n, size - n, "; choices: %s", range);
        break;
    case OPTION_INTEGER:
    case OPTION_NUMBER:
        config_range_text(option, range, sizeof range);
        snprintf(text + n, size - n, "; range: %s", range);
        break;
    case OPTION_SWITCH:
        snprintf(text + n, size - n, "; choices: yes, no");
        break;
    case OPTION_TEXT:
        break;
    }
}

void config_help(struct manual *manual, const struct option_group *groups, size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++) {
        char text[768];
        snprintf(text, sizeof text, "[%s]", groups[g].section);
        manual_subheading(manual, text);
        for (size_t o = 0; o < groups[g].n_options; o++) {
            const struct option *option = &groups[g].options[o];
            config_facts(option, text, sizeof text);
            manual_item(manual, option->key, option->help, text);
        }
    }
}
