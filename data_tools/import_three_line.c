/* Three lines per student, as in much of the literature on knowledge tracing:
 *
 *     3           number of attempts
 *     7,12,7      items
 *     0,1,1       outcomes
 *
 * Lines may end in a comma. Items are numbers, starting at 1 in all files seen so far; where 0
 * occurs, it is the first. With a Q-matrix the number is the place in it. */
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include "data_tools/q_matrix.h"
#include <string.h>

enum { MOST_PLACE = 1 << 30 };

struct triple {
    struct text text;
    char *lines; /* a copy of the first two: a line is valid only until the next */
    size_t capacity;
    struct span items, outcomes;
    int64_t n;
    uint64_t line; /* of the first */
};

static size_t count_pieces(struct span list)
{
    size_t n = 0;
    struct span piece;
    while (span_next(&list, ',', &piece))
        n += span_trim(piece).n > 0 || list.n > 0;
    return n;
}

/* *got is false at the end of the file; sets *is_bad if the three lines do not match. */
static enum status read_triple(struct triple *triple, struct import *import, bool *got,
                               bool *is_bad)
{
    struct text *text = &triple->text;
    struct span line = {0};
    do {
        TRY(text_line(text, &line, got));
    } while (*got && span_trim(line).n == 0);
    if (!*got)
        return OK;
    triple->line = text->line;
    struct span first = span_trim(line);
    first.n -= first.start[first.n - 1] == ',';
    *is_bad = !csv_cell_integer(first, &triple->n) || triple->n < 0;
    /* Where the next student begins is unknown, so this cannot be skipped. */
    if (*is_bad)
        return fail(BAD_DATA,
                    "%s:%llu: '%.*s' is not a number of attempts; expected three lines per "
                    "student: the number of attempts, their items, their outcomes",
                    text->path, (unsigned long long)text->line, (int)size_min(line.n, 80),
                    line.start);
    bool got_items = false, got_outcomes = false;
    TRY(text_line(text, &line, &got_items));
    if (line.n >= triple->capacity) {
        triple->capacity = 2 * line.n + 64;
        triple->lines = memory_resize(triple->lines, triple->capacity, 1);
    }
    if (got_items) {
        memcpy(triple->lines, line.start, line.n);
        triple->items = (struct span){triple->lines, line.n};
        TRY(text_line(text, &triple->outcomes, &got_outcomes));
    }
    if (!got_outcomes)
        return fail(BAD_DATA,
                    "%s:%llu: the last student is incomplete; expected three lines per "
                    "student: the number "
                    "of attempts, their items, their outcomes",
                    text->path, (unsigned long long)text->line);
    const size_t n_items = count_pieces(triple->items);
    const size_t n_outcomes = count_pieces(triple->outcomes);
    *is_bad = n_items != (size_t)triple->n || n_outcomes != (size_t)triple->n;
    return *is_bad ? import_bad_row(
                         import, text->path, triple->line, first,
                         "expected %lld items and outcomes, found %zu items and %zu outcomes",
                         (long long)triple->n, n_items, n_outcomes)
                   : OK;
}

/* Checks every piece before the student is added. */
static enum status check_triple(const struct triple *triple, struct import *import,
                                bool *is_bad)
{
    struct span items = triple->items, outcomes = triple->outcomes, item, cell;
    for (int64_t t = 0; t < triple->n; t++) {
        enum outcome outcome = UNKNOWN;
        int64_t number = 0;
        span_next(&items, ',', &item);
        span_next(&outcomes, ',', &cell);
        item = span_trim(item);
        cell = span_trim(cell);
        *is_bad = !csv_cell_integer(item, &number) || number < 0;
        if (*is_bad)
            return import_bad_row(import, triple->text.path, triple->line + 1, item,
                                  "item %lld of the student is not a number", (long long)t + 1);
        *is_bad = !csv_cell_outcome(cell, &outcome);
        if (*is_bad)
            return import_bad_row(import, triple->text.path, triple->line + 2, cell,
                                  "outcome %lld of the student is not 1 or 0",
                                  (long long)t + 1);
    }
    return OK;
}

static void add_triple(const struct triple *triple, struct import *import, uint32_t student,
                       enum split split)
{
    struct span items = triple->items, outcomes = triple->outcomes, item, cell;
    for (int64_t t = 0; t < triple->n; t++) {
        enum outcome outcome = UNKNOWN;
        span_next(&items, ',', &item);
        span_next(&outcomes, ',', &cell);
        item = span_trim(item);
        csv_cell_outcome(span_trim(cell), &outcome);
        builder_add(import->builder, student, builder_item(import->builder, item.start, item.n),
                    mark_make(outcome, split, false, true), 0);
    }
}

static enum status read_file(struct import *import, struct triple *triple,
                             const struct import_file *file, uint64_t *n_students)
{
    TRY(text_open(&triple->text, file->path));
    for (;;) {
        bool got = false, is_bad = false;
        TRY(read_triple(triple, import, &got, &is_bad));
        if (!got)
            break;
        if (!is_bad)
            TRY(check_triple(triple, import, &is_bad));
        ++*n_students;
        import->n_rows += 3;
        if (!is_bad)
            add_triple(triple, import, import_number_student(import, file->split, *n_students),
                       file->split);
    }
    import->n_bytes += triple->text.n_bytes;
    return OK;
}

static enum status read_q_matrix(struct import *import)
{
    const struct names *items = builder_items(import->builder);
    uint32_t *place = NEW(uint32_t, items->n);
    uint32_t first = 1, most = 0;
    enum status status = OK;
    for (size_t i = 0; i < items->n && status == OK; i++) {
        int64_t number = 0;
        const char *name = names_get(items, i);
        csv_cell_integer((struct span){(char *)name, strlen(name)}, &number);
        if (number > MOST_PLACE)
            status = fail(BAD_DATA,
                          "%s: item %s is too large for a row number of the Q-matrix; expected "
                          "items numbered from 1, like its rows",
                          import->files[0].path, name);
        place[i] = (uint32_t)number;
        first = number == 0 ? 0 : first;
        most = place[i] > most ? place[i] : most;
    }
    for (size_t i = 0; i < items->n; i++)
        place[i] -= first;
    if (status == OK)
        status = q_matrix_read(import->flags->q_matrix, import->builder, place,
                               most + 1 - first, false);
    memory_free(place);
    return status;
}

enum status import_three_line(struct import *import)
{
    TRY(import_begin(import));
    uint64_t n_students[N_SPLITS] = {0};
    enum status status = OK;
    for (size_t f = 0; f < import->n_files && status == OK; f++) {
        struct triple triple = {0};
        const struct import_file *file = &import->files[f];
        status = read_file(import, &triple, file, &n_students[file->split]);
        text_close(&triple.text);
        memory_free(triple.lines);
    }
    if (status == OK && import->flags->q_matrix[0] != '\0')
        status = read_q_matrix(import);
    return status;
}
