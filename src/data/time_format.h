/* How a source writes times: the text of a number or a date, read and printed again. */
#ifndef COHORT_TIME_FORMAT_H
#define COHORT_TIME_FORMAT_H

#include "base/base.h"

enum { TIME_FORMAT_ROOM = 96 };

/* `text` is one of
 *
 *     ""                      unknown: printed as seconds
 *     "s" "ms" "us" "ns"      numbers in this unit since 1970, or since any other moment
 *     "s.3"                   the same with decimals, here three
 *     "%d.%m.%Y %H:%M"        dates, by conversions of strptime (see time_format.c)
 *
 * `offset` is the offset from UTC that dates with %z are printed with. */
struct time_format {
    char text[TIME_FORMAT_ROOM];
    int64_t offset; /* minutes, positive east of Greenwich */
};

/* A time that was read. */
struct time_reading {
    int64_t microseconds; /* since 1970, in UTC */
    int offset;           /* minutes, as written; 0 without an offset */
    int n_decimals;       /* digits after the seconds */
};

/* Fails on unknown conversions, and if the format does not determine a day. */
CHECKED enum status time_format_check(const char *text);

/* Reads all n bytes of a date in the given format. False: it is not one. */
bool time_format_read(const char *format, const char *text, size_t n,
                      struct time_reading *reading);

/* YYYY-MM-DD[ HH:MM[:SS[.fff]][Z|+HH[:MM]]], also with T instead of the space. */
bool time_format_read_iso(const char *text, size_t n, struct time_reading *reading);

/* Writes a time as the source did, as far as the format goes: without %S, seconds are lost. */
void time_format_print(const struct time_format *format, int64_t seconds, uint32_t microseconds,
                       char text[TIME_FORMAT_ROOM]);

/* Day of the Gregorian calendar, counted from 1970-01-01, and back. */
int64_t time_format_day(int64_t year, int month, int day);
void time_format_date(int64_t day, int64_t *year, int *month, int *day_of_month);

#endif
