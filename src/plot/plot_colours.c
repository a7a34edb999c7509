/* The one table of all colours, on a light screen, on a dark one and on paper. A page has them
 * as variables of its style sheet; a picture in a file of its own has those of paper. */
#include "plot/plot_colours.h"
#include "base/base.h"
#include <string.h>

enum { LIGHT, DARK, PAPER, N_MEDIA };

static const struct {
    const char *name, *value[N_MEDIA];
} colours[] = {
    {"paper", {"#fff", "#14181f", "#fff"}},
    {"ink", {"#1c2430", "#e6e9ee", "#000"}},
    {"soft", {"#5b6675", "#9aa5b4", "#444"}},
    {"line", {"#d5dbe3", "#343c48", "#bbb"}},
    {"tint", {"#f3f5f9", "#1d232c", "#f4f4f4"}},
    {"good", {"#0a7d54", "#4cc38a", "#056b45"}},
    {"warn", {"#b45309", "#f0b429", "#8a4b00"}},
    {"amber", {"#fff4df", "#2e2510", "#fff8ec"}},
    /* of the series of a plot */
    {"c0", {"#1f5fbf", "#6ea8fe", "#1f5fbf"}},
    {"c1", {"#c2570c", "#ff9d5c", "#c2570c"}},
    {"c2", {"#0a7d54", "#4cc38a", "#0a7d54"}},
    {"c3", {"#8a3ffc", "#b794f6", "#8a3ffc"}},
    {"c4", {"#b0214b", "#ff7a9c", "#b0214b"}},
    {"c5", {"#0e7490", "#4fd1e0", "#0e7490"}},
    {"c6", {"#7a5c00", "#e0b93a", "#7a5c00"}},
    {"c7", {"#6b7280", "#9aa5b4", "#555"}},
};

static void set(FILE *out, const char *schemes, int medium)
{
    fprintf(out, ":root{color-scheme:%s", schemes);
    for (size_t c = 0; c < COUNT(colours); c++)
        fprintf(out, ";--%s:%s", colours[c].name, colours[c].value[medium]);
    fputs("}", out);
}

void plot_colours_style(FILE *out)
{
    set(out, "light dark", LIGHT);
    fputs("\n@media (prefers-color-scheme:dark){", out);
    set(out, "light dark", DARK);
    fputs("}\n@media print{", out);
    set(out, "light", PAPER);
    fputs("}\n", out);
}

const char *plot_colours_of(const char *name, size_t n)
{
    for (size_t c = 0; c < COUNT(colours); c++)
        if (strlen(colours[c].name) == n && strncmp(colours[c].name, name, n) == 0)
            return colours[c].value[PAPER];
    return "#000";
}
