/* Which column is what. An option names a column; otherwise the usual names of the format are
 * tried in their order. They match in any case and with any separators: User ID is user_id and
 * UserId. If several match, the first is used, and a line names the others.
 *
 * The usual names of `csv` are those of the public data sets and of common exports
 * (ASSISTments, KDD Cup 2010 and DataShop, EdNet, Eedi, Riiid, pyBKT, pyKT, Moodle); see
 * import_formats.c. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data_tools/import_columns.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The word none instead of a column: the data have no such column. */
static bool is_none(const char *named)
{
    return strcasecmp(named, "none") == 0;
}

/* Compares names, ignoring case and what is neither a letter nor a digit. A `usual` name that
 * ends in * needs to be the beginning only. */
static bool is_like(const char *column, const char *usual, size_t n)
{
    const char *end = usual + n;
    const bool begins = n > 1 && end[-1] == '*';
    if (begins)
        return strncasecmp(column, usual, n - 1) == 0;
    for (;;) {
        while (*column != '\0' && !isalnum((unsigned char)*column) &&
               (unsigned char)*column < 0x80)
            column++;
        while (usual < end && !isalnum((unsigned char)*usual))
            usual++;
        if (*column == '\0' || usual == end)
            return *column == '\0' && usual == end;
        if (tolower((unsigned char)*column++) != tolower((unsigned char)*usual++))
            return false;
    }
}

size_t import_columns_usual(const char *name, const char *usual)
{
    size_t place = 0;
    for (const char *at = usual; at != NULL && *at != '\0'; place++) {
        const size_t n = strcspn(at, "|");
        if (name[0] != '\0' && is_like(name, at, n))
            return place;
        at += n + (at[n] == '|');
    }
    return SIZE_MAX;
}

static size_t column_like(const struct csv *csv, const char *usual, size_t n)
{
    for (size_t c = 0; c < csv->n_columns; c++)
        if (csv->columns[c][0] != '\0' && is_like(csv->columns[c], usual, n))
            return c;
    return SIZE_MAX;
}

/* "Problem Name", or "Problem Name+Step Name". */
static bool find_column(const struct csv *csv, const char *name, size_t length, bool is_usual,
                        struct field *field)
{
    *field = (struct field){.is_guessed = is_usual};
    char *whole = memory_text("%.*s", (int)length, name);
    struct span rest = {whole, length}, part;
    const size_t exact = csv_column(csv, whole);
    bool found = exact != SIZE_MAX;
    if (found)
        field->columns[field->n++] = exact;
    while (!found && field->n < IMPORT_COLUMNS_MOST_JOINED && span_next(&rest, '+', &part)) {
        part.start[part.n] = '\0';
        const size_t column =
            is_usual ? column_like(csv, part.start, part.n) : csv_column(csv, part.start);
        if (column == SIZE_MAX)
            break;
        field->columns[field->n++] = column;
        found = rest.n == 0;
    }
    if (!found)
        field->n = 0;
    memory_free(whole);
    return found;
}

/* A name that several columns have does not say which one is meant. */
static enum status check_unique(const struct csv *csv, const struct field *field,
                                const char *flag)
{
    for (size_t f = 0; f < field->n; f++)
        for (size_t c = 0; c < csv->n_columns; c++)
            if (c != field->columns[f] &&
                strcmp(csv->columns[c], csv->columns[field->columns[f]]) == 0)
                return fail(
                    BAD_DATA,
                    "%s:1: columns %zu and %zu are both called '%s', and --%s needs one "
                    "of them; rename the other",
                    csv->text.path, size_min(c, field->columns[f]) + 1,
                    size_max(c, field->columns[f]) + 1, csv->columns[c], flag);
    return OK;
}

enum status import_columns_find_field(const struct csv *csv, const char *flag,
                                      const char *named, const char *usual, bool needed,
                                      struct field *field)
{
    *field = (struct field){0};
    if (named[0] != '\0') {
        if (find_column(csv, named, strlen(named), false, field))
            return check_unique(csv, field, flag);
        return is_none(named) && !needed ? OK : csv_no_column(csv, named, flag);
    }
    for (const char *at = usual; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, "|");
        if (find_column(csv, at, n, true, field))
            return check_unique(csv, field, flag);
        at += n + (at[n] == '|');
    }
    if (!needed)
        return OK;
    char *first = memory_text("%.*s", usual ? (int)strcspn(usual, "|") : 0, usual ? usual : "");
    const enum status status = csv_no_usual_column(csv, first, flag);
    memory_free(first);
    return status;
}

