/* Parses settings that change from epoch to epoch, written as epoch:value pairs. */
#include "learn/epoch_values.h"
#include <stdlib.h>

bool epoch_values_at(const char *text, int64_t epoch, int64_t most, int64_t *value)
{
    int64_t last = -1;
    for (const char *p = text; *p != '\0';) {
        char *end = NULL;
        const long long from = strtoll(p, &end, 10);
        if (end == p || *end != ':' || from <= last)
            return false;
        p = end + 1;
        const long long n = strtoll(p, &end, 10);
        if (end == p || n < 1 || n > most || (*end != '\0' && *end != ' '))
            return false;
        last = from;
        if (epoch >= from)
            *value = n;
        for (p = end; *p == ' ';)
            p++;
    }
    return true;
}
