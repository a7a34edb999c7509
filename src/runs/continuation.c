/* A run goes on with the settings it was begun with; only how long it goes on may change.
 * Settings are compared by name, since versions of the program differ in what can be set: one
 * that came later is at its default in a run that was begun before. */
#include "runs/continuation.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "learn/numerics.h"
#include <stdlib.h>
#include <string.h>

static bool may_change(const struct config_entry *entry)
{
    return strcmp(entry->section, "train") == 0 &&
           (strcmp(entry->key, "epochs") == 0 || strcmp(entry->key, "patience") == 0);
}

static const char *default_of(const struct option_group *groups, size_t n_groups,
                              const struct config_entry *entry)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t o = 0; o < groups[g].n_options; o++)
            if (strcmp(groups[g].section, entry->section) == 0 &&
                strcmp(groups[g].options[o].key, entry->key) == 0)
                return groups[g].options[o].standard;
    return NULL;
}

/* 1e-6 and 1e-06 are the same setting. */
static bool same_value(const char *a, const char *b)
{
    char *end_a = NULL, *end_b = NULL;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    const bool numbers = end_a != a && *end_a == '\0' && end_b != b && *end_b == '\0';
    return numbers ? x == y : strcmp(a, b) == 0;
}

/* A setting of now. */
static enum status check_setting(const struct checkpoint *checkpoint,
                                 const struct config *stored, const struct config_entry *now,
                                 const char *standard)
{
    const char *before = config_get(stored, now->section, now->key);
    if (before != NULL && strcmp(before, now->value) == 0)
        return OK;
    if (strcmp(now->section, "refit") == 0)
        return fail(BAD_USER,
                    "%s: the run that this is a refit of has changed since: it had '%s = %s' "
                    "and has '%s = %s'; choose another run= for the refit of what it is now",
                    checkpoint->path, now->key, before ? before : "", now->key, now->value);
    if (may_change(now) || (before == NULL && standard && same_value(now->value, standard)))
        return OK;
    if (before == NULL)
        return fail(BAD_USER,
                    "%s: this run was started by a version of cohort without %s.%s, and now "
                    "'%s = %s' is asked for; set it to its default, %s, or choose another run=",
                    checkpoint->path, now->section, now->key, now->key, now->value,
                    standard ? standard : "none");
    return fail(BAD_USER,
                "%s: this run was started with '%s = %s' but now '%s = %s' is asked for: "
                "continue it with the same settings (only epochs and patience may change), or "
                "choose another run=",
                checkpoint->path, now->key, before, now->key, now->value);
}

/* A setting of the run that is none now. */
static enum status check_gone(const struct checkpoint *checkpoint, const struct config *now,
                              const struct config_entry *stored)
{
    if (config_get(now, stored->section, stored->key) != NULL)
        return OK;
    return fail(
        BAD_USER,
        "%s: this run was started with '%s = %s', which is not a setting of what is "
        "asked for now; finish it with the version of cohort that started it, or choose "
        "another run=",
        checkpoint->path, stored->key, stored->value);
}

enum status continuation_check(const struct checkpoint *checkpoint, const char *config,
                               const struct option_group *groups, size_t n_groups)
{
    struct config *stored = config_create(), *now = config_create();
    enum status status = config_read_text(stored, checkpoint->config, checkpoint->path);
    if (status == OK)
        status = config_read_text(now, config, "the settings");
    for (size_t e = 0; status == OK && e < config_count(now); e++) {
        const struct config_entry entry = config_entry(now, e);
        status =
            check_setting(checkpoint, stored, &entry, default_of(groups, n_groups, &entry));
    }
    for (size_t e = 0; status == OK && e < config_count(stored); e++) {
        const struct config_entry entry = config_entry(stored, e);
        status = check_gone(checkpoint, now, &entry);
    }
    config_destroy(stored);
    config_destroy(now);
    return status;
}

void continuation_say_numerics(const char *run, const char *kind, int64_t revision,
                               const char *config)
{
    char *changes = revision > 0 ? numerics_since(kind, revision, config) : NULL;
    if (changes != NULL)
        log_say("note: %s was begun by a version of cohort whose arithmetic for %s differed "
                "(now %s): going on may give other bits than an uninterrupted run",
                run, kind, changes);
    memory_free(changes);
}
