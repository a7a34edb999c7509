/* Reads a column of times: recognizes its format from a sample, then insists on it. */
#ifndef COHORT_TIME_READER_H
#define COHORT_TIME_READER_H

#include "base/base.h"
#include "base/names.h"
#include "data/time_format.h"
#include "data_tools/text.h"

enum time_kind { TIME_UNKNOWN, TIME_NUMBER, TIME_ISO, TIME_DATE };

/* Choices of --time-unit, and their names. */
enum time_unit { UNIT_AUTO, UNIT_S, UNIT_MS, UNIT_US, UNIT_NS };
extern const char *const time_reader_units[];

struct time_reader {
    enum time_kind kind;
    enum time_unit unit;  /* of numbers */
    bool unit_is_guessed; /* then numbers of another size are errors */
    char format[TIME_FORMAT_ROOM];
    size_t n_digits; /* of dates that are written as one number; 0: others */
    /* What was read: */
    uint64_t n;
    int64_t first; /* in microseconds */
    bool differ;   /* not all times are equal */
    int n_decimals, offset;
    bool offsets_differ;
};

/* Decides from cells of the column, and says so where a reader could doubt it. `format` is
 * --time-format, "" if not given. */
CHECKED enum status time_reader_learn(struct time_reader *reader, const char *path,
                                      const struct names *cells, enum time_unit unit,
                                      const char *format);

/* False if the cell is not a time of that kind. */
bool time_reader_read(struct time_reader *reader, struct span cell, int64_t *microseconds);

/* Whether a number is beyond the range of times in the column's unit. */
bool time_reader_overflows(const struct time_reader *reader, double number);

/* What cells should be, for error messages. */
void time_reader_describe(const struct time_reader *reader, char text[256]);

/* The format to print times with again. */
struct time_format time_reader_format(const struct time_reader *reader);

#endif
