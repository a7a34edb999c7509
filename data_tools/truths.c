/* Tables of the true parameters of simulated answers. Published tables have items as rows or as
 * columns, and difficulties with either sign. They are stored with one row per item, skill or
 * student, in the order of the data set. */
#include "data_tools/truths.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/csv.h"
#include <stdlib.h>
#include <string.h>

struct numbers {
    size_t n_rows, n_columns, capacity;
    double *values;
};

static bool read_number(struct span cell, double *value)
{
    char text[64];
    const struct span trimmed = span_trim(cell);
    if (trimmed.n == 0 || trimmed.n >= sizeof text)
        return false;
    memcpy(text, trimmed.start, trimmed.n);
    text[trimmed.n] = '\0';
    char *end = NULL;
    *value = strtod(text, &end);
    return *end == '\0';
}

static enum status add_row(struct numbers *numbers, const struct csv *csv)
{
    double value = 0;
    if (numbers->n_rows == 0 && csv->n_cells > 0 && !read_number(csv->cells[0], &value) &&
        numbers->n_columns == 0) {
        numbers->n_columns = csv->n_cells; /* a header */
        return OK;
    }
    if (numbers->n_columns == 0)
        numbers->n_columns = csv->n_cells;
    if (csv->n_cells != numbers->n_columns)
        return fail(BAD_DATA, "%s:%llu: %zu cells, but the first line has %zu", csv->text.path,
                    (unsigned long long)csv->line, csv->n_cells, numbers->n_columns);
    const size_t n = (numbers->n_rows + 1) * numbers->n_columns;
    if (n > numbers->capacity) {
        numbers->capacity = 2 * n;
        numbers->values = memory_resize(numbers->values, numbers->capacity, sizeof(double));
    }
    for (size_t c = 0; c < csv->n_cells; c++)
        if (!read_number(csv->cells[c],
                         &numbers->values[numbers->n_rows * numbers->n_columns + c]))
            return fail(BAD_DATA, "%s:%llu: '%.*s' is not a number", csv->text.path,
                        (unsigned long long)csv->line, (int)size_min(csv->cells[c].n, 40),
                        csv->cells[c].start);
    numbers->n_rows++;
    return OK;
}

static enum status read_numbers(struct numbers *numbers, const char *path)
{
    struct csv csv;
    bool got = true;
    enum status status = csv_open(&csv, path, 0, false);
    while (status == OK) {
        status = csv_next(&csv, &got);
        if (status != OK || !got)
            break;
        status = add_row(numbers, &csv);
    }
    csv_close(&csv);
    if (status == OK && numbers->n_rows == 0)
        status = fail(BAD_DATA, "%s: no numbers in this file", path);
    return status;
}

static void transpose(struct numbers *numbers)
{
    double *turned = NEW(double, numbers->n_rows * numbers->n_columns);
    for (size_t r = 0; r < numbers->n_rows; r++)
        for (size_t c = 0; c < numbers->n_columns; c++)
            turned[c * numbers->n_rows + r] = numbers->values[r * numbers->n_columns + c];
    memory_free(numbers->values);
    const size_t n_rows = numbers->n_rows;
    *numbers = (struct numbers){.n_rows = numbers->n_columns,
                                .n_columns = n_rows,
                                .capacity = n_rows * numbers->n_columns,
                                .values = turned};
}

static enum status arrange(struct numbers *numbers, const char *path,
                           const struct builder_result *result, uint64_t n_students)
{
    const struct dataset *head = &result->content.head;
    const size_t sizes[] = {head->n_items, n_students, head->n_skills};
    enum { ITEMS, STUDENTS, SKILLS };
    for (int what = ITEMS; what <= SKILLS; what++) {
        if (numbers->n_rows != sizes[what] && numbers->n_columns == sizes[what])
            transpose(numbers);
        if (numbers->n_rows != sizes[what])
            continue;
        if (what == STUDENTS) {
            double *rows =
                builder_rows_of_students(result, numbers->values, numbers->n_columns);
            memory_free(numbers->values);
            numbers->values = rows;
            numbers->n_rows = head->n_students;
        }
        return OK;
    }
    return fail(BAD_DATA,
                "%s: the table is %zu by %zu; expected one row (or column) per item (%zu), "
                "student (%llu) or skill (%zu)",
                path, numbers->n_rows, numbers->n_columns, head->n_items,
                (unsigned long long)n_students, head->n_skills);
}

static enum status read_one(struct truths *truths, const char *text, size_t length,
                            const struct builder_result *result, uint64_t n_rows)
{
    const char *equals = memchr(text, '=', length);
    if (equals == NULL || equals == text || memchr(text, '/', (size_t)(equals - text)) != NULL)
        return fail(BAD_USAGE,
                    "import: --truth %.*s: expected NAME=FILE, as in a=disc_true.csv",
                    (int)length, text);
    if (truths->n == TRUTHS_MOST)
        return fail(BAD_USAGE, "import: --truth takes at most %d tables", TRUTHS_MOST);
    const bool negative = equals[1] == '-';
    const char *start = equals + 1 + negative;
    char *path = memory_text("%.*s", (int)(text + length - start), start);
    struct numbers numbers = {0};
    enum status status = read_numbers(&numbers, path);
    if (status == OK)
        status = arrange(&numbers, path, result, n_rows);
    for (size_t i = 0; status == OK && negative && i < numbers.n_rows * numbers.n_columns; i++)
        numbers.values[i] = -numbers.values[i];
    truths->list[truths->n++] =
        (struct truth){.name = memory_text("%.*s", (int)(equals - text), text),
                       .rank = numbers.n_columns == 1 ? 1 : 2,
                       .shape = {numbers.n_rows, numbers.n_columns},
                       .values = numbers.values};
    memory_free(path);
    return status;
}

enum status truths_read(struct truths *truths, const char *text,
                        const struct builder_result *result, uint64_t n_rows)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, ", ");
        if (length > 0)
            TRY(read_one(truths, text, length, result, n_rows));
        text += length;
        text += strspn(text, ", ");
    }
    return OK;
}

void truths_free(struct truths *truths)
{
    for (size_t i = 0; i < truths->n; i++) {
        memory_free((void *)(uintptr_t)truths->list[i].name);
        memory_free((void *)(uintptr_t)truths->list[i].values);
    }
    truths->n = 0;
}
