/* The parts of `cohort predict`. */
#ifndef COHORT_PREDICT_INTERNAL_H
#define COHORT_PREDICT_INTERNAL_H

#include "base/base.h"
#include "base/manual.h"
#include "data/dataset.h"
#include "data/origin.h"
#include "runs/inference.h"
#include "runs/output_table.h"

/* The options. */
struct predict_values {
    const char *data, *output, *time_format, *pseudonyms;
    int split, next, mastery, time_unit;
    bool follow, strict, interval;
    int64_t students;
};

/* Chances as of now at items or skills (--next), at skills now or after each attempt
 * (--mastery). */
enum { NEXT_NONE, NEXT_ITEMS, NEXT_SKILLS };
enum { MASTERY_NONE, MASTERY_NOW, MASTERY_EACH };

extern const char *const predict_splits[]; /* train, valid, test, all */
enum { PREDICT_ALL = N_SPLITS };

/* The chosen splits as a set of bits. */
static inline unsigned predict_set(const struct predict_values *values)
{
    return values->split == PREDICT_ALL ? (1u << N_SPLITS) - 1 : 1u << values->split;
}

/* Collective: one row per attempt; one row per student, for models of targets. */
CHECKED enum status predict_attempts(const struct inference *inference,
                                     const struct predict_values *values);
CHECKED enum status predict_targets(const struct inference *inference,
                                    const struct predict_values *values);

/* One row per student and item, per student and skill, or per attempt and skill. */
CHECKED enum status predict_standing(const struct inference *inference,
                                     const struct predict_values *values);

/* Answers lines of standard input with the model at `path`. */
CHECKED enum status predict_follow(const struct comm *comm, const char *path,
                                   const struct predict_values *values);

/* Sections of the page about --next, --mastery and --follow. */
void predict_more_help(struct manual *manual);

/* Names of students. HDF5 stores those of all students once, on rank 0; texts repeat those of
 * this rank. */
struct predict_students {
    struct names names;
    size_t first; /* student of the data set that is first among the names */
};
/* Not collective; caller frees the names. */
CHECKED enum status predict_read_students(const struct inference *inference, const char *output,
                                          struct predict_students *students);
/* Fills the cell of a student of the data set. */
void predict_student_cell(const struct predict_students *students, size_t student,
                          struct output_cell *cell);

/* Fill cells of attempt t of the shard: its item, which the model may not know; its time, as the
 * source wrote it (HDF5 has the data set's whole numbers); its outcome. */
void predict_item_cell(const struct inference *inference, uint64_t t, struct output_cell *cell);
void predict_time_cell(const struct inference *inference, const struct origin *origin,
                       uint64_t t, struct output_cell *cell);
void predict_outcome_cell(const struct inference *inference, uint64_t t,
                          struct output_cell *cell);

/* Collective: fails if no rank has a row. */
CHECKED enum status predict_check_rows(const struct inference *inference,
                                       const struct predict_values *values, size_t n_rows);

/* Collective: says how many known outcomes of the data set predictions do not use. */
void predict_note_withheld(const struct inference *inference);

/* Collective: writes a table (its columns, rows and arg are set, and names other than those of
 * students) and says how many rows there are. The digests of checkpoint and data are added. */
enum { PREDICT_MOST_NAMES = 4 };
CHECKED enum status predict_write(const struct inference *inference, const char *output,
                                  const struct predict_students *students,
                                  const struct output_table *table);

#endif
