/* What the files of `cohort inspect` share. Nothing else includes this. */
#ifndef COHORT_INSPECT_INTERNAL_H
#define COHORT_INSPECT_INTERNAL_H

#include "base/base.h"
#include "base/comm.h"
#include <jansson.h>

struct inspect_flags {
    bool json, items, truth, errors;
    int64_t n_students;
};

/* Everything about one thing as JSON; the text is printed from it, so both agree. Rank 0 alone
 * calls these. */
CHECKED enum status inspect_dataset(const char *path, const struct inspect_flags *flags,
                                    json_t *object);
CHECKED enum status inspect_checkpoint(const char *path, json_t *object);
CHECKED enum status inspect_run(const char *path, json_t *object);

/* For a trained model and the data it was trained on: its tables with standard errors, and the
 * comparison with the truth. */
CHECKED enum status inspect_with_data(const char *path, const struct inspect_flags *flags,
                                      json_t *object);

struct inference;
json_t *inspect_tables(const struct inference *inference);

/* The text. */
void inspect_dataset_say(const json_t *object);
void inspect_run_say(const json_t *object);
void inspect_truth_say(const json_t *object);

/* Members of an object: a text ("" where there is none), a whole number, a number. */
const char *inspect_text(const json_t *object, const char *key);
long long inspect_integer(const json_t *object, const char *key);
double inspect_number(const json_t *object, const char *key);

/* The ending of a noun that n things have. */
static inline const char *inspect_plural(long long n)
{
    return n == 1 ? "" : "s";
}

#endif
