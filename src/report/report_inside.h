/* What models with hidden units, and models of sequences, have learned. */
#ifndef COHORT_REPORT_INSIDE_H
#define COHORT_REPORT_INSIDE_H

#include "report/report.h"
#include "runs/inference.h"
#include "runs/standing.h"
#include <stdio.h>

/* Items in the plane of two hidden units, or of two principal components; on rank 0. */
enum { REPORT_PLANE_COLOURS = 8 };
struct report_plane {
    size_t n, n_all; /* items drawn, and all with attempts; 0: no plane */
    double *x, *y;
    uint8_t *colour; /* a place in `legend` */
    char *axis[2];
    size_t n_hidden;
    const char *by;      /* what colours are: "group", "skill"; NULL: all equal */
    struct names items;  /* drawn */
    struct names legend; /* the colours; the last one may be the others */
};
void report_plane_measure(struct report_plane *plane, const struct inference *inference);
void report_plane_free(struct report_plane *plane);
void report_plane_show(FILE *out, const struct report_plane *plane);

/* Hidden probabilities of a sample of students, at the epochs of the run's snapshots and in the
 * model itself, in the order of the epochs; on rank 0. */
enum { REPORT_MOST_PANELS = 6 };
struct report_hidden {
    size_t n_students, n_all; /* 0 students: none */
    size_t n_units;
    size_t n_panels, own; /* own: the panel of the model itself */
    int64_t epoch[REPORT_MOST_PANELS];
    double *chance[REPORT_MOST_PANELS]; /* n_students x n_units */
    double *right; /* share of each student's right answers; NaN: none is known */
};
CHECKED enum status report_hidden_measure(struct report_hidden *hidden,
                                          const struct inference *inference);
void report_hidden_free(struct report_hidden *hidden);
void report_hidden_show(FILE *out, const struct report_hidden *hidden);

/* How much answers at one skill move the chances at others; on rank 0. */
struct report_influence {
    size_t n, n_all; /* skills; 0: nothing to show */
    bool by_item;
    struct names names;
    double *effect; /* n x n: from, to */
};
/* Rows `first` to `end` of the matrix, for n skills of `standing`. */
void report_influence_rows(const struct standing *standing, const uint32_t *skills, size_t n,
                           size_t first, size_t end, double *effect);
CHECKED enum status report_influence_measure(struct report_influence *influence,
                                             const struct inference *inference);
void report_influence_free(struct report_influence *influence);
void report_influence_show(FILE *out, const struct report_influence *influence);

struct report_inside {
    struct report_plane plane;
    struct report_hidden hidden;
    struct report_influence influence;
};
/* Collective. Hidden units of students are not measured for pages about several runs. */
CHECKED enum status report_inside_measure(struct report_inside *inside,
                                          const struct inference *inference,
                                          const struct report_plan *plan);
void report_inside_free(struct report_inside *inside);
bool report_inside_is_there(const struct report_inside *inside);
void report_inside_show(FILE *out, const struct report_inside *inside);

#endif
