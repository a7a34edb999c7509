/* What attempts bring besides item, outcome and time. */
#ifndef COHORT_COVARIATES_H
#define COHORT_COVARIATES_H

#include "base/base.h"
#include "base/names.h"

/* Every attempt has one value of each covariate: a number, or, where the covariate is a factor
 * (a teacher, a school, a session), the number of one of its levels; NaN: none. Begins as all
 * zeros. */
struct covariates {
    struct names names;
    struct names *levels; /* of each covariate; empty: its values are numbers */
    /* Of a trained model: for each factor and level, 1 where no two students trained it; NULL:
     * not known. See own_levels.h. */
    uint8_t **own;
};

/* Adds one; `levels` empty or NULL: of numbers. */
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

/* `own` of covariate k; NULL: not known, or no factor. */
static inline const uint8_t *covariates_own(const struct covariates *covariates, size_t k)
{
    return covariates->own != NULL ? covariates->own[k] : NULL;
}

/* Room for `own`, all zeros, of all factors. */
void covariates_reserve_own(struct covariates *covariates);

/* The group /covariates: names, and a group of names for each factor, with `own` if it is
 * known. Without covariates nothing is written, and what is missing is read as none. */
CHECKED enum status covariates_write(hid_t file, const struct covariates *covariates);
CHECKED enum status covariates_read(hid_t file, struct covariates *covariates);

#endif
