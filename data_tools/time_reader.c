/* What a column holds, as most cells of a sample say:
 *
 *     1317222660         seconds since 1970, or of any clock
 *     1317222660123      milliseconds: 13 digits would be the year 43711 in seconds
 *     20120928151100     a date, where all cells are dates of 1990 to 2099 with this many digits
 *     2012-09-28T...     ISO 8601, with any precision and offset, row by row
 *     28.09.2012 15:11   a date in the format of time_recognize.c
 *
 * Every cell after the sample must have that form: half a column in another form means that
 * something is wrong, and a guess for each row would hide it. */
#include "data_tools/time_reader.h"
#include "base/fail.h"
#include "base/log.h"
#include "data_tools/csv_cell.h"
#include "data_tools/time_recognize.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MICROSECONDS = 1000000 };

const char *const time_reader_units[] = {"auto", "s", "ms", "us", "ns", NULL};

static const struct {
    const char *name, *title;
    int64_t per_second;
} units[] = {
    [UNIT_AUTO] = {"s", "seconds", 1},
    [UNIT_S] = {"s", "seconds", 1},
    [UNIT_MS] = {"ms", "milliseconds", 1000},
    [UNIT_US] = {"us", "microseconds", 1000000},
    [UNIT_NS] = {"ns", "nanoseconds", 1000000000},
};

/* A number of this size is a time since 1970 in this unit: 1973 to 5138 in milliseconds. */
static enum time_unit unit_of(double number)
{
    return number < 1e11 ? UNIT_S : number < 1e14 ? UNIT_MS : number < 1e17 ? UNIT_US : UNIT_NS;
}

/* Numbers of the size of dates in a smaller unit are in that unit. */
static void learn_unit(struct time_reader *reader, const char *path, const struct names *cells,
                       enum time_unit unit)
{
    double least = INFINITY, most = 0;
    const char *largest = NULL;
    for (size_t i = 0; i < cells->n; i++) {
        double number = 0;
        const char *cell = names_get(cells, i);
        if (!csv_cell_number((struct span){(char *)cell, strlen(cell)}, &number) || number == 0)
            continue;
        least = number < least ? number : least;
        if (number > most) {
            most = number;
            largest = cell;
        }
    }
    reader->kind = TIME_NUMBER;
    reader->unit = unit;
    if (unit != UNIT_AUTO)
        return;
    reader->unit = least < INFINITY && unit_of(least) == unit_of(most) ? unit_of(most) : UNIT_S;
    reader->unit_is_guessed = true;
    if (reader->unit != UNIT_S)
        log_say("%s: times such as %s are read as %s since 1970 (--time-unit decides)", path,
                largest, units[reader->unit].title);
}

static void learn_dates(struct time_reader *reader, const char *path, const struct names *cells)
{
    struct time_recognized found;
    if (!time_recognize_date(cells, &found))
        return; /* an unknown format: the first row fails */
    reader->kind = TIME_DATE;
    memcpy(reader->format, found.format, sizeof reader->format);
    if (found.decisive != NULL && found.contrary != NULL)
        log_warn("%s: some dates have a number over 12 first, such as %s, and others second, "
                 "such as "
                 "%s; --time-format sets which are right",
                 path, found.day_is_first ? found.decisive : found.contrary,
                 found.day_is_first ? found.contrary : found.decisive);
    else
        log_say("%s: times are read as %s, such as %s%s", path, reader->format, found.example,
                !found.is_assumed    ? ""
                : found.day_is_first ? "; no number is over 12, so the day is assumed to be "
                                       "first (--time-format decides)"
                                     : "; no number is over 12, so the month is assumed to be "
                                       "first (--time-format decides)");
}

static bool learn_compact(struct time_reader *reader, const char *path,
                          const struct names *cells)
{
    if (!time_recognize_compact(cells, reader->format))
        return false;
    reader->kind = TIME_DATE;
    reader->n_digits = strlen(names_get(cells, 0));
    log_say("%s: times are read as %s, such as %s (--time-unit reads them as numbers)", path,
            reader->format, names_get(cells, 0));
    return true;
}

enum status time_reader_learn(struct time_reader *reader, const char *path,
                              const struct names *cells, enum time_unit unit,
                              const char *format)
{
    *reader = (struct time_reader){.kind = TIME_UNKNOWN};
    if (format[0] != '\0') {
        TRY(time_format_check(format));
        reader->kind = TIME_DATE;
        snprintf(reader->format, sizeof reader->format, "%s", format);
        return OK;
    }
    size_t n_numbers = 0, n_iso = 0;
    for (size_t i = 0; i < cells->n; i++) {
        const char *cell = names_get(cells, i);
        double number = 0;
        struct time_reading reading;
        if (csv_cell_number((struct span){(char *)cell, strlen(cell)}, &number))
            n_numbers++;
        else
            n_iso += time_format_read_iso(cell, strlen(cell), &reading);
    }
    if (n_numbers == cells->n && n_numbers > 0 && unit == UNIT_AUTO &&
        learn_compact(reader, path, cells))
        return OK;
    if (n_numbers > 0 && 2 * n_numbers >= cells->n)
        learn_unit(reader, path, cells, unit);
    else if (n_iso > 0 && 2 * n_iso >= cells->n) {
        reader->kind = TIME_ISO;
        time_recognize_iso(cells, reader->format);
    } else
        learn_dates(reader, path, cells);
    return OK;
}

