/* Influence between skills: how far a right rather than a wrong answer at skill A moves the
 * chance of a right answer at skill B, for a student who has answered nothing else.
 *
 *     I(A, B) = mean over items a of A, b of B:  P(b right | a right) - P(b right | a wrong)
 *
 * The model is asked as it is asked for predictions (learn/live.h). Of a skill with many items,
 * an even selection is answered and asked about. After Piech et al. (2015), who compare right
 * answers alone: what is easy follows there from everything.
 *
 * Kinds that relate items (view.relates_items) have such pictures. In others the answers at A
 * move B not at all (bkt), or through one ability that moves everything alike (lme, vae, ktm).
 * Nothing is shown if no answer moves the chance at another skill by a tenth of a percentage
 * point. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "plot/plot_heat.h"
#include "report/report_inside.h"
#include "report/report_mastery.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SKILLS = PLOT_HEAT_COLUMNS, MOST_TOLD = 5, MOST_ASKED = 20 };
static const double least_effect = 0.001;

/* An even selection of the items of skill k. */
static size_t choose_items(const struct standing *standing, uint32_t k, size_t most,
                           uint32_t *items)
{
    const struct skill_items *skills = &standing->skills;
    const size_t n_all = skills->first[k + 1] - skills->first[k], n = size_min(n_all, most);
    for (size_t i = 0; i < n; i++)
        items[i] = skills->item[skills->first[k] + size_cut(n_all, i, n)];
    return n;
}

/* mean[k]: the mean chance at the items of skill k after one answer, added `sign` times. */
static void add_chances(const struct standing *standing, size_t student, uint32_t item,
                        enum outcome outcome, const uint32_t *skills, size_t n, double sign,
                        double *mean)
{
    const struct live_attempt told = {.item = item,
                                      .mark = mark_make(outcome, TRAIN, true, true),
                                      .covariate = standing->empty};
    const struct live_attempt when = {.mark = mark_make(UNKNOWN, TEST, false, true),
                                      .covariate = standing->empty};
    live_restart(standing->live, student);
    live_tell(standing->live, 1, &student, &told);
    for (size_t b = 0; b < n; b++) {
        uint32_t items[MOST_ASKED];
        real p[MOST_ASKED];
        double sum = 0;
        const size_t n_items = choose_items(standing, skills[b], MOST_ASKED, items);
        live_ask(standing->live, student, &when, items, n_items, p);
        for (size_t i = 0; i < n_items; i++)
            sum += (double)p[i];
        mean[b] += sign * sum / (double)n_items;
    }
}

void report_influence_rows(const struct standing *standing, const uint32_t *skills, size_t n,
                           size_t first, size_t end, double *effect)
{
    const size_t student = live_add(standing->live);
    memset(effect, 0, (end - first) * n * sizeof *effect);
    for (size_t a = first; a < end; a++) {
        double *row = effect + (a - first) * n;
        uint32_t items[MOST_TOLD];
        const size_t n_told = choose_items(standing, skills[a], MOST_TOLD, items);
        for (size_t i = 0; i < n_told; i++) {
            add_chances(standing, student, items[i], CORRECT, skills, n, 1, row);
            add_chances(standing, student, items[i], INCORRECT, skills, n, -1, row);
        }
        for (size_t b = 0; b < n; b++)
            row[b] /= (double)n_told;
    }
}

/* The largest effect on another skill. */
static double largest(const double *effect, size_t n)
{
    double most = 0;
    for (size_t e = 0; e < n * n; e++)
        if (e / n != e % n)
            most = fmax(most, fabs(effect[e]));
    return most;
}

/* Collective: each rank computes some of the rows. */
static void measure(struct report_influence *influence, const struct standing *standing)
{
    const struct inference *inference = standing->inference;
    const struct comm *comm = inference->comm;
    uint32_t *skills = NULL;
    const size_t n = report_sample_skills(standing, MOST_SKILLS, &skills, &influence->n_all);
    const size_t first = size_cut(n, (size_t)comm->rank, (size_t)comm->size),
                 end = size_cut(n, (size_t)comm->rank + 1, (size_t)comm->size);
    double *own = NEW_SCRATCH(double, (end - first) * n);
    size_t n_bytes = 0;
    log_live("report: influence between skills");
    if (n > 1)
        report_influence_rows(standing, skills, n, first, end, own);
    influence->effect =
        comm_gather(comm, own, n > 1 ? (end - first) * n * sizeof *own : 0, &n_bytes);
    if (comm->rank == 0 && n > 1 && largest(influence->effect, n) >= least_effect)
        influence->n = n;
    influence->by_item = standing->by_item;
    const struct names *names =
        standing->by_item ? &inference->dataset.items : &inference->dataset.skills;
    for (size_t k = 0; k < influence->n; k++) {
        const char *name = names_get(names, skills[k]);
        names_add(&influence->names, name, strlen(name));
    }
    memory_free(own);
    memory_free(skills);
}

