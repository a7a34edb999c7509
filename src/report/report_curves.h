/* What a run has learned, measured for pictures besides its tables. */
#ifndef COHORT_REPORT_CURVES_H
#define COHORT_REPORT_CURVES_H

#include "base/names.h"
#include "base/table.h"
#include "learn/metrics.h"
#include "report/practice.h"
#include "runs/blending.h"
#include <stdio.h>

/* Items and students on the scale of one ability (report_scale.c). On rank 0 only. */
struct report_scale {
    char *name;                   /* of the ability; NULL: the only one */
    size_t n_items;               /* those that need this ability */
    uint32_t *item;               /* their rows among all items */
    double *a, *b;                /* P = sigma(a theta - b), other abilities at 0 */
    size_t n_students;            /* an even selection, if there are many */
    double *theta, *error;        /* of students, with standard errors (NaN: not known) */
    double mean, spread, squares; /* of theta: mean, standard deviation; mean squared error */
    double true_spread;           /* of true abilities */
    bool knows_spread;            /* it is the model's, not an estimate from theta */
    double low, high;             /* the part of the scale that is drawn */
};
enum { REPORT_MOST_SCALES = 3 };
struct report_scales {
    size_t n, n_abilities; /* measured; of the model */
    struct report_scale list[REPORT_MOST_SCALES];
    struct names items;
    bool is_rasch;         /* a = 1: only difficulties were learned */
    char *b_is, *theta_is; /* how the Rasch view follows from the model, or NULL */
    size_t n_all_students; /* with attempts */
};

/* Learning curves (report_practice.c). Slot 0 has all skills together. */
enum { REPORT_MOST_PRACTISED = 12, REPORT_FEWEST_ANSWERS = 10, REPORT_FEWEST_POINTS = 3 };
struct report_practice {
    bool by_item;
    size_t n, n_things; /* skills measured; skills with enough answers */
    struct names names; /* of slots 1 .. n, those that rise most first */
    struct practice_point points[1 + REPORT_MOST_PRACTISED][PRACTICE_POINTS];
};

/* The parts of a run made of others (report_members.c): each alone, and the best blend on the
 * validation answers without it. */
struct report_members {
    size_t n;
    struct names names;
    double weight[BLEND_MOST];
    struct score alone[BLEND_MOST], without[BLEND_MOST]; /* n is 0: not known */
};

struct report_run;

/* Collective; report_scale_measure after the tables are there. */
void report_scale_measure(struct report_run *run, const struct inference *inference);
void report_practice_measure(struct report_run *run, const struct inference *inference,
                             const struct predictions *predictions);
CHECKED enum status report_members_measure(struct report_run *run,
                                           const struct inference *inference);

void report_scale_free(struct report_scales *scales);

/* Parts of the section on what was learned. */
void report_irt_show(FILE *out, const struct report_run *run);
void report_wright_draw(FILE *out, const struct report_scales *scales, size_t k);
void report_members_show(FILE *out, const struct report_run *run);
/* A column of a table, sorted; `errors`: the column of its standard errors, or SIZE_MAX. */
void report_effects_draw(FILE *out, const char *kind, const struct table *table, size_t column,
                         size_t errors);
/* What right and wrong answers add (columns right, wrong); rows are counts. */
void report_effects_counts(FILE *out, const struct table *table);
/* The abilities of students with their intervals. */
void report_effects_students(FILE *out, const struct report_scale *scale);

#endif
