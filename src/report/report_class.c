/* The section about the students of a class: mastery of students and skills, who needs help with
 * what, growth over time, and the path of one student.
 *
 * Students are "no. 7", their place in the data set, unless their names are wanted. "student 7"
 * would look like the name student-7, which is another student's. */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "plot/plot_heat.h"
#include "plot/row_groups.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 40,
    MOST_COLUMNS = PLOT_HEAT_COLUMNS,
    MOST_GROUPS = 4,
    ROWS_PER_GROUP = 4 /* at least, for groups to be shown */
};

const char *report_class_thing(const struct report_class *class)
{
    return class->by_item ? "item" : "skill";
}

char *report_class_label(const struct report_class *class, size_t i)
{
    return class->names.n > 0
               ? memory_text("%s", names_get(&class->names, i))
               : memory_text("no. %llu", (unsigned long long)class->student[i] + 1);
}

static const char *skill_name(const struct report_class *class, size_t k)
{
    return names_get(&class->things, class->skill[k]);
}

static double mastery_of(const struct report_class *class, size_t i, size_t k)
{
    return class->mastery[i * class->n_skills + k];
}

struct ranked {
    double value;
    size_t i;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1)
                                : (x->i > y->i) - (x->i < y->i);
}

/* Students or skills by their mean mastery, highest first. */
static struct ranked *rank_students(const struct report_class *class, size_t n_skills)
{
    struct ranked *ranked = NEW(struct ranked, class->n);
    for (size_t i = 0; i < class->n; i++) {
        ranked[i].i = i;
        for (size_t k = 0; k < n_skills; k++)
            ranked[i].value += mastery_of(class, i, k);
    }
    qsort(ranked, class->n, sizeof *ranked, compare);
    return ranked;
}

static struct ranked *rank_skills(const struct report_class *class, size_t n_skills)
{
    struct ranked *ranked = NEW(struct ranked, n_skills);
    for (size_t k = 0; k < n_skills; k++) {
        ranked[k].i = k;
        for (size_t i = 0; i < class->n; i++)
            ranked[k].value += mastery_of(class, i, k);
    }
    qsort(ranked, n_skills, sizeof *ranked, compare);
    return ranked;
}

/* The rows are an even selection over the range of mean mastery, then ordered by groups. */
static void draw_map(FILE *out, const struct report_class *class)
{
    const size_t n_columns = size_min(class->n_skills, MOST_COLUMNS),
                 n_rows = size_min(class->n, MOST_ROWS);
    struct ranked *students = rank_students(class, n_columns),
                  *skills = rank_skills(class, n_columns);
    double *sample = NEW_SCRATCH(double, n_rows *n_columns),
           *value = NEW_SCRATCH(double, n_rows *n_columns);
    uint8_t *mark = NEW(uint8_t, n_rows * n_columns);
    size_t *order = NEW(size_t, n_rows), *row = NEW(size_t, n_rows), n_groups = 0;
    bool *begins = NEW(bool, n_rows);
    const char *columns[MOST_COLUMNS], *rows[MOST_ROWS];
    char *labels[MOST_ROWS];
    for (size_t r = 0; r < n_rows; r++) {
        row[r] = students[size_cut(class->n, r, n_rows)].i;
        for (size_t c = 0; c < n_columns; c++)
            sample[r * n_columns + c] = mastery_of(class, row[r], skills[c].i);
    }
    row_groups_order(sample, n_rows, n_columns,
                     n_rows >= MOST_GROUPS * ROWS_PER_GROUP ? MOST_GROUPS : 1, order, begins);
    for (size_t r = 0; r < n_rows; r++) {
        const size_t i = row[order[r]];
        rows[r] = labels[r] = report_class_label(class, i);
        n_groups += begins[r];
        begins[r] &= r > 0;
        for (size_t c = 0; c < n_columns; c++) {
            value[r * n_columns + c] = mastery_of(class, i, skills[c].i);
            if (class->is_tried[i * class->n_skills + skills[c].i] == 0)
                mark[r * n_columns + c] = HEAT_THIN;
        }
    }
    for (size_t c = 0; c < n_columns; c++)
        columns[c] = skill_name(class, skills[c].i);
    char *title = memory_text("Mastery of students and %ss", report_class_thing(class));
    html_figure(out, title);
    plot_heat_draw(out, &(struct plot_heat){.title = title,
                                            .n_rows = n_rows,
                                            .n_columns = n_columns,
                                            .rows = rows,
                                            .columns = columns,
                                            .scale = "mastery",
                                            .value = value,
                                            .mark = mark,
                                            .gap = begins});
    char *rows_shown = n_rows < class->n_all
                           ? memory_text(" %zu of %s students are shown, an even selection "
                                         "from high to low mastery.",
                                         n_rows, html_whole((int64_t) class->n_all).text)
                           : memory_text("%s", "");
    char *columns_shown =
        n_columns < class->n_all_skills
            ? memory_text(" %zu of %s %ss are shown, those with the most answers.", n_columns,
                          html_whole((int64_t) class->n_all_skills).text,
                          report_class_thing(class))
            : memory_text("%s", "");
    html_caption(
        out,
        "Each row is a student after the last attempt. The stronger the colour, the higher "
        "the mastery; a thin cell is a %s that the student has not tried. Columns run "
        "from the easiest to the hardest. Similar students are neighbours%s.%s%s",
        report_class_thing(class), n_groups > 1 ? ", and gaps separate groups of them" : "",
        rows_shown, columns_shown);
    for (size_t r = 0; r < n_rows; r++)
        memory_free(labels[r]);
    void *const parts[] = {title, rows_shown, columns_shown, students, skills, sample,
                           value, mark,       order,         row,      begins};
    for (size_t p = 0; p < COUNT(parts); p++)
        memory_free(parts[p]);
}

