/* Simulated classes with known true parameters. */
#ifndef COHORT_SIMULATE_H
#define COHORT_SIMULATE_H

#include "base/base.h"
#include "base/rng.h"
#include "data/builder.h"
#include "data/dataset.h"
#include "data_tools/subcommand.h"

/* The options of `cohort simulate`; 0 or "" means the default of the kind. */
struct simulate_flags {
    int64_t n_students, n_items, n_skills, n_attempts, seed;
    int model;
    double correlation, missing, forget;
    const char *split, *output;
    bool shuffle_outcomes;
};

/* A table of the truth, owned by the simulation. Rows of a table of students are in the order
 * in which the students were added to the builder. */
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
    size_t n_students, n_items, n_skills; /* defaults */
    bool has_time;
    enum status (*make)(struct simulation *simulation);
};
extern const struct subcommands simulate_menu;
extern const char *const simulate_models[]; /* 1pl, 2pl */

/* Simulates a class and writes it. Not collective. */
CHECKED enum status simulate_run(const struct simulate_kind *kind,
                                 const struct simulate_flags *flags);

/* For the kinds: */
enum status simulate_irt(struct simulation *simulation);
enum status simulate_bkt(struct simulation *simulation);
enum status simulate_grockit(struct simulation *simulation);

/* A zeroed table of the truth, one-dimensional if n_columns is 0. */
double *simulate_truth(struct simulation *simulation, const char *name, size_t n_rows,
                       size_t n_columns, bool of_students);

/* Adds students, items and skills, called student-1, item-1, skill-1, ... */
void simulate_names(struct simulation *simulation);

/* The random stream with this name; `part` is a quantity of the kind. */
struct rng simulate_rng(const struct simulation *simulation, uint32_t part, size_t who);

/* The same bits on every machine. */
double simulate_exp(double x);
double simulate_log(double x);
double simulate_sigmoid(double x);

#endif
