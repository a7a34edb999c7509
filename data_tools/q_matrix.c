/* One side of a Q-matrix has one entry per item. If both sides have, rows are items. A header
 * names the columns: the skills, if rows are items. Otherwise skills are called 1, 2, ...
 *
 *     item,fractions,angles        a first column that is not 0 and 1 names the items:
 *     q1,1,0                       their order does not matter then
 *     q2,1,1
 *
 * Without names, an item is the row or column of its number, counted from 0 if an item is
 * called 0. */
#include "data_tools/q_matrix.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PLACE = 1 << 30 };

struct matrix {
    struct names rows; /* the first column, if it names the items */
    bool has_names;
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
    const size_t skip = matrix->has_names;
    if (csv->n_cells != matrix->n_columns + skip)
        return fail(BAD_DATA, "%s:%llu: %zu cells, but the first line has %zu", csv->text.path,
                    (unsigned long long)csv->line, csv->n_cells, matrix->n_columns + skip);
    if (skip > 0) {
        const struct span name = span_trim(csv->cells[0]);
        names_add(&matrix->rows, name.start, name.n);
    }
    const size_t n = (matrix->n_rows + 1) * matrix->n_columns;
    if (n > matrix->capacity) {
        matrix->capacity = 2 * n;
        matrix->cells = memory_resize(matrix->cells, matrix->capacity, 1);
    }
    for (size_t c = skip; c < csv->n_cells; c++)
        if (!read_cell(csv->cells[c],
                       &matrix->cells[matrix->n_rows * matrix->n_columns + c - skip]))
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
    /* The first cells of the next records: names, unless all are 0 and 1. */
    struct names first = {0};
    enum { MOST = 10000 };
    csv_sample(csv, 0, MOST, &first);
    for (size_t r = 0; r < first.n && matrix->has_header && matrix->n_columns > 1; r++) {
        const char *cell = names_get(&first, r);
        uint8_t value = 0;
        matrix->has_names |= !read_cell((struct span){(char *)cell, strlen(cell)}, &value);
    }
    names_free(&first);
    matrix->n_columns -= matrix->has_names;
    if (!matrix->has_header)
        TRY(read_row(matrix, csv));
    for (;;) {
        TRY(csv_next(csv, &got));
        if (!got)
            return OK;
        TRY(read_row(matrix, csv));
    }
}

/* place[i] is the row or column of item i, below n_items. If items are numbered, from `first` on,
 * the matrix may have more rows. */
