/* Reads a date from left to right: each conversion of the format takes its characters and fills a
 * field, then the fields become a moment. A date in ISO form, which most sources have, is read by
 * the positions of its digits. */
#include "data/time_format_internal.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* The fields of a date while it is read. */
struct fields {
    int64_t year, epoch;
    int month, day, hour, minute, second, microsecond;
    bool pm, am, has_epoch;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads least to most digits at *at. */
static bool read_number(const char **at, const char *end, int least, int most, int *value)
{
    int n = 0;
    *value = 0;
    for (; n < most && *at < end && is_digit(**at); n++)
        *value = 10 * *value + (*(*at)++ - '0');
    return n >= least;
}

/* Digits of a fraction: the first six count. */
static bool read_fraction(const char **at, const char *end, struct fields *fields,
                          struct time_reading *reading)
{
    int n = 0, weight = 100000;
    fields->microsecond = 0;
    for (; n < 9 && *at < end && is_digit(**at); n++, weight /= 10)
        fields->microsecond += weight * (*(*at)++ - '0');
    reading->n_decimals = n > 6 ? 6 : n;
    return n > 0;
}

static bool read_name(const char **at, const char *end, const char *const *names, int n,
                      int *number)
{
    for (int i = 0; i < n; i++)
        for (int is_short = 0; is_short < 2; is_short++) {
            const size_t length = is_short ? 3 : strlen(names[i]);
            if ((size_t)(end - *at) >= length && strncasecmp(*at, names[i], length) == 0) {
                *at += length;
                *number = i + 1;
                return true;
            }
        }
    return false;
}

static bool read_offset(const char **at, const char *end, struct time_reading *reading)
{
    int hours = 0, minutes = 0;
    if (*at < end && (**at == 'Z' || **at == 'z')) {
        ++*at;
        return true;
    }
    if (*at == end || (**at != '+' && **at != '-'))
        return false;
    const int sign = *(*at)++ == '-' ? -1 : 1;
    if (!read_number(at, end, 2, 2, &hours))
        return false;
    if (*at < end && **at == ':') {
        ++*at;
        if (!read_number(at, end, 2, 2, &minutes))
            return false;
    } else if (*at < end && is_digit(**at) && !read_number(at, end, 2, 2, &minutes)) {
        return false;
    }
    reading->offset = sign * (60 * hours + minutes);
    return hours <= 23 && minutes <= 59;
}

static bool read_epoch(const char **at, const char *end, struct fields *fields)
{
    const bool negative = *at < end && **at == '-';
    int n = 0;
    *at += negative;
    for (fields->epoch = 0; n < 12 && *at < end && is_digit(**at); n++)
        fields->epoch = 10 * fields->epoch + (*(*at)++ - '0');
    fields->epoch = negative ? -fields->epoch : fields->epoch;
    fields->has_epoch = true;
    return n > 0;
}

static bool read_year(const char **at, const char *end, bool is_short, struct fields *fields)
{
    int number = 0;
    const int n = is_short ? 2 : 4;
    if (!read_number(at, end, n, n, &number))
        return false;
    fields->year = is_short ? number + (number < 69 ? 2000 : 1900) : number;
    return true;
}

/* Noon and midnight are 12 PM and 12 AM. */
static bool read_half(const char **at, const char *end, struct fields *fields)
{
    if (end - *at < 2 || toupper((unsigned char)(*at)[1]) != 'M')
        return false;
    fields->pm = toupper((unsigned char)**at) == 'P';
    fields->am = toupper((unsigned char)**at) == 'A';
    *at += 2;
    return fields->pm || fields->am;
}

static bool read_second(const char **at, const char *end, const char *format,
                        struct fields *fields, struct time_reading *reading)
{
    if (!read_number(at, end, 1, 2, &fields->second))
        return false;
    const bool more =
        end - *at >= 2 && (**at == '.' || **at == ',') && is_digit((*at)[1]) && *format != **at;
    if (!more)
        return true;
    ++*at;
    return read_fraction(at, end, fields, reading);
}

static bool read_conversion(char letter, const char *format, const char **at, const char *end,
                            struct fields *fields, struct time_reading *reading)
{
    int number = 0;
    switch (letter) {
    case 'Y':
        return read_year(at, end, false, fields);
    case 'y':
        return read_year(at, end, true, fields);
    case 'm':
        return read_number(at, end, 1, 2, &fields->month);
    case 'd':
    case 'e':
        return read_number(at, end, 1, 2, &fields->day);
    case 'b':
    case 'B':
    case 'h':
        return read_name(at, end, time_format_months, COUNT(time_format_months),
                         &fields->month);
    case 'a':
    case 'A':
        return read_name(at, end, time_format_weekdays, COUNT(time_format_weekdays), &number);
    case 'I':
    case 'H':
        return read_number(at, end, 1, 2, &fields->hour);
    case 'M':
        return read_number(at, end, 1, 2, &fields->minute);
    case 'S':
        return read_second(at, end, format, fields, reading);
    case 'p':
        return read_half(at, end, fields);
    case 'f':
        return read_fraction(at, end, fields, reading);
    case 'z':
        return read_offset(at, end, reading);
    case 's':
        return read_epoch(at, end, fields);
    default:
        return false;
    }
}

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
}

