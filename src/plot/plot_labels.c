/* Names beside points of a plot. Each name is tried to the right and left of its point, above and
 * below it, and goes where it first fits into the plot and covers neither an earlier name nor a
 * point. A name that fits nowhere is left out: names come in the order of their importance.
 *
 *           name
 *     name   o   name
 *           name */
#include "plot/html.h"
#include "plot/plot_internal.h"

enum { CHARACTER = 8, LINE = 16, AWAY = 7, MOST_NAME = 16, MOST_PLACED = 12, N_SIDES = 4 };

struct box {
    double left, top, right, bottom;
};

static struct box beside(const struct plot_spot *spot, size_t side, double width)
{
    const double middle = spot->x - width / 2;
    const double left = side == 0   ? spot->x + AWAY
                        : side == 1 ? spot->x - AWAY - width
                                    : middle;
    const double top = side < 2    ? spot->y - LINE / 2.0
                       : side == 2 ? spot->y - AWAY - LINE
                                   : spot->y + AWAY;
    return (struct box){left, top, left + width, top + LINE};
}

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool covers(const struct box *box, const struct plot_spot *spots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spots[i].x > box->left - 3 && spots[i].x < box->right + 3 &&
            spots[i].y > box->top - 1 && spots[i].y < box->bottom + 1)
            return true;
    return false;
}

void plot_labels_draw(FILE *out, const struct plot_spot *labels, size_t n,
                      const struct plot_spot *points, size_t n_points,
                      const struct plot_spot corners[2])
{
    struct box placed[MOST_PLACED];
    size_t n_placed = 0;
    for (size_t k = 0; k < n && n_placed < MOST_PLACED; k++) {
        const double width =
            (double)(size_min(html_columns(labels[k].name), MOST_NAME) * CHARACTER);
        struct box box;
        bool fits = false;
        for (size_t side = 0; side < N_SIDES && !fits; side++) {
            box = beside(&labels[k], side, width);
            fits = box.left >= corners[0].x && box.right <= corners[1].x &&
                   box.top >= corners[0].y && box.bottom <= corners[1].y &&
                   !covers(&box, points, n_points);
            for (size_t p = 0; p < n_placed; p++)
                fits &= !overlap(&box, &placed[p]);
        }
        if (!fits)
            continue;
        placed[n_placed++] = box;
        fprintf(out, "<text class=\"ink named\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                (box.left + box.right) / 2, box.bottom - 4);
        html_cut(out, labels[k].name, MOST_NAME);
        fputs("</text>\n", out);
    }
}
