/* Time-major order. Students of a block are sorted by length, so in step t the active ones are
 * a prefix of the block:
 *
 *     student    step 0  1  2  3  4
 *        0            x  x  x  x  x
 *        1            x  x  x  x
 *        2            x  x
 *     active[t]       3  3  2  2  1
 *
 * One matrix product advances all of them. Its shape depends only on the block: not on the
 * number of ranks, and not on padding. */
#include "data/sequence.h"
#include "base/memory.h"
#include <string.h>

/* Merge sort. */
void sequence_sort(uint32_t *students, size_t n, const uint32_t *length)
{
    bool sorted = true;
    for (size_t i = 0; i + 1 < n && sorted; i++)
        sorted = length[students[i]] >= length[students[i + 1]];
    if (sorted)
        return;
    uint32_t *other = NEW_SCRATCH(uint32_t, n);
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t start = 0; start < n; start += 2 * run) {
            const size_t middle = size_min(start + run, n), end = size_min(start + 2 * run, n);
            for (size_t a = start, b = middle, to = start; to < end; to++)
                other[to] =
                    b >= end || (a < middle && length[students[a]] >= length[students[b]])
                        ? students[a++]
                        : students[b++];
        }
        memcpy(students, other, n * sizeof *students);
    }
    memory_free(other);
}

void sequence_arrange(struct sequence *sequence, const uint32_t *students, size_t n,
                      const uint32_t *length)
{
    if (n > sequence->capacity) {
        sequence->capacity = n;
        sequence->student = memory_resize(sequence->student, n, sizeof *sequence->student);
    }
    sequence->n = 0;
    for (size_t i = 0; i < n; i++)
        if (length[students[i]] > 0)
            sequence->student[sequence->n++] = students[i];
    sequence_sort(sequence->student, sequence->n, length);
    sequence->n_steps = sequence->n > 0 ? length[sequence->student[0]] : 0;
    if (sequence->n_steps + 1 > sequence->step_capacity) {
        sequence->step_capacity = 2 * sequence->n_steps + 1;
        sequence->active =
            memory_resize(sequence->active, sequence->step_capacity, sizeof *sequence->active);
        sequence->offset =
            memory_resize(sequence->offset, sequence->step_capacity, sizeof *sequence->offset);
    }
    size_t active = sequence->n;
    sequence->n_rows = 0;
    for (size_t t = 0; t < sequence->n_steps; t++) {
        while (length[sequence->student[active - 1]] <= t)
            active--;
        sequence->active[t] = active;
        sequence->offset[t] = sequence->n_rows;
        sequence->n_rows += active;
    }
    if (sequence->step_capacity > 0) {
        sequence->active[sequence->n_steps] = 0;
        sequence->offset[sequence->n_steps] = sequence->n_rows;
    }
}

void sequence_free(struct sequence *sequence)
{
    memory_free(sequence->student);
    memory_free(sequence->active);
    memory_free(sequence->offset);
    *sequence = (struct sequence){0};
}
