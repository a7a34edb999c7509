/* Puts items and students on the scale of an ability, for any model that offers one of
 *
 *     a table of items with columns b and a (or a_1, a_2, ...), and hidden activations of
 *     students called theta (theta_1, ...) with errors sigma (sigma_1, ...)
 *
 *         logit P = sum over k of a_k theta_k - b
 *
 *     the Rasch view (struct rasch), where a = 1
 *
 *         logit P = theta - b
 *
 * With several abilities, each has a scale of its own, on which the others are 0, the mean of
 * their prior. The scales with the most items are kept. A large class is sampled evenly, as in
 * report_class_measure.c; rank 0 gets the numbers in the order of the data set. */
#include "base/memory.h"
#include "report/information.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STUDENTS = 2000, WIDEST = 6 };

/* An ability of the model: its column of the table, and its hidden activations. */
struct axis {
    size_t column, theta, sigma; /* sigma may be SIZE_MAX */
    size_t number, n_items;      /* number: 0, 1, ... among all abilities */
};

static size_t find_hidden(const struct inference *inference, const char *name)
{
    const struct model_view *view = &inference->model->kind->view;
    for (size_t j = 0; j < view->n_hidden(inference->model); j++) {
        char own[32];
        view->hidden_name(inference->model, j, own);
        if (strcmp(own, name) == 0)
            return j;
    }
    return SIZE_MAX;
}

/* Ability k, counted from 1; 0: the only one. False: the model has none. */
static bool find_axis(const struct inference *inference, const struct table *table, size_t k,
                      struct axis *axis)
{
    char suffix[24] = "", name[32];
    if (k > 0)
        snprintf(suffix, sizeof suffix, "_%zu", k);
    snprintf(name, sizeof name, "a%s", suffix);
    axis->column = table_column(table, name);
    snprintf(name, sizeof name, "theta%s", suffix);
    axis->theta = find_hidden(inference, name);
    snprintf(name, sizeof name, "sigma%s", suffix);
    axis->sigma = find_hidden(inference, name);
    axis->number = k > 0 ? k - 1 : 0;
    axis->n_items = 0;
    for (size_t i = 0; axis->column != SIZE_MAX && i < table->n_rows; i++)
        axis->n_items += table_row(table, i)[axis->column] != 0;
    return axis->column != SIZE_MAX && axis->theta != SIZE_MAX && axis->n_items > 0;
}

static int compare_axes(const void *a, const void *b)
{
    const struct axis *x = a, *y = b;
    return x->n_items != y->n_items ? (x->n_items < y->n_items ? 1 : -1)
                                    : (x->number > y->number) - (x->number < y->number);
}

/* The abilities of the model, those with the most items first; returns how many. */
static size_t find_axes(const struct inference *inference, const struct table *table,
                        struct axis **axes)
{
    *axes = NEW(struct axis, table->n_columns + 1);
    if (find_axis(inference, table, 0, *axes))
        return 1;
    size_t n = 0;
    for (size_t k = 1; k <= table->n_columns; k++)
        n += find_axis(inference, table, k, *axes + n);
    qsort(*axes, n, sizeof **axes, compare_axes);
    return n;
}

/* Whether abilities are skills: as many, and every item needs only those of its own. */
static bool axes_are_skills(const struct inference *inference, const struct table *table,
                            const struct axis *axes, size_t n)
{
    const struct dataset *d = &inference->dataset;
    if (!inference->own_data || n != d->n_skills || table->n_rows != d->n_items)
        return false;
    bool *needs = NEW(bool, n);
    bool same = true;
    for (size_t i = 0; i < table->n_rows && same; i++) {
        for (uint64_t j = d->item_first[i]; j < d->item_first[i + 1]; j++)
            needs[d->item_skills[j]] = true;
        for (size_t k = 0; k < n; k++)
            same &= table_row(table, i)[axes[k].column] == 0 || needs[axes[k].number];
        for (uint64_t j = d->item_first[i]; j < d->item_first[i + 1]; j++)
            needs[d->item_skills[j]] = false;
    }
    memory_free(needs);
    return same;
}

