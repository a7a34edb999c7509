/* Recognizes the format of dates from a sample of cells. The parts of a cell make a format, and of
 * the formats that the sample suggests, the one that reads most cells wins:
 *
 *     28.09.2012 15:11   digits . digits . 4 digits, space, digits : digits   ->   %d.%m.%Y %H:%M
 *
 * In 9/28/2012 a number over 12 is the day. Where no number is over 12, the month is first with
 * slashes and the day is first with hyphens. Dots always mean that the day is first. If some cells
 * need the day first and others the month, the column is in doubt, and the caller says so. */
#include "data_tools/time_recognize.h"
#include "data/time_format.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MICROSECONDS = 1000000, MOST_CANDIDATES = 24 };

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

/* The format with day and month in the other order. */
static void swap_day_and_month(const char *format, char swapped[TIME_FORMAT_ROOM])
{
    snprintf(swapped, TIME_FORMAT_ROOM, "%s", format);
    for (char *at = swapped; (at = strchr(at, '%')) != NULL && at[1] != '\0'; at += 2)
        at[1] = (char)(at[1] == 'd' ? 'm' : at[1] == 'm' ? 'd' : at[1]);
}

/* The first cell that `format` reads and `other` does not; NULL if there is none. */
static const char *find_cell(const struct names *cells, const char *format, const char *other)
{
    struct time_reading reading;
    for (size_t i = 0; i < cells->n; i++) {
        const char *cell = names_get(cells, i);
        const size_t n = strlen(cell);
        if (time_format_read(format, cell, n, &reading) &&
            !time_format_read(other, cell, n, &reading))
            return cell;
    }
    return NULL;
}

bool time_recognize_date(const struct names *cells, struct time_recognized *found)
{
    char day[TIME_FORMAT_ROOM] = "", month[TIME_FORMAT_ROOM] = "", other[TIME_FORMAT_ROOM];
    const size_t n_day = best_format(cells, true, day),
                 n_month = best_format(cells, false, month);
    *found = (struct time_recognized){0};
    if (n_day == 0 && n_month == 0)
        return false;
    const bool is_sure = strcmp(day, month) == 0, hyphens = strchr(day, '-') != NULL;
    found->day_is_first = n_day > n_month || (n_day == n_month && hyphens);
    memcpy(found->format, found->day_is_first ? day : month, sizeof found->format);
    found->example = find_cell(cells, found->format, "");
    if (!is_sure) {
        swap_day_and_month(found->format, other);
        found->decisive = find_cell(cells, found->format, other);
        found->contrary = find_cell(cells, other, found->format);
        found->is_assumed = found->decisive == NULL && found->contrary == NULL;
    }
    choose_padding(cells, found->format);
    return true;
}

bool time_recognize_compact(const struct names *cells, char format[TIME_FORMAT_ROOM])
{
    static const char *const formats[] = {
        [8] = "%Y%m%d", [12] = "%Y%m%d%H%M", [14] = "%Y%m%d%H%M%S"};
    const size_t n = strlen(names_get(cells, 0));
    if (n >= COUNT(formats) || formats[n] == NULL || count_read(formats[n], cells) < cells->n)
        return false;
    for (size_t i = 0; i < cells->n; i++) {
        const char *cell = names_get(cells, i);
        if (strlen(cell) != n || strncmp(cell, "1990", 4) < 0 || strncmp(cell, "2099", 4) > 0)
            return false;
    }
    snprintf(format, TIME_FORMAT_ROOM, "%s", formats[n]);
    return true;
}

void time_recognize_iso(const struct names *cells, char format[TIME_FORMAT_ROOM])
{
    static const char *const clocks[] = {" %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M", ""};
    static const char *const zones[] = {"", "Z", "%:z", "%z", " %z", " UTC"};
    size_t most = 0;
    snprintf(format, TIME_FORMAT_ROOM, "%s", "%Y-%m-%d %H:%M:%S");
    for (size_t c = 0; c < COUNT(clocks); c++)
        for (size_t z = 0; z < COUNT(zones); z++) {
            char variant[TIME_FORMAT_ROOM];
            snprintf(variant, sizeof variant, "%%Y-%%m-%%d%s%s", clocks[c], zones[z]);
            /* Fractions are not printed here: cells that are read count too. */
            const size_t n = 2 * count_printed(variant, cells) + count_read(variant, cells);
            if (n > most) {
                most = n;
                memcpy(format, variant, sizeof variant);
            }
        }
}
