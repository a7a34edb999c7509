/* Answer matrices: a row for each student, a column for each item. An empty cell is an item the
 * student never saw, so it makes no attempt. Attempts are in the order of the columns. */
#include "cell.h"
#include "csv.h"
#include "fail.h"
#include "import.h"
#include "memory.h"
#include "q_matrix.h"
#include <stdio.h>
#include <string.h>

struct matrix {
    struct import *import;
    struct csv csv;
    size_t n_columns;      /* of the first file; all must agree */
    size_t student_column; /* SIZE_MAX: none */
    uint32_t *items;       /* of each column */
    uint64_t n_students[N_SPLITS];
};

static bool is_header(const struct csv *csv)
{
    enum outcome outcome = UNKNOWN;
    for (size_t c = 0; c < csv->n_cells; c++)
        if (!cell_outcome(span_trim(csv->cells[c]), &outcome))
            return true;
    return false;
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
        for (size_t c = 0; c < m->n_columns; c++) {
            char number[32];
            snprintf(number, sizeof number, "%zu", c + 1);
            const char *name = *has_header ? m->csv.columns[c] : number;
            if (c == m->student_column)
                continue;
            const size_t n_known = builder_items(import->builder)->n;
            m->items[c] = builder_item(import->builder, name, strlen(name));
            if (builder_items(import->builder)->n == n_known)
                return fail(BAD_DATA, "%s: two columns are called '%s'", path, name);
        }
    }
    const struct names *items = builder_items(import->builder);
    for (size_t c = 0; *has_header && c < size_min(m->csv.n_columns, m->n_columns); c++)
        if (c != m->student_column &&
            strcmp(m->csv.columns[c], names_get(items, m->items[c])) != 0)
            return fail(BAD_DATA, "%s: column %zu is '%s', but '%s' in %s", path, c + 1,
                        m->csv.columns[c], names_get(items, m->items[c]),
                        import->files[0].path);
    return OK;
}

static enum status read_row(struct matrix *m, enum split split)
{
    struct import *import = m->import;
    const struct csv *csv = &m->csv;
    const uint64_t number = ++m->n_students[split];
    import->n_rows++;
    if (csv->n_cells != m->n_columns)
        return import_bad_row(import, csv->text.path, csv->line, csv->record,
                              "%zu cells where the first line has %zu", csv->n_cells,
                              m->n_columns);
    enum outcome outcome = UNKNOWN;
    for (size_t c = 0; c < csv->n_cells; c++)
        if (c != m->student_column && !cell_outcome(span_trim(csv->cells[c]), &outcome))
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
        if (c != m->student_column && cell_outcome(span_trim(csv->cells[c]), &outcome) &&
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
        if (!has_header)
            TRY(read_row(m, file->split));
        for (;;) {
            TRY(csv_next(&m->csv, &got));
            if (!got)
                break;
            TRY(read_row(m, file->split));
        }
        import->n_bytes += m->csv.text.n_bytes;
        csv_close(&m->csv);
    }
    return OK;
}

enum status import_matrix(struct import *import)
{
    import->plan.keep_order = true; /* of the columns */
    TRY(import_begin(import));
    struct matrix matrix = {.import = import};
    enum status status = read_files(&matrix);
    csv_close(&matrix.csv);
    memory_free(matrix.items);
    const char *q_matrix = import->flags->q_matrix;
    if (status != OK || q_matrix[0] == '\0')
        return status;
    const size_t n_items = builder_items(import->builder)->n;
    uint32_t *place = NEW(uint32_t, n_items);
    for (size_t i = 0; i < n_items; i++)
        place[i] = (uint32_t)i;
    status = q_matrix_read(q_matrix, import->builder, place, n_items, true);
    memory_free(place);
    return status;
}