static enum status apply(const struct matrix *matrix, const struct csv *csv,
                         struct builder *builder, const uint32_t *place, size_t n_items,
                         bool is_numbered, uint32_t first)
{
    const size_t n_rows = matrix->n_rows, n_columns = matrix->n_columns;
    const bool rows_are_items =
        n_rows == n_items || (is_numbered && n_columns != n_items && n_rows > n_items);
    const bool columns_are_items = n_columns == n_items || (is_numbered && n_columns > n_items);
    if (!rows_are_items && !columns_are_items && is_numbered)
        return fail(
            BAD_DATA,
            "%s: the Q-matrix is %zu by %zu, but the numbers of the items go from %" PRIu32
            " to %zu; expected at least %zu rows (items by skills) or columns (skills by "
            "items)",
            csv->text.path, n_rows, n_columns, first, n_items + first - 1, n_items);
    if (!rows_are_items && !columns_are_items)
        return fail(BAD_DATA,
                    "%s: the Q-matrix is %zu by %zu, but the number of items is %zu; expected "
                    "%zu rows (items by skills) or %zu columns (skills by items)",
                    csv->text.path, n_rows, n_columns, n_items, n_items, n_items);
    const size_t n_skills = rows_are_items ? n_columns : n_rows;
    for (size_t k = 0; k < n_skills; k++) {
        char number[32];
        snprintf(number, sizeof number, "%zu", k + 1);
        const char *name =
            rows_are_items && matrix->has_header ? csv->columns[k + matrix->has_names] : number;
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

/* Rows with names: items that the matrix lacks have no skills. */
static enum status apply_named(const struct matrix *matrix, const struct csv *csv,
                               struct builder *builder)
{
    const size_t n_columns = matrix->n_columns, n_items = builder_items(builder)->n;
    bool *found = NEW(bool, n_items);
    size_t n_found = 0, n_doubled = 0;
    for (size_t r = 0; r < matrix->n_rows; r++) {
        const char *name = names_get(&matrix->rows, r);
        const uint32_t item = builder_find_item(builder, name, strlen(name));
        if (item == INDEX_NONE)
            continue;
        n_found += !found[item];
        n_doubled += found[item];
        found[item] = true;
        for (size_t k = 0; k < n_columns; k++) {
            const char *skill = csv->columns[k + 1];
            if (matrix->cells[r * n_columns + k])
                builder_item_skill(builder, item, builder_skill(builder, skill, strlen(skill)));
        }
    }
    memory_free(found);
    if (n_found == 0)
        return fail(BAD_USER,
                    "%s: none of the items in its first column (such as '%s') occurs in the "
                    "answers; expected their names there",
                    csv->text.path, matrix->n_rows > 0 ? names_get(&matrix->rows, 0) : "");
    log_say("%s: Q-matrix of %zu items by %zu skills; it has %zu of the %zu items",
            csv->text.path, matrix->n_rows, n_columns, n_found, n_items);
    if (n_doubled > 0)
        log_warn("%s: %zu row%s an item that an earlier row has; the item gets the skills of "
                 "all its rows",
                 csv->text.path, n_doubled, n_doubled == 1 ? " names" : "s name");
    return OK;
}

enum status q_matrix_read(const char *path, struct builder *builder)
{
    const size_t n_items = builder_items(builder)->n;
    uint32_t *place = NEW(uint32_t, n_items);
    for (size_t i = 0; i < n_items; i++)
        place[i] = (uint32_t)i;
    struct csv csv;
    struct matrix matrix = {0};
    enum status status = read_matrix(&csv, path, &matrix);
    if (status == OK)
        status = matrix.has_names ? apply_named(&matrix, &csv, builder)
                                  : apply(&matrix, &csv, builder, place, n_items, false, 0);
    csv_close(&csv);
    names_free(&matrix.rows);
    memory_free(matrix.cells);
    memory_free(place);
    return status;
}

enum status q_matrix_read_named(const char *path, struct builder *builder)
{
    const struct names *items = builder_items(builder);
    uint32_t *place = NEW(uint32_t, items->n);
    uint32_t first = 1, most = 0;
    const char *other = NULL; /* the first item that is not a number of a row */
    for (size_t i = 0; i < items->n; i++) {
        int64_t number = 0;
        const char *name = names_get(items, i);
        const bool is_number =
            csv_cell_integer((struct span){(char *)name, strlen(name)}, &number);
        if (other == NULL && (!is_number || number < 0 || number > MOST_PLACE))
            other = name;
        place[i] = other == NULL ? (uint32_t)number : 0;
        first = number == 0 ? 0 : first;
        most = place[i] > most ? place[i] : most;
    }
    struct csv csv;
    struct matrix matrix = {0};
    enum status status = read_matrix(&csv, path, &matrix);
    if (status == OK && matrix.has_names)
        status = apply_named(&matrix, &csv, builder);
    else if (status == OK && other != NULL)
        status =
            fail(BAD_DATA,
                 "%s: it has no column of items, and item '%s' is not the number of one of "
                 "its rows; add a first column with the items' names",
                 path, other);
    else if (status == OK) {
        for (size_t i = 0; i < items->n; i++)
            place[i] -= first;
        status = apply(&matrix, &csv, builder, place, most + 1 - first, true, first);
    }
    csv_close(&csv);
    names_free(&matrix.rows);
    memory_free(matrix.cells);
    memory_free(place);
    return status;
}
