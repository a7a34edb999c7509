/* Answer matrices: one row per student, one column per item. An empty cell is an item the
 * student never saw: no attempt. Attempts are in the order of the columns. */
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include "data_tools/q_matrix.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS = 1 << 8 };

/* Outcomes may be letters such as t and f, but f and m are not outcomes. What a letter means
 * shows only after all rows: by the rest of its column, and by whether its opposite occurs
 * anywhere. */
struct letters {
    unsigned seen;    /* bit k: letter k of outcome_letters */
    char foreign[41]; /* the first cell that is not an outcome */
};
struct matrix {
    struct import *import;
    struct csv csv;
    size_t n_columns;        /* of the first file; all must agree */
    size_t student_column;   /* SIZE_MAX: none */
    uint32_t *items;         /* of each column */
    struct letters *letters; /* of each column */
    uint64_t n_students[N_SPLITS];
};

static const char outcome_letters[] = "ftny"; /* opposites side by side */

static bool is_outcome(struct span cell)
{
    enum outcome outcome = UNKNOWN;
    return csv_cell_outcome(span_trim(cell), &outcome);
}

/* Numbers may be names of items: distinct integers, none negative, with 0 and 1 only in 0 1 2
 * ... or 1 2 3 ...; otherwise they are a student's scores. */
static bool are_names(const struct csv *csv)
{
    struct name_index seen = {0};
    bool counts_up = true, has_outcome = false, differ = true;
    int64_t first = 0, number = 0;
    for (size_t c = 0; c < csv->n_cells && differ; c++) {
        const struct span cell = span_trim(csv->cells[c]);
        differ = csv_cell_integer(cell, &number) && number >= 0 &&
                 name_index_add(&seen, cell.start, cell.n) == c;
        first = c == 0 ? number : first;
        counts_up &= (uint64_t)number - (uint64_t)first == c;
        has_outcome |= is_outcome(cell);
    }
    name_index_free(&seen);
    return differ && (counts_up || !has_outcome);
}

/* A header has a cell that is neither an outcome nor a number, or numbers that are names. */
static bool is_header(const struct csv *csv)
{
    bool all_outcomes = true;
    double number = 0;
    for (size_t c = 0; c < csv->n_cells; c++) {
        const struct span cell = span_trim(csv->cells[c]);
        if (!is_outcome(cell) && !csv_cell_number(cell, &number))
            return true;
        all_outcomes &= is_outcome(cell);
    }
    return !all_outcomes && are_names(csv);
}

static void note_letters(struct letters *letters, struct span cell)
{
    if (!is_outcome(cell) && letters->foreign[0] == '\0')
        snprintf(letters->foreign, sizeof letters->foreign, "%.*s",
                 (int)size_min(cell.n, sizeof letters->foreign - 1), cell.start);
    for (unsigned k = 0; cell.n == 1 && outcome_letters[k] != '\0'; k++)
        letters->seen |= (unsigned)(tolower((unsigned char)cell.start[0]) == outcome_letters[k])
                         << k;
}

/* After all rows: rejects columns whose letters are not outcomes. */
static enum status check_letters(const struct matrix *m)
{
    const struct import *import = m->import;
    unsigned anywhere = 0;
    for (size_t c = 0; c < m->n_columns; c++)
        anywhere |= m->letters[c].foreign[0] == '\0' ? m->letters[c].seen : 0;
    for (size_t c = 0; c < m->n_columns; c++)
        for (unsigned k = 0; outcome_letters[k] != '\0'; k++) {
            const struct letters *letters = &m->letters[c];
            const bool foreign = letters->foreign[0] != '\0';
            if (!(letters->seen >> k & 1) || (!foreign && anywhere >> (k ^ 1) & 1))
                continue;
            return fail(BAD_DATA,
                        "%s: column %zu ('%s') holds '%c' and %s%s%s, so its letters cannot be "
                        "read as outcomes; remove the column, or write outcomes as 1 and 0",
                        import->files[0].path, c + 1,
                        names_get(builder_items(import->builder), m->items[c]),
                        outcome_letters[k], foreign ? "'" : "no column holds '",
                        foreign ? letters->foreign : (char[]){outcome_letters[k ^ 1], '\0'},
                        "'");
        }
    return OK;
}

