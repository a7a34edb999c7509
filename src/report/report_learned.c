/* What a model has learned: its tables, a plot of each if one makes sense, and the graph of its
 * skills or items if it has one. The columns of a table decide on its plot:
 *
 *     a column with standard errors     sorted values with 95 % intervals
 *     rates (p0, learn, guess, ...)     all rates of a row on one line
 *     summaries (mean, least, most)     the mean with a bar from the smallest to the largest
 *     rows are counts                   lines of the columns right and wrong
 *     few rows                          bars of the standard deviation, or of the first column
 *     many rows                         the same column, sorted */
#include "base/fail.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include "report/report_titles.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_ROWS = 30, MOST_NODES = 24, MOST_PICTURES = 4 };

/* Copies the row names: names of items and skills belong to the run, which is closed later. */
static void take_table(struct report_run *run, const struct inference *inference, size_t k)
{
    struct table table;
    run->kind->view.table(inference->model, k, &table);
    if (table.n_rows == 0) {
        table_free(&table);
        return;
    }
    struct names names = {0};
    for (size_t r = 0; r < table.n_rows; r++) {
        char buffer[32];
        const char *name =
            table_row_name(&table, inference_row_names(inference, &table), r, buffer);
        names_add(&names, name, strlen(name));
    }
    names_free(&table.row_names);
    table.row_names = names;
    run->tables[run->n_tables++] = table;
}

static void take_graph(struct report_run *run, const struct inference *inference)
{
    struct report_graph *graph = &run->graph;
    graph->n = run->kind->view.n_nodes
                   ? run->kind->view.n_nodes(inference->model, &graph->by_item)
                   : 0;
    if (graph->n == 0)
        return;
    const size_t n = graph->n * graph->n;
    real *gate = NEW_SCRATCH(real, n), *strength = NEW_SCRATCH(real, n);
    run->kind->view.graph(inference->model, gate, strength);
    graph->gate = NEW_SCRATCH(double, n);
    for (size_t e = 0; e < n; e++)
        graph->gate[e] = (double)gate[e];
    names_copy(&graph->names,
               graph->by_item ? &inference->checkpoint.items : &inference->checkpoint.skills);
    memory_free(gate);
    memory_free(strength);
}

/* Abilities are skills if their scales have the names of skills. */
static void name_abilities(struct report_run *run, const struct names *skills)
{
    const struct report_scales *scales = &run->scales;
    bool are_skills = scales->n > 0 && scales->n_abilities == skills->n && skills->n > 1;
    for (size_t k = 0; k < scales->n && are_skills; k++) {
        bool is_one = false;
        for (size_t s = 0; s < skills->n; s++)
            is_one |= scales->list[k].name != NULL &&
                      strcmp(scales->list[k].name, names_get(skills, s)) == 0;
        are_skills = is_one;
    }
    for (size_t k = 0; k < run->n_tables && are_skills; k++)
        report_titles_name_abilities(&run->tables[k], skills);
}

enum status report_learned(struct report_run *run, const struct inference *inference)
{
    if (inference->own_data && run->kind->view.examine != NULL)
        TRY(run->kind->view.examine(inference->model, &inference->shard, inference->comm));
    run->tables = NEW(struct table, run->kind->view.n_tables);
    for (size_t k = 0; k < run->kind->view.n_tables; k++)
        take_table(run, inference, k);
    take_graph(run, inference);
    report_scale_measure(run, inference);
    name_abilities(run, &inference->dataset.skills);
    return OK;
}

static const char *column_name(const struct table *table, size_t c)
{
    return names_get(&table->columns, c);
}

/* The column with the standard errors of column c: error_NAME; NAME_error if c is NAME_effect; or
 * `error` if it is the next column. */
static size_t error_column(const struct table *table, size_t c)
{
    const char *name = column_name(table, c), *effect = strstr(name, "_effect");
    const size_t n = effect != NULL ? (size_t)(effect - name) : strlen(name);
    char *names[] = {memory_text("error_%s", name), memory_text("%.*s_error", (int)n, name)};
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < COUNT(names); k++) {
        if (found == SIZE_MAX)
            found = table_column(table, names[k]);
        memory_free(names[k]);
    }
    if (found == SIZE_MAX && c + 1 < table->n_columns &&
        strcmp(column_name(table, c + 1), "error") == 0)
        found = c + 1;
    return found;
}

/* The name of a column decides what it is. */
static bool is_among(const struct table *table, size_t c, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(column_name(table, c), *words) == 0)
            return true;
    return false;
}

