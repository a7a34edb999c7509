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
#include "data/time_format_internal.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const time_format_months[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
const char *const time_format_weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
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

const char *time_format_next(const char *at, struct time_conversion *conversion)
{
    *conversion = (struct time_conversion){0};
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

const char *time_format_expansion(char letter)
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
    struct time_conversion conversion;
    if (strlen(text) >= TIME_FORMAT_ROOM / 2)
        return fail(BAD_USER, "the time format is longer than %d characters",
                    TIME_FORMAT_ROOM / 2 - 1);
    for (const char *at = text; *at != '\0';) {
        if (*at++ != '%')
            continue;
        at = time_format_next(at, &conversion);
        if (conversion.letter == '\0' ||
            strchr("YymdebBhaAHIpMSfzsFDTRnt%", conversion.letter) == NULL)
            return fail(BAD_USER,
                        "time format '%s': unknown conversion %%%c; known are %%Y %%y %%m %%d "
                        "%%b %%a %%H %%I %%p %%M %%S %%f %%z %%s %%F %%D %%T and %%R",
                        text, conversion.letter != '\0' ? conversion.letter : ' ');
        seen[(unsigned char)conversion.letter] = 1;
        for (const char *e = time_format_expansion(conversion.letter); e != NULL && *e != '\0';
             e++)
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
    struct time_conversion c;
    for (const char *at = format; *at != '\0' && n + 1 < room;) {
        char *to = text + n;
        const size_t left = room - n;
        if (*at != '%') {
            text[n++] = *at++;
            text[n] = '\0';
            continue;
        }
        at = time_format_next(at + 1, &c);
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
            snprintf(to, left, "%.3s", time_format_months[month - 1]);
            break;
        case 'B':
            snprintf(to, left, "%s", time_format_months[month - 1]);
            break;
        case 'a':
            snprintf(to, left, "%.3s", time_format_weekdays[weekday]);
            break;
        case 'A':
            snprintf(to, left, "%s", time_format_weekdays[weekday]);
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
            if (time_format_expansion(c.letter) != NULL)
                print_date(time_format_expansion(c.letter), offset, seconds, microseconds, to,
                           left);
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
