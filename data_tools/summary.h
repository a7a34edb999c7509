/* What a data set holds, in words. */
#ifndef COHORT_SUMMARY_H
#define COHORT_SUMMARY_H

#include "data/dataset.h"

/* Students, attempts, items, skills, share correct, span of time, splits: on stderr. */
void summary_say(const struct dataset_content *content);

#endif