static bool read_fields(const char *format, const char **at, const char *end,
                        struct fields *fields, struct time_reading *reading)
{
    struct time_conversion conversion;
    while (*format != '\0') {
        const char c = *format++;
        if (c == ' ') {
            skip_blanks(at, end);
            continue;
        }
        if (c != '%') {
            if (*at == end || *(*at)++ != c)
                return false;
            continue;
        }
        format = time_format_next(format, &conversion);
        const char *inner = time_format_expansion(conversion.letter);
        if (conversion.letter == 'n' || conversion.letter == 't') {
            skip_blanks(at, end);
        } else if (conversion.letter == '%') {
            if (*at == end || *(*at)++ != '%')
                return false;
        } else if (inner != NULL ? !read_fields(inner, at, end, fields, reading)
                                 : !read_conversion(conversion.letter, format, at, end, fields,
                                                    reading)) {
            return false;
        }
    }
    return true;
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

/* Second 60 is a leap second, which is the first second of the next minute here. */
static bool combine(const struct fields *fields, struct time_reading *reading)
{
    int64_t seconds = fields->epoch;
    if (!fields->has_epoch) {
        const bool half = fields->am || fields->pm;
        if (fields->month < 1 || fields->month > 12 || fields->day < 1 ||
            fields->day > days_in_month(fields->year, fields->month) || fields->hour > 23 ||
            (half && (fields->hour < 1 || fields->hour > 12)) || fields->minute > 59 ||
            fields->second > 60)
            return false;
        const int hour = half ? fields->hour % 12 + (fields->pm ? 12 : 0) : fields->hour;
        seconds =
            ((time_format_day(fields->year, fields->month, fields->day) * 24 + hour) * 60 +
             fields->minute - reading->offset) *
                60 +
            fields->second;
    }
    reading->microseconds = seconds * 1000000 + fields->microsecond;
    return true;
}

bool time_format_read(const char *format, const char *text, size_t n,
                      struct time_reading *reading)
{
    struct fields fields = {0};
    const char *at = text, *end = text + n;
    *reading = (struct time_reading){0};
    return read_fields(format, &at, end, &fields, reading) && at == end &&
           combine(&fields, reading);
}

/* The number in exactly n digits at `text`, or -1. */
static int digits(const char *text, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (!is_digit(text[i]))
            return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

bool time_format_read_iso(const char *text, size_t n, struct time_reading *reading)
{
    const char *at = text + 10, *end = text + n;
    *reading = (struct time_reading){0};
    if (n < 10 || text[4] != '-' || text[7] != '-')
        return false;
    const int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
    if (year < 0 || month < 0 || day < 0)
        return false;
    struct fields fields = {.year = year, .month = month, .day = day};
    if (at == end)
        return combine(&fields, reading);
    if (n < 16 || (*at != ' ' && *at != 'T' && *at != 't') || text[13] != ':')
        return false;
    fields.hour = digits(text + 11, 2);
    fields.minute = digits(text + 14, 2);
    at = text + 16;
    if (fields.hour < 0 || fields.minute < 0)
        return false;
    if (at < end && *at == ':') {
        if (end - at < 3 || (fields.second = digits(at + 1, 2)) < 0)
            return false;
        at += 3;
        if (at < end && (*at == '.' || *at == ',')) {
            at++;
            if (!read_fraction(&at, end, &fields, reading))
                return false;
        }
    }
    skip_blanks(&at, end);
    if (at < end && !read_offset(&at, end, reading))
        return false;
    return at == end && combine(&fields, reading);
}
