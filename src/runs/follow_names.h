/* Which column or key of a line is which field. */
#ifndef COHORT_FOLLOW_NAMES_H
#define COHORT_FOLLOW_NAMES_H

#include "base/base.h"
#include "base/names.h"
#include "data/name_index.h"

enum follow_field {
    FOLLOW_STUDENT,
    FOLLOW_ITEM,
    FOLLOW_OUTCOME,
    FOLLOW_TIME,
    FOLLOW_SKILLS,
    FOLLOW_GROUP,
    FOLLOW_STEP,
    N_FOLLOW_FIELDS /* then the covariates */
};

/* Begins as all zeros, with covariates set. */
struct follow_names {
    const struct names *covariates;
    char *found[N_FOLLOW_FIELDS]; /* a usual name that stands for a field; NULL: none so far */
    struct name_index unused;     /* names that are no field, which were reported */
};

size_t follow_names_count(const struct follow_names *names);              /* of fields */
const char *follow_names_own(const struct follow_names *names, size_t f); /* "outcome" */

/* The columns of a header: the number of the one of each field, SIZE_MAX if it has none. Says
 * which were found by a usual name and which are not used, and warns if none has outcomes. Fails
 * if two columns have the name of a field's column. */
CHECKED enum status follow_names_header(struct follow_names *names, const struct names *columns,
                                        size_t *column);

/* A key of a JSON object that is neither a field's own name nor one found before: finds out
 * whether it stands for a field, and says so, or that it is not used, once. */
void follow_names_key(struct follow_names *names, const char *key);

void follow_names_free(struct follow_names *names);

#endif