/* Parses one word of --covariates or --factors: COLUMN or NAME=COLUMN. */
static enum status find_covariate(struct columns *c, const char *flag, const char *word,
                                  size_t length, size_t k)
{
    struct import *import = c->import;
    const size_t named = size_min(strcspn(word, "="), length);
    const char *column = word + (named < length ? named + 1 : 0);
    if (k == IMPORT_MOST_COVARIATES)
        return fail(BAD_USER, "--%s: at most %d covariates and factors are allowed", flag,
                    IMPORT_MOST_COVARIATES);
    char *text = memory_text("%.*s", (int)(word + length - column), column);
    const enum status status =
        import_columns_find_field(&c->csv, flag, text, NULL, true, &c->covariates[k]);
    memory_free(text);
    TRY(status);
    if (import->builder != NULL) /* not the first file: the names are known */
        return OK;
    struct import_covariate *own = &import->covariates[k];
    memory_free(own->name);
    own->name = memory_text("%.*s", (int)named, word);
    own->is_factor = strcmp(flag, "factors") == 0;
    if (named == 0 || named > 30 || strcspn(own->name, " /\t\r\n") < named)
        return fail(BAD_USER,
                    "--%s: '%s' cannot be a name in models; choose a short one without spaces, "
                    "line breaks and slashes, as in name=%.*s",
                    flag, own->name, (int)(word + length - column), column);
    static const char *const taken[] = {"student",   "item",     "group",   "skill",
                                        "intercept", "position", "practice"};
    for (size_t j = 0; j < COUNT(taken); j++)
        if (strcmp(taken[j], own->name) == 0)
            return fail(BAD_USER,
                        "--%s: the name '%s' is reserved in models; choose another one, as in "
                        "my_%s=%.*s",
                        flag, own->name, own->name, (int)(word + length - column), column);
    for (size_t j = 0; j < k; j++)
        if (strcmp(import->covariates[j].name, own->name) == 0)
            return fail(BAD_USER,
                        "--%s: two covariates or factors are called '%s'; choose another name "
                        "for one of them, as in other=COLUMN",
                        flag, own->name);
    return OK;
}

static enum status find_covariates(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    const char *const texts[] = {flags->covariates, flags->factors};
    static const char *const names[] = {"covariates", "factors"};
    size_t n = 0;
    for (size_t f = 0; f < COUNT(texts); f++)
        for (const char *word = texts[f]; *word != '\0'; n++) {
            const size_t length = strcspn(word, ",");
            const enum status status = find_covariate(c, names[f], word, length, n);
            c->import->plan.n_covariates = size_min(n + 1, IMPORT_MOST_COVARIATES);
            TRY(status);
            word += length + (word[length] == ',');
        }
    return OK;
}

/* The time, or what else a student's attempts are sorted by. */
static enum status find_time(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    const struct import_preset *preset = c->preset;
    const struct csv *csv = &c->csv;
    c->key.n = c->time.n = 0;
    c->is_ordered = flags->order[0] != '\0' || (!flags->time[0] && preset->order);
    if (flags->time_meta[0] != '\0')
        TRY(import_columns_find_field(csv, "time-meta", "", preset->key, true, &c->key));
    else if (c->is_ordered)
        TRY(import_columns_find_field(csv, "order", flags->order, preset->order, true,
                                      &c->time));
    else
        TRY(import_columns_find_field(csv, "time", flags->time, preset->time, false, &c->time));
    if (c->key.n == 0 && c->time.n == 0 && preset->last_order != NULL &&
        !is_none(flags->time)) {
        TRY(import_columns_find_field(csv, "order", "", preset->last_order, false, &c->time));
        c->is_ordered = c->time.n > 0;
    }
    c->import->plan.drop_time = c->is_ordered;
    return OK;
}

enum status import_columns_find(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    const struct import_preset *preset = c->preset;
    const struct csv *csv = &c->csv;
    c->skills = c->group = (struct field){0};
    TRY(import_columns_find_field(csv, "student", flags->student, preset->student, true,
                                  &c->student));
    if (flags->item_meta[0] == '\0') { /* otherwise that file has these columns */
        TRY(import_columns_find_field(csv, "skills", flags->skills, preset->skills, false,
                                      &c->skills));
        TRY(import_columns_find_field(csv, "group", flags->group, preset->group, false,
                                      &c->group));
    }
    TRY(import_columns_find_field(csv, "item", flags->item, preset->item,
                                  !(preset->skills_may_be_items && c->skills.n > 0), &c->item));
    if (c->item.n == 0) {
        if (c->import->builder == NULL)
            log_say("%s: no column of items: the skills in column %s are the items (--item "
                    "names another)",
                    csv->text.path, csv->columns[c->skills.columns[0]]);
        c->item = c->skills;
    }
    TRY(import_columns_find_field(csv, "outcome", flags->outcome, preset->outcome,
                                  !preset->outcome_may_lack, &c->outcome));
    TRY(import_columns_find_field(csv, "split-column", flags->split_column, NULL, false,
                                  &c->split));
    TRY(import_columns_find_field(csv, "target", flags->target, NULL, false, &c->target));
    TRY(find_covariates(c));
    return find_time(c);
}