enum status report_influence_measure(struct report_influence *influence,
                                     const struct inference *inference)
{
    struct standing standing;
    if (!inference->model->kind->view.relates_items ||
        model_task(inference->model) != TASK_TRACE)
        return OK;
    enum status status = standing_open(&standing, inference);
    if (status == OK)
        measure(influence, &standing);
    standing_close(&standing);
    return status;
}

void report_influence_free(struct report_influence *influence)
{
    memory_free(influence->effect);
    names_free(&influence->names);
    *influence = (struct report_influence){0};
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* About two arrows per skill: the smallest effect that is still drawn. */
static double least_drawn(const struct report_influence *influence)
{
    const size_t n = influence->n;
    double *sizes = NEW_SCRATCH(double, n *n);
    size_t n_sizes = 0;
    for (size_t e = 0; e < n * n; e++)
        if (e / n != e % n)
            sizes[n_sizes++] = fabs(influence->effect[e]);
    qsort(sizes, n_sizes, sizeof *sizes, compare);
    const double least = fmax(least_effect, sizes[size_min(n_sizes, 2 * n) - 1]);
    memory_free(sizes);
    return least;
}

static void draw_matrix(FILE *out, const struct report_influence *influence,
                        const char *const *names, const char *thing)
{
    const size_t n = influence->n;
    double most = 0;
    bool lowers = false;
    for (size_t e = 0; e < n * n; e++) {
        most = fmax(most, fabs(influence->effect[e]));
        lowers |= influence->effect[e] < -0.0005;
    }
    char *title = memory_text("Influence between %ss: percentage points", thing);
    html_figure(out, title);
    plot_heat_draw(out, &(struct plot_heat){.title = title,
                                            .n_rows = n,
                                            .n_columns = n,
                                            .rows = names,
                                            .columns = names,
                                            .scale = "points",
                                            .most = most,
                                            .value = influence->effect});
    html_caption(
        out,
        "Rows: the %s that was answered; columns: the %s whose chance moves. A strong colour: "
        "a "
        "right rather than a wrong answer in this row moves the chance in this column far. The "
        "diagonal is the %s itself. Good: %ss that build on each other have strong colours, "
        "unrelated ones hardly any.%s",
        thing, thing, thing, thing,
        lowers ? " The second colour: a right answer lowers the chance, which is seldom more "
                 "than noise."
               : "");
    memory_free(title);
}

static void draw_graph(FILE *out, const struct report_influence *influence,
                       const char *const *names, const char *thing)
{
    const size_t n = influence->n;
    const double most = largest(influence->effect, n), least = least_drawn(influence);
    double *weight = NEW_SCRATCH(double, n *n);
    bool lowers = false;
    for (size_t e = 0; e < n * n; e++) {
        weight[e] = influence->effect[e] / most;
        lowers |= e / n != e % n && influence->effect[e] <= -least;
    }
    char *title = memory_text("Strongest influences between %ss", thing);
    html_figure(out, title);
    plot_graph(out, title, names, n, weight, least / most);
    html_caption(out,
                 "An arrow from A to B: a right rather than a wrong answer at A moves the "
                 "chance at B by at least %.1f percentage points; the thickest arrow by %.1f. "
                 "About two arrows per %s are drawn.%s",
                 100 * least, 100 * most, thing,
                 lowers ? " Dashed arrows lower the chance." : "");
    memory_free(title);
    memory_free(weight);
}

void report_influence_show(FILE *out, const struct report_influence *influence)
{
    const char *thing = influence->by_item ? "item" : "skill";
    if (influence->n == 0)
        return;
    const char **names = NEW(const char *, influence->n);
    for (size_t k = 0; k < influence->n; k++)
        names[k] = names_get(&influence->names, k);
    char *which =
        influence->n < influence->n_all
            ? memory_text(" Shown are the %zu %ss with the most attempts, of %s.", influence->n,
                          thing, html_whole((int64_t)influence->n_all).text)
            : memory_text("%s", "");
    html_say(out, "h3", "Influence between %ss", thing);
    html_say(out, "p",
             "A new student gives one answer at %s A. The picture of numbers shows how many "
             "percentage points higher (lower, if negative) the chance of a right answer at %s "
             "B is after a right than after a wrong answer at %s A%s.%s",
             thing, thing, thing, influence->by_item ? "" : ", averaged over their items",
             which);
    html_figures(out);
    draw_matrix(out, influence, names, thing);
    draw_graph(out, influence, names, thing);
    html_figures_end(out);
    memory_free(which);
    memory_free(names);
}