static bool is_tally(const struct table *table, size_t c)
{
    static const char *const words[] = {"answers",    "attempts", "log_likelihood",
                                        "parameters", "rows",     NULL};
    return is_among(table, c, words);
}

static bool is_rate(const struct table *table, size_t c)
{
    static const char *const words[] = {"p0", "learn", "guess", "slip", "forget", NULL};
    return is_among(table, c, words);
}

static bool is_spread(const struct table *table, size_t c)
{
    static const char *const words[] = {"sd", "spread", NULL};
    return is_among(table, c, words);
}

/* The first rows, with their names: points for several columns, or bars for one. */
static void draw_named(FILE *out, const char *kind, const struct table *table,
                       const size_t *columns, size_t n, enum plot_style style)
{
    const size_t n_rows = size_min(table->n_rows, FEW_ROWS);
    const char **names = NEW(const char *, n_rows);
    double *place = NEW_SCRATCH(double, n_rows), *values = NEW_SCRATCH(double, n *n_rows);
    struct plot_series *series = NEW(struct plot_series, n);
    for (size_t r = 0; r < n_rows; r++) {
        names[r] = names_get(&table->row_names, r);
        place[r] = (double)r;
        for (size_t k = 0; k < n; k++)
            values[k * n_rows + r] = table_row(table, r)[columns[k]];
    }
    for (size_t k = 0; k < n; k++)
        series[k] = (struct plot_series){.name = n > 1 ? column_name(table, columns[k]) : NULL,
                                         .style = style,
                                         .colour = k,
                                         .n = n_rows,
                                         .x = values + k * n_rows,
                                         .y = place};
    char *title = n > 1 ? memory_text("Rates of each %s", table->row)
                        : report_title_of_column(kind, table, columns[0]);
    struct plot plot = {
        .title = title,
        .x = {.label = n > 1 ? "chance" : report_title_of_values(kind, table, columns[0]),
              .high = n > 1 ? 1 : 0,
              .percent = n > 1},
        .y = {.names = names, .n_names = n_rows},
        .series = series,
        .n_series = n};
    html_figure(out, title);
    plot_draw(out, &plot);
    if (n_rows < table->n_rows)
        html_caption(out, "The first %zu of %s %ss, in the order of the table below.", n_rows,
                     html_whole((int64_t)table->n_rows).text, table->row);
    else
        html_caption(out, "All %ss, in the order of the table below.", table->row);
    memory_free(title);
    memory_free(names);
    memory_free(place);
    memory_free(values);
    memory_free(series);
}

/* Groups of numbers: the mean of each, with a bar from its smallest to its largest number. A
 * group of one number is that number. */
static void draw_groups(FILE *out, const struct table *table)
{
    const size_t n = size_min(table->n_rows, FEW_ROWS), mean = table_column(table, "mean"),
                 least = table_column(table, "least"), most = table_column(table, "most");
    const char **names = NEW(const char *, n);
    double *values = NEW_SCRATCH(double, 4 * n);
    for (size_t r = 0; r < n; r++) {
        const double *row = table_row(table, r);
        names[r] = names_get(&table->row_names, r);
        values[r] = (double)r;
        values[n + r] = row[mean];
        values[2 * n + r] = row[least];
        values[3 * n + r] = row[most];
    }
    const struct plot_series points = {.style = PLOT_POINTS,
                                       .n = n,
                                       .x = values + n,
                                       .y = values,
                                       .low = values + 2 * n,
                                       .high = values + 3 * n};
    char *title = memory_text("Weight of each %s", table->row);
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = "weight"},
                                  .y = {.names = names, .n_names = n},
                                  .series = &points,
                                  .n_series = 1});
    char *which =
        n < table->n_rows
            ? memory_text(" The first %zu of %s %ss, in the order of the table below.", n,
                          html_whole((int64_t)table->n_rows).text, table->row)
            : memory_text("%s", "");
    html_caption(
        out,
        "Dots are means, bars reach from the smallest to the largest weight. Above "
        "zero raises the chance of a right answer. A dot without a bar: one weight, or "
        "all weights equal.%s",
        which);
    memory_free(which);
    memory_free(title);
    memory_free(names);
    memory_free(values);
}