static enum status open_file(struct matrix *m, const char *path, bool *has_header)
{
    struct import *import = m->import;
    const char *student = import->flags->student;
    TRY(csv_open(&m->csv, path, import->delimiter, false));
    TRY(csv_read_header(&m->csv));
    *has_header = is_header(&m->csv);
    m->student_column = student[0] == '\0' ? SIZE_MAX : csv_column(&m->csv, student);
    if (student[0] != '\0' && (!*has_header || m->student_column == SIZE_MAX))
        return csv_no_column(&m->csv, student, "student");
    if (m->items == NULL) {
        m->n_columns = m->csv.n_columns;
        m->items = NEW(uint32_t, m->n_columns);
        m->letters = NEW(struct letters, m->n_columns);
        for (size_t c = 0; c < m->n_columns; c++) {
            char number[32];
            snprintf(number, sizeof number, "%zu", c + 1);
            const char *name = *has_header ? m->csv.columns[c] : number;
            if (c == m->student_column)
                continue;
            const size_t n_known = builder_items(import->builder)->n;
            m->items[c] = builder_item(import->builder, name, strlen(name));
            if (builder_items(import->builder)->n == n_known)
                return fail(BAD_DATA,
                            "%s: two columns are called '%s'; rename or remove one of them",
                            path, name);
        }
    }
    const struct names *items = builder_items(import->builder);
    for (size_t c = 0; *has_header && c < size_min(m->csv.n_columns, m->n_columns); c++)
        if (c != m->student_column &&
            strcmp(m->csv.columns[c], names_get(items, m->items[c])) != 0)
            return fail(BAD_DATA,
                        "%s: column %zu is '%s', but '%s' in %s; all files need the same "
                        "columns in the same order",
                        path, c + 1, m->csv.columns[c], names_get(items, m->items[c]),
                        import->files[0].path);
    return OK;
}

static enum status read_row(struct matrix *m, enum split split)
{
    struct import *import = m->import;
    const struct csv *csv = &m->csv;
    const uint64_t number = ++m->n_students[split];
    import->n_rows++;
    import_next_row(import);
    if (csv->n_cells != m->n_columns)
        return import_bad_row(import, csv->text.path, csv->line, csv->record,
                              "%zu cells, but the first line has %zu", csv->n_cells,
                              m->n_columns);
    enum outcome outcome = UNKNOWN;
    for (size_t c = 0; c < csv->n_cells; c++)
        if (c != m->student_column)
            note_letters(&m->letters[c], span_trim(csv->cells[c]));
    for (size_t c = 0; c < csv->n_cells; c++)
        if (c != m->student_column && !is_outcome(csv->cells[c]))
            return import_bad_row(import, csv->text.path, csv->line, csv->record,
                                  "column %zu is '%.*s', not 1, 0 or empty", c + 1,
                                  (int)size_min(csv->cells[c].n, 40), csv->cells[c].start);
    uint32_t s = 0;
    if (m->student_column == SIZE_MAX) {
        s = import_number_student(import, split, number);
    } else {
        const struct span name = span_trim(csv->cells[m->student_column]);
        s = builder_student(import->builder, name.start, name.n);
    }
    for (size_t c = 0; c < csv->n_cells; c++)
        if (c != m->student_column && csv_cell_outcome(span_trim(csv->cells[c]), &outcome) &&
            outcome != UNKNOWN)
            builder_add(import->builder, s, m->items[c], mark_make(outcome, split, false, true),
                        0);
    return OK;
}

static enum status read_files(struct matrix *m)
{
    struct import *import = m->import;
    for (size_t f = 0; f < import->n_files; f++) {
        const struct import_file *file = &import->files[f];
        bool has_header = false, got = false;
        TRY(open_file(m, file->path, &has_header));
        import_next_file(import, file->path);
        if (!has_header)
            TRY(read_row(m, file->split));
        for (;;) {
            TRY(csv_next(&m->csv, &got));
            if (!got)
                break;
            TRY(read_row(m, file->split));
            if (import->n_rows % PROGRESS == 0)
                import_show_progress(import, &m->csv.text);
        }
        import->n_bytes += m->csv.text.n_bytes;
        csv_close(&m->csv);
    }
    return check_letters(m);
}

enum status import_matrix(struct import *import)
{
    import->plan.keep_order = true; /* of the columns */
    TRY(import_begin(import));
    struct matrix matrix = {.import = import};
    enum status status = read_files(&matrix);
    csv_close(&matrix.csv);
    memory_free(matrix.items);
    memory_free(matrix.letters);
    const char *q_matrix = import->flags->q_matrix;
    return status == OK && q_matrix[0] != '\0' ? q_matrix_read(q_matrix, import->builder)
                                               : status;
}
