/* A block of students meets few of the items. Its statistics of their rows are summed here in
 * floating point, in one order, and turned into fixed point once a block, so that neither cost
 * nor memory grows with the number of items. */
#include "learn/row_sums.h"
#include "base/memory.h"
#include <string.h>

void touched_create(struct touched *touched, const struct panel *panel)
{
    *touched = (struct touched){.row_size = panel->stride};
    touched->place = NEW(int32_t, panel->n_rows);
    memset(touched->place, 0xff, panel->n_rows * sizeof *touched->place);
}

void touched_free(struct touched *touched)
{
    memory_free(touched->row);
    memory_free(touched->place);
    memory_free(touched->sum);
    *touched = (struct touched){0};
}

real *touched_at(struct touched *touched, size_t row)
{
    if (touched->place[row] < 0) {
        if (touched->n == touched->capacity) {
            touched->capacity = touched->capacity ? 2 * touched->capacity : 256;
            touched->row = memory_resize(touched->row, touched->capacity, sizeof *touched->row);
            touched->sum = memory_resize(touched->sum, touched->capacity * touched->row_size,
                                         sizeof *touched->sum);
        }
        memset(touched->sum + touched->n * touched->row_size, 0,
               touched->row_size * sizeof *touched->sum);
        touched->row[touched->n] = (uint32_t)row;
        touched->place[row] = (int32_t)touched->n++;
    }
    return touched->sum + (size_t)touched->place[row] * touched->row_size;
}

void touched_flush(struct touched *touched, const struct panel *panel, struct tally *tally)
{
    for (size_t k = 0; k < touched->n; k++) {
        tally_add(tally, panel->offset + touched->row[k] * panel->stride,
                  touched->sum + k * touched->row_size, touched->row_size);
        touched->place[touched->row[k]] = -1;
    }
    touched->n = 0;
}
