/* The same settings and data give the same bits with one version of cohort, not with all: now
 * and then a model learns or predicts by other arithmetic, and a run that was begun before and
 * is continued after is what neither version would have made of it alone.
 *
 * Whoever changes bits adds a line below. The revision of a kind is 1 and one more for each of
 * its lines. */
#include "numerics.h"
#include "memory.h"
#include <string.h>

static const struct {
    const char *kind, *change;
} changes[] = {
    {"rtrbm", "products are no longer summed by the BLAS"},
    {"dkt", "products are no longer summed by the BLAS"},
    {"vae", "products are no longer summed by the BLAS, and widths of posteriors are bounded"},
    {"rbm", "gaussian and relu hidden units have smaller rates"},
    {"ktm", "students are predicted by what was shown before, not by their trained rows"},
};

int64_t numerics_revision(const char *kind)
{
    int64_t revision = 1;
    for (size_t c = 0; c < COUNT(changes); c++)
        revision += strcmp(changes[c].kind, kind) == 0;
    return revision;
}

char *numerics_since(const char *kind, int64_t revision)
{
    char *list = NULL;
    int64_t current = 1;
    for (size_t c = 0; c < COUNT(changes); c++) {
        if (strcmp(changes[c].kind, kind) != 0 || ++current <= revision)
            continue;
        char *longer =
            memory_text("%s%s%s", list ? list : "", list ? "; " : "", changes[c].change);
        memory_free(list);
        list = longer;
    }
    return list;
}
