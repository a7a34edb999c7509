/* A line is CSV if the first one does not begin with a brace:
 *
 *     student,item,outcome             {"student": "ann", "item": 17, "outcome": true}
 *     ann,17,1                         {"student": "ann", "item": 18}
 *     ann,18,
 *
 * Unlike in files, a quoted cell ends in its line: the answer to a line must not wait for the
 * next one. */
#include "runs/follow_line.h"
#include "base/fail.h"
#include "base/memory.h"
#include <jansson.h>
#include <string.h>

static size_t n_fields(const struct follow_reader *reader)
{
    return follow_names_count(&reader->names);
}

/* Removes the quotes of a cell that begins with one, in place. Returns the byte after the cell;
 * NULL: the quote is not closed, or something follows it. */
static char *unquote(char *at, const char *end, char delimiter, struct span *cell)
{
    char *to = at, *from = at + 1;
    *cell = (struct span){at, 0};
    for (; from < end; from++) {
        if (*from == '"' && from + 1 < end && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        *to++ = *from;
    }
    cell->n = (size_t)(to - cell->start);
    if (from == end || (from + 1 < end && from[1] != delimiter))
        return NULL;
    return from + 1;
}

/* Splits a record into reader->cells; returns how many, 0 if a quote is wrong. */
static size_t split(struct follow_reader *reader, struct span text)
{
    char *at = text.start, *const end = text.start + text.n;
    for (size_t n = 0;; at++) {
        GROW(reader->cells, n, reader->cell_room);
        struct span *cell = &reader->cells[n++];
        if (at < end && *at == '"') {
            at = unquote(at, end, reader->delimiter, cell);
            if (at == NULL)
                return 0;
        } else {
            char *stop = at < end ? memchr(at, reader->delimiter, (size_t)(end - at)) : NULL;
            stop = stop != NULL ? stop : end;
            *cell = (struct span){at, (size_t)(stop - at)};
            at = stop;
        }
        if (at >= end)
            return n;
    }
}

static char find_delimiter(struct span line)
{
    static const char candidates[] = ",\t;|";
    char best = ',';
    size_t most = 0;
    for (const char *c = candidates; *c != '\0'; c++) {
        size_t n = 0;
        for (size_t i = 0; i < line.n; i++)
            n += line.start[i] == *c;
        if (n > most) {
            most = n;
            best = *c;
        }
    }
    return best;
}

static enum status read_header(struct follow_reader *reader, struct span line)
{
    reader->delimiter = find_delimiter(line);
    char *shown = memory_text("%.*s", (int)size_min(line.n, 200), line.start);
    reader->n_columns = split(reader, line);
    reader->column = NEW(size_t, n_fields(reader));
    struct names columns = {0};
    for (size_t c = 0; c < reader->n_columns; c++) {
        const struct span name = span_trim(reader->cells[c]);
        names_add(&columns, name.start, name.n);
    }
    enum status status = follow_names_header(&reader->names, &columns, reader->column);
    names_free(&columns);
    for (size_t f = FOLLOW_STUDENT; f <= FOLLOW_ITEM && status == OK; f++)
        if (reader->column[f] == SIZE_MAX)
            status = fail(BAD_DATA,
                          "standard input:1: no column '%s' in '%s'; expected a header with "
                          "student, item and outcome, or JSON objects",
                          follow_names_own(&reader->names, f), shown);
    memory_free(shown);
    return status;
}

enum status follow_reader_begin(struct follow_reader *reader, struct span line,
                                const struct names *covariates)
{
    *reader = (struct follow_reader){.names = {.covariates = covariates}};
    reader->json = line.n > 0 && line.start[0] == '{';
    return reader->json ? OK : read_header(reader, line);
}

void follow_reader_free(struct follow_reader *reader)
{
    json_decref(reader->object);
    follow_names_free(&reader->names);
    memory_free(reader->column);
    memory_free(reader->cells);
    memory_free(reader->scratch);
    *reader = (struct follow_reader){0};
}

static void read_csv(struct follow_reader *reader, struct span text, struct follow_line *line)
{
    const size_t n = split(reader, text);
    if (n == 0) {
        snprintf(line->error, sizeof line->error,
                 "a quote is not closed, or text follows a closing quote");
        return;
    }
    if (n != reader->n_columns)
        snprintf(line->error, sizeof line->error, "%zu cells, but the header has %zu", n,
                 reader->n_columns);
    for (size_t f = 0; f < n_fields(reader); f++)
        if (reader->column[f] < n)
            line->fields[f] = reader->cells[reader->column[f]];
}

/* Appends a text to the scratch, which has room for it; returns its place. */
static struct span keep(struct follow_reader *reader, size_t *n, const char *text, size_t size)
{
    const struct span kept = {reader->scratch + *n, size};
    memcpy(kept.start, text, size);
    *n += size;
    return kept;
}

static struct span scalar(struct follow_reader *reader, size_t *n, const json_t *value)
{
    if (json_is_string(value)) /* the reader only reads it */
        return (struct span){(char *)(uintptr_t)json_string_value(value),
                             json_string_length(value)};
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    const struct span kept = keep(reader, n, text, strlen(text));
    free(text);
    return kept;
}

/* A field of a JSON object; false: it is neither a scalar nor, for skills, a list of them. */
static bool read_value(struct follow_reader *reader, size_t f, const json_t *value, size_t *n,
                       struct span *field)
{
    if (value == NULL || json_is_null(value))
        return true;
    if (f == FOLLOW_SKILLS && json_is_array(value)) {
        const size_t start = *n;
        for (size_t i = 0; i < json_array_size(value); i++) {
            const json_t *one = json_array_get(value, i);
            if (json_is_array(one) || json_is_object(one))
                return false;
            if (i > 0)
                keep(reader, n, "~~", 2);
            if (json_is_string(one))
                keep(reader, n, json_string_value(one), json_string_length(one));
            else
                scalar(reader, n, one);
        }
        *field = (struct span){reader->scratch + start, *n - start};
        return true;
    }
    if (json_is_array(value) || json_is_object(value))
        return false;
    *field = scalar(reader, n, value);
    return true;
}

/* The value of a field, by its own name or one that was found before. */
static json_t *value_of(const struct follow_reader *reader, size_t f)
{
    const struct follow_names *names = &reader->names;
    json_t *value = json_object_get(reader->object, follow_names_own(names, f));
    if (value == NULL && f < N_FOLLOW_FIELDS && names->found[f] != NULL)
        value = json_object_get(reader->object, names->found[f]);
    return value;
}

/* Looks at the keys of an object, if there are others than those of fields. */
static void look_at_keys(struct follow_reader *reader)
{
    size_t n_known = 0;
    for (size_t f = 0; f < n_fields(reader); f++)
        n_known += value_of(reader, f) != NULL;
    if (n_known == json_object_size(reader->object))
        return;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(reader->object, key, value) follow_names_key(&reader->names, key);
}

static void read_json(struct follow_reader *reader, struct span text, struct follow_line *line)
{
    json_decref(reader->object);
    reader->object = json_loadb(text.start, text.n, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(reader->object)) {
        snprintf(
            line->error, sizeof line->error,
            "not a JSON object in one line, such as {\"student\": \"ada\", \"item\": \"i7\"}, "
            "with every key once");
        return;
    }
    /* Numbers are at most 25 bytes, of which a line has at least one. */
    if (reader->scratch_room < 32 * (text.n + 1)) {
        reader->scratch_room = 64 * (text.n + 1);
        reader->scratch = memory_resize(reader->scratch, reader->scratch_room, 1);
    }
    look_at_keys(reader);
    size_t n = 0;
    for (size_t f = 0; f < n_fields(reader); f++) {
        const json_t *value = value_of(reader, f);
        if (!read_value(reader, f, value, &n, &line->fields[f]))
            snprintf(line->error, sizeof line->error,
                     "%s is %s; expected a string, a number or true/false%s",
                     follow_names_own(&reader->names, f),
                     json_is_object(value) ? "an object"
                     : f == FOLLOW_SKILLS  ? "a list that holds another list or an object"
                                           : "an array",
                     f == FOLLOW_SKILLS ? ", or a list of these" : "");
    }
}

/* As `cohort import` reads cells: without blanks at their ends, which leave nothing of some. */
static struct span trimmed(struct span field)
{
    const struct span text = field.start != NULL ? span_trim(field) : field;
    return text.n > 0 ? text : (struct span){0};
}

void follow_reader_line(struct follow_reader *reader, struct span text,
                        struct follow_line *line)
{
    memset(line->fields, 0, n_fields(reader) * sizeof *line->fields);
    line->error[0] = '\0';
    if (memchr(text.start, '\0', text.n) != NULL)
        snprintf(line->error, sizeof line->error, "a NUL byte in the line");
    else if (reader->json)
        read_json(reader, text, line);
    else
        read_csv(reader, text, line);
    for (size_t f = 0; f < n_fields(reader); f++)
        line->fields[f] = trimmed(line->fields[f]);
}
