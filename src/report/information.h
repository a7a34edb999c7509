/* How much the answers to items tell about an ability. */
#ifndef COHORT_INFORMATION_H
#define COHORT_INFORMATION_H

#include "base/base.h"

/* The chance of a right answer to an item with discrimination a and difficulty b. */
double information_chance(double a, double b, double theta);

/* The information of one answer to it. */
double information_item(double a, double b, double theta);

/* The sum over n items, and the standard error that answers to all of them leave: INFINITY if
 * they tell nothing. */
double information_test(const double *a, const double *b, size_t n, double theta);
double information_error(double information);

/* The ability at which the chance is one half: b / a. NaN for an item that does not rise. */
double information_place(double a, double b);

#endif
