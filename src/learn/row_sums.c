/* A block of students meets few of the items. The gradients of their rows are summed here in
 * floating point, in one order, and become fixed point once per block, so that neither cost nor
 * memory grows with the number of items. */
#include "learn/row_sums.h"
#include "base/memory.h"
#include <string.h>

void row_sums_create(struct row_sums *row_sums, const struct panel *panel)
{
    *row_sums = (struct row_sums){.row_size = panel->stride};
    row_sums->place = NEW(int32_t, panel->n_rows);
    memset(row_sums->place, 0xff, panel->n_rows * sizeof *row_sums->place);
}

void row_sums_free(struct row_sums *row_sums)
{
    memory_free(row_sums->row);
    memory_free(row_sums->place);
    memory_free(row_sums->sum);
    *row_sums = (struct row_sums){0};
}

real *row_sums_at(struct row_sums *row_sums, size_t row)
{
    if (row_sums->place[row] < 0) {
        if (row_sums->n == row_sums->capacity) {
            row_sums->capacity = row_sums->capacity ? 2 * row_sums->capacity : 256;
            row_sums->row =
                memory_resize(row_sums->row, row_sums->capacity, sizeof *row_sums->row);
            row_sums->sum = memory_resize(
                row_sums->sum, row_sums->capacity * row_sums->row_size, sizeof *row_sums->sum);
        }
        memset(row_sums->sum + row_sums->n * row_sums->row_size, 0,
               row_sums->row_size * sizeof *row_sums->sum);
        row_sums->row[row_sums->n] = (uint32_t)row;
        row_sums->place[row] = (int32_t)row_sums->n++;
    }
    return row_sums->sum + (size_t)row_sums->place[row] * row_sums->row_size;
}

void row_sums_flush(struct row_sums *row_sums, const struct panel *panel, struct tally *tally)
{
    for (size_t k = 0; k < row_sums->n; k++) {
        tally_add(tally, panel->offset + row_sums->row[k] * panel->stride,
                  row_sums->sum + k * row_sums->row_size, row_sums->row_size);
        row_sums->place[row_sums->row[k]] = -1;
    }
    row_sums->n = 0;
}
