/* One side of a Q-matrix has one entry per item. If both sides have, rows are items. A header
 * names the columns: the skills, if rows are items. Otherwise skills are called 1, 2, ... */
#include "data_tools/q_matrix.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include <stdio.h>
#include <string.h>

struct matrix {
    size_t n_rows, n_columns, capacity;
    uint8_t *cells; /* n_rows x n_columns */
    bool has_header;
};

static bool read_cell(struct span cell, uint8_t *value)
{
    enum outcome outcome = UNKNOWN;
    if (!csv_cell_outcome(span_trim(cell), &outcome) || outcome == UNKNOWN)
        return false;
    *value = outcome == CORRECT;
    return true;
}

static enum status read_row(struct matrix *matrix, const struct csv *csv)
{
    if (csv->n_cells != matrix->n_columns)
        return fail(BAD_DATA, "%s:%llu: %zu cells, but the first line has %zu", csv->text.path,
                    (unsigned long long)csv->line, csv->n_cells, matrix->n_columns);
    const size_t n = (matrix->n_rows + 1) * matrix->n_columns;
    if (n > matrix->capacity) {
        matrix->capacity = 2 * n;
        matrix->cells = memory_resize(matrix->cells, matrix->capacity, 1);
    }
    for (size_t c = 0; c < csv->n_cells; c++)
        if (!read_cell(csv->cells[c], &matrix->cells[matrix->n_rows * matrix->n_columns + c]))
            return fail(BAD_DATA,
                        "%s:%llu: '%.*s' is not a cell of a Q-matrix; expected 0 or 1",
                        csv->text.path, (unsigned long long)csv->line,
                        (int)size_min(csv->cells[c].n, 40), csv->cells[c].start);
    matrix->n_rows++;
    return OK;
}

static enum status read_matrix(struct csv *csv, const char *path, struct matrix *matrix)
{
    bool got = false;
    TRY(csv_open(csv, path, 0, false));
    TRY(csv_read_header(csv));
    matrix->n_columns = csv->n_cells;
    for (size_t c = 0; c < csv->n_cells; c++) {
        uint8_t value = 0;
        matrix->has_header |= !read_cell(csv->cells[c], &value);
    }
    if (!matrix->has_header)
        TRY(read_row(matrix, csv));
    for (;;) {
        TRY(csv_next(csv, &got));
        if (!got)
            return OK;
        TRY(read_row(matrix, csv));
    }
}

static enum status apply(const struct matrix *matrix, const struct csv *csv,
                         struct builder *builder, const uint32_t *place, size_t n_items,
                         bool exact)
{
    const size_t n_rows = matrix->n_rows, n_columns = matrix->n_columns;
    const bool rows_are_items =
        n_rows == n_items || (!exact && n_columns != n_items && n_rows > n_items);
    if (!rows_are_items && n_columns != n_items && (exact || n_columns < n_items))
        return fail(BAD_DATA,
                    "%s: the Q-matrix is %zu by %zu, but the number of items is %zu; expected "
                    "%zu rows (items by skills) or %zu columns (skills by items)",
                    csv->text.path, n_rows, n_columns, n_items, n_items, n_items);
    const size_t n_skills = rows_are_items ? n_columns : n_rows;
    for (size_t k = 0; k < n_skills; k++) {
        char number[32];
        snprintf(number, sizeof number, "%zu", k + 1);
        const char *name = rows_are_items && matrix->has_header ? csv->columns[k] : number;
        const uint32_t skill = builder_skill(builder, name, strlen(name));
        for (size_t i = 0; i < builder_items(builder)->n; i++)
            if (rows_are_items ? matrix->cells[place[i] * n_columns + k]
                               : matrix->cells[k * n_columns + place[i]])
                builder_item_skill(builder, (uint32_t)i, skill);
    }
    log_say("%s: Q-matrix of %zu items by %zu skills", csv->text.path,
            rows_are_items ? n_rows : n_columns, n_skills);
    return OK;
}

enum status q_matrix_read(const char *path, struct builder *builder, const uint32_t *place,
                          size_t n_items, bool exact)
{
    struct csv csv;
    struct matrix matrix = {0};
    enum status status = read_matrix(&csv, path, &matrix);
    if (status == OK)
        status = apply(&matrix, &csv, builder, place, n_items, exact);
    csv_close(&csv);
    memory_free(matrix.cells);
    return status;
}
