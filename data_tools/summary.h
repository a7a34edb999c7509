/* A summary of a data set. */
#ifndef COHORT_SUMMARY_H
#define COHORT_SUMMARY_H

#include "data/dataset.h"

/* Prints students, attempts, items, skills, percent correct, times and splits to stderr. */
void summary_say(const struct dataset_content *content);

#endif
