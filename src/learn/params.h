/* The parameters of a model, in one flat vector. */
#ifndef COHORT_PARAMS_H
#define COHORT_PARAMS_H

#include "base/base.h"

/* A panel is a block of memory: rows of `stride` numbers, padded with zeros that stay zero. */
struct panel {
    size_t offset, n_rows, stride;
    /* Whose the rows are, one or more each: "item" or "skill", or several in this order, as in
     * "item skill common" (first those of all items, then of all skills, then of one feature
     * that all share); NULL: nobody's. */
    const char *of;
};

/* A tensor is what users see: some columns of a panel, with a name and a shape. */
struct tensor {
    char name[64];
    size_t panel, first_column, n_columns;
    int rank;
    uint64_t shape[3]; /* its product is the panel's n_rows times n_columns */
    bool decays;       /* subject to weight decay: weights, not biases */
};

enum { MOST_TENSORS = 128 };

struct params {
    size_t n; /* length of the flat vector, padding included */
    real *value;
    size_t n_panels, n_tensors;
    struct panel panels[MOST_TENSORS];
    struct tensor tensors[MOST_TENSORS];
    bool is_logit[MOST_TENSORS];    /* the tensor holds logits, log(p / (1 - p)) */
    bool is_examined[MOST_TENSORS]; /* only `examine` fills it, with numbers above 0 */
};

/* Declare panels first, then the tensors in them, then call params_allocate. */
size_t params_panel(struct params *params, size_t n_rows, size_t n_columns);
size_t params_panel_of(struct params *params, const char *of, size_t n_rows, size_t n_columns);
void params_tensor(struct params *params, const struct tensor *tensor);
void params_logits(struct params *params, const struct tensor *tensor); /* logits of p */
void params_examined(struct params *params, const struct tensor *tensor);
void params_allocate(struct params *params);
void params_free(struct params *params);

static inline real *params_rows(const struct params *params, size_t panel)
{
    return params->value + params->panels[panel].offset;
}

/* First values of a panel whose columns are groups of n numbers, each padded: uniform within
 * +-size, named by the seed, the panel, the row and the place. */
void params_fill_uniform(struct params *params, size_t panel, size_t n_groups, size_t n,
                         uint64_t seed, double size);

/* Number of elements of a tensor, without padding. */
size_t params_size(const struct params *params, const struct tensor *tensor);
size_t params_count(const struct params *params); /* of all tensors */

/* Copies between a flat vector in the layout of `params` and one tensor without padding. */
void params_take(const struct params *params, const struct tensor *tensor, const real *flat,
                 real *dense);
void params_put(const struct params *params, const struct tensor *tensor, const real *dense,
                real *flat);

/* Where the part of the flat vector that worker w of n owns begins: at a row, so that all own
 * about equally many. */
size_t params_cut(const struct params *params, size_t w, size_t n);

/* The tensor that contains element i of the flat vector; NULL for padding. */
const struct tensor *params_find(const struct params *params, size_t i);

#endif
