/* Chances whose log-odds are uncertain. */
#ifndef COHORT_LOGISTIC_NORMAL_H
#define COHORT_LOGISTIC_NORMAL_H

/* The standard deviation of sigma(mean + sd z), z ~ N(0, 1). */
double logistic_normal_deviation(double mean, double sd);

#endif
