/* RFC 4180: records end with LF or CR LF; a quoted cell may hold delimiters, line ends and
 * doubled quotes. A record is first scanned without changing it, jumping from one stop byte
 * (delimiter or LF) to the next. Doubled quotes are removed in place once the record is
 * complete. The buffer always ends in LF, so the inner loop needs no bounds check. If the record
 * does not end within the buffer, more is read and the scan starts over. */
#include "data_tools/csv.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data_tools/csv_cell.h"
#include <string.h>

enum { LONGEST_RECORD = 1 << 26 };

static char detect_delimiter(const struct text *text)
{
    static const char candidates[] = "\t,;|";
    size_t n_found[sizeof candidates] = {0};
    bool in_quotes = false;
    for (size_t i = text->begin; i < text->end && (in_quotes || text->buffer[i] != '\n'); i++) {
        const char *found = strchr(candidates, text->buffer[i]);
        in_quotes ^= text->buffer[i] == '"';
        if (found != NULL && !in_quotes)
            n_found[found - candidates]++;
    }
    size_t best = 1;
    for (size_t c = 0; c < sizeof candidates - 1; c++)
        if (n_found[c] > n_found[best])
            best = c;
    return candidates[best];
}

enum status csv_open(struct csv *csv, const char *path, char delimiter, bool no_quotes)
{
    *csv = (struct csv){.no_quotes = no_quotes};
    TRY(text_open(&csv->text, path));
    csv->delimiter = delimiter ? delimiter : detect_delimiter(&csv->text);
    csv->stops[(unsigned char)csv->delimiter] = csv->stops['\n'] = true;
    return OK;
}

void csv_close(struct csv *csv)
{
    text_close(&csv->text);
    memory_free(csv->cells);
    memory_free(csv->kept);
    for (size_t c = 0; c < csv->n_columns; c++)
        memory_free(csv->columns[c]);
    memory_free(csv->columns);
    *csv = (struct csv){0};
}

/* The end of a quoted cell that begins at `quote`, after its closing quote; NULL if it is not
 * in the buffer. */
static char *end_of_quoted(char *quote, const char *end)
{
    for (char *at = quote + 1;; at += 2) {
        at = memchr(at, '"', (size_t)(end - at));
        if (at == NULL)
            return NULL;
        if (at[1] != '"' || at + 1 >= end)
            return at + 1;
        if (at + 2 >= end)
            return NULL;
    }
}

/* Removing doubled quotes changes the buffer; messages show the record as it was. */
static void keep_record(struct csv *csv)
{
    if (csv->record.start == csv->kept)
        return;
    if (csv->record.n > csv->kept_capacity) {
        csv->kept_capacity = 2 * csv->record.n;
        csv->kept = memory_resize(csv->kept, csv->kept_capacity, 1);
    }
    memcpy(csv->kept, csv->record.start, csv->record.n);
    csv->record.start = csv->kept;
}

/* Without doubled quotes the bytes stay as they are. */
static struct span unquoted(struct csv *csv, struct span cell)
{
    if (memchr(cell.start + 1, '"', cell.n - 2) == NULL)
        return (struct span){cell.start + 1, cell.n - 2};
    keep_record(csv);
    char *to = cell.start;
    for (const char *from = cell.start + 1; from < cell.start + cell.n - 1; from++) {
        *to++ = *from;
        from += *from == '"'; /* the second of a pair */
    }
    return (struct span){cell.start, (size_t)(to - cell.start)};
}

/* Finds the cells of the record at the start of the unread bytes. Returns its end, NULL if that
 * is not in the buffer; *is_whole: no quote is open there. */
static char *scan(struct csv *csv, bool *has_quotes, bool *is_whole)
{
    char *at = csv->text.buffer + csv->text.begin;
    char *const end = csv->text.buffer + csv->text.end;
    const bool *const stops = csv->stops;
    const bool quotes = !csv->no_quotes;
    struct span *cells = csv->cells;
    size_t n = 0, capacity = csv->capacity; /* local, to stay in registers */
    *has_quotes = false;
    *is_whole = true;
    for (;;) {
        char *const start = at;
        if (*at == '"' && quotes) {
            *has_quotes = true;
            at = end_of_quoted(at, end);
            if (at == NULL) {
                *is_whole = false;
                break;
            }
        }
        while (!stops[(unsigned char)*at])
            at++;
        GROW(cells, n, capacity);
        cells[n++] = (struct span){start, (size_t)(at - start)};
        if (*at == '\n')
            break;
        at++;
    }
    csv->cells = cells;
    csv->n_cells = n;
    csv->capacity = capacity;
    return *is_whole && (at < end || csv->text.at_end) ? at : NULL;
}

static void unquote_cells(struct csv *csv)
{
    for (size_t c = 0; c < csv->n_cells; c++) {
        struct span *cell = &csv->cells[c];
        if (cell->n == 0 || cell->start[0] != '"')
            continue;
        const struct span quoted = span_trim(*cell);
        const char *end = quoted.start + quoted.n;
        if (quoted.n >= 2 && end_of_quoted(quoted.start, end) == end)
            *cell = unquoted(csv, quoted);
        else
            csv->malformed = true;
    }
}

static enum status too_long(const struct csv *csv, bool is_whole)
{
    const struct text *text = &csv->text;
    const char *start = text->buffer + text->begin;
    return fail(BAD_DATA, "%s:%llu: %s: %.*s", text->path, (unsigned long long)csv->line,
                is_whole ? "this line is longer than 64 MiB; expected one row per line"
                         : "a quote in this record is never closed",
                (int)size_min(80, strcspn(start, "\r\n")), start);
}

