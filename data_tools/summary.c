/* A summary of a data set, where a wrong column or a wrong file shows first. */
#include "data_tools/summary.h"
#include "base/log.h"
#include "data_tools/csv_cell.h"
#include <inttypes.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void summary_say(const struct dataset_content *content)
{
    const struct dataset *head = &content->head;
    uint64_t n_by_outcome[4] = {0}, n_by_split[4] = {0}, n_steps = 0;
    for (uint64_t t = 0; t < head->n_attempts; t++) {
        n_by_outcome[mark_outcome(content->mark[t])]++;
        n_by_split[mark_split(content->mark[t])]++;
        n_steps += (content->mark[t] & MARK_STEP) != 0;
    }
    const uint64_t n_known = n_by_outcome[CORRECT] + n_by_outcome[INCORRECT];
    log_say("%zu student%s, %" PRIu64 " attempt%s, %zu item%s, %zu skill%s, %zu group%s",
            head->n_students, plural(head->n_students), head->n_attempts,
            plural(head->n_attempts), head->n_items, plural(head->n_items), head->n_skills,
            plural(head->n_skills), head->n_groups, plural(head->n_groups));
    if (n_known == 0)
        log_warn("no outcome is known: models cannot learn from this data set");
    else
        log_say("%.2f %% correct of %" PRIu64 " known outcome%s, %" PRIu64 " unknown",
                100 * (double)n_by_outcome[CORRECT] / (double)n_known, n_known, plural(n_known),
                n_by_outcome[UNKNOWN]);
    if (n_known > 0 && (n_by_outcome[CORRECT] == 0 || n_by_outcome[INCORRECT] == 0))
        log_warn("all outcomes are equal: is this the right outcome column?");
    if (n_steps < head->n_attempts)
        log_say("%" PRIu64 " step%s of %.1f attempts on average", n_steps, plural(n_steps),
                (double)head->n_attempts / (double)n_steps);
    if (head->has_time) {
        int64_t least = content->time[0], most = content->time[0];
        for (uint64_t t = 0; t < head->n_attempts; t++) {
            least = content->time[t] < least ? content->time[t] : least;
            most = content->time[t] > most ? content->time[t] : most;
        }
        char from[CELL_TIME_ROOM], to[CELL_TIME_ROOM];
        csv_cell_say_time(least, from);
        csv_cell_say_time(most, to);
        log_say("times from %s to %s", from, to);
    }
    for (size_t k = 0; k < head->covariates.names.n; k++)
        if (covariates_n_levels(&head->covariates, k) > 0)
            log_say("factor %s: %zu level%s", names_get(&head->covariates.names, k),
                    covariates_n_levels(&head->covariates, k),
                    plural(covariates_n_levels(&head->covariates, k)));
    log_say("attempts: training %" PRIu64 ", validation %" PRIu64 ", test %" PRIu64 "%s",
            n_by_split[TRAIN], n_by_split[VALID], n_by_split[TEST],
            head->withheld ? "; held-out outcomes are hidden from later attempts" : "");
}
