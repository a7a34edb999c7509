/* Tables of what a model has learned. The same table is printed, or written as CSV or JSON. */
#include "base/table.h"
#include "base/memory.h"
#include <string.h>

void table_create(struct table *table, const char *name, const char *row, size_t n_rows,
                  const char *columns)
{
    *table = (struct table){.name = name, .row = row, .caption = "", .n_rows = n_rows};
    for (const char *word = columns; *word != '\0'; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        names_add(&table->columns, word, length);
        word += length;
    }
    table->n_columns = table->columns.n;
    table->values = NEW(double, n_rows * table->n_columns);
}

void table_free(struct table *table)
{
    names_free(&table->row_names);
    names_free(&table->columns);
    memory_free(table->values);
    *table = (struct table){0};
}

size_t table_column(const struct table *table, const char *name)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (strcmp(names_get(&table->columns, c), name) == 0)
            return c;
    return SIZE_MAX;
}

const char *table_row_name(const struct table *table, const struct names *names, size_t r,
                           char buffer[32])
{
    if (table->row_names.n == table->n_rows)
        return names_get(&table->row_names, r);
    if (names != NULL && names->n == table->n_rows)
        return names_get(names, r);
    snprintf(buffer, 32, "%zu", r + 1);
    return buffer;
}
