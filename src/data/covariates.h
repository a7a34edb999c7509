/* Covariates: properties of attempts besides item, outcome and time. */
#ifndef COHORT_COVARIATES_H
#define COHORT_COVARIATES_H

#include "base/base.h"
#include "base/names.h"

/* Every attempt has one value per covariate: a number or, if the covariate is a factor (a
 * teacher, a school, a session), the number of one of its levels; NaN: none. Begins as all
 * zeros. */
struct covariates {
    struct names names;
    struct names *levels; /* of each covariate; empty: its values are numbers */
    /* In a trained model: per factor and level, 1 if at most one student trained it; NULL:
     * unknown. See own_levels.h. */
    uint8_t **own;
};

/* Adds one; `levels` empty or NULL: its values are numbers. */
void covariates_add(struct covariates *covariates, const char *name,
                    const struct names *levels);
void covariates_free(struct covariates *covariates);

/* The one called `name`, or COVARIATES_NONE. */
#define COVARIATES_NONE SIZE_MAX
size_t covariates_find(const struct covariates *covariates, const char *name);

static inline size_t covariates_n_levels(const struct covariates *covariates, size_t k)
{
    return covariates->levels[k].n;
}

/* `own` of covariate k; NULL: unknown, or not a factor. */
static inline const uint8_t *covariates_own(const struct covariates *covariates, size_t k)
{
    return covariates->own != NULL ? covariates->own[k] : NULL;
}

/* Allocates `own` for all factors, all zeros. */
void covariates_reserve_own(struct covariates *covariates);

/* The group /covariates: names, and a group of names per factor, with `own` if it is known.
 * Without covariates nothing is written, and a missing group is read as no covariates. */
CHECKED enum status covariates_write(hid_t file, const struct covariates *covariates);
CHECKED enum status covariates_read(hid_t file, struct covariates *covariates);

#endif
