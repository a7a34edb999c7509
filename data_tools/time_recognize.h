/* Recognizes the format of a column of dates. */
#ifndef COHORT_TIME_RECOGNIZE_H
#define COHORT_TIME_RECOGNIZE_H

#include "base/base.h"
#include "base/names.h"
#include "data/time_format.h"

/* The cells that are named belong to the sample; NULL: there is none. */
struct time_recognized {
    char format[TIME_FORMAT_ROOM];
    const char *example; /* has the format */
    bool day_is_first;
    bool is_assumed;      /* day_is_first: no number is over 12 */
    const char *decisive; /* has a number over 12 that says so, */
    const char *contrary; /* one that says the opposite */
};

/* A date in any order of its parts, with or without a time of day. False if no format reads a
 * cell. */
bool time_recognize_date(const struct names *cells, struct time_recognized *found);

/* YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss of 1990 to 2099, if all cells are. As numbers, these
 * would be seconds of 1970, and milliseconds of 1976 and of the year 2611. */
bool time_recognize_compact(const struct names *cells, char format[TIME_FORMAT_ROOM]);

/* The variant of ISO 8601 that prints most of the sample as it is. */
void time_recognize_iso(const struct names *cells, char format[TIME_FORMAT_ROOM]);

#endif
