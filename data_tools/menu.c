/* `cohort import FORMAT` and `cohort simulate KIND`: the table's rows are looked up, checked
 * against the flags the user gave, and printed as help. */
#include "menu.h"
#include "config.h"
#include "fail.h"
#include <string.h>

static const struct menu_entry *entry_at(const struct menu *menu, size_t i)
{
    return (const struct menu_entry *)((const char *)menu->rows + i * menu->stride);
}

enum status menu_find(const struct menu *menu, const char *name, const void **row)
{
    const char *names[32];
    ENSURE(menu->n <= COUNT(names));
    for (size_t i = 0; i < menu->n; i++) {
        names[i] = entry_at(menu, i)->name;
        if (strcmp(names[i], name) == 0) {
            *row = entry_at(menu, i);
            return OK;
        }
    }
    const char *nearest = config_nearest(name, names, menu->n);
    return fail(BAD_USAGE, "%s: there is no %s '%s'%s%s%s; `cohort %s --help` lists them",
                menu->command, menu->noun, name, nearest ? "; did you mean '" : "",
                nearest ? nearest : "", nearest ? "'?" : "", menu->command);
}

static bool lists(const char *list, const char *key, size_t n)
{
    for (const char *at = list; (at = strchr(at, ' ')) != NULL;) {
        at++;
        if (strncmp(at, key, n) == 0 && at[n] == ' ')
            return true;
    }
    return false;
}

enum status menu_check_flags(const struct menu *menu, const struct menu_entry *entry, int argc,
                             char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i] + 2;
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        const size_t n = strcspn(key, "=");
        if (!lists(menu->takes, key, n) && !lists(entry->takes, key, n))
            return fail(BAD_USAGE,
                        "%s %s does not take --%.*s; `cohort %s --help` lists what each "
                        "%s takes",
                        menu->command, entry->name, (int)n, key, menu->command, menu->noun);
    }
    return OK;
}

static void print_paragraph(FILE *out, const char *text, int indent)
{
    enum { COLUMNS = 92 };
    while (*text != '\0') {
        size_t n = strlen(text);
        if (n > (size_t)(COLUMNS - indent))
            for (n = (size_t)(COLUMNS - indent); n > 1 && text[n] != ' ';)
                n--;
        fprintf(out, "%*s%.*s\n", indent, "", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

void menu_print(const struct menu *menu, FILE *out, bool markdown)
{
    if (markdown)
        fprintf(out, "\n| %s | what it is | flags of its own |\n|---|---|---|\n", menu->noun);
    else
        fprintf(out, "\nEach %s, and the flags of its own:\n", menu->noun);
    for (size_t i = 0; i < menu->n; i++) {
        const struct menu_entry *entry = entry_at(menu, i);
        if (markdown) {
            fprintf(out, "| `%s` | %s | ", entry->name, entry->help);
        } else {
            fprintf(out, "\n  %s\n", entry->name);
            print_paragraph(out, entry->help, 6);
        }
        char flags[512];
        size_t n = 0;
        for (const char *at = entry->takes; *at != '\0' && n < sizeof flags;
             at += strcspn(at, " ")) {
            at += strspn(at, " ");
            if (*at != '\0')
                n += (size_t)snprintf(flags + n, sizeof flags - n,
                                      markdown ? "`--%.*s` " : "--%.*s ", (int)strcspn(at, " "),
                                      at);
        }
        if (markdown)
            fprintf(out, "%s|\n", flags);
        else
            print_paragraph(out, flags, 6);
    }
}
