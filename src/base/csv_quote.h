/* Cells of CSV files that cohort writes. */
#ifndef COHORT_CSV_QUOTE_H
#define COHORT_CSV_QUOTE_H

#include "base/base.h"
#include <stdio.h>

/* Prints a cell, in quotes where it needs them. */
void csv_quote(FILE *out, const char *text);

#endif
