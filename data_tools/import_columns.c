/* Tables with one attempt per row: any CSV with named columns, and public formats that differ
 * only in names and codes (struct import_preset).
 *
 * Cost per row: a look-up of the student's name and of the item's. The skills and the group of
 * an item are parsed again only if its cells differ from the previous ones, which is rare. */
#include "data_tools/import_columns.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data_tools/csv_cell.h"
#include "data_tools/q_matrix.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { PROGRESS = 1 << 16 };

struct span import_columns_join(struct columns *c, const struct field *field)
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

/* Each of the following parses one cell of a row. A bad cell sets *is_bad; the status is still
 * OK if bad rows are skipped. */

/* A score is correct from the threshold on. Words and missing cells mean what they always do. */
static bool passes(struct span cell, double threshold, enum outcome *outcome)
{
    double score = 0;
    if (!csv_cell_number(cell, &score))
        return csv_cell_outcome(cell, outcome);
    *outcome = score >= threshold ? CORRECT : INCORRECT;
    return true;
}

static enum status read_outcome(struct columns *c, enum outcome *outcome, bool *is_bad)
{
    const struct import_preset *preset = c->preset;
    const struct span cell = import_columns_cell(c, &c->outcome);
    if (cell.n == 1 && preset->incorrect && strchr(preset->incorrect, cell.start[0]) != NULL)
        *outcome = INCORRECT;
    else if (cell.n == 1 && preset->unknown && strchr(preset->unknown, cell.start[0]) != NULL)
        *outcome = UNKNOWN;
    else if (isnan(c->threshold) ? !csv_cell_outcome(cell, outcome)
                                 : !passes(cell, c->threshold, outcome)) {
        double number = 0;
        *is_bad = true;
        const bool is_number = csv_cell_number(cell, &number);
        if (!isnan(c->threshold))
            return BAD_ROW(
                "outcome '%.*s' is not a score, which --threshold needs: a number, with "
                "decimals after a point",
                (int)size_min(cell.n, 40), cell.start);
        return BAD_ROW("outcome '%.*s' is not 1/0, true/false, correct/incorrect or yes/no%s",
                       (int)size_min(cell.n, 40), cell.start,
                       is_number ? " (scores need --threshold)" : "");
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
        const struct span cell = import_columns_cell(c, &c->covariates[k]);
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
        const struct span cell = import_columns_cell(c, &c->covariates[k]);
        values[k] = csv_cell_is_missing(cell)
                        ? (double)NAN
                        : name_index_add(&covariate->levels, cell.start, cell.n);
    }
    builder_covariates(c->import->builder, values);
}

static enum status read_target(struct columns *c, double *target, bool *is_bad)
{
    const struct span cell = import_columns_cell(c, &c->target);
    *target = NAN;
    *is_bad = !csv_cell_is_missing(cell) && !csv_cell_number(cell, target);
    return *is_bad
               ? BAD_ROW("target '%.*s' is not a number", (int)size_min(cell.n, 40), cell.start)
               : OK;
}

static enum status read_split(struct columns *c, enum split *split, bool *is_bad)
{
    const struct span cell = import_columns_cell(c, &c->split);
    *is_bad = !split_find(cell.start, cell.n, split);
    return *is_bad ? BAD_ROW("split '%.*s' is not train, valid or test",
                             (int)size_min(cell.n, 40), cell.start)
                   : OK;
}

enum status import_columns_learn_times(struct columns *c, const struct field *field)
{
    const struct import_flags *flags = c->import->flags;
    enum { MOST = 20000 };
    struct names cells = {0};
    if (c->has_reader)
        return OK;
    if (field->n == 1)
        csv_sample(&c->csv, field->columns[0], MOST, &cells);
    snprintf(c->time_name, sizeof c->time_name, "%s", c->csv.columns[field->columns[0]]);
    const enum status status =
        time_reader_learn(&c->reader, c->csv.text.path, &cells,
                          (enum time_unit)flags->time_unit, flags->time_format);
    c->has_reader = true;
    names_free(&cells);
    return status;
}

enum status import_columns_read_time(struct columns *c, const struct field *field,
                                     int64_t *microseconds, bool *is_bad)
{
    const struct span cell = import_columns_cell(c, field);
    char expected[256];
    *is_bad = !time_reader_read(&c->reader, cell, microseconds);
    if (!*is_bad)
        return OK;
    double number = 0;
    if (c->reader.kind == TIME_NUMBER && csv_cell_number(cell, &number) &&
        time_reader_overflows(&c->reader, number))
        snprintf(expected, sizeof expected, "is too large (is --time-unit right?)");
    else
        time_reader_describe(&c->reader, expected);
    return BAD_ROW("time '%.*s' %s", (int)size_min(cell.n, 40), cell.start, expected);
}

