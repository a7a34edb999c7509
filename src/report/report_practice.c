/* Learning curves of skills against the data: at the nth attempt at a skill, the share of right
 * answers and the model's mean chance (practice.c). They use the answers that the scores of the
 * page use, so that a model is judged on answers it was not trained on. Data without skills have
 * items instead.
 *
 * The skills with the most of these answers are chosen, and drawn in the order in which their
 * answers improve. A point needs REPORT_FEWEST_ANSWERS answers and a skill
 * REPORT_FEWEST_POINTS points. */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "plot/plot_panels.h"
#include "report/practice.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t skills_of(const void *arg, uint64_t t, const uint32_t **skills)
{
    const struct inference *inference = arg;
    return stand_ins_skills(&inference->stand_ins, &inference->shard, t, skills);
}

static size_t item_of(const void *arg, uint64_t t, const uint32_t **items)
{
    const struct inference *inference = arg;
    *items = &inference->shard.item[t];
    return stand_ins_asked(&inference->stand_ins, &inference->shard, t) == **items ? 1 : 0;
}

struct ranked {
    double value; /* larger ones first */
    uint32_t k;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1)
                                : (x->k > y->k) - (x->k < y->k);
}

/* Collective: the things with the most scored answers; returns how many. */
static size_t choose(const struct practice_source *source, const struct comm *comm,
                     uint32_t things[REPORT_MOST_PRACTISED])
{
    int64_t *n = NEW(int64_t, source->n_things);
    struct ranked *ranked = NEW_SCRATCH(struct ranked, source->n_things);
    size_t n_ranked = 0;
    practice_answers(source, n);
    comm_sum_i64(comm, n, source->n_things);
    for (uint32_t k = 0; k < source->n_things; k++)
        if (n[k] >= REPORT_FEWEST_ANSWERS * REPORT_FEWEST_POINTS)
            ranked[n_ranked++] = (struct ranked){(double)n[k], k};
    qsort(ranked, n_ranked, sizeof *ranked, compare);
    n_ranked = size_min(n_ranked, REPORT_MOST_PRACTISED);
    for (size_t k = 0; k < n_ranked; k++)
        things[k] = ranked[k].k;
    memory_free(n);
    memory_free(ranked);
    return n_ranked;
}

/* Keeps the slots with enough points, those that rise most first. */
static void sort(struct report_practice *practice, const uint32_t *things, size_t n,
                 const struct names *names)
{
    struct ranked ranked[REPORT_MOST_PRACTISED];
    struct practice_point points[1 + REPORT_MOST_PRACTISED][PRACTICE_POINTS];
    memcpy(points, practice->points, sizeof points);
    for (uint32_t k = 0; k < n; k++) {
        const size_t length = practice_length(points[1 + k], REPORT_FEWEST_ANSWERS);
        if (length >= REPORT_FEWEST_POINTS)
            ranked[practice->n++] = (struct ranked){practice_rise(points[1 + k], length), k};
    }
    qsort(ranked, practice->n, sizeof *ranked, compare);
    for (size_t i = 0; i < practice->n; i++) {
        const char *name = names_get(names, things[ranked[i].k]);
        memcpy(practice->points[1 + i], points[1 + ranked[i].k], sizeof points[0]);
        names_add(&practice->names, name, strlen(name));
    }
}

void report_practice_measure(struct report_run *run, const struct inference *inference,
                             const struct predictions *predictions)
{
    const struct dataset *dataset = &inference->dataset;
    struct report_practice *practice = &run->practice;
    practice->by_item = dataset->n_skills == 0;
    float *chance = NEW_SCRATCH(float, inference->shard.n_attempts);
    for (uint64_t t = 0; t < inference->shard.n_attempts; t++)
        chance[t] = NAN;
    for (size_t i = 0; i < predictions->n; i++)
        chance[predictions->place[i]] = predictions->list[i].probability;
    const struct practice_source source = {.shard = &inference->shard,
                                           .chance = chance,
                                           .n_things = practice->by_item ? dataset->n_items
                                                                         : dataset->n_skills,
                                           .things = practice->by_item ? item_of : skills_of,
                                           .arg = inference};
    uint32_t things[REPORT_MOST_PRACTISED], *slot = NEW_SCRATCH(uint32_t, source.n_things);
    const size_t n = choose(&source, inference->comm, things);
    for (size_t k = 0; k < source.n_things; k++)
        slot[k] = UINT32_MAX;
    for (uint32_t k = 0; k < n; k++)
        slot[things[k]] = 1 + k;
    practice_count(&source, slot, practice->points[0]);
    comm_sum_i64(inference->comm, &practice->points[0][0].n,
                 sizeof practice->points / sizeof(int64_t));
    sort(practice, things, n, practice->by_item ? &dataset->items : &dataset->skills);
    memory_free(chance);
    memory_free(slot);
}

