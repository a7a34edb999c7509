/* A sample of the column decides what it holds; most cells win:
 *
 *     1317222660         seconds since 1970, or of any clock
 *     1317222660123      milliseconds: 13 digits would be the year 43711 in seconds
 *     20120928151100     a date, where all cells are dates of 1990 to 2099 with this many digits
 *     2012-09-28T...     ISO 8601, with any precision and offset, row by row
 *     28.09.2012 15:11   a date: its parts make a format, such as %d.%m.%Y %H:%M
 *
 * In 9/28/2012 a number over 12 is the day. Where no number is over 12, the month is first
 * with slashes and the day is first with hyphens, and a message says so. Dots always mean that
 * the day is first.
 *
 * Every cell after the sample must have that form: half a column in another form means that
 * something is wrong, and a guess for each row would hide it. */
#include "data_tools/time_reader.h"
#include "base/fail.h"
#include "base/log.h"
#include "data_tools/csv_cell.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICROSECONDS = 1000000, MOST_CANDIDATES = 24 };

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

/* A format under construction. */
struct guess {
    const char *at; /* the rest of the cell */
    char format[TIME_FORMAT_ROOM];
    size_t n;
};

static void put(struct guess *guess, const char *text)
{
    const int n =
        snprintf(guess->format + guess->n, sizeof guess->format - guess->n, "%s", text);
    guess->n = size_min(guess->n + (size_t)n, sizeof guess->format - 1);
}

/* Copies separators from the cell to the format. */
static void put_separators(struct guess *guess, const char *allowed)
{
    for (; *guess->at != '\0' && strchr(allowed, *guess->at) != NULL; guess->at++)
        put(guess, (const char[]){*guess->at, '\0'});
}

static int count_digits(const char *at)
{
    int n = 0;
    while (isdigit((unsigned char)at[n]))
        n++;
    return n;
}

static int count_letters(const char *at)
{
    int n = 0;
    while (isalpha((unsigned char)at[n]))
        n++;
    return n;
}

static bool put_year(struct guess *guess)
{
    const int n = count_digits(guess->at);
    guess->at += n;
    put(guess, n == 4 ? "%Y" : "%y");
    return n == 4 || n == 2;
}

static bool put_number(struct guess *guess, const char *conversion)
{
    const int n = count_digits(guess->at);
    guess->at += n;
    put(guess, conversion);
    return n == 1 || n == 2;
}

static bool put_month_name(struct guess *guess)
{
    const int n = count_letters(guess->at);
    guess->at += n;
    put(guess, n > 3 ? "%B" : "%b");
    return n >= 3;
}

/* 2012/9/28, 28.9.2012, 9/28/12, 28 September 2012, 28-Sep-12, September 28, 2012 */
static bool guess_date(struct guess *guess, bool day_first)
{
    const int n = count_digits(guess->at);
    if (n == 0)
        return put_month_name(guess) && (put_separators(guess, " -"), true) &&
               put_number(guess, "%d") && (put_separators(guess, ", -"), true) &&
               put_year(guess);
    if (n == 4)
        return put_year(guess) && (put_separators(guess, "-/."), true) &&
               put_number(guess, "%m") && (put_separators(guess, "-/."), true) &&
               put_number(guess, "%d");
    const char separator = guess->at[n];
    if (isalpha((unsigned char)guess->at[n + (separator != '\0')])) {
        return put_number(guess, "%d") && (put_separators(guess, " -."), true) &&
               put_month_name(guess) && (put_separators(guess, ", -."), true) &&
               put_year(guess);
    }
    if (separator == '\0' || strchr("/.-", separator) == NULL)
        return false;
    const bool day = separator == '.' || day_first;
    const char both[] = {separator, '\0'};
    return put_number(guess, day ? "%d" : "%m") && (put_separators(guess, both), true) &&
           put_number(guess, day ? "%m" : "%d") && (put_separators(guess, both), true) &&
           put_year(guess);
}

