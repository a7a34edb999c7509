/* A run continues with the settings it was started with; only its length may change. Settings
 * are compared by name, because versions of cohort differ in what can be set: a setting that is
 * newer than the run has its default value in it. */
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

/* What a setting was before it existed: its default, or what all versions did then. */
static const char *default_of(const struct option_group *groups, size_t n_groups,
                              const struct config_entry *entry)
{
    if (strcmp(entry->section, "optimizer") == 0 && strcmp(entry->key, "gradient") == 0)
        return "sum";
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

/* Compares a current setting with the run's. */
static enum status check_setting(const struct checkpoint *checkpoint,
                                 const struct config *stored, const struct config_entry *now,
                                 const char *standard)
{
    const char *before = config_get(stored, now->section, now->key);
    if (before != NULL && strcmp(before, now->value) == 0)
        return OK;
    if (strcmp(now->section, "refit") == 0 || strcmp(now->section, "update") == 0)
        return fail(BAD_USER,
                    "%s: the original run of this %s has changed: it had '%s = %s' and now "
                    "has '%s = %s'; choose another run= to %s it as it is now",
                    checkpoint->path, now->section, now->key, before ? before : "", now->key,
                    now->value, now->section);
    if (may_change(now) || (before == NULL && standard && same_value(now->value, standard)))
        return OK;
    if (before == NULL)
        return fail(BAD_USER,
                    "%s: this run was started by a version of cohort without %s.%s, but now "
                    "'%s = %s' is requested; set it to its default (%s) or choose another run=",
                    checkpoint->path, now->section, now->key, now->key, now->value,
                    standard ? standard : "none");
    return fail(
        BAD_USER,
        "%s: this run was started with '%s = %s' but now '%s = %s' is requested; continue it "
        "with the same settings (only epochs and patience may change), or choose another run=",
        checkpoint->path, now->key, before, now->key, now->value);
}

/* Checks that a setting of the run still exists. */
static enum status check_gone(const struct checkpoint *checkpoint, const struct config *now,
                              const struct config_entry *stored)
{
    if (config_get(now, stored->section, stored->key) != NULL)
        return OK;
    return fail(
        BAD_USER,
        "%s: this run was started with '%s = %s', which is no longer a setting of this model; "
        "finish it with the version of cohort that started it, or choose another run=",
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

bool continuation_say_numerics(const char *run, const char *kind, int64_t revision,
                               const char *config)
{
    char *changes = revision > 0 ? numerics_since(kind, revision, config) : NULL;
    const bool differs = changes != NULL || numerics_is_newer(kind, revision);
    if (changes != NULL)
        log_say("note: %s was started by a version of cohort whose arithmetic for %s differed "
                "(now %s); the result may differ in bits from an uninterrupted run",
                run, kind, changes);
    memory_free(changes);
    return differs;
}