/* Decimals of a number, as written. */
static int count_decimals(struct span cell)
{
    const char *dot = memchr(cell.start, '.', cell.n);
    return dot == NULL ? 0 : (int)size_min(6, (size_t)(cell.start + cell.n - dot - 1));
}

bool time_reader_overflows(const struct time_reader *reader, double number)
{
    return !(fabs(number) * MICROSECONDS / (double)units[reader->unit].per_second < 9e18);
}

static bool read_number(struct time_reader *reader, struct span cell, int64_t *microseconds)
{
    const int64_t per_second = units[reader->unit].per_second;
    int64_t value = 0;
    double number = 0;
    if (csv_cell_integer(cell, &value)) {
        if (reader->unit_is_guessed && value >= 100000000000 &&
            unit_of((double)value) != reader->unit)
            return false;
        if (per_second > MICROSECONDS)
            *microseconds = value / (per_second / MICROSECONDS);
        else if (__builtin_mul_overflow(value, MICROSECONDS / per_second, microseconds))
            return false;
        return true;
    }
    if (!csv_cell_number(cell, &number))
        return false;
    if (time_reader_overflows(reader, number))
        return false;
    number *= MICROSECONDS / (double)per_second;
    const int n_decimals = count_decimals(cell);
    reader->n_decimals = n_decimals > reader->n_decimals ? n_decimals : reader->n_decimals;
    *microseconds = (int64_t)floor(number + 1e-3);
    return true;
}

static void note(struct time_reader *reader, int64_t microseconds)
{
    reader->differ |= reader->n > 0 && microseconds != reader->first;
    if (reader->n++ == 0)
        reader->first = microseconds;
}

bool time_reader_read(struct time_reader *reader, struct span cell, int64_t *microseconds)
{
    if (reader->kind == TIME_NUMBER) {
        if (!read_number(reader, cell, microseconds))
            return false;
        note(reader, *microseconds);
        return true;
    }
    struct time_reading reading;
    if (reader->n_digits > 0 && cell.n != reader->n_digits)
        return false;
    const bool is_read =
        reader->kind == TIME_ISO
            ? time_format_read_iso(cell.start, cell.n, &reading)
            : reader->kind == TIME_DATE &&
                  time_format_read(reader->format, cell.start, cell.n, &reading);
    if (!is_read)
        return false;
    if (reading.n_decimals > reader->n_decimals)
        reader->n_decimals = reading.n_decimals;
    reader->offsets_differ |= reader->n > 0 && reading.offset != reader->offset;
    reader->offset = reading.offset;
    *microseconds = reading.microseconds;
    note(reader, *microseconds);
    return true;
}

void time_reader_describe(const struct time_reader *reader, char text[256])
{
    switch (reader->kind) {
    case TIME_NUMBER:
        snprintf(text, 256, "is not a number of %s, like the others (--time-unit)",
                 units[reader->unit].title);
        break;
    case TIME_ISO:
        snprintf(text, 256, "is not YYYY-MM-DD HH:MM:SS, like the others");
        break;
    case TIME_DATE:
        snprintf(text, 256, "does not have the form %s (--time-format)", reader->format);
        break;
    case TIME_UNKNOWN:
        snprintf(text, 256,
                 "has an unknown form; set --time-format, as in '%%d.%%m.%%Y %%H:%%M', or "
                 "--time none");
        break;
    }
}

struct time_format time_reader_format(const struct time_reader *reader)
{
    struct time_format format = {.offset = reader->offsets_differ ? 0 : reader->offset};
    const int n = reader->n_decimals;
    if (reader->kind == TIME_NUMBER) {
        snprintf(format.text, sizeof format.text,
                 n > 0 && reader->unit <= UNIT_S ? "%s.%d" : "%s", units[reader->unit].name, n);
        return format;
    }
    const char *second = strstr(reader->format, "%S");
    if (second == NULL)
        second = strstr(reader->format, "%T");
    if (n == 0 || second == NULL || strstr(reader->format, "f") != NULL)
        memcpy(format.text, reader->format, sizeof format.text);
    else
        snprintf(format.text, sizeof format.text, "%.*s.%%%df%s",
                 (int)(second + 2 - reader->format), reader->format, n, second + 2);
    return format;
}
