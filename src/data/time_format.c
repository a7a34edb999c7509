/* Times are whole seconds and microseconds since 1970 in UTC, without leap seconds. A format
 * describes how a source wrote them. It is read and printed from left to right:
 *
 *     %Y %y          year: four digits; two digits, 69 to 99 are 1969 to 1999
 *     %m %d %e       month and day in one or two digits
 *     %b %B %h       English name of the month, short or long
 *     %a %A          English name of the weekday; it is not compared with the date
 *     %H %I %p       hour from 0 to 23; hour from 1 to 12 with AM or PM
 *     %M %S          minute, second; .5 or ,5 after the second is read too
 *     %f             digits of the fraction of a second; %3f prints three of them
 *     %z             offset from UTC: Z, +02, +0200 or +02:00; %:z prints the last form
 *     %s             seconds since 1970
 *     %F %D %T %R    %Y-%m-%d, %m/%d/%y, %H:%M:%S, %H:%M
 *     %n %t space    any number of blanks
 *     %%             a percent sign
 *
 * A minus as in %-d prints without a leading zero; reading accepts one or two digits anyway.
 * libc's strptime reads neither fractions nor offsets with a colon, and depends on the
 * locale. */
#include "data/time_format.h"
#include "base/fail.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

/* Years are counted from March, so that the leap day is the last of its year, in eras of 400
 * years. */
int64_t time_format_day(int64_t year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t year_of_era = y - era * 400;
    const int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
           day_of_year - 719468;
}

