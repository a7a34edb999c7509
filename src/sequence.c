/* Time-major order. In step t the active students are a prefix of the block, so one matrix
 * product moves all of them, and its shape depends on the block alone: not on the number of
 * ranks, and not on padding. */
#include "sequence.h"
#include "memory.h"

void sequence_arrange(struct sequence *sequence, const uint32_t *students, size_t n,
                      const uint32_t *length)
{
    if (n > sequence->capacity) {
        sequence->capacity = n;
        sequence->student = memory_resize(sequence->student, n, sizeof *sequence->student);
    }
    sequence->n = 0;
    for (size_t i = 0; i < n; i++) { /* insertion: blocks are small, and often nearly sorted */
        if (length[students[i]] == 0)
            continue;
        size_t at = sequence->n++;
        for (; at > 0 && length[sequence->student[at - 1]] < length[students[i]]; at--)
            sequence->student[at] = sequence->student[at - 1];
        sequence->student[at] = students[i];
    }
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
