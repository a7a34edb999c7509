/* Tables with one attempt per row: any CSV with named columns, and public formats that differ
 * only in names and codes (struct import_preset).
 *
 * Cost per row: a look-up of the student's name and of the item's. The skills and the group of
 * an item are parsed again only if its cells differ from the previous ones, which is rare. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_JOINED = 4, PROGRESS = 1 << 20 };

/* Columns whose cells are joined to one name, usually one column; n = 0: none. */
struct field {
    size_t columns[MOST_JOINED];
    size_t n;
};

/* Times of answers, by the key that two files share. */
struct moments {
    struct name_index keys;
    int64_t *milliseconds;
    size_t capacity;
};

struct columns {
    struct import *import;
    const struct import_preset *preset;
    struct csv csv;
    struct field student, item, outcome, time, skills, group, split, key, target;
    struct field covariates[IMPORT_MOST_COVARIATES];
    const char *skill_separator;
    int64_t units_per_second;
    struct moments moments;
    uint64_t *cells_of_item; /* hash of its last skills and group cells, 0 at first */
    size_t n_cells_of_item, cells_capacity;
    char *joined; /* buffer for a joined name */
    size_t joined_capacity;
};

/* "Problem Name", or "Problem Name+Step Name". */
static bool find_column(const struct csv *csv, const char *name, size_t length,
                        struct field *field)
{
    *field = (struct field){0};
    char *whole = memory_text("%.*s", (int)length, name);
    bool found = csv_column(csv, whole) != SIZE_MAX;
    if (found)
        *field = (struct field){{csv_column(csv, whole)}, 1};
    struct span rest = {whole, length}, part;
    while (!found && field->n < MOST_JOINED && span_next(&rest, '+', &part)) {
        part.start[part.n] = '\0';
        const size_t column = csv_column(csv, part.start);
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

/* Finds the column that the option `flag` names, or one of the usual columns of the format. */
static enum status find_field(const struct csv *csv, const char *flag, const char *named,
                              const char *usual, bool needed, struct field *field)
{
    *field = (struct field){0};
    if (named[0] != '\0')
        return find_column(csv, named, strlen(named), field) ? OK
                                                             : csv_no_column(csv, named, flag);
    for (const char *at = usual; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, "|");
        if (find_column(csv, at, n, field))
            return OK;
        at += n + (at[n] == '|');
    }
    if (!needed)
        return OK;
    char *first = memory_text("%.*s", usual ? (int)strcspn(usual, "|") : 0, usual ? usual : "");
    const enum status status = csv_no_column(csv, first, flag);
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
    const enum status status = find_field(&c->csv, flag, text, NULL, true, &c->covariates[k]);
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

static enum status find_fields(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    const struct import_preset *preset = c->preset;
    const struct csv *csv = &c->csv;
    TRY(find_field(csv, "student", flags->student, preset->student, true, &c->student));
    TRY(find_field(csv, "item", flags->item, preset->item, true, &c->item));
    TRY(find_field(csv, "outcome", flags->outcome, preset->outcome, !preset->outcome_may_lack,
                   &c->outcome));
    TRY(find_field(csv, "split-column", flags->split_column, NULL, false, &c->split));
    TRY(find_field(csv, "target", flags->target, NULL, false, &c->target));
    TRY(find_covariates(c));
    c->import->plan.drop_time = flags->order[0] != '\0' || (!flags->time[0] && preset->order);
    c->key.n = c->time.n = 0;
    if (flags->time_meta[0] != '\0')
        TRY(find_field(csv, "time-meta", "", preset->key, true, &c->key));
    else if (c->import->plan.drop_time)
        TRY(find_field(csv, "order", flags->order, preset->order, true, &c->time));
    else
        TRY(find_field(csv, "time", flags->time, preset->time, false, &c->time));
    if (flags->item_meta[0] == '\0') { /* otherwise that file has these columns */
        TRY(find_field(csv, "skills", flags->skills, preset->skills, false, &c->skills));
        TRY(find_field(csv, "group", flags->group, preset->group, false, &c->group));
    }
    return OK;
}

/* Prints the unused columns, which may be of interest. */
static void say_unused(const struct columns *c)
{
    const struct field *const fields[] = {&c->student, &c->item,   &c->outcome,
                                          &c->time,    &c->skills, &c->group,
                                          &c->split,   &c->key,    &c->target};
    char list[400] = "";
    size_t n = 0;
    for (size_t column = 0; column < c->csv.n_columns && n < sizeof list; column++) {
        bool is_used = false;
        for (size_t f = 0; f < COUNT(fields); f++)
            for (size_t j = 0; j < fields[f]->n; j++)
                is_used |= fields[f]->columns[j] == column;
        for (size_t k = 0; k < c->import->plan.n_covariates; k++)
            for (size_t j = 0; j < c->covariates[k].n; j++)
                is_used |= c->covariates[k].columns[j] == column;
        if (!is_used)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ", " : "",
                                  c->csv.columns[column]);
    }
    if (n > 0)
        log_say("%s: unused columns: %s%s", c->csv.text.path, list,
                n < sizeof list ? "" : " ...");
}

static struct span join_cells(struct columns *c, const struct field *field)
{
    static const char between[] = " / ";
    size_t n = 0;
    for (size_t f = 0; f < field->n; f++) {
        const struct span part = span_trim(c->csv.cells[field->columns[f]]);
        if (n + part.n + sizeof between > c->joined_capacity) {
            c->joined_capacity = 2 * (n + part.n + sizeof between);
            c->joined = memory_resize(c->joined, c->joined_capacity, 1);
        }
        if (f > 0) {
            memcpy(c->joined + n, between, strlen(between));
            n += strlen(between);
        }
        memcpy(c->joined + n, part.start, part.n);
        n += part.n;
    }
    return (struct span){c->joined, n};
}

/* A joined cell is valid until the next one. */
static inline struct span field_cell(struct columns *c, const struct field *field)
{
    return field->n == 1 ? span_trim(c->csv.cells[field->columns[0]]) : join_cells(c, field);
}

#define BAD_ROW(...)                                                                           \
    import_bad_row(c->import, c->csv.text.path, c->csv.line, c->csv.record, __VA_ARGS__)

/* Each of the following parses one cell of a row. A bad cell sets *is_bad; the status is still
 * OK if bad rows are skipped. */

static enum status read_outcome(struct columns *c, enum outcome *outcome, bool *is_bad)
{
    const struct import_preset *preset = c->preset;
    const struct span cell = field_cell(c, &c->outcome);
    if (cell.n == 1 && preset->incorrect && strchr(preset->incorrect, cell.start[0]) != NULL)
        *outcome = INCORRECT;
    else if (cell.n == 1 && preset->unknown && strchr(preset->unknown, cell.start[0]) != NULL)
        *outcome = UNKNOWN;
    else if (!csv_cell_outcome(cell, outcome)) {
        *is_bad = true;
        return BAD_ROW("outcome '%.*s' is not 1/0, true/false, correct/incorrect or yes/no",
                       (int)size_min(cell.n, 40), cell.start);
    }
    return OK;
}

/* Reads the covariates of a row that are numbers. */
static enum status read_covariates(struct columns *c, double *values, bool *is_bad)
{
    for (size_t k = 0; k < c->import->plan.n_covariates; k++) {
        const struct import_covariate *covariate = &c->import->covariates[k];
        if (covariate->is_factor)
            continue;
        const struct span cell = field_cell(c, &c->covariates[k]);
        *is_bad = !csv_cell_number(cell, &values[k]);
        if (*is_bad)
            return BAD_ROW("covariate %s is '%.*s', not a number from -1e30 to 1e30",
                           covariate->name, (int)size_min(cell.n, 40), cell.start);
    }
    return OK;
}

/* Adds the covariates of a good row, and new levels of factors. */
static void add_covariates(struct columns *c, double *values)
{
    for (size_t k = 0; k < c->import->plan.n_covariates; k++) {
        struct import_covariate *covariate = &c->import->covariates[k];
        if (!covariate->is_factor)
            continue;
        const struct span cell = field_cell(c, &c->covariates[k]);
        values[k] = csv_cell_is_missing(cell)
                        ? (double)NAN
                        : name_index_add(&covariate->levels, cell.start, cell.n);
    }
    builder_covariates(c->import->builder, values);
}

static enum status read_target(struct columns *c, double *target, bool *is_bad)
{
    const struct span cell = field_cell(c, &c->target);
    *target = NAN;
    *is_bad = !csv_cell_is_missing(cell) && !csv_cell_number(cell, target);
    return *is_bad
               ? BAD_ROW("target '%.*s' is not a number", (int)size_min(cell.n, 40), cell.start)
               : OK;
}

static enum status read_split(struct columns *c, enum split *split, bool *is_bad)
{
    const struct span cell = field_cell(c, &c->split);
    *is_bad = !split_find(cell.start, cell.n, split);
    return *is_bad ? BAD_ROW("split '%.*s' is not train, valid or test",
                             (int)size_min(cell.n, 40), cell.start)
                   : OK;
}

static enum status read_time(struct columns *c, const struct field *field,
                             int64_t *milliseconds, bool *is_bad)
{
    const struct span cell = field_cell(c, field);
    double number = 0;
    *is_bad = !csv_cell_time(cell, c->units_per_second, milliseconds);
    if (*is_bad && csv_cell_number(cell, &number))
        return BAD_ROW("time '%.*s' is too large (is --time-unit right?)",
                       (int)size_min(cell.n, 40), cell.start);
    return *is_bad ? BAD_ROW("time '%.*s' is neither a number nor YYYY-MM-DD HH:MM:SS",
                             (int)size_min(cell.n, 40), cell.start)
                   : OK;
}

static enum status find_moment(struct columns *c, int64_t *milliseconds, bool *is_bad)
{
    const struct span key = field_cell(c, &c->key);
    const uint32_t number = name_index_find(&c->moments.keys, key.start, key.n);
    *is_bad = number == INDEX_NONE;
    if (*is_bad)
        return BAD_ROW("%s '%.*s' is not in %s", c->csv.columns[c->key.columns[0]],
                       (int)size_min(key.n, 40), key.start, c->import->flags->time_meta);
    *milliseconds = c->moments.milliseconds[number];
    return OK;
}

static enum status check_shape(struct columns *c, bool *is_bad)
{
    const struct csv *csv = &c->csv;
    *is_bad = csv->malformed || csv->n_cells != csv->n_columns;
    if (csv->malformed)
        return BAD_ROW("text after a closing quote (a quote within quotes must be doubled)");
    return *is_bad ? BAD_ROW("%zu cells, but the header has %zu", csv->n_cells, csv->n_columns)
                   : OK;
}

/* Reads the skills and the group of an item, unless the row repeats them. */
static void read_item(struct columns *c, uint32_t item)
{
    struct builder *builder = c->import->builder;
    const struct span skills = c->skills.n > 0 ? field_cell(c, &c->skills) : (struct span){0};
    const struct span group = c->group.n > 0 ? field_cell(c, &c->group) : (struct span){0};
    const uint64_t hash =
        1 | XXH3_64bits_withSeed(group.start, group.n, XXH3_64bits(skills.start, skills.n));
    while (item >= c->n_cells_of_item) {
        GROW(c->cells_of_item, c->n_cells_of_item, c->cells_capacity);
        c->cells_of_item[c->n_cells_of_item++] = 0;
    }
    if (c->cells_of_item[item] == hash)
        return;
    c->cells_of_item[item] = hash;
    if (!csv_cell_is_missing(group))
        builder_item_group(builder, item, builder_group(builder, group.start, group.n));
    struct csv_cell_list list = csv_cell_list(skills, c->skill_separator);
    struct span skill;
    while (csv_cell_list_next(&list, &skill))
        builder_item_skill(builder, item, builder_skill(builder, skill.start, skill.n));
}

/* Parses the entire row before adding anything: a bad row leaves nothing behind. */
static enum status read_row(struct columns *c, enum split split)
{
    bool is_bad = false;
    double target = NAN, values[IMPORT_MOST_COVARIATES];
    TRY(check_shape(c, &is_bad));
    enum outcome outcome = UNKNOWN;
    if (!is_bad && c->outcome.n > 0)
        TRY(read_outcome(c, &outcome, &is_bad));
    if (!is_bad && c->split.n > 0)
        TRY(read_split(c, &split, &is_bad));
    int64_t time = 0;
    if (!is_bad && c->key.n > 0)
        TRY(find_moment(c, &time, &is_bad));
    if (!is_bad && c->time.n > 0)
        TRY(read_time(c, &c->time, &time, &is_bad));
    if (!is_bad && c->target.n > 0)
        TRY(read_target(c, &target, &is_bad));
    if (!is_bad)
        TRY(read_covariates(c, values, &is_bad));
    if (is_bad)
        return OK;
    struct builder *builder = c->import->builder;
    if (csv_cell_is_missing(field_cell(c, &c->student)))
        return BAD_ROW("the student is missing");
    const struct span item = field_cell(c, &c->item);
    if (csv_cell_is_missing(item))
        return BAD_ROW("the item is missing");
    const uint32_t i = builder_item(builder, item.start, item.n);
    if (c->skills.n > 0 || c->group.n > 0)
        read_item(c, i);
    if (!isnan(target))
        import_target(c->import, field_cell(c, &c->student), target);
    if (c->import->plan.n_covariates > 0)
        add_covariates(c, values);
    const struct span student = field_cell(c, &c->student);
    builder_add_named(builder, student.start, student.n, i,
                      mark_make(outcome, split, false, true), time);
    return OK;
}

static enum status read_file(struct columns *c, const struct import_file *file)
{
    struct import *import = c->import;
    TRY(csv_open(&c->csv, file->path, import->delimiter, c->preset->no_quotes));
    TRY(csv_read_header(&c->csv));
    TRY(find_fields(c));
    const bool has_time = c->time.n > 0 || c->key.n > 0;
    if (import->builder != NULL && has_time != import->plan.has_time)
        return fail(BAD_DATA,
                    "%s: this file has %s, unlike %s; name the column with --time, or import "
                    "the files separately",
                    file->path, has_time ? "times" : "no times", import->files[0].path);
    import->plan.has_time = has_time;
    if (import->builder == NULL)
        say_unused(c);
    TRY(import_begin(import));
    for (bool got = true;;) {
        TRY(csv_next(&c->csv, &got));
        if (!got)
            break;
        TRY(read_row(c, file->split));
        if (++import->n_rows % PROGRESS == 0)
            import_show_progress(import, &c->csv.text);
    }
    import->n_bytes += c->csv.text.n_bytes;
    return OK;
}

/* Reads the times of --time-meta by key. */
static enum status read_moments(struct columns *c)
{
    const struct import_flags *flags = c->import->flags;
    struct moments *moments = &c->moments;
    TRY(csv_open(&c->csv, flags->time_meta, 0, false));
    TRY(csv_read_header(&c->csv));
    struct field key, time;
    TRY(find_field(&c->csv, "time-meta", "", c->preset->key, true, &key));
    TRY(find_field(&c->csv, "time", flags->time, c->preset->key_time, true, &time));
    for (bool got = true;;) {
        TRY(csv_next(&c->csv, &got));
        if (!got)
            break;
        bool is_bad = false;
        int64_t milliseconds = 0;
        TRY(check_shape(c, &is_bad));
        if (!is_bad)
            TRY(read_time(c, &time, &milliseconds, &is_bad));
        if (is_bad)
            continue;
        const struct span name = field_cell(c, &key);
        const size_t n_known = moments->keys.names.n;
        const uint32_t number = name_index_add(&moments->keys, name.start, name.n);
        if (number == n_known)
            GROW(moments->milliseconds, n_known, moments->capacity);
        moments->milliseconds[number] = milliseconds;
    }
    c->import->n_bytes += c->csv.text.n_bytes;
    return OK;
}

/* Reads skills and groups of the known items from --item-meta. */
static enum status read_item_meta(struct columns *c)
{
    struct import *import = c->import;
    const struct import_flags *flags = import->flags;
    TRY(csv_open(&c->csv, flags->item_meta, 0, false));
    TRY(csv_read_header(&c->csv));
    TRY(find_field(&c->csv, "item", flags->item, c->preset->item, true, &c->item));
    TRY(find_field(&c->csv, "skills", flags->skills, c->preset->meta_skills,
                   flags->group[0] == '\0', &c->skills));
    TRY(find_field(&c->csv, "group", flags->group, NULL, false, &c->group));
    const size_t n_items = builder_items(import->builder)->n;
    bool *described = NEW(bool, n_items);
    enum status status = OK;
    for (bool got = true;;) {
        bool is_bad = false;
        status = csv_next(&c->csv, &got);
        if (status == OK && got)
            status = check_shape(c, &is_bad);
        if (status != OK || !got)
            break;
        if (is_bad)
            continue;
        const struct span name = field_cell(c, &c->item);
        const uint32_t item = builder_find_item(import->builder, name.start, name.n);
        if (item == INDEX_NONE)
            continue;
        described[item] = true;
        read_item(c, item);
    }
    import->n_undescribed = n_items;
    for (size_t i = 0; i < n_items; i++)
        import->n_undescribed -= described[i];
    memory_free(described);
    return status;
}

static enum status read_all(struct columns *c)
{
    struct import *import = c->import;
    if (import->flags->time_meta[0] != '\0')
        TRY(read_moments(c));
    csv_close(&c->csv);
    for (size_t f = 0; f < import->n_files; f++) {
        TRY(read_file(c, &import->files[f]));
        csv_close(&c->csv);
    }
    if (import->flags->item_meta[0] != '\0')
        TRY(read_item_meta(c));
    return OK;
}

enum status import_columns(struct import *import)
{
    static const int64_t units_per_second[] = {1, 1000, 1000000, 1000000000};
    const struct import_flags *flags = import->flags;
    const struct import_preset *preset = import->format->preset;
    struct columns columns = {
        .import = import,
        .preset = preset,
        .units_per_second = units_per_second[flags->time_unit],
        .skill_separator = flags->skill_separator[0] != '\0' ? flags->skill_separator
                           : preset->skill_separator         ? preset->skill_separator
                                                             : "auto",
    };
    import->plan.time_divisor = 1000;
    enum status status = read_all(&columns);
    csv_close(&columns.csv);
    name_index_free(&columns.moments.keys);
    memory_free(columns.moments.milliseconds);
    memory_free(columns.cells_of_item);
    memory_free(columns.joined);
    return status;
}