void time_format_date(int64_t day, int64_t *year, int *month, int *day_of_month)
{
    const int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t day_of_era = z - era * 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t from_march = (5 * day_of_year + 2) / 153;
    *day_of_month = (int)(day_of_year - (153 * from_march + 2) / 5) + 1;
    *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

/* One conversion of a format. */
struct conversion {
    char letter;   /* 0: not a conversion */
    int width;     /* of %3f; 0: none */
    bool unpadded; /* %-d */
    bool colon;    /* %:z */
};

/* Reads the conversion after a percent sign; returns the text after it. */
static const char *next_conversion(const char *at, struct conversion *conversion)
{
    *conversion = (struct conversion){0};
    if (*at == '-') {
        conversion->unpadded = true;
        at++;
    }
    if (*at == ':') {
        conversion->colon = true;
        at++;
    }
    if (isdigit((unsigned char)*at))
        conversion->width = *at++ - '0';
    conversion->letter = *at;
    return *at != '\0' ? at + 1 : at;
}

/* What %F and the like stand for; NULL for the others. */
static const char *expansion(char letter)
{
    switch (letter) {
    case 'F':
        return "%Y-%m-%d";
    case 'D':
        return "%m/%d/%y";
    case 'T':
        return "%H:%M:%S";
    case 'R':
        return "%H:%M";
    default:
        return NULL;
    }
}

enum status time_format_check(const char *text)
{
    char seen[256] = {0};
    struct conversion conversion;
    if (strlen(text) >= TIME_FORMAT_ROOM / 2)
        return fail(BAD_USER, "the time format is longer than %d characters",
                    TIME_FORMAT_ROOM / 2 - 1);
    for (const char *at = text; *at != '\0';) {
        if (*at++ != '%')
            continue;
        at = next_conversion(at, &conversion);
        if (conversion.letter == '\0' ||
            strchr("YymdebBhaAHIpMSfzsFDTRnt%", conversion.letter) == NULL)
            return fail(BAD_USER,
                        "time format '%s': unknown conversion %%%c; known are %%Y %%y %%m %%d "
                        "%%b %%a %%H %%I %%p %%M %%S %%f %%z %%s %%F %%D %%T and %%R",
                        text, conversion.letter != '\0' ? conversion.letter : ' ');
        seen[(unsigned char)conversion.letter] = 1;
        for (const char *e = expansion(conversion.letter); e != NULL && *e != '\0'; e++)
            seen[(unsigned char)*e] = 1;
    }
    const bool day = seen['d'] || seen['e'],
               month = seen['m'] || seen['b'] || seen['B'] || seen['h'];
    if (!seen['s'] && !(day && month && (seen['Y'] || seen['y'])))
        return fail(BAD_USER,
                    "time format '%s' does not determine a day; expected %%Y, %%m and %%d, as "
                    "in '%%d.%%m.%%Y %%H:%%M', or %%s",
                    text);
    if (seen['I'] != seen['p'])
        return fail(BAD_USER, "time format '%s': %%I and %%p (AM or PM) belong together", text);
    return OK;
}

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
        return read_name(at, end, months, COUNT(months), &fields->month);
    case 'a':
    case 'A':
        return read_name(at, end, weekdays, COUNT(weekdays), &number);
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
    struct conversion conversion;
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
        format = next_conversion(format, &conversion);
        const char *inner = expansion(conversion.letter);
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

/* Numbers with `units` per second, with as many decimals as the text after the unit asks for.
 * A product that does not fit is shown in seconds. */
static void print_number(const char *decimals, int64_t units, int64_t seconds,
                         uint32_t microseconds, char text[TIME_FORMAT_ROOM])
{
    const int n_decimals = decimals[0] == '.' ? atoi(decimals + 1) : 0;
    int64_t value = 0;
    if (units > 1) {
        const int64_t rest = units <= 1000000 ? (int64_t)microseconds / (1000000 / units)
                                              : (int64_t)microseconds * (units / 1000000);
        if (__builtin_mul_overflow(seconds, units, &value) ||
            __builtin_add_overflow(value, rest, &value))
            value = seconds;
        snprintf(text, TIME_FORMAT_ROOM, "%lld", (long long)value);
        return;
    }
    if (n_decimals <= 0 || n_decimals > 6) {
        snprintf(text, TIME_FORMAT_ROOM, "%lld", (long long)seconds);
        return;
    }
    /* -1.25 is second -2 and 750,000 microseconds. */
    const bool negative = seconds < 0 && microseconds > 0;
    int fraction = (int)(negative ? 1000000 - microseconds : microseconds);
    for (int i = n_decimals; i < 6; i++)
        fraction /= 10;
    const int64_t whole = negative ? seconds + 1 : seconds;
    snprintf(text, TIME_FORMAT_ROOM, "%s%lld.%0*d", negative && whole == 0 ? "-" : "",
             (long long)whole, n_decimals, fraction);
}

static size_t print_date(const char *format, int64_t offset, int64_t seconds,
                         uint32_t microseconds, char *text, size_t room)
{
    int64_t local = 0;
    if (__builtin_add_overflow(seconds, 60 * offset, &local))
        local = seconds;
    const int64_t day = local / 86400 - (local % 86400 < 0);
    const int rest = (int)(local - 86400 * day), hour = rest / 3600;
    const int weekday = (int)(((day + 4) % 7 + 7) % 7);
    int64_t year = 0;
    int month = 0, day_of_month = 0;
    time_format_date(day, &year, &month, &day_of_month);
    size_t n = 0;
    struct conversion c;
    for (const char *at = format; *at != '\0' && n + 1 < room;) {
        char *to = text + n;
        const size_t left = room - n;
        if (*at != '%') {
            text[n++] = *at++;
            text[n] = '\0';
            continue;
        }
        at = next_conversion(at + 1, &c);
        const int width = c.unpadded ? 1 : 2, shift = (int)offset;
        int fraction = (int)microseconds;
        switch (c.letter) {
        case 'Y':
            snprintf(to, left, "%04lld", (long long)year);
            break;
        case 'y':
            snprintf(to, left, "%02d", (int)(year % 100));
            break;
        case 'm':
            snprintf(to, left, "%0*d", width, month);
            break;
        case 'd':
        case 'e':
            snprintf(to, left, "%0*d", width, day_of_month);
            break;
        case 'b':
        case 'h':
            snprintf(to, left, "%.3s", months[month - 1]);
            break;
        case 'B':
            snprintf(to, left, "%s", months[month - 1]);
            break;
        case 'a':
            snprintf(to, left, "%.3s", weekdays[weekday]);
            break;
        case 'A':
            snprintf(to, left, "%s", weekdays[weekday]);
            break;
        case 'H':
            snprintf(to, left, "%0*d", width, hour);
            break;
        case 'I':
            snprintf(to, left, "%0*d", width, (hour + 11) % 12 + 1);
            break;
        case 'p':
            snprintf(to, left, "%s", hour < 12 ? "AM" : "PM");
            break;
        case 'M':
            snprintf(to, left, "%02d", rest / 60 % 60);
            break;
        case 'S':
            snprintf(to, left, "%02d", rest % 60);
            break;
        case 's':
            snprintf(to, left, "%lld", (long long)seconds);
            break;
        case 'f':
            for (int i = c.width > 0 ? c.width : 6; i < 6; i++)
                fraction /= 10;
            snprintf(to, left, "%0*d", c.width > 0 && c.width < 6 ? c.width : 6, fraction);
            break;
        case 'z':
            snprintf(to, left, "%c%02d%s%02d", shift < 0 ? '-' : '+', abs(shift) / 60,
                     c.colon ? ":" : "", abs(shift) % 60);
            break;
        default:
            if (expansion(c.letter) != NULL)
                print_date(expansion(c.letter), offset, seconds, microseconds, to, left);
            else
                snprintf(to, left, "%s", c.letter == '%' ? "%" : " ");
        }
        n += strlen(to);
    }
    return n;
}

void time_format_print(const struct time_format *format, int64_t seconds, uint32_t microseconds,
                       char text[TIME_FORMAT_ROOM])
{
    static const struct {
        const char *unit;
        int64_t per_second;
    } units[] = {{"ms", 1000}, {"us", 1000000}, {"ns", 1000000000}, {"s", 1}, {"", 1}};
    for (size_t u = 0; u < COUNT(units); u++) {
        const size_t n = strlen(units[u].unit);
        if (strncmp(format->text, units[u].unit, n) == 0 &&
            (format->text[n] == '\0' || format->text[n] == '.')) {
            print_number(format->text + n, units[u].per_second, seconds, microseconds, text);
            return;
        }
    }
    text[0] = '\0';
    print_date(format->text, format->offset, seconds, microseconds, text, TIME_FORMAT_ROOM);
}