static void take_items(struct report_scale *scale, const struct table *table, size_t column)
{
    const size_t b = table_column(table, "b");
    scale->item = NEW_SCRATCH(uint32_t, table->n_rows);
    scale->a = NEW_SCRATCH(double, table->n_rows);
    scale->b = NEW_SCRATCH(double, table->n_rows);
    for (size_t i = 0; i < table->n_rows; i++) {
        const double *row = table_row(table, i);
        if (row[column] == 0 || !isfinite(row[column]) || !isfinite(row[b]))
            continue;
        scale->item[scale->n_items] = (uint32_t)i;
        scale->a[scale->n_items] = row[column];
        scale->b[scale->n_items++] = row[b];
    }
}

/* Whether a student has an answer that the model has seen. */
static bool is_known(const struct shard *shard, size_t s)
{
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        if (mark_is_shown(shard->mark[t]))
            return true;
    return false;
}

/* Rank 0: splits pairs of ability and error, without the abilities that are not known.
 *
 * An estimate is drawn towards the mean, so estimates vary less than true abilities. The model
 * may know their spread: 1 by its prior, or a parameter. If not,
 *
 *     variance of abilities = variance of estimates + mean squared error */
static void take_students(struct report_scale *scale, const double *pairs, size_t n,
                          double spread)
{
    scale->theta = NEW_SCRATCH(double, n);
    scale->error = NEW_SCRATCH(double, n);
    double sum = 0, squares = 0, errors = 0;
    for (size_t i = 0; i < n; i++)
        if (plot_is_drawable(pairs[2 * i] * pairs[2 * i])) {
            scale->theta[scale->n_students] = pairs[2 * i];
            scale->error[scale->n_students++] = pairs[2 * i + 1];
            sum += pairs[2 * i];
            errors += pairs[2 * i + 1] * pairs[2 * i + 1];
        }
    scale->mean = sum / (double)scale->n_students;
    for (size_t i = 0; i < scale->n_students; i++)
        squares += (scale->theta[i] - scale->mean) * (scale->theta[i] - scale->mean);
    scale->spread = sqrt(squares / (double)scale->n_students);
    scale->squares = errors / (double)scale->n_students;
    scale->knows_spread = spread > 0;
    scale->true_spread = spread > 0 ? spread
                         : isfinite(scale->squares)
                             ? sqrt(scale->spread * scale->spread + scale->squares)
                             : scale->spread;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rank 0: the part that is drawn: all students, and nine items of ten unless they are far away,
 * where hardly any student is. Abilities that hardly differ, compared with their size, get a part
 * that ticks can divide. */
static void settle(struct report_scale *scale)
{
    const double unit = fmax(scale->spread > 0.1 ? scale->spread : 1, 1e-6 * fabs(scale->mean));
    double low = scale->mean - 3 * unit, high = scale->mean + 3 * unit;
    double *places = NEW_SCRATCH(double, scale->n_items);
    size_t n = 0;
    for (size_t i = 0; i < scale->n_items; i++) {
        places[n] = information_place(scale->a[i], scale->b[i]);
        n += isfinite(places[n]);
    }
    qsort(places, n, sizeof *places, compare);
    if (n > 0) {
        low = fmin(low, places[n / 20]);
        high = fmax(high, places[n - 1 - n / 20]);
    }
    for (size_t i = 0; i < scale->n_students; i++) {
        low = fmin(low, scale->theta[i]);
        high = fmax(high, scale->theta[i]);
    }
    scale->low = fmax(low, scale->mean - WIDEST * unit);
    scale->high = fmin(high, scale->mean + WIDEST * unit);
    memory_free(places);
}

static void finish(struct report_scale *scale, const struct comm *comm, const double *own,
                   size_t n_own, double spread)
{
    size_t n_bytes = 0;
    double *pairs = comm_gather(comm, own, 2 * n_own * sizeof *own, &n_bytes);
    if (comm->rank == 0) {
        take_students(scale, pairs, n_bytes / (2 * sizeof *pairs), spread);
        settle(scale);
    }
    memory_free(pairs);
}

/* From a table of items and hidden activations. */
static void measure_table(struct report_scales *scales, const struct inference *inference,
                          const struct table *table, const uint32_t *own, size_t n_own)
{
    const struct model *model = inference->model;
    const struct shard *shard = &inference->shard;
    struct axis *axes = NULL;
    scales->n_abilities = find_axes(inference, table, &axes);
    scales->n = size_min(scales->n_abilities, REPORT_MOST_SCALES);
    const size_t m = model->kind->view.n_hidden(model);
    const bool by_skill = axes_are_skills(inference, table, axes, scales->n_abilities);
    real *hidden = NEW_SCRATCH(real, n_own * m);
    double *pairs = NEW_SCRATCH(double, 2 * n_own);
    for (size_t i = 0; i < n_own && scales->n > 0; i++)
        model->kind->view.hidden(model, inference->work, own[i], hidden + i * m);
    for (size_t k = 0; k < scales->n; k++) {
        struct report_scale *scale = &scales->list[k];
        for (size_t i = 0; i < n_own; i++) {
            const real *row = hidden + i * m;
            pairs[2 * i] = is_known(shard, own[i]) ? (double)row[axes[k].theta] : NAN;
            pairs[2 * i + 1] = axes[k].sigma != SIZE_MAX ? (double)row[axes[k].sigma] : NAN;
        }
        take_items(scale, table, axes[k].column);
        finish(scale, inference->comm, pairs, n_own, 1);
        if (scales->n_abilities > 1)
            scale->name =
                by_skill
                    ? memory_text("%s", names_get(&inference->dataset.skills, axes[k].number))
                    : memory_text("ability %zu", axes[k].number + 1);
    }
    names_copy(&scales->items, &table->row_names);
    memory_free(hidden);
    memory_free(pairs);
    memory_free(axes);
}

/* From the Rasch view. */
static void measure_rasch(struct report_scales *scales, const struct inference *inference,
                          const uint32_t *own, size_t n_own)
{
    const struct model *model = inference->model;
    struct rasch rasch = {0};
    model->kind->view.rasch(model, inference->work, &rasch);
    if (rasch.why_not == NULL) {
        struct report_scale *scale = &scales->list[scales->n++];
        struct table table;
        table_create(&table, "items", "item", model->n_items, "a b");
        for (size_t i = 0; i < model->n_items; i++) {
            table_row(&table, i)[0] = 1;
            table_row(&table, i)[1] = rasch.b[i];
        }
        double *pairs = NEW_SCRATCH(double, 2 * n_own);
        for (size_t i = 0; i < n_own; i++) {
            pairs[2 * i] =
                is_known(&inference->shard, own[i]) ? rasch.theta[own[i]] : (double)NAN;
            pairs[2 * i + 1] = rasch.error != NULL ? rasch.error[own[i]] : (double)NAN;
        }
        take_items(scale, &table, 0);
        finish(scale, inference->comm, pairs, n_own, rasch.spread);
        names_copy(&scales->items, &inference->checkpoint.items);
        scales->n_abilities = 1;
        scales->is_rasch = true;
        scales->b_is = memory_text("%s", rasch.b_is);
        scales->theta_is = memory_text("%s", rasch.theta_is);
        memory_free(pairs);
        table_free(&table);
    }
    memory_free(rasch.b);
    memory_free(rasch.theta);
    memory_free(rasch.error);
}

void report_scale_measure(struct report_run *run, const struct inference *inference)
{
    const struct model_view *view = &run->kind->view;
    struct report_scales *scales = &run->scales;
    const struct table *table = NULL;
    for (size_t k = 0; k < run->n_tables && view->hidden_name != NULL; k++)
        if (strcmp(run->tables[k].row, "item") == 0 &&
            table_column(&run->tables[k], "b") != SIZE_MAX)
            table = &run->tables[k];
    const bool has_rasch = view->rasch != NULL && inference->own_data;
    if (run->task != TASK_TRACE || (table == NULL && !has_rasch))
        return;
    uint64_t *students = NULL;
    const size_t n = report_sample_students(&inference->dataset, 1, MOST_STUDENTS, &students,
                                            &scales->n_all_students);
    uint32_t *own = NEW_SCRATCH(uint32_t, n);
    const size_t n_own = report_sample_own(&inference->shard, students, n, own);
    if (table != NULL)
        measure_table(scales, inference, table, own, n_own);
    else
        measure_rasch(scales, inference, own, n_own);
    memory_free(students);
    memory_free(own);
}

void report_scale_free(struct report_scales *scales)
{
    for (size_t k = 0; k < scales->n; k++) {
        struct report_scale *scale = &scales->list[k];
        void *const parts[] = {scale->name, scale->item,  scale->a,
                               scale->b,    scale->theta, scale->error};
        for (size_t p = 0; p < COUNT(parts); p++)
            memory_free(parts[p]);
    }
    names_free(&scales->items);
    memory_free(scales->b_is);
    memory_free(scales->theta_is);
    *scales = (struct report_scales){0};
}
