/* Fields have names of their own (student, item, outcome ...), which count first. Otherwise a
 * column or key with a usual name stands for the field: the names, and how they are compared, are
 * those of `cohort import csv` (data_tools/import_formats.c), so that a log that can be imported
 * can be followed, too. Whatever is not used is reported once: a misspelt outcome would turn
 * every attempt into a question. */
#include "runs/follow_names.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data_tools/import.h"
#include <stdlib.h>
#include <string.h>

static const char *const own[N_FOLLOW_FIELDS] = {"student", "item",  "outcome", "time",
                                                 "skills",  "group", "step"};

static const char *usual(size_t f)
{
    const struct import_preset *preset = &import_csv_preset;
    const char *const lists[N_FOLLOW_FIELDS] = {
        [FOLLOW_STUDENT] = preset->student, [FOLLOW_ITEM] = preset->item,
        [FOLLOW_OUTCOME] = preset->outcome, [FOLLOW_TIME] = preset->time,
        [FOLLOW_SKILLS] = preset->skills,   [FOLLOW_GROUP] = own[FOLLOW_GROUP],
        [FOLLOW_STEP] = own[FOLLOW_STEP]};
    return lists[f];
}

size_t follow_names_count(const struct follow_names *names)
{
    return N_FOLLOW_FIELDS + names->covariates->n;
}

const char *follow_names_own(const struct follow_names *names, size_t f)
{
    return f < N_FOLLOW_FIELDS ? own[f] : names_get(names->covariates, f - N_FOLLOW_FIELDS);
}

/* The field whose own name it is; SIZE_MAX: none. */
static size_t field_of(const struct follow_names *names, const char *name)
{
    for (size_t f = 0; f < follow_names_count(names); f++)
        if (strcmp(name, follow_names_own(names, f)) == 0)
            return f;
    return SIZE_MAX;
}

static void find_columns(struct follow_names *names, const struct names *columns,
                         size_t *column)
{
    for (size_t f = 0; f < follow_names_count(names); f++)
        column[f] = SIZE_MAX;
    for (size_t c = columns->n; c-- > 0;) {
        const size_t f = field_of(names, names_get(columns, c));
        if (f != SIZE_MAX)
            column[f] = c;
    }
    for (size_t f = 0; f < N_FOLLOW_FIELDS; f++) {
        size_t best = SIZE_MAX;
        for (size_t c = 0; c < columns->n && (column[f] == SIZE_MAX || best != SIZE_MAX); c++) {
            const char *name = names_get(columns, c);
            const size_t place = import_columns_usual(name, usual(f));
            if (place >= best || field_of(names, name) != SIZE_MAX)
                continue;
            best = place;
            column[f] = c;
        }
        if (best != SIZE_MAX)
            names->found[f] = memory_text("%s", names_get(columns, column[f]));
    }
}

/* A name that several columns have does not say which one is meant. */
static enum status check_unique(const struct follow_names *names, const struct names *columns,
                                const size_t *column)
{
    for (size_t f = 0; f < follow_names_count(names); f++)
        for (size_t c = column[f] != SIZE_MAX ? 0 : columns->n; c < columns->n; c++)
            if (c != column[f] &&
                strcmp(names_get(columns, c), names_get(columns, column[f])) == 0)
                return fail(BAD_DATA,
                            "standard input:1: columns %zu and %zu are both called '%s'; "
                            "rename one of them",
                            size_min(c, column[f]) + 1, size_max(c, column[f]) + 1,
                            names_get(columns, c));
    return OK;
}

enum status follow_names_header(struct follow_names *names, const struct names *columns,
                                size_t *column)
{
    char *found = NULL, *unused = NULL;
    size_t n_found = 0, n_unused = 0;
    find_columns(names, columns, column);
    TRY(check_unique(names, columns, column));
    FILE *list = memory_stream(&found, &n_found);
    for (size_t f = 0; f < N_FOLLOW_FIELDS; f++)
        if (names->found[f] != NULL)
            fprintf(list, "%s%s = %s", ftell(list) > 0 ? ", " : "", own[f], names->found[f]);
    fclose(list);
    list = memory_stream(&unused, &n_unused);
    for (size_t c = 0; c < columns->n; c++) {
        bool used = false;
        for (size_t f = 0; f < follow_names_count(names); f++)
            used |= column[f] == c;
        if (!used)
            fprintf(list, "%s%s", ftell(list) > 0 ? ", " : "", names_get(columns, c));
    }
    fclose(list);
    if (n_found > 0)
        log_say("standard input: columns found by name: %s", found);
    if (n_unused > 0)
        log_warn("standard input: unused columns: %s", unused);
    if (column[FOLLOW_OUTCOME] == SIZE_MAX && column[FOLLOW_STUDENT] != SIZE_MAX &&
        column[FOLLOW_ITEM] != SIZE_MAX)
        log_warn("standard input: no column has outcomes (outcome, correct ...), so every line "
                 "is a question and nothing is learned from it");
    free(found);
    free(unused);
    return OK;
}

void follow_names_key(struct follow_names *names, const char *key)
{
    enum { MOST_REPORTED = 100 };
    if (field_of(names, key) != SIZE_MAX || names->unused.names.n >= MOST_REPORTED ||
        name_index_find(&names->unused, key, strlen(key)) != INDEX_NONE)
        return;
    for (size_t f = 0; f < N_FOLLOW_FIELDS; f++) {
        if (names->found[f] != NULL && strcmp(names->found[f], key) == 0)
            return;
        if (names->found[f] == NULL && import_columns_usual(key, usual(f)) != SIZE_MAX) {
            names->found[f] = memory_text("%s", key);
            log_say("standard input: key found by name: %s = %s", own[f], key);
            return;
        }
    }
    name_index_add(&names->unused, key, strlen(key));
    log_warn("standard input: unused key: %s", key);
}

void follow_names_free(struct follow_names *names)
{
    for (size_t f = 0; f < N_FOLLOW_FIELDS; f++)
        memory_free(names->found[f]);
    name_index_free(&names->unused);
}