static enum status next_record(struct csv *csv, bool *got)
{
    struct text *text = &csv->text;
    bool has_quotes = false, is_whole = true;
    char *end = NULL;
    csv->line = text->line + 1;
    while (text->begin < text->end || !text->at_end) {
        end = scan(csv, &has_quotes, &is_whole);
        if (end != NULL)
            break;
        if (text->at_end || text->end - text->begin >= LONGEST_RECORD)
            return too_long(csv, is_whole);
        TRY(text_more(text));
    }
    *got = end != NULL;
    if (!*got)
        return OK;
    csv->record =
        (struct span){text->buffer + text->begin, (size_t)(end - text->buffer) - text->begin};
    text->begin = size_min((size_t)(end + 1 - text->buffer), text->end);
    text->line++;
    if (has_quotes)
        for (const char *c = csv->record.start; c < csv->record.start + csv->record.n; c++)
            text->line += *c == '\n';
    struct span *last = &csv->cells[csv->n_cells - 1];
    if (last->n > 0 && last->start[last->n - 1] == '\r') {
        last->n--;
        csv->record.n--;
    }
    csv->malformed = false;
    if (has_quotes)
        unquote_cells(csv);
    return OK;
}

enum status csv_next(struct csv *csv, bool *got)
{
    do {
        TRY(next_record(csv, got));
    } while (*got && csv->n_cells == 1 && span_trim(csv->cells[0]).n == 0);
    return OK;
}

enum status csv_read_header(struct csv *csv)
{
    bool got = false;
    TRY(csv_next(csv, &got));
    if (!got)
        return fail(BAD_DATA, "%s: the file has only blank lines", csv->text.path);
    csv->columns = NEW(char *, csv->n_cells);
    csv->n_columns = csv->n_cells;
    for (size_t c = 0; c < csv->n_cells; c++) {
        const struct span name = span_trim(csv->cells[c]);
        csv->columns[c] = memory_text("%.*s", (int)size_min(name.n, 1000), name.start);
    }
    return OK;
}

/* Parses a copy, since reading changes the buffer. The last record may be incomplete. */
void csv_sample(const struct csv *csv, size_t column, size_t most, struct names *cells)
{
    struct csv copy = *csv;
    const size_t n = csv->text.end - csv->text.begin;
    copy.cells = NULL;
    copy.n_cells = copy.capacity = 0;
    copy.kept = NULL;
    copy.kept_capacity = 0;
    copy.text.buffer = memory_resize(NULL, n + 1, 1);
    memcpy(copy.text.buffer, csv->text.buffer + csv->text.begin, n);
    copy.text.begin = 0;
    copy.text.end = n;
    if (!csv->text.at_end) /* without the last line */
        while (copy.text.end > 0 && copy.text.buffer[copy.text.end - 1] != '\n')
            copy.text.end--;
    copy.text.buffer[copy.text.end] = '\n';
    copy.text.at_end = true;
    for (bool got = true; cells->n < most;) {
        if (csv_next(&copy, &got) != OK || !got)
            break;
        const struct span cell =
            column < copy.n_cells ? span_trim(copy.cells[column]) : (struct span){0};
        if (!csv_cell_is_missing(cell))
            names_add(cells, cell.start, cell.n);
    }
    fail_clear(); /* a quote that is never closed is reported when its record is read */
    memory_free(copy.cells);
    memory_free(copy.kept);
    memory_free(copy.text.buffer);
}

size_t csv_column(const struct csv *csv, const char *name)
{
    const size_t n = strlen(name);
    for (size_t c = 0; c < csv->n_columns; c++)
        if (strcmp(csv->columns[c], name) == 0)
            return c;
    for (size_t c = 0; c < csv->n_columns; c++)
        if (span_is((struct span){csv->columns[c], strlen(csv->columns[c])}, name) ||
            (n > 1 && name[n - 1] == '*' && strncmp(csv->columns[c], name, n - 1) == 0))
            return c;
    /* A header in Latin-1, and a name from a terminal in UTF-8. */
    for (size_t c = 0; c < csv->n_columns; c++) {
        char *column = name_index_utf8(csv->columns[c], strlen(csv->columns[c]));
        const bool is_same = strcmp(column, name) == 0;
        memory_free(column);
        if (is_same)
            return c;
    }
    return SIZE_MAX;
}

enum { LIST_ROOM = 512 };

/* "; did you mean 'user_id'?", and the columns. */
static void describe_columns(const struct csv *csv, const char *name, char nearest[LIST_ROOM],
                             char list[LIST_ROOM])
{
    size_t n = 0;
    list[0] = nearest[0] = '\0';
    for (size_t c = 0; c < csv->n_columns && n < LIST_ROOM; c++)
        n += (size_t)snprintf(list + n, LIST_ROOM - n, "%s%s", c > 0 ? ", " : "",
                              csv->columns[c]);
    const char *found = config_nearest(name, (const char *const *)csv->columns, csv->n_columns);
    if (found != NULL)
        snprintf(nearest, LIST_ROOM, "; did you mean '%s'?", found);
}

enum status csv_no_column(const struct csv *csv, const char *name, const char *flag)
{
    char nearest[LIST_ROOM], list[LIST_ROOM];
    describe_columns(csv, name, nearest, list);
    return fail(BAD_USER, "%s: no column '%s' for --%s%s; the columns are: %s", csv->text.path,
                name, flag, nearest, list);
}

enum status csv_no_usual_column(const struct csv *csv, const char *name, const char *flag)
{
    char nearest[LIST_ROOM], list[LIST_ROOM];
    describe_columns(csv, name, nearest, list);
    return fail(BAD_USER,
                "%s: no column is called '%s' or like it%s; the first line was read as the "
                "header, with the columns: %s; add a header, or name columns with options such "
                "as --%s",
                csv->text.path, name, nearest, list, flag);
}
