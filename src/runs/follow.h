/* Answers attempts as they come, line by line. */
#ifndef COHORT_FOLLOW_H
#define COHORT_FOLLOW_H

#include "runs/inference.h"

struct follow;

/* How lines write times, as for `cohort import`. */
struct follow_times {
    int unit;           /* enum time_unit */
    const char *format; /* "": by the first time */
};

/* `inference` is open with a data set or by inference_open_items. Students beyond most_students
 * are refused; so are lines without a time, if the model uses times. */
struct follow *follow_create(const struct inference *inference, size_t most_students,
                             const struct follow_times *times);
void follow_destroy(struct follow *follow);

/* Lines have names, and the data set their pseudonyms by this key, which the caller keeps. */
struct pseudonym_key;
void follow_pseudonyms(struct follow *follow, const struct pseudonym_key *key);

/* Lines about items that the model was not trained on are answered with an error. */
void follow_refuse_unseen(struct follow *follow);

/* Tells the attempts of the students of the data set. */
CHECKED enum status follow_start_from_data(struct follow *follow);

/* Reads lines from file descriptor `in` to its end, and writes an answer to standard output for
 * each one, at the latest when no further line is waiting. Fails after the end if some lines were bad. */
CHECKED enum status follow_run(struct follow *follow, int in);

/* What was done so far. */
struct follow_counts {
    uint64_t n_lines, n_bad, n_unseen, n_outcomes;
    size_t n_students, n_bytes; /* n_bytes: of their states */
};
struct follow_counts follow_counts(const struct follow *follow);

#endif