static void draw_table(FILE *out, const char *kind, const struct table *table)
{
    size_t *rates = NEW(size_t, table->n_columns), n_rates = 0, n_pictures = 0;
    size_t chosen = SIZE_MAX;
    html_figures(out);
    for (size_t c = table->n_columns; c-- > 0;)
        if (!is_tally(table, c) && (chosen == SIZE_MAX || !is_spread(table, chosen)))
            chosen = c;
    for (size_t c = 0; c < table->n_columns; c++) {
        if (is_rate(table, c))
            rates[n_rates++] = c;
        if (error_column(table, c) != SIZE_MAX && n_pictures < MOST_PICTURES) {
            report_effects_draw(out, kind, table, c, error_column(table, c));
            n_pictures++;
        }
    }
    if (table_column(table, "least") != SIZE_MAX && table_column(table, "most") != SIZE_MAX &&
        table_column(table, "mean") != SIZE_MAX)
        draw_groups(out, table);
    else if (strcmp(table->row, "count") == 0)
        report_effects_counts(out, table);
    else if (n_rates > 0)
        draw_named(out, kind, table, rates, n_rates, PLOT_POINTS);
    else if (n_pictures == 0 && chosen != SIZE_MAX && table->n_rows <= FEW_ROWS)
        draw_named(out, kind, table, &chosen, 1, PLOT_ROWS);
    else if (n_pictures == 0 && chosen != SIZE_MAX)
        report_effects_draw(out, kind, table, chosen, SIZE_MAX);
    html_figures_end(out);
    memory_free(rates);
}

/* An exact zero without its standard error: an ability that the item does not need. */
static bool is_no_estimate(const struct table *table, size_t r, size_t c)
{
    const size_t error = error_column(table, c);
    return error != SIZE_MAX && table_row(table, r)[c] == 0 &&
           !isfinite(table_row(table, r)[error]);
}

/* A sum of one column repeats it. */
static bool is_repeated(const struct table *table, size_t c)
{
    bool same = c > 0 && strcmp(column_name(table, c), "total") == 0;
    for (size_t r = 0; r < table->n_rows && same; r++)
        same = table_row(table, r)[c] == table_row(table, r)[0];
    return same;
}

/* A feature of earlier answers that no student has. */
static bool is_unused(const struct table *table, size_t c)
{
    bool zero = strcmp(table->row, "count") == 0;
    for (size_t r = 0; r < table->n_rows && zero; r++)
        zero = table_row(table, r)[c] == 0;
    return zero;
}

static void say_unused(FILE *out, const struct table *table)
{
    char *text = NULL;
    for (size_t c = 0; c < table->n_columns; c++) {
        if (!is_unused(table, c))
            continue;
        char *longer = memory_text("%s%s%s", text != NULL ? text : "", text != NULL ? ", " : "",
                                   column_name(table, c));
        memory_free(text);
        text = longer;
    }
    if (text != NULL)
        html_say(out, "p class=\"note\"",
                 "Columns not shown, because they are 0 in all rows: %s. A feature that no "
                 "training answer has, such as earlier answers to the same item if no item was "
                 "answered twice, has no weight.",
                 text);
    memory_free(text);
}

static void list_table(FILE *out, const struct table *table, int64_t n_rows)
{
    const char **heads = NEW(const char *, 1 + table->n_columns);
    size_t *columns = NEW(size_t, table->n_columns), n_columns = 0;
    const size_t n = size_min(table->n_rows, (size_t)n_rows);
    /* What is less than a millionth of the largest number of its column is noise: 0. */
    double *least = NEW(double, table->n_columns);
    heads[0] = table->row;
    for (size_t c = 0; c < table->n_columns; c++) {
        if (is_repeated(table, c) || is_unused(table, c))
            continue;
        heads[1 + n_columns] = report_title_of_head(table, c);
        columns[n_columns++] = c;
        for (size_t r = 0; r < table->n_rows; r++)
            least[c] = fmax(least[c], 1e-6 * fabs(table_row(table, r)[c]));
    }
    html_table_begin(out, heads, 1 + n_columns);
    for (size_t r = 0; r < n; r++) {
        html_row(out, names_get(&table->row_names, r));
        for (size_t k = 0; k < n_columns; k++) {
            const size_t c = columns[k];
            const double value = table_row(table, r)[c];
            fputs("<td>", out);
            if (!is_no_estimate(table, r, c))
                fputs(html_short(fabs(value) < least[c] ? 0 : value).text, out);
            fputs("</td>", out);
        }
        html_row_end(out);
    }
    html_table_end(out);
    if (n < table->n_rows)
        html_say(out, "p class=\"note\"",
                 "Rows not shown: %s. “cohort export” writes the whole table.",
                 html_whole((int64_t)(table->n_rows - n)).text);
    say_unused(out, table);
    memory_free(least);
    memory_free(columns);
    memory_free(heads);
}

