/* Classes with a known truth. */
#ifndef COHORT_SIMULATE_H
#define COHORT_SIMULATE_H

#include "base/base.h"
#include "base/rng.h"
#include "data/builder.h"
#include "data/dataset.h"
#include "data_tools/subcommand.h"

/* What the user asked for: the flags of `cohort simulate`; 0 or "" means the kind's own
 * standard. */
struct simulate_flags {
    int64_t n_students, n_items, n_skills, n_attempts, seed;
    int model;
    double correlation, missing, forget;
    const char *split, *output;
    bool shuffle_outcomes;
};

/* A table of the truth, which the simulation owns. The first dimension of a table of students
 * runs over the students as they were added to the builder. */
struct simulate_truth {
    const char *name;
    int rank;
    uint64_t shape[2];
    double *values;
    bool of_students;
};

enum { SIMULATE_MOST_TRUTHS = 8 };

struct simulation {
    const struct simulate_kind *kind;
    const struct simulate_flags *flags;
    size_t n_students, n_items, n_skills;
    uint64_t seed;
    struct builder_plan plan;
    struct builder *builder;
    struct simulate_truth truths[SIMULATE_MOST_TRUTHS];
    size_t n_truths;
};

/* One row of the table of kinds. */
struct simulate_kind {
    struct subcommand entry;
    const char *split;
    size_t n_students, n_items, n_skills; /* standard values */
    bool has_time;
    enum status (*make)(struct simulation *simulation);
};
extern const struct subcommands simulate_menu;
extern const char *const simulate_models[]; /* 1pl, 2pl */

/* Makes a class and writes it. Not collective. */
CHECKED enum status simulate_run(const struct simulate_kind *kind,
                                 const struct simulate_flags *flags);

/* For the kinds: */
enum status simulate_irt(struct simulation *simulation);
enum status simulate_bkt(struct simulation *simulation);
enum status simulate_grockit(struct simulation *simulation);

/* A zeroed table of the truth, of one dimension if n_columns is 0. */
double *simulate_truth(struct simulation *simulation, const char *name, size_t n_rows,
                       size_t n_columns, bool of_students);

/* Adds students, items and skills 1, 2, ..., called by a word and their number. */
void simulate_names(struct simulation *simulation);

/* The stream of numbers called by these; `part` is one of the kind's own quantities. */
struct rng simulate_rng(const struct simulation *simulation, uint32_t part, size_t who);

/* The same bits on every machine. */
double simulate_exp(double x);
double simulate_log(double x);
double simulate_sigmoid(double x);

#endif
