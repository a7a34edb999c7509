/* `cohort import FORMAT` and `cohort simulate KIND`: looks up the table's rows, checks the
 * user's options against them, and prints them as help. */
#include "data_tools/subcommand.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/manual.h"
#include "base/memory.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct subcommand *entry_at(const struct subcommands *menu, size_t i)
{
    return (const struct subcommand *)((const char *)menu->rows + i * menu->stride);
}

enum status subcommands_find(const struct subcommands *menu, const char *name, const void **row)
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
    return fail(BAD_USAGE, "%s: unknown %s '%s'%s%s%s; `cohort %s --help` lists all",
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

enum status subcommands_check_flags(const struct subcommands *menu,
                                    const struct subcommand *entry, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i] + 2;
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        const size_t n = strcspn(key, "=");
        if (!lists(menu->takes, key, n) && !lists(entry->takes, key, n))
            return fail(BAD_USAGE,
                        "%s %s does not accept --%.*s; `cohort %s --help` lists the options of "
                        "each %s",
                        menu->command, entry->name, (int)n, key, menu->command, menu->noun);
    }
    return OK;
}

enum status subcommands_check_output(const struct subcommands *menu, const char *path)
{
    if (path[0] == '\0')
        return fail(BAD_USAGE, "%s: no output; name the data set to write with -o FILE",
                    menu->command);
    if (file_is_directory(path))
        return fail(BAD_USER,
                    "%s: -o %s is a directory; expected a file to write, such as %s%sdata.h5",
                    menu->command, path, path, path[strlen(path) - 1] == '/' ? "" : "/");
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? memory_text(".")
                   : slash == path ? memory_text("/")
                                   : memory_text("%.*s", (int)(slash - path), path);
    enum status status = OK;
    if (access(folder, W_OK | X_OK) != 0)
        status = fail(errno == ENOENT ? BAD_USER : BAD_IO, "cannot write %s: %s: %s", path,
                      folder, strerror(errno));
    memory_free(folder);
    return status;
}

void subcommands_say_replaced(const char *path)
{
    log_say(
        "note: %s replaced an earlier file of this name; runs that were trained on that one "
        "cannot continue on this one",
        path);
}

/* "options: --a --b", or those of an earlier entry that takes the same. Caller frees. */
static char *options_text(const struct subcommands *menu, size_t i)
{
    const struct subcommand *entry = entry_at(menu, i);
    for (size_t j = 0; j < i; j++)
        if (strcmp(entry_at(menu, j)->takes, entry->takes) == 0)
            return memory_text("options: same as %s", entry_at(menu, j)->name);
    char *text = memory_text("options:");
    for (const char *at = entry->takes + 1; *at != '\0'; at += strcspn(at, " ") + 1) {
        const int n = (int)strcspn(at, " ");
        if (n > 0)
            memory_append(&text, " --%.*s", n, at);
    }
    return text;
}

void subcommands_print(const struct subcommands *menu, struct manual *manual)
{
    char heading[32];
    const int n = snprintf(heading, sizeof heading, "%ss", menu->noun);
    for (int c = 0; c < n; c++)
        heading[c] = (char)toupper((unsigned char)heading[c]);
    manual_heading(manual, heading);
    for (size_t i = 0; i < menu->n; i++) {
        char *options = options_text(menu, i);
        manual_item(manual, entry_at(menu, i)->name, entry_at(menu, i)->help, options);
        memory_free(options);
    }
}