struct edge {
    double gate;
    size_t from, to;
};

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->gate != y->gate   ? (x->gate < y->gate ? 1 : -1)
           : x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                                : (x->to > y->to) - (x->to < y->to);
}

/* The graph as a picture if it is small, and its strongest edges as a table. */
static void show_graph(FILE *out, const struct report_graph *graph, int64_t n_rows)
{
    const size_t n = graph->n;
    struct edge *edges = NEW_SCRATCH(struct edge, n * n);
    size_t n_edges = 0;
    for (size_t e = 0; e < n * n; e++)
        if (e / n != e % n)
            edges[n_edges++] = (struct edge){graph->gate[e], e / n, e % n};
    qsort(edges, n_edges, sizeof *edges, compare_edges);
    html_say(out, "h3", "Learned graph between %s", graph->by_item ? "items" : "skills");
    html_say(out, "p",
             "An arrow from A to B means that a student's answers on A change what the model "
             "expects on B. Its gate is between 0 (closed, no effect) and 1 (open).");
    html_figures(out);
    if (n <= MOST_NODES) {
        const char **names = NEW(const char *, n);
        for (size_t i = 0; i < n; i++)
            names[i] = names_get(&graph->names, i);
        /* About two edges per node, the most open ones. */
        const size_t most = size_min(n_edges, 2 * n);
        const double least = n_edges > 0 ? fmax(0.01, edges[most - 1].gate) : 1;
        fputs("<figure>", out);
        plot_graph(out, "Graph that the model has learned", names, n, graph->gate, least);
        html_caption(out, "Arrows whose gate is at least %.2f; thicker arrows are more open.",
                     least);
        memory_free(names);
    }
    static const char *const heads[] = {"from", "to", "gate"};
    fputs("<figure>", out);
    html_table_begin(out, heads, COUNT(heads));
    for (size_t e = 0; e < size_min(n_edges, (size_t)n_rows); e++) {
        html_row(out, names_get(&graph->names, edges[e].from));
        fputs("<td class=\"name\">", out);
        html_cut(out, names_get(&graph->names, edges[e].to), 60);
        fputs("</td>", out);
        html_number(out, 3, edges[e].gate);
        html_row_end(out);
    }
    html_table_end(out);
    html_say(out, "p class=\"note\"", "“cohort export --graph” writes all arrows.");
    fputs("</figure>\n", out);
    html_figures_end(out);
    memory_free(edges);
}

static void show_run(FILE *out, const struct report_run *run, int64_t n_rows)
{
    html_say(out, "p", "%s: %s (%s). Parameters: %s. Items in training: %s.", run->kind->name,
             run->kind->title, run->kind->source, html_whole(run->n_parameters).text,
             html_whole(run->n_trained_items).text);
    if (run->n_tables == 0 && run->graph.n == 0 && !report_inside_is_there(&run->inside))
        html_say(out, "p",
                 "What this model has learned is distributed over its parameters, so there is "
                 "no table to read. The pictures above show how it predicts; “cohort export” "
                 "writes all its parameters.");
    report_irt_show(out, run);
    report_members_show(out, run);
    for (size_t k = 0; k < run->n_tables; k++) {
        const struct table *table = &run->tables[k];
        if (run->members.n > 0 && strcmp(table->row, "member") == 0)
            continue; /* report_members_show has its weights */
        html_say(out, "h3", "%s", report_title_of_table(run->kind->name, table));
        if (table->caption[0] != '\0')
            html_say(out, "p", "%s", table->caption);
        if (table->n_rows > 1)
            draw_table(out, run->kind->name, table);
        list_table(out, table, n_rows);
    }
    if (run->graph.n > 1)
        show_graph(out, &run->graph, n_rows);
    report_inside_show(out, &run->inside);
}

void report_show_learned(FILE *out, const struct report *report)
{
    html_say(out, "h2",
             report->n > 1 ? "What the models have learned" : "What the model has learned");
    for (size_t r = 0; r < report->n; r++) {
        if (report->n > 1)
            html_fold(out, report->runs[r].label);
        show_run(out, &report->runs[r], report->plan->n_rows);
        fputs(report->n > 1 ? "</details>\n" : "", out);
    }
}
