/* The numbers of a plot as CSV: one line per point of a series. An axis with names has the name
 * instead of the number. Points that are not drawn, and cells that a series does not have, are
 * left out. */
#include "base/csv_quote.h"
#include "plot/plot_internal.h"
#include <math.h>

static void print_number(FILE *out, const double *values, size_t i)
{
    fputc(',', out);
    if (values != NULL && isfinite(values[i]))
        fprintf(out, "%.9g", values[i]);
}

static void print_place(FILE *out, const struct plot_axis *axis, const double *values, size_t i)
{
    if (axis->names == NULL || !(values[i] >= 0) || values[i] >= (double)axis->n_names) {
        print_number(out, values, i);
        return;
    }
    fputc(',', out);
    csv_quote(out, axis->names[(size_t)values[i]]);
}

void plot_numbers(FILE *out, const void *what)
{
    const struct plot *plot = what;
    bool named = false;
    for (size_t s = 0; s < plot->n_series; s++)
        named |= plot->series[s].names != NULL;
    fprintf(out, "series,x,y,low,high,weight%s\n", named ? ",name" : "");
    for (size_t s = 0; s < plot->n_series; s++) {
        const struct plot_series *one = &plot->series[s];
        for (size_t i = 0; i < one->n; i++) {
            if (!plot_is_there(one, i))
                continue;
            csv_quote(out, one->name != NULL          ? one->name
                           : one->style == PLOT_GUIDE ? "guide"
                                                      : plot->title);
            print_place(out, &plot->x, one->x, i);
            print_place(out, &plot->y, one->y, i);
            print_number(out, one->low, i);
            print_number(out, one->low != NULL ? one->high : NULL, i);
            print_number(out, one->weight, i);
            if (named)
                fputc(',', out);
            if (one->names != NULL)
                csv_quote(out, one->names[i]);
            fputc('\n', out);
        }
    }
}
