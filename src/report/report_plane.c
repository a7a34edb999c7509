/* Items as a model with hidden units sees them. The weights w_i1 ... w_im of item i tell how far
 * each hidden unit moves the log-odds of a right answer at it. Items with similar weights are
 * answered right by the same students.
 *
 * Two hidden units are the axes themselves. More of them are reduced to the first two principal
 * components of the weights (learn/components.c), the directions in which items differ most. If
 * there are many items, those with the most attempts are drawn, since their weights are known
 * best. Items have the colour of their group or, without groups, of their first skill; names
 * stand at those farthest from the centre, in units of the standard deviations of both axes. */
#include "base/memory.h"
#include "learn/components.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_inside.h"
#include "report/report_mastery.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ITEMS = 300, FEWEST_ITEMS = 3, MOST_LABELS = 12 };

/* Collective: attempts at each item of the model. */
static int64_t *count_attempts(const struct inference *inference)
{
    const struct shard *shard = &inference->shard;
    const size_t n = inference->dataset.n_items;
    int64_t *count = NEW(int64_t, n);
    for (uint64_t t = 0; t < shard->n_attempts; t++) {
        const uint32_t item = stand_ins_asked(&inference->stand_ins, shard, t);
        if (item < n)
            count[item]++;
    }
    comm_sum_i64(inference->comm, count, n);
    return count;
}

static char *unit_axis(const struct model *model, size_t j)
{
    char name[32];
    if (model->kind->view.hidden_name == NULL)
        return memory_text("weight of hidden unit %zu", j + 1);
    model->kind->view.hidden_name(model, j, name);
    return memory_text("weight of %s", name);
}

/* False if the items do not differ. */
static bool place(struct report_plane *plane, const struct inference *inference,
                  const uint32_t *item, size_t m)
{
    const struct model *model = inference->model;
    real *row = NEW_SCRATCH(real, m);
    double *weight = NEW_SCRATCH(double, plane->n *m), share[2] = {0};
    double *score = NEW_SCRATCH(double, 2 * plane->n);
    plane->x = NEW_SCRATCH(double, plane->n);
    plane->y = NEW_SCRATCH(double, plane->n);
    for (size_t i = 0; i < plane->n; i++) {
        model->kind->view.loadings(model, inference->work, item[i], row);
        for (size_t j = 0; j < m; j++)
            weight[i * m + j] = (double)row[j];
    }
    const double variance = components_take(weight, plane->n, m, 2, score, share);
    for (size_t i = 0; i < plane->n; i++) {
        plane->x[i] = m == 2 ? weight[2 * i] : score[2 * i];
        plane->y[i] = m == 2 ? weight[2 * i + 1] : score[2 * i + 1];
    }
    for (size_t c = 0; c < 2; c++)
        plane->axis[c] =
            m == 2 ? unit_axis(model, c)
                   : memory_text("component %zu (%.0f %% of variance)", c + 1, 100 * share[c]);
    memory_free(row);
    memory_free(weight);
    memory_free(score);
    return variance > 0 && isfinite(variance);
}

/* The group of an item, or its first skill; -1: none. */
static int64_t class_of(const struct dataset *dataset, bool by_group, uint32_t item)
{
    if (by_group)
        return dataset->item_group[item] < (int64_t)dataset->n_groups
                   ? dataset->item_group[item]
                   : -1;
    return dataset->item_first[item] < dataset->item_first[item + 1]
               ? (int64_t)dataset->item_skills[dataset->item_first[item]]
               : -1;
}

/* The classes with the most items have colours of their own; the others share the last. */
static void colour(struct report_plane *plane, const struct dataset *dataset,
                   const uint32_t *item)
{
    const bool by_group = dataset->n_groups > 1;
    const size_t n = by_group ? dataset->n_groups : dataset->n_skills;
    const struct names *names = by_group ? &dataset->groups : &dataset->skills;
    int64_t *count = NEW(int64_t, n), n_none = 0;
    uint32_t *chosen = NULL;
    size_t n_all = 0;
    plane->colour = NEW(uint8_t, plane->n);
    for (size_t i = 0; i < plane->n && n > 0; i++) {
        const int64_t k = class_of(dataset, by_group, item[i]);
        if (k >= 0)
            count[k]++;
        else
            n_none++;
    }
    size_t n_own = report_sample_most(count, n, REPORT_PLANE_COLOURS, &chosen, &n_all);
    if (n_all + (n_none > 0) > REPORT_PLANE_COLOURS)
        n_own = REPORT_PLANE_COLOURS - 1;
    for (size_t k = 0; k < n_own; k++) {
        const char *name = names_get(names, chosen[k]);
        names_add(&plane->legend, name, strlen(name));
    }
    if (n_own > 0 && (n_none > 0 || n_own < n_all))
        names_add(&plane->legend, "other", 5);
    plane->by = n_own == 0 ? NULL : by_group ? "group" : "skill";
    for (size_t i = 0; i < plane->n && n_own > 0; i++) {
        const int64_t class = class_of(dataset, by_group, item[i]);
        size_t k = 0;
        while (k < n_own && (int64_t)chosen[k] != class)
            k++;
        plane->colour[i] = (uint8_t)k;
    }
    memory_free(count);
    memory_free(chosen);
}