/* What attempts are sorted by where it is not a time: its unit does not matter. */
static enum status read_order(struct columns *c, int64_t *order, bool *is_bad)
{
    const struct span cell = import_columns_cell(c, &c->time);
    *is_bad = !csv_cell_time(cell, 1, order);
    double number = 0;
    return *is_bad ? BAD_ROW("order '%.*s' is %s", (int)size_min(cell.n, 40), cell.start,
                             csv_cell_number(cell, &number) ? "too large"
                                                            : "neither a number nor a date")
                   : OK;
}

static enum status find_moment(struct columns *c, int64_t *microseconds, bool *is_bad)
{
    const struct span key = import_columns_cell(c, &c->key);
    const uint32_t number = name_index_find(&c->moments.keys, key.start, key.n);
    *is_bad = number == INDEX_NONE;
    if (*is_bad)
        return BAD_ROW("%s '%.*s' is not in %s", c->csv.columns[c->key.columns[0]],
                       (int)size_min(key.n, 40), key.start, c->import->flags->time_meta);
    *microseconds = c->moments.microseconds[number];
    return OK;
}

enum status import_columns_check_shape(struct columns *c, bool *is_bad)
{
    const struct csv *csv = &c->csv;
    *is_bad = csv->malformed || csv->n_cells != csv->n_columns;
    if (csv->malformed)
        return BAD_ROW("text after a closing quote (a quote within quotes must be doubled)");
    return *is_bad ? BAD_ROW("%zu cells, but the header has %zu", csv->n_cells, csv->n_columns)
                   : OK;
}

/* The number of this list of skills among those of the item; 0 if it is empty. */
static uint8_t find_variant(struct item_cells *cells, uint64_t skills)
{
    if (skills == 0)
        return 0;
    if (cells->first == 0 || cells->first == skills) {
        cells->first = skills;
        return 1;
    }
    if (cells->more == NULL)
        cells->more = NEW(uint64_t, BUILDER_MOST_VARIANTS);
    uint8_t k = 0;
    while (k < cells->n_more && cells->more[k] != skills)
        k++;
    if (k == cells->n_more && k + 2 < BUILDER_MOST_VARIANTS)
        cells->more[cells->n_more++] = skills;
    return (uint8_t)(k + 2);
}

uint8_t import_columns_read_item(struct columns *c, uint32_t item)
{
    struct builder *builder = c->import->builder;
    const struct span skills =
        c->skills.n > 0 ? import_columns_cell(c, &c->skills) : (struct span){0};
    const struct span group =
        c->group.n > 0 ? import_columns_cell(c, &c->group) : (struct span){0};
    const uint64_t hash =
        1 | XXH3_64bits_withSeed(group.start, group.n, XXH3_64bits(skills.start, skills.n));
    while (item >= c->n_cells_of_item) {
        GROW(c->cells_of_item, c->n_cells_of_item, c->cells_capacity);
        c->cells_of_item[c->n_cells_of_item++] = (struct item_cells){0};
    }
    struct item_cells *cells = &c->cells_of_item[item];
    if (cells->last == hash)
        return cells->last_variant;
    cells->last = hash;
    if (!csv_cell_is_missing(group))
        builder_item_group(builder, item, builder_group(builder, group.start, group.n));
    cells->last_variant =
        find_variant(cells, import_skills_add(c->import, c->csv.text.path, item, skills,
                                              c->skill_separator, NULL));
    return cells->last_variant;
}

/* Parses the entire row before adding anything: a bad row leaves nothing behind. */
static enum status read_row(struct columns *c, enum split split)
{
    bool is_bad = false;
    double target = NAN, values[IMPORT_MOST_COVARIATES];
    TRY(import_columns_check_shape(c, &is_bad));
    enum outcome outcome = UNKNOWN;
    if (!is_bad && c->outcome.n > 0)
        TRY(read_outcome(c, &outcome, &is_bad));
    if (!is_bad && c->split.n > 0)
        TRY(read_split(c, &split, &is_bad));
    int64_t time = 0;
    if (!is_bad && c->key.n > 0)
        TRY(find_moment(c, &time, &is_bad));
    if (!is_bad && c->time.n > 0)
        TRY(c->is_ordered ? read_order(c, &time, &is_bad)
                          : import_columns_read_time(c, &c->time, &time, &is_bad));
    if (!is_bad && c->target.n > 0)
        TRY(read_target(c, &target, &is_bad));
    if (!is_bad)
        TRY(read_covariates(c, values, &is_bad));
    if (is_bad)
        return OK;
    struct builder *builder = c->import->builder;
    if (csv_cell_is_missing(import_columns_cell(c, &c->student)))
        return BAD_ROW("the student is missing");
    const struct span item = import_columns_cell(c, &c->item);
    if (csv_cell_is_missing(item))
        return BAD_ROW("the item is missing");
    const uint32_t i = builder_item(builder, item.start, item.n);
    if (c->skills.n > 0 || c->group.n > 0)
        builder_variant(builder, import_columns_read_item(c, i));
    if (!isnan(target))
        import_target(c->import, import_columns_cell(c, &c->student), target);
    if (c->import->plan.n_covariates > 0)
        add_covariates(c, values);
    const struct span student = import_columns_cell(c, &c->student);
    builder_add_named(builder, student.start, student.n, i,
                      mark_make(outcome, split, false, true), time);
    return OK;
}