/* 15:11, 3:11:05 PM, 15:11:05.250+02:00, 15:11 UTC; or nothing. */
static bool guess_clock(struct guess *guess)
{
    if (*guess->at == '\0')
        return true;
    const size_t hour = guess->n;
    if (hour >= TIME_FORMAT_ROOM / 2 || !put_number(guess, "%H") || *guess->at != ':')
        return false;
    put_separators(guess, ":");
    if (!put_number(guess, "%M"))
        return false;
    if (*guess->at == ':') {
        put_separators(guess, ":");
        if (!put_number(guess, "%S"))
            return false;
        if (*guess->at == '.' || *guess->at == ',') /* time_format reads it with %S */
            guess->at += 1 + count_digits(guess->at + 1);
    }
    put_separators(guess, " ");
    if (*guess->at != '\0' && strchr("AaPp", *guess->at) != NULL &&
        toupper((unsigned char)guess->at[1]) == 'M') {
        memcpy(guess->format + hour, "%I", 2);
        put(guess, "%p");
        guess->at += 2;
        put_separators(guess, " ");
    }
    if (*guess->at == '+' || *guess->at == '-') {
        put(guess, strchr(guess->at, ':') != NULL ? "%:z" : "%z");
        guess->at += strlen(guess->at);
    }
    while (isalpha((unsigned char)*guess->at)) /* Z or UTC */
        put_separators(guess, (const char[]){*guess->at, '\0'});
    return *guess->at == '\0';
}

static bool guess_format(const char *cell, bool day_first, char format[TIME_FORMAT_ROOM])
{
    struct guess guess = {.at = cell};
    const int n_letters = count_letters(cell), next = cell[n_letters];
    const bool weekday =
        n_letters >= 3 && strchr("SMTWF", toupper((unsigned char)cell[0])) &&
        (next == ',' || isdigit((unsigned char)cell[n_letters + (next == ' ')])) &&
        strncasecmp(cell, "sep", 3) != 0 && strncasecmp(cell, "mar", 3) != 0 &&
        strncasecmp(cell, "may", 3) != 0;
    if (weekday) {
        put(&guess, n_letters > 3 ? "%A" : "%a");
        guess.at += n_letters;
        put_separators(&guess, ", ");
    }
    if (!guess_date(&guess, day_first))
        return false;
    put_separators(&guess, ", ");
    if (*guess.at == 'T')
        put_separators(&guess, "T");
    if (!guess_clock(&guess) || guess.n >= TIME_FORMAT_ROOM / 2)
        return false;
    memcpy(format, guess.format, TIME_FORMAT_ROOM);
    struct time_reading reading;
    return time_format_read(format, cell, strlen(cell), &reading);
}

static size_t count_read(const char *format, const struct names *cells)
{
    size_t n = 0;
    struct time_reading reading;
    for (size_t i = 0; i < cells->n; i++) {
        const char *cell = names_get(cells, i);
        n += time_format_read(format, cell, strlen(cell), &reading);
    }
    return n;
}

/* How many cells are printed as they are. */
static size_t count_printed(const char *format, const struct names *cells)
{
    enum { MOST = 200 };
    size_t n = 0;
    char text[TIME_FORMAT_ROOM];
    for (size_t i = 0; i < size_min(cells->n, MOST); i++) {
        const char *cell = names_get(cells, i);
        struct time_reading reading;
        if (!time_format_read(format, cell, strlen(cell), &reading))
            continue;
        struct time_format own = {.offset = reading.offset};
        snprintf(own.text, sizeof own.text, "%s", format);
        const int64_t rest =
            ((reading.microseconds % MICROSECONDS) + MICROSECONDS) % MICROSECONDS;
        time_format_print(&own, (reading.microseconds - rest) / MICROSECONDS, (uint32_t)rest,
                          text);
        n += strcmp(text, cell) == 0;
    }
    return n;
}

/* Writes the format without leading zeros of days and months, or of hours. */
static void unpad(const char *format, bool days, bool hours, char unpadded[TIME_FORMAT_ROOM])
{
    size_t n = 0;
    for (const char *at = format; *at != '\0' && n + 2 < TIME_FORMAT_ROOM; at++) {
        unpadded[n++] = *at;
        if (*at == '%' && ((days && (at[1] == 'd' || at[1] == 'm')) ||
                           (hours && (at[1] == 'H' || at[1] == 'I'))))
            unpadded[n++] = '-';
    }
    unpadded[n] = '\0';
}

/* Of the formats of the sample's cells, the one that reads most cells. */
static size_t best_format(const struct names *cells, bool day_first,
                          char format[TIME_FORMAT_ROOM])
{
    char known[MOST_CANDIDATES][TIME_FORMAT_ROOM];
    size_t n_known = 0, most = 0;
    for (size_t i = 0; i < cells->n && n_known < MOST_CANDIDATES; i++) {
        char *candidate = known[n_known];
        if (!guess_format(names_get(cells, i), day_first, candidate))
            continue;
        bool is_new = true;
        for (size_t k = 0; k < n_known; k++)
            is_new &= strcmp(known[k], candidate) != 0;
        if (!is_new)
            continue;
        n_known++;
        const size_t n = count_read(candidate, cells);
        if (n > most) {
            most = n;
            memcpy(format, candidate, TIME_FORMAT_ROOM);
        }
    }
    return most;
}