void report_plane_measure(struct report_plane *plane, const struct inference *inference)
{
    const struct model *model = inference->model;
    if (model->kind->view.loadings == NULL)
        return;
    const size_t m = model->kind->view.loadings(model, inference->work, 0, NULL);
    if (m < 2)
        return;
    int64_t *count = count_attempts(inference);
    uint32_t *item = NULL;
    const size_t n =
        report_sample_most(count, inference->dataset.n_items, MOST_ITEMS, &item, &plane->n_all);
    if (inference->comm->rank == 0 && n >= FEWEST_ITEMS) {
        plane->n = n;
        plane->n_hidden = m;
        if (!place(plane, inference, item, m))
            report_plane_free(plane);
    }
    if (plane->n > 0)
        colour(plane, &inference->dataset, item);
    for (size_t i = 0; i < plane->n; i++) {
        const char *name = names_get(&inference->dataset.items, item[i]);
        names_add(&plane->items, name, strlen(name));
    }
    memory_free(count);
    memory_free(item);
}

void report_plane_free(struct report_plane *plane)
{
    void *const parts[] = {plane->x, plane->y, plane->colour, plane->axis[0], plane->axis[1]};
    for (size_t p = 0; p < COUNT(parts); p++)
        memory_free(parts[p]);
    names_free(&plane->items);
    names_free(&plane->legend);
    *plane = (struct report_plane){0};
}

struct far {
    double distance;
    size_t i;
};

static int compare(const void *a, const void *b)
{
    const struct far *x = a, *y = b;
    return x->distance != y->distance ? (x->distance < y->distance ? 1 : -1)
                                      : (x->i > y->i) - (x->i < y->i);
}

/* (v - mean)^2 / variance of each number, added to the distances. */
static void add_distances(const double *v, size_t n, struct far *far)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    for (size_t i = 0; i < n && squares > 0; i++)
        far[i].distance += (v[i] - mean) * (v[i] - mean) * (double)n / squares;
}

/* The items farthest from the centre, farthest first. */
static size_t choose_labels(const struct report_plane *plane,
                            struct plot_label labels[MOST_LABELS])
{
    struct far *far = NEW(struct far, plane->n);
    for (size_t i = 0; i < plane->n; i++)
        far[i].i = i;
    add_distances(plane->x, plane->n, far);
    add_distances(plane->y, plane->n, far);
    qsort(far, plane->n, sizeof *far, compare);
    const size_t n = size_min(plane->n, MOST_LABELS);
    for (size_t k = 0; k < n; k++)
        labels[k] = (struct plot_label){plane->x[far[k].i], plane->y[far[k].i],
                                        names_get(&plane->items, far[k].i)};
    memory_free(far);
    return n;
}

static void draw(FILE *out, const struct report_plane *plane, const char *title)
{
    const size_t n_colours = size_max(1, plane->legend.n);
    struct plot_series series[REPORT_PLANE_COLOURS];
    struct plot_label labels[MOST_LABELS];
    double *xy = NEW_SCRATCH(double, 2 * plane->n), *next = xy;
    const char **names = NEW(const char *, plane->n), **name = names;
    for (size_t c = 0; c < n_colours; c++) {
        size_t n = 0;
        for (size_t i = 0; i < plane->n; i++)
            n += plane->colour[i] == c;
        series[c] = (struct plot_series){
            .name = plane->legend.n > 0 ? names_get(&plane->legend, c) : NULL,
            .style = PLOT_POINTS,
            .colour = c,
            .n = n,
            .x = next,
            .y = next + n,
            .names = name};
        size_t k = 0;
        for (size_t i = 0; i < plane->n; i++)
            if (plane->colour[i] == c) {
                next[k] = plane->x[i];
                next[n + k++] = plane->y[i];
                *name++ = names_get(&plane->items, i);
            }
        next += 2 * n;
    }
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = plane->axis[0]},
                                  .y = {.label = plane->axis[1]},
                                  .series = series,
                                  .n_series = n_colours,
                                  .labels = labels,
                                  .n_labels = choose_labels(plane, labels)});
    memory_free(xy);
    memory_free(names);
}

void report_plane_show(FILE *out, const struct report_plane *plane)
{
    if (plane->n == 0)
        return;
    const bool units = plane->n_hidden == 2;
    const char *title = units ? "Items in the plane of two hidden units"
                              : "Items in the plane of their two main components";
    char *colours = plane->by == NULL ? memory_text("%s", "")
                                      : memory_text(" Colours are %ss%s.", plane->by,
                                                    strcmp(plane->by, "skill") == 0
                                                        ? "; of an item with several, the first"
                                                        : "");
    char *drawn = plane->n == plane->n_all
                      ? memory_text("%s", "")
                      : memory_text(" Drawn are the %zu items with the most attempts, of %s.",
                                    plane->n, html_whole((int64_t)plane->n_all).text);
    html_say(out, "h3", "Items as the model sees them");
    html_figures(out);
    html_figure(out, title);
    draw(out, plane, title);
    html_caption(
        out,
        "Each dot is an item. Its weights tell how far each hidden unit moves the log-odds of "
        "a "
        "right answer at it%s. Items close together are answered right by the same students; a "
        "model that has found topics shows a cluster for each%s.%s%s",
        units ? ""
              : "; the components are the two directions in which the weights of items differ "
                "most, and a plane that explains little of the variance shows little",
        plane->by != NULL ? ", in one colour if it is the topic of the data" : "", colours,
        drawn);
    html_figures_end(out);
    memory_free(colours);
    memory_free(drawn);
}