/* Quartiles of the students' mean mastery. */
static void draw_growth(FILE *out, const struct report_class *class)
{
    static const char *const names[] = {"upper quarter", "middle student", "lower quarter"};
    const size_t n = class->n_grown;
    double x[REPORT_GROWTH], y[COUNT(names)][REPORT_GROWTH];
    struct ranked *ranked = NEW_SCRATCH(struct ranked, n);
    struct plot_series series[COUNT(names)];
    for (size_t g = 0; g < REPORT_GROWTH; g++) {
        x[g] = (double)g / (REPORT_GROWTH - 1);
        for (size_t i = 0; i < n; i++)
            ranked[i] = (struct ranked){class->growth[i * REPORT_GROWTH + g], i};
        qsort(ranked, n, sizeof *ranked, compare);
        for (size_t q = 0; q < COUNT(names); q++)
            y[q][g] = ranked[size_min(n * (q + 1) / 4, n - 1)].value;
    }
    for (size_t q = 0; q < COUNT(names); q++)
        series[q] = (struct plot_series){.name = names[q],
                                         .style = PLOT_LINE,
                                         .colour = q,
                                         .n = REPORT_GROWTH,
                                         .x = x,
                                         .y = y[q]};
    const char *thing = report_class_thing(class);
    char *things =
        class->n_skills < class->n_all_skills
            ? memory_text("the %zu of %s %ss with the most answers", class->n_skills,
                          html_whole((int64_t) class->n_all_skills).text, thing)
            : memory_text("%zu %s%s", class->n_skills, thing, class->n_skills == 1 ? "" : "s");
    html_figure(out, "Growth from the first attempt to the last");
    plot_draw(out, &(struct plot){.title = "Mean mastery of students over their attempts",
                                  .x = {.label = "attempts so far, of the student's own",
                                        .high = 1,
                                        .percent = true},
                                  .y = {.label = "mean mastery", .high = 1, .percent = true},
                                  .series = series,
                                  .n_series = COUNT(series)});
    html_caption(out,
                 "Based on %s student%s with at least %d attempts%s and on %s. Drawn is the "
                 "mean mastery of each student over these %ss, from before the first attempt "
                 "to after the last; three of four students are above the lowest line, one of "
                 "four above the highest. The lines begin together, because nothing is known "
                 "of anybody yet, and move apart as answers come in. %s",
                 html_whole((int64_t)n).text, n == 1 ? "" : "s", REPORT_GROWTH - 1,
                 n < class->n ? ", evenly selected," : "", things, thing,
                 class->is_fixed ? report_fixed_words
                                 : "A rising line in the middle means that the model expects "
                                   "more right answers at the end than at the beginning.");
    memory_free(things);
    memory_free(ranked);
}

static void draw_example(FILE *out, const struct report_class *class)
{
    char *label = report_class_label(class, class->example);
    char *title = memory_text("The path of one student: %s", label);
    report_path_draw(out, &class->path, &class->things, report_class_thing(class), title,
                     "An example: of the students with many attempts, the one whose mastery is "
                     "in the middle.");
    memory_free(label);
    memory_free(title);
}

void report_show_class(FILE *out, const struct report *report)
{
    const struct report_class *class = &report->runs[0].class;
    if (report->n > 1 || !class->is_there)
        return;
    html_say(out, "h2", "Students: what they have mastered");
    const char *why = report_distrust(report, &report->runs[0]);
    if (why != NULL)
        html_say(out, "p class=\"lead warn\"", "Do not rely on this section: %s.", why);
    report_rule_show(out, &class->rule, report_class_thing(class));
    if (class->n < class->n_all)
        html_say(out, "p class=\"note\"",
                 "This section is about an even selection of the students: %s of %s.",
                 html_whole((int64_t) class->n).text, html_whole((int64_t) class->n_all).text);
    if (class->names.n == 0)
        html_say(
            out, "p class=\"note\"",
            "Students are numbered by their place in the data set. These numbers are not "
            "names: "
            "no. 31 need not be the student called student-31. “cohort report --names” shows "
            "their names; “cohort report --student NAME” writes the page of one student.");
    html_figures(out);
    draw_map(out, class);
    if (class->n_grown > 0)
        draw_growth(out, class);
    draw_example(out, class);
    html_figures_end(out);
    report_needs_show(out, class, report->plan->n_rows);
}
