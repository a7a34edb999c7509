/* Cells are parsed in place, without copies: they have a length, not a NUL byte at the end. */
#include "data_tools/csv_cell.h"
#include "data/time_format.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool csv_cell_is_missing(struct span cell)
{
    static const char *const words[] = {"null", "na", "nan", "none", "n/a", "\\n"};
    const char first = cell.n > 0 ? cell.start[0] : 0;
    if (cell.n > 4 || (first != 'n' && first != 'N' && first != '\\'))
        return cell.n == 0;
    for (size_t w = 0; w < COUNT(words); w++)
        if (span_is(cell, words[w]))
            return true;
    return false;
}

bool csv_cell_outcome(struct span cell, enum outcome *outcome)
{
    if (cell.n == 1 && (cell.start[0] == '0' || cell.start[0] == '1')) {
        *outcome = cell.start[0] == '1' ? CORRECT : INCORRECT;
        return true;
    }
    static const char *const words[][2] = {
        {"0.0", "1.0"},     {"false", "true"}, {"incorrect", "correct"},
        {"wrong", "right"}, {"no", "yes"},     {"f", "t"},
        {"n", "y"},
    };
    for (size_t w = 0; w < COUNT(words); w++)
        for (int o = 0; o < 2; o++)
            if (span_is(cell, words[w][o])) {
                *outcome = (enum outcome)o;
                return true;
            }
    *outcome = UNKNOWN;
    return csv_cell_is_missing(cell);
}

bool csv_cell_number(struct span cell, double *value)
{
    char text[64];
    if (cell.n == 0 || cell.n >= sizeof text)
        return false;
    memcpy(text, cell.start, cell.n);
    text[cell.n] = '\0';
    char *end = NULL;
    *value = strtod(text, &end);
    return *end == '\0' && strpbrk(text, "xX") == NULL && fabs(*value) <= DATASET_MOST;
}

bool csv_cell_integer(struct span cell, int64_t *value)
{
    enum { SAFE_DIGITS = 18 }; /* cannot overflow */
    const bool negative = cell.n > 0 && cell.start[0] == '-';
    const char *digit = cell.start + negative, *end = cell.start + cell.n;
    const char *safe_end = digit + size_min(SAFE_DIGITS, (size_t)(end - digit));
    int64_t sum = 0;
    if (digit == end)
        return false;
    for (; digit < safe_end; digit++) {
        const unsigned d = (unsigned)(*digit - '0');
        if (d > 9)
            return false;
        sum = 10 * sum + (int64_t)d;
    }
    for (; digit < end; digit++) {
        const unsigned d = (unsigned)(*digit - '0');
        if (d > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, d, &sum))
            return false;
    }
    *value = negative ? -sum : sum;
    return true;
}

bool csv_cell_time(struct span cell, int64_t units_per_second, int64_t *milliseconds)
{
    int64_t value = 0;
    if (csv_cell_integer(cell, &value)) {
        if (units_per_second >= 1000)
            value /= units_per_second / 1000;
        else if (__builtin_mul_overflow(value, 1000 / units_per_second, &value))
            return false;
        *milliseconds = value;
        return true;
    }
    struct time_reading reading;
    if (time_format_read_iso(cell.start, cell.n, &reading)) {
        *milliseconds = reading.microseconds / 1000 - (reading.microseconds % 1000 < 0);
        return true;
    }
    char text[48];
    if (cell.n == 0 || cell.n >= sizeof text)
        return false;
    memcpy(text, cell.start, cell.n);
    text[cell.n] = '\0';
    char *end = NULL;
    const double number = strtod(text, &end) * (1000 / (double)units_per_second);
    if (*end != '\0' || strpbrk(text, "xX") != NULL || !(fabs(number) < 9e18))
        return false;
    *milliseconds = (int64_t)floor(number);
    return true;
}

/* The position of `text` in the span, or its end if missing. */
static size_t find(struct span span, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= span.n; i++)
        if (memcmp(span.start + i, text, n) == 0)
            return i;
    return span.n;
}

static bool is_number_list(struct span list, const char *between)
{
    size_t n_digits = 0;
    for (size_t i = 0; i < list.n; i++) {
        const bool is_digit = isdigit((unsigned char)list.start[i]);
        if (!is_digit && strchr(between, list.start[i]) == NULL)
            return false;
        n_digits += is_digit;
    }
    return n_digits > 0 && n_digits < list.n;
}

static const char *guess_separator(struct span list)
{
    static const char *const sure[] = {"~~", ";", "|"};
    for (size_t g = 0; g < COUNT(sure); g++)
        if (find(list, sure[g]) < list.n)
            return sure[g];
    return is_number_list(list, " ") ? " " : is_number_list(list, ", ") ? "," : "";
}

struct csv_cell_list csv_cell_list(struct span cell, const char *separator)
{
    static const char *const words[][2] = {{"space", " "}, {"comma", ","}, {"semicolon", ";"}};
    struct span list = span_trim(cell);
    if (strcmp(separator, "none") == 0)
        return (struct csv_cell_list){list, ""};
    if (list.n >= 2 && list.start[0] == '[' && list.start[list.n - 1] == ']')
        return (struct csv_cell_list){{list.start + 1, list.n - 2}, ","};
    if (strcmp(separator, "auto") == 0)
        return (struct csv_cell_list){list, guess_separator(list)};
    for (size_t w = 0; w < COUNT(words); w++)
        if (strcmp(separator, words[w][0]) == 0)
            separator = words[w][1];
    return (struct csv_cell_list){list, separator};
}

bool csv_cell_list_next(struct csv_cell_list *list, struct span *piece)
{
    const size_t n_separator = strlen(list->separator);
    while (list->rest.n > 0) {
        const size_t n = n_separator > 0 ? find(list->rest, list->separator) : list->rest.n;
        *piece = span_trim((struct span){list->rest.start, n});
        const size_t taken = size_min(list->rest.n, n + n_separator);
        list->rest.start += taken;
        list->rest.n -= taken;
        if (piece->n >= 2 && strchr("'\"", piece->start[0]) != NULL &&
            piece->start[piece->n - 1] == piece->start[0]) { /* ['a', 'b'] */
            piece->start++;
            piece->n -= 2;
        }
        if (!csv_cell_is_missing(*piece))
            return true;
    }
    return false;
}

void csv_cell_say_time(int64_t seconds, char text[CELL_TIME_ROOM])
{
    const int64_t day = seconds >= 0 ? seconds / 86400 : -1;
    if (day < 3650 || day > 36500) { /* before 1980 or after 2069: not likely a date */
        snprintf(text, CELL_TIME_ROOM, "%lld", (long long)seconds);
        return;
    }
    int64_t year = 0;
    int month = 0, day_of_month = 0;
    time_format_date(day, &year, &month, &day_of_month);
    const int rest = (int)(seconds % 86400);
    snprintf(text, CELL_TIME_ROOM, "%04d-%02d-%02d %02d:%02d:%02d", (int)year, month,
             day_of_month, rest / 3600, rest / 60 % 60, rest % 60);
}
