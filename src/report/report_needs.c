/* The tables of a class: which skills need help and for whom, and which students need help with
 * what. They count every skill of a student that can be judged, which needs 3 answers:
 *
 *     student  skill  answers  mastery
 *        1       4       5      31 %     needs help
 *        1       7       2      20 %     not judged
 *        2       4       3      92 %     mastered        skill 4: 1 of 2 students (50 %)
 *        3       4       1      12 %     not judged
 *
 * The largest share comes first. It is ranked by the low end of its 95 % interval, or 1 of 1
 * would come before 30 of 40. Of equal shares, the lowest mean mastery comes first: where many
 * students need help with 3 of 3 skills, the weakest must be among those shown.
 *
 * Where no skill has enough answers of one student, nobody can be judged, which is not the same
 * as that nobody needs help. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include <stdlib.h>

enum { MOST_LISTED = 5 }; /* names in a cell */

static bool is_judged(const struct report_class *class, const struct report_tried *tried)
{
    return tried->n >= class->rule.answers;
}

static bool needs_help(const struct report_class *class, const struct report_tried *tried)
{
    return report_rule_state(&class->rule, tried->mastery, tried->n) == STATE_HELP;
}

/* A skill, or a student: how many of those judged need help. */
struct need {
    size_t one;
    int64_t n_help, n_judged;
    double least;   /* the low end of the share's interval */
    double mastery; /* mean over those judged */
};

static size_t one_of(const struct report_tried *tried, bool by_skill)
{
    return by_skill ? tried->skill : tried->student;
}

static int compare_needs(const void *a, const void *b)
{
    const struct need *x = a, *y = b;
    return x->least != y->least       ? (x->least < y->least ? 1 : -1)
           : x->mastery != y->mastery ? (x->mastery > y->mastery ? 1 : -1)
                                      : (x->one > y->one) - (x->one < y->one);
}

static int compare_mastery(const void *a, const void *b)
{
    const struct report_tried *x = a, *y = b;
    return x->mastery != y->mastery   ? (x->mastery > y->mastery ? 1 : -1)
           : x->student != y->student ? (x->student > y->student ? 1 : -1)
                                      : (x->skill > y->skill) - (x->skill < y->skill);
}

static double share_of(const struct need *need)
{
    return (double)need->n_help / (double)need->n_judged;
}

/* Skills, or students, of which any need help: the largest share first. Caller frees. */
static struct need *find_needs(const struct report_class *class, bool by_skill, size_t *n)
{
    const size_t n_all = by_skill ? class->things.n : class->n;
    struct need *needs = NEW(struct need, n_all);
    for (size_t i = 0; i < n_all; i++)
        needs[i].one = i;
    for (size_t t = 0; t < class->n_tried; t++) {
        struct need *need = &needs[one_of(&class->tried[t], by_skill)];
        const bool judged = is_judged(class, &class->tried[t]);
        need->n_judged += judged;
        need->mastery += judged ? class->tried[t].mastery : 0;
        need->n_help += needs_help(class, &class->tried[t]);
    }
    *n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (needs[i].n_help > 0) {
            double high = 0;
            report_wilson(share_of(&needs[i]), needs[i].n_judged, &needs[i].least, &high);
            needs[i].mastery /= (double)needs[i].n_judged;
            needs[(*n)++] = needs[i];
        }
    qsort(needs, *n, sizeof *needs, compare_needs);
    return needs;
}

static void print_name(FILE *out, size_t place, const char *name)
{
    fputs(place > 0 ? ", <bdi>" : "<bdi>", out);
    html_cut(out, name, 80);
    fputs("</bdi>", out);
}