/* The variant that prints the sample as it is. */
static void choose_padding(const struct names *cells, char format[TIME_FORMAT_ROOM])
{
    char best[TIME_FORMAT_ROOM], variant[TIME_FORMAT_ROOM];
    memcpy(best, format, sizeof best);
    size_t most = count_printed(format, cells);
    for (int v = 1; v < 4; v++) {
        unpad(format, v & 1, v & 2, variant);
        const size_t n = count_printed(variant, cells);
        if (n > most) {
            most = n;
            memcpy(best, variant, sizeof best);
        }
    }
    memcpy(format, best, sizeof best);
}

static void learn_dates(struct time_reader *reader, const char *path, const struct names *cells)
{
    char day[TIME_FORMAT_ROOM] = "", month[TIME_FORMAT_ROOM] = "";
    const size_t n_day = best_format(cells, true, day),
                 n_month = best_format(cells, false, month);
    if (n_day == 0 && n_month == 0)
        return; /* an unknown format: the first row fails */
    const bool equal = strcmp(day, month) == 0, hyphens = strchr(day, '-') != NULL;
    const bool day_first = n_day > n_month || (n_day == n_month && hyphens);
    reader->kind = TIME_DATE;
    memcpy(reader->format, day_first ? day : month, sizeof reader->format);
    choose_padding(cells, reader->format);
    const bool assumed = !equal && n_day == n_month;
    log_say("%s: times are read as %s, such as %s%s%s", path, reader->format,
            names_get(cells, 0),
            !assumed    ? ""
            : day_first ? "; no number is over 12, so the day is assumed "
                          "to be first"
                        : "; no number is over 12, so the month is assumed "
                          "to be first",
            assumed ? " (--time-format decides)" : "");
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

/* YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss of 1990 to 2099. As numbers, these would be seconds of
 * 1970, and milliseconds of 1976 and of the year 2611. */
static bool learn_compact(struct time_reader *reader, const char *path,
                          const struct names *cells)
{
    static const char *const formats[] = {
        [8] = "%Y%m%d", [12] = "%Y%m%d%H%M", [14] = "%Y%m%d%H%M%S"};
    const char *first = names_get(cells, 0);
    const size_t n = strlen(first);
    if (n >= COUNT(formats) || formats[n] == NULL || count_read(formats[n], cells) < cells->n)
        return false;
    for (size_t i = 0; i < cells->n; i++) {
        const char *cell = names_get(cells, i);
        if (strlen(cell) != n || strncmp(cell, "1990", 4) < 0 || strncmp(cell, "2099", 4) > 0)
            return false;
    }
    reader->kind = TIME_DATE;
    reader->n_digits = n;
    snprintf(reader->format, sizeof reader->format, "%s", formats[n]);
    log_say("%s: times are read as %s, such as %s (--time-unit reads them as numbers)", path,
            reader->format, first);
    return true;
}

/* The variant of ISO 8601 that prints most of the sample as it is. */
static void learn_iso(struct time_reader *reader, const struct names *cells)
{
    static const char *const clocks[] = {" %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M", ""};
    static const char *const zones[] = {"", "Z", "%:z", "%z", " %z", " UTC"};
    size_t most = 0;
    reader->kind = TIME_ISO;
    snprintf(reader->format, sizeof reader->format, "%s", "%Y-%m-%d %H:%M:%S");
    for (size_t c = 0; c < COUNT(clocks); c++)
        for (size_t z = 0; z < COUNT(zones); z++) {
            char format[TIME_FORMAT_ROOM];
            snprintf(format, sizeof format, "%%Y-%%m-%%d%s%s", clocks[c], zones[z]);
            /* Fractions are not printed here: cells that are read count too. */
            const size_t n = 2 * count_printed(format, cells) + count_read(format, cells);
            if (n > most) {
                most = n;
                memcpy(reader->format, format, sizeof format);
            }
        }
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
    else if (n_iso > 0 && 2 * n_iso >= cells->n)
        learn_iso(reader, cells);
    else
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