/* A column that is called like a time but has no cells, as in predictions of attempts without
 * times, is none. */
static void ignore_empty_time(struct columns *c)
{
    struct names cells = {0};
    if (c->time.n != 1 || !c->time.is_guessed || c->import->builder != NULL)
        return;
    csv_sample(&c->csv, c->time.columns[0], 1, &cells);
    if (cells.n == 0)
        c->time = (struct field){0};
    names_free(&cells);
}

static enum status read_file(struct columns *c, const struct import_file *file)
{
    struct import *import = c->import;
    TRY(csv_open(&c->csv, file->path, import->delimiter, c->preset->no_quotes));
    TRY(csv_read_header(&c->csv));
    TRY(import_columns_find(c));
    ignore_empty_time(c);
    const bool has_time = c->time.n > 0 || c->key.n > 0;
    if (import->builder != NULL && has_time != import->plan.has_time)
        return fail(BAD_DATA,
                    "%s: this file has %s, unlike %s; name the column with --time, or import "
                    "the files separately",
                    file->path, has_time ? "times" : "no times", import->files[0].path);
    import->plan.has_time = has_time;
    if (import->builder == NULL)
        import_columns_say(c);
    if (c->time.n > 0 && !c->is_ordered)
        TRY(import_columns_learn_times(c, &c->time));
    TRY(import_begin(import));
    import_next_file(import, file->path);
    for (bool got = true;;) {
        TRY(csv_next(&c->csv, &got));
        if (!got)
            break;
        import_next_row(import);
        TRY(read_row(c, file->split));
        if (++import->n_rows % PROGRESS == 0)
            import_show_progress(import, &c->csv.text);
    }
    import->n_bytes += c->csv.text.n_bytes;
    return OK;
}

static enum status read_all(struct columns *c)
{
    struct import *import = c->import;
    if (import->flags->time_meta[0] != '\0')
        TRY(import_columns_read_moments(c));
    csv_close(&c->csv);
    for (size_t f = 0; f < import->n_files; f++) {
        TRY(read_file(c, &import->files[f]));
        csv_close(&c->csv);
    }
    if (import->flags->q_matrix[0] != '\0')
        TRY(q_matrix_read_named(import->flags->q_matrix, import->builder));
    if (import->flags->item_meta[0] != '\0')
        TRY(import_columns_read_items(c));
    return OK;
}

static enum status read_threshold(const char *text, double *threshold)
{
    *threshold = NAN;
    if (text[0] == '\0' ||
        csv_cell_number((struct span){(char *)text, strlen(text)}, threshold))
        return OK;
    return fail(
        BAD_USER,
        "--threshold %s: expected a number with decimals after a point, the smallest score "
        "that counts as correct",
        text);
}

/* Says what the cells were like, once all are known, and hands it to the import. */
static void conclude(struct columns *c)
{
    struct import *import = c->import;
    if (!c->has_reader)
        return;
    const struct time_reader *reader = &c->reader;
    import->origin.time_format = time_reader_format(reader);
    if (reader->kind == TIME_NUMBER && reader->unit_is_guessed && reader->unit == UNIT_S)
        import->time_column = memory_text("%s", c->time_name);
    if (reader->offsets_differ)
        log_say("note: times have different offsets from UTC; they are compared, and shown, in "
                "UTC");
    if (reader->n < 2 || reader->differ)
        return;
    log_warn("all times are %s: they are ignored",
             reader->first == 0 && reader->kind == TIME_NUMBER ? "0" : "equal");
    builder_forget_times(import->builder);
}

enum status import_columns(struct import *import)
{
    const struct import_flags *flags = import->flags;
    const struct import_preset *preset = import->format->preset;
    struct columns columns = {
        .import = import,
        .preset = preset,
        .skill_separator = flags->skill_separator[0] != '\0' ? flags->skill_separator
                           : preset->skill_separator         ? preset->skill_separator
                                                             : "auto",
    };
    TRY(read_threshold(flags->threshold, &columns.threshold));
    import->plan.time_divisor = 1000000;
    import->plan.time_rest = 1;
    enum status status = read_all(&columns);
    if (status == OK)
        conclude(&columns);
    csv_close(&columns.csv);
    name_index_free(&columns.moments.keys);
    memory_free(columns.moments.microseconds);
    for (size_t i = 0; i < columns.n_cells_of_item; i++)
        memory_free(columns.cells_of_item[i].more);
    memory_free(columns.cells_of_item);
    memory_free(columns.joined);
    return status;
}