/* One thing that a column may hold. */
struct role {
    const char *name, *flag;
    const struct field *field;
    const char *usual;
};

/* Whether any part of the import uses a column. */
static bool is_used(const struct columns *c, size_t column)
{
    const struct field *const fields[] = {&c->student, &c->item,   &c->outcome,
                                          &c->time,    &c->skills, &c->group,
                                          &c->split,   &c->key,    &c->target};
    for (size_t f = 0; f < COUNT(fields); f++)
        for (size_t j = 0; j < fields[f]->n; j++)
            if (fields[f]->columns[j] == column)
                return true;
    for (size_t k = 0; k < c->import->plan.n_covariates; k++)
        for (size_t j = 0; j < c->covariates[k].n; j++)
            if (c->covariates[k].columns[j] == column)
                return true;
    return false;
}

/* Unused columns with a usual name of the role; "" if there are none. */
static void list_others(const struct columns *c, const struct role *role, char list[200])
{
    size_t n = 0;
    list[0] = '\0';
    for (size_t column = 0; column < c->csv.n_columns && n + 1 < 200; column++) {
        const char *name = c->csv.columns[column];
        if (import_columns_usual(name, role->usual) != SIZE_MAX && !is_used(c, column))
            n += (size_t)snprintf(list + n, 200 - n, "%s%s", n > 0 ? ", " : "", name);
    }
}

static char *column_names(const struct csv *csv, const struct field *field)
{
    char *text = memory_text("%s", "");
    for (size_t f = 0; f < field->n; f++)
        memory_append(&text, "%s%s", f > 0 ? "+" : "", csv->columns[field->columns[f]]);
    return text;
}

static void say_guesses(const struct columns *c)
{
    const struct import_preset *preset = c->preset;
    const struct role roles[] = {
        {"student", "student", &c->student, preset->student},
        {"item", "item", &c->item, preset->item},
        {"outcome", "outcome", &c->outcome, preset->outcome},
        {c->is_ordered ? "order" : "time", c->is_ordered ? "order" : "time", &c->time,
         c->is_ordered ? NULL : preset->time},
        {"skills", "skills", &c->skills, preset->skills},
        {"group", "group", &c->group, preset->group},
    };
    char *text = memory_text("%s", "");
    for (size_t r = 0; r < COUNT(roles); r++) {
        if (roles[r].field->n == 0 || !roles[r].field->is_guessed)
            continue;
        char *names = column_names(&c->csv, roles[r].field);
        memory_append(&text, "%s%s = %s", text[0] != '\0' ? ", " : "", roles[r].name, names);
        memory_free(names);
    }
    if (text[0] != '\0')
        log_say("%s: columns found by name: %s", c->csv.text.path, text);
    memory_free(text);
    for (size_t r = 0; r < COUNT(roles); r++) {
        char others[200];
        if (roles[r].field->n == 0 || !roles[r].field->is_guessed)
            continue;
        list_others(c, &roles[r], others);
        if (others[0] != '\0')
            log_say("note: the %s could also be %s; --%s decides", roles[r].name, others,
                    roles[r].flag);
    }
}

static void say_unused(const struct columns *c)
{
    char list[400] = "";
    size_t n = 0;
    for (size_t column = 0; column < c->csv.n_columns && n < sizeof list; column++)
        if (!is_used(c, column))
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ", " : "",
                                  c->csv.columns[column][0] != '\0' ? c->csv.columns[column]
                                                                    : "(no name)");
    const bool lacks_time = c->preset->says_columns && c->time.n == 0 && c->key.n == 0 &&
                            !is_none(c->import->flags->time);
    if (n > 0)
        log_say("%s: unused columns: %s%s%s", c->csv.text.path, list,
                n < sizeof list ? "" : " ...",
                lacks_time ? "; no times were found, so attempts keep the order of the rows "
                             "(--time NAME)"
                           : "");
}

void import_columns_say(const struct columns *c)
{
    if (c->preset->says_columns)
        say_guesses(c);
    say_unused(c);
}
