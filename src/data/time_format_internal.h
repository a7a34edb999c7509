/* Shared by time_format.c and time_format_read.c. */
#ifndef COHORT_TIME_FORMAT_INTERNAL_H
#define COHORT_TIME_FORMAT_INTERNAL_H

#include "data/time_format.h"

extern const char *const time_format_months[12], *const time_format_weekdays[7];

/* One conversion of a format. */
struct time_conversion {
    char letter;   /* 0: not a conversion */
    int width;     /* of %3f; 0: none */
    bool unpadded; /* %-d */
    bool colon;    /* %:z */
};

/* Reads the conversion after a percent sign; returns the text after it. */
const char *time_format_next(const char *at, struct time_conversion *conversion);

/* What %F and the like stand for; NULL for the others. */
const char *time_format_expansion(char letter);

#endif