/* The students who need help with a skill, or the skills of a student: lowest mastery first. */
static void list_others(FILE *out, const struct report_class *class, const struct need *need,
                        bool by_skill)
{
    struct report_tried *others = NEW_SCRATCH(struct report_tried, (size_t)need->n_help);
    size_t n = 0;
    for (size_t t = 0; t < class->n_tried; t++)
        if (one_of(&class->tried[t], by_skill) == need->one &&
            needs_help(class, &class->tried[t]))
            others[n++] = class->tried[t];
    qsort(others, n, sizeof *others, compare_mastery);
    fputs("<td class=\"names\">", out);
    for (size_t p = 0; p < size_min(n, MOST_LISTED); p++) {
        char *label = by_skill ? report_class_label(class, others[p].student) : NULL;
        print_name(out, p, by_skill ? label : names_get(&class->things, others[p].skill));
        memory_free(label);
    }
    if (n > MOST_LISTED)
        fprintf(out, " and %s more", html_whole((int64_t)(n - MOST_LISTED)).text);
    fputs("</td>", out);
    memory_free(others);
}

static void show_needs(FILE *out, const struct report_class *class, bool by_skill,
                       int64_t n_rows)
{
    const char *thing = report_class_thing(class);
    char *judged = memory_text("of %s with %d or more answers",
                               by_skill         ? "students"
                               : class->by_item ? "items"
                                                : "skills",
                               (int)class->rule.answers);
    const char *const heads[] = {by_skill ? thing : "student", judged,
                                 by_skill ? "students who need help" : "needs help with"};
    size_t n = 0;
    struct need *needs = find_needs(class, by_skill, &n);
    const size_t n_shown = size_min(n, (size_t)n_rows);
    html_say(out, "h3",
             by_skill ? "Which %ss need help, and for whom"
                      : "Which students need help, and with what %ss",
             thing);
    if (n == 0)
        html_say(out, "p", "Nobody needs help by the rule above.");
    else
        html_table_begin(out, heads, COUNT(heads));
    for (size_t r = 0; r < n_shown; r++) {
        const struct need *need = &needs[r];
        char *label = by_skill ? memory_text("%s", names_get(&class->things, need->one))
                               : report_class_label(class, need->one);
        html_row(out, label);
        fprintf(out, "<td>%s of %s (%.0f %%)</td>", html_whole(need->n_help).text,
                html_whole(need->n_judged).text, 100 * share_of(need));
        list_others(out, class, need, by_skill);
        html_row_end(out);
        memory_free(label);
    }
    if (n > 0)
        html_table_end(out);
    if (n_shown < n)
        html_say(out, "p class=\"note\"",
                 "%s of %s %ss %s need help are shown; --top shows more.",
                 html_whole((int64_t)n_shown).text, html_whole((int64_t)n).text,
                 by_skill ? thing : "student", by_skill ? "that" : "who");
    memory_free(needs);
    memory_free(judged);
}

void report_needs_show(FILE *out, const struct report_class *class, int64_t n_rows)
{
    const char *thing = report_class_thing(class);
    const int fewest = (int)class->rule.answers;
    int64_t n_judged = 0;
    for (size_t t = 0; t < class->n_tried; t++)
        n_judged += is_judged(class, &class->tried[t]);
    if (n_judged == 0) {
        html_say(out, "h3", "Who needs help");
        html_say(out, "p",
                 "No %s has %d answers of one student that the model has seen, so this page "
                 "cannot say who needs help.",
                 thing, fewest);
        return;
    }
    show_needs(out, class, true, n_rows);
    show_needs(out, class, false, n_rows);
    html_say(
        out, "p class=\"note\"",
        "The tables count all %ss%s. %s %s of a student is judged after %d answers: %s of %s "
        "tried. Students who need help with the largest share of their %ss come first, a share "
        "of few %ss later; of equals, the one with the lowest mean mastery. The first table is "
        "ordered likewise.",
        thing, class->n < class->n_all ? " of the selected students" : "",
        class->by_item ? "An" : "A", thing, fewest, html_whole(n_judged).text,
        html_whole((int64_t) class->n_tried).text, thing, thing);
}