/* The numbers of a curve. */
struct curve {
    size_t n;
    double x[PRACTICE_POINTS], share[PRACTICE_POINTS], low[PRACTICE_POINTS],
        high[PRACTICE_POINTS], chance[PRACTICE_POINTS], answers[PRACTICE_POINTS];
};

static void take(struct curve *curve, const struct practice_point *points)
{
    curve->n = practice_length(points, REPORT_FEWEST_ANSWERS);
    for (size_t i = 0; i < curve->n; i++) {
        curve->x[i] = (double)(i + 1);
        curve->answers[i] = (double)points[i].n;
        curve->share[i] = (double)points[i].right / (double)points[i].n;
        curve->chance[i] = report_score_mean(points[i].chance, points[i].n);
        report_wilson(curve->share[i], points[i].n, &curve->low[i], &curve->high[i]);
    }
}

/* All skills together: the data, and the line of every run, which has its colour of other
 * pictures. */
static void draw_all(FILE *out, const struct report *report, const char *thing)
{
    struct curve *curves = NEW(struct curve, report->n);
    struct plot_series series[1 + REPORT_MOST_RUNS];
    char *title = memory_text("Right answers by attempt at a%s %s", thing[0] == 'i' ? "n" : "",
                              thing),
         *label = memory_text("attempt at the %s", thing);
    for (size_t r = 0; r < report->n; r++)
        take(&curves[r], report->runs[r].practice.points[0]);
    series[0] = (struct plot_series){.name = "students",
                                     .style = PLOT_POINTS,
                                     .colour = report->n > 1 ? PLOT_COLOURS - 1 : 1,
                                     .n = curves[0].n,
                                     .x = curves[0].x,
                                     .y = curves[0].share,
                                     .low = curves[0].low,
                                     .high = curves[0].high};
    for (size_t r = 0; r < report->n; r++)
        series[1 + r] =
            (struct plot_series){.name = report->n > 1 ? report->runs[r].label : "model",
                                 .style = PLOT_LINE,
                                 .colour = r,
                                 .n = curves[r].n,
                                 .x = curves[r].x,
                                 .y = curves[r].chance};
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = label, .whole = true},
                                  .y = {.label = "share right", .high = 1, .percent = true},
                                  .series = series,
                                  .n_series = 1 + report->n});
    html_caption(out,
                 "All %ss together. Dots are the share of right answers with 95 %% intervals, "
                 "the line is the model's mean chance for the same answers. A good model "
                 "follows the dots.",
                 thing);
    memory_free(title);
    memory_free(label);
    memory_free(curves);
}

static void draw_each(FILE *out, const struct report_practice *practice, const char *thing)
{
    struct curve *curves = NEW(struct curve, practice->n);
    struct plot_panel *list = NEW(struct plot_panel, practice->n);
    struct plot_panels panels = {
        .dots = "students", .line = "model", .list = list, .n = practice->n};
    for (size_t k = 0; k < practice->n; k++) {
        take(&curves[k], practice->points[1 + k]);
        list[k] = (struct plot_panel){.name = names_get(&practice->names, k),
                                      .n = curves[k].n,
                                      .share = curves[k].share,
                                      .low = curves[k].low,
                                      .high = curves[k].high,
                                      .line = curves[k].chance,
                                      .weight = curves[k].answers};
        panels.longest = size_max(panels.longest, curves[k].n);
    }
    char *title = memory_text("Learning curves of %ss", thing),
         *label = memory_text("attempt at the %s", thing);
    panels.title = title;
    panels.label = label;
    html_figure(out, title);
    plot_panels_draw(out, &panels);
    html_caption(out,
                 "The %ss with the most answers, in the order in which their answers improve: "
                 "first those whose share of right answers rises most from the first attempts "
                 "to the last. The line is the model's mean chance for the same answers.",
                 thing);
    memory_free(title);
    memory_free(label);
    memory_free(list);
    memory_free(curves);
}

void report_practice_show(FILE *out, const struct report *report)
{
    const struct report_practice *practice = &report->runs[0].practice;
    const char *thing = practice->by_item ? "item" : "skill";
    if (practice->n == 0 || !report->comparable)
        return;
    html_say(out, "h2", "Practice: right answers by attempt at a%s %s",
             practice->by_item ? "n" : "", thing);
    html_say(out, "p",
             "A student's attempts at each %s are counted from 1. The pictures use the %s%s; a "
             "point needs at least %d of them. Students who stop early leave the later points "
             "to those who practise longer, so a curve may rise or fall although nobody "
             "learns or forgets.",
             thing, report_split_words(&report->runs[0], 2),
             practice->by_item ? ""
                               : ", and an answer to an item with several skills counts "
                                 "for each of them",
             REPORT_FEWEST_ANSWERS);
    html_figures(out);
    draw_all(out, report, thing);
    if (report->n == 1 && practice->n > 1)
        draw_each(out, practice, thing);
    html_figures_end(out);
}
