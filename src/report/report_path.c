/* The path of a student, as Piech et al. (2015) draw it: skills down, attempts across. A column
 * is the state after an attempt; the mark in it tells at which skills the attempt was, and
 * whether the answer was right. */
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "plot/plot_heat.h"
#include "report/report_internal.h"
#include <math.h>

/* The skills, or the item, of attempt t; those that the model does not know are left out. */
static size_t skills_of(const struct standing *standing, uint64_t t, const uint32_t **skills)
{
    const struct inference *inference = standing->inference;
    const struct shard *shard = &inference->shard;
    if (!standing->by_item)
        return stand_ins_skills(&inference->stand_ins, shard, t, skills);
    *skills = &shard->item[t];
    return stand_ins_asked(&inference->stand_ins, shard, t) == shard->item[t] ? 1 : 0;
}

int64_t report_path_count(const struct standing *standing, size_t s,
                          struct report_answers *answers)
{
    const struct shard *shard = &standing->inference->shard;
    int64_t n_withheld = 0;
    for (uint64_t t = shard->first[s + 1]; t-- > shard->first[s];) {
        const enum outcome outcome = mark_outcome(shard->mark[t]);
        const uint32_t *skills = NULL;
        const size_t n = skills_of(standing, t, &skills);
        n_withheld += outcome != UNKNOWN && !mark_is_shown(shard->mark[t]);
        if (outcome == UNKNOWN || !mark_is_shown(shard->mark[t]))
            continue;
        for (size_t k = 0; k < n; k++) {
            struct report_answers *at = &answers[skills[k]];
            at->n++;
            at->right += outcome == CORRECT;
            if (at->n_recent == 0)
                at->latest_right = outcome == CORRECT;
            if (at->n_recent == REPORT_RECENT)
                continue;
            at->n_recent++;
            at->recent_right += outcome == CORRECT;
        }
    }
    return n_withheld;
}

/* The skills tried most in attempts `from` to `end`, in the order of their first attempt. */
static void choose_skills(struct report_path *path, const struct standing *standing,
                          uint64_t from, uint64_t end)
{
    const size_t n = standing->skills.n;
    uint32_t *count = NEW(uint32_t, n);
    bool *chosen = NEW(bool, n);
    const uint32_t *skills = NULL;
    for (uint64_t t = from; t < end; t++)
        for (size_t k = skills_of(standing, t, &skills); k-- > 0;)
            path->n_tried += count[skills[k]]++ == 0;
    for (size_t c = 0; c < REPORT_PATH_SKILLS; c++) {
        size_t best = n;
        for (size_t k = 0; k < n; k++)
            if (count[k] > 0 && !chosen[k] && (best == n || count[k] > count[best]))
                best = k;
        if (best < n)
            chosen[best] = true;
    }
    for (uint64_t t = from; t < end; t++) {
        const size_t n_here = skills_of(standing, t, &skills);
        for (size_t k = 0; k < n_here; k++) {
            if (chosen[skills[k]])
                path->skill[path->n_skills++] = skills[k];
            chosen[skills[k]] = false;
        }
    }
    memory_free(count);
    memory_free(chosen);
}

void report_path_take(struct report_path *path, struct standing *standing, size_t s)
{
    const struct shard *shard = &standing->inference->shard;
    const uint64_t end = shard->first[s + 1], n_all = end - shard->first[s];
    *path = (struct report_path){.n_attempts = size_min(n_all, REPORT_PATH_ATTEMPTS)};
    path->n_before = n_all - path->n_attempts;
    const uint64_t from = end - path->n_attempts;
    choose_skills(path, standing, from, end);
    for (uint64_t t = from; t < end; t++) {
        const enum outcome outcome = mark_outcome(shard->mark[t]);
        const uint32_t *skills = NULL;
        const size_t n_here = skills_of(standing, t, &skills);
        standing_go(standing, s, t + 1);
        for (size_t k = 0; k < path->n_skills; k++) {
            const size_t cell = k * path->n_attempts + (t - from);
            path->mastery[cell] = standing_mastery(standing, path->skill[k]);
            for (size_t h = 0; h < n_here; h++)
                if (skills[h] == path->skill[k])
                    path->mark[cell] = outcome == CORRECT     ? HEAT_RIGHT
                                       : outcome == INCORRECT ? HEAT_WRONG
                                                              : HEAT_OPEN;
        }
    }
}

void report_path_draw(FILE *out, const struct report_path *path, const struct names *things,
                      const char *thing, const char *title, const char *caption)
{
    const char *rows[REPORT_PATH_SKILLS];
    for (size_t k = 0; k < path->n_skills; k++)
        rows[k] = names_get(things, path->skill[k]);
    html_figure(out, title);
    plot_heat_draw(out, &(struct plot_heat){.title = title,
                                            .n_rows = path->n_skills,
                                            .n_columns = path->n_attempts,
                                            .rows = rows,
                                            .first_number = path->n_before + 1,
                                            .label = "attempt",
                                            .scale = "mastery",
                                            .value = path->mastery,
                                            .mark = path->mark});
    char *which = path->n_before > 0
                      ? memory_text(" The last %zu of %zu attempts are shown.",
                                    path->n_attempts, path->n_before + path->n_attempts)
                      : memory_text("%s", "");
    char *few = path->n_skills < path->n_tried
                    ? memory_text("one of the %zu %ss tried most in these attempts",
                                  path->n_skills, thing)
                    : memory_text("one of the %ss tried in these attempts", thing);
    html_caption(out,
                 "%s Each row is %s, each column an attempt: a circle is a right answer, a "
                 "cross a wrong one. The stronger the colour, the higher the mastery after "
                 "that attempt.%s",
                 caption, few, which);
    memory_free(few);
    memory_free(which);
}

void report_path_draw_growth(FILE *out, const struct report_path *path, const char *thing,
                             const char *picture, bool is_fixed)
{
    double x[REPORT_PATH_ATTEMPTS], y[REPORT_PATH_ATTEMPTS];
    for (size_t t = 0; t < path->n_attempts; t++) {
        x[t] = (double)(path->n_before + t + 1);
        y[t] = 0;
        for (size_t k = 0; k < path->n_skills; k++)
            y[t] += path->mastery[k * path->n_attempts + t] / (double)path->n_skills;
    }
    const struct plot_series line = {.style = PLOT_LINE, .n = path->n_attempts, .x = x, .y = y};
    char *title =
        path->n_before > 0
            ? memory_text("Estimated mastery over the last %zu attempts", path->n_attempts)
            : memory_text("Estimated mastery over all attempts");
    html_figure(out, title);
    plot_draw(out, &(struct plot){.title = title,
                                  .x = {.label = "attempt", .whole = true},
                                  .y = {.label = "mean mastery", .high = 1, .percent = true},
                                  .series = &line,
                                  .n_series = 1});
    html_caption(out, "Mastery after each attempt, mean over the %ss in the picture “%s”.%s%s",
                 thing, picture, is_fixed ? " " : "", is_fixed ? report_fixed_words : "");
    memory_free(title);
}
