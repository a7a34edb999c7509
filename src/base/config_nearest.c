/* Suggestions for words that are not known. */
#include "base/config.h"
#include <ctype.h>
#include <string.h>

/* Letters in another case are the same letters. */
static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Damerau's distance with three rows of its table, cut off at words of 63 letters. */
int config_distance(const char *a, const char *b)
{
    int rows[3][64];
    const int n = (int)size_min(strlen(b), 63);
    int *last = rows[0], *row = rows[1], *next = rows[2];
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        next[0] = i;
        for (int j = 1; j <= n; j++) {
            const int change = row[j - 1] + !is_same(a[i - 1], b[j - 1]);
            const int other = row[j] < next[j - 1] ? row[j] + 1 : next[j - 1] + 1;
            next[j] = change < other ? change : other;
            if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]) &&
                last[j - 2] + 1 < next[j])
                next[j] = last[j - 2] + 1;
        }
        int *const free_row = last;
        last = row;
        row = next;
        next = free_row;
    }
    return row[n];
}

const char *config_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    int least = 1 + (int)strlen(word) / 2;
    for (size_t i = 0; i < n; i++) {
        const int d = config_distance(word, names[i]);
        if (d < least) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}
