/* Answers attempts as they come, line by line. */
#ifndef COHORT_FOLLOW_H
#define COHORT_FOLLOW_H

#include "runs/inference.h"

struct follow;

/* `inference` is open with a data set or by inference_open_items. Students beyond most_students
 * are refused; with `needs_time`, so are lines without a time. */
struct follow *follow_create(const struct inference *inference, size_t most_students,
                             bool needs_time);
void follow_destroy(struct follow *follow);

/* Tells the attempts of the students of the data set. */
CHECKED enum status follow_start_from_data(struct follow *follow);

/* Reads lines from file descriptor `in` to its end, and writes an answer to `out` for each one,
 * at the latest when no further line is waiting. Fails after the end if some lines were bad. */
CHECKED enum status follow_run(struct follow *follow, int in, int out);

/* What was done so far. */
struct follow_counts {
    uint64_t n_lines, n_bad, n_unseen;
    size_t n_students, n_bytes; /* n_bytes: of their states */
};
struct follow_counts follow_counts(const struct follow *follow);

#endif
