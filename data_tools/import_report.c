/* What an import says at its end: counts, what happened to rows, and what looks wrong. A wrong
 * column, unit or split shows here first, before hours of training. */
#include "base/log.h"
#include "base/memory.h"
#include "data_tools/import.h"
#include "data_tools/summary.h"
#include <inttypes.h>
#include <stdlib.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Rows of one student, item and time, or without times adjacent rows with one outcome. */
static void report_repeats(const struct import *import, const struct builder_result *result)
{
    const bool timed = import->plan.has_time && !result->forgot_times;
    const uint64_t n_skills = result->n_merged_skills,
                   n_same = result->n_merged - result->n_merged_skills;
    if (n_skills > 0)
        log_say("merged %" PRIu64 " row%s with another skill into %s attempt (same student, "
                "item%s%s)%s",
                n_skills, plural(n_skills), n_skills == 1 ? "its" : "their",
                timed ? ", time" : "", import->plan.merge == MERGE_SKILLS ? " and outcome" : "",
                import->plan.merge == MERGE_SKILLS ? "; --keep-repeats keeps them" : "");
    if (n_same > 0)
        log_say("skipped %" PRIu64
                " row%s that repeat%s an attempt (same student, item and %s)",
                n_same, plural(n_same), n_same == 1 ? "s" : "", timed ? "time" : "outcome");
    if (result->n_merged_other > 0)
        log_say("note: %" PRIu64 " of the merged rows ha%s another outcome; the first counts",
                result->n_merged_other, result->n_merged_other == 1 ? "s" : "ve");
    if (result->n_repeats > 0 && timed)
        log_say("note: %" PRIu64 " row%s repeat%s an attempt (same student, item, time and "
                "outcome); --merge-repeats skips them",
                result->n_repeats, plural(result->n_repeats),
                result->n_repeats == 1 ? "s" : "");
    else if (result->n_repeats > 0)
        log_say("note: %" PRIu64 " row%s repeat%s the student's previous row (same item and "
                "outcome); if these are not new attempts, --merge-repeats skips them",
                result->n_repeats, plural(result->n_repeats),
                result->n_repeats == 1 ? "s" : "");
    if (result->n_reskilled > 0)
        log_say("note: %" PRIu64 " item%s different skills in different attempts; an item has "
                "the skills of all its rows",
                result->n_reskilled, result->n_reskilled == 1 ? " has" : "s have");
    if (result->n_half_skilled > 0)
        log_say("note: %" PRIu64
                " item%s no skill in some rows; %s the skills of %s other rows",
                result->n_half_skilled, result->n_half_skilled == 1 ? " has" : "s have",
                result->n_half_skilled == 1 ? "it has" : "they have",
                result->n_half_skilled == 1 ? "its" : "their");
}

/* Files beside the answers whose rows contradict each other. */
static void report_contradictions(const struct import *import,
                                  const struct builder_result *result)
{
    const struct import_flags *flags = import->flags;
    const struct {
        uint64_t n;
        const char *file, *other, *what;
    } all[] = {
        {import->n_retimed, flags->time_meta, "", "another time for an answer"},
        {import->n_retargeted, flags->targets, flags->target, "another target for a student"},
        {result->n_retitled, flags->item_names, flags->skill_names, "another title for a name"},
    };
    for (size_t a = 0; a < COUNT(all); a++)
        if (all[a].n > 0)
            log_warn("%s: %" PRIu64 " row%s %s than an earlier row; the last one counts",
                     all[a].file[0] != '\0' ? all[a].file : all[a].other, all[a].n,
                     all[a].n == 1 ? " has" : "s have", all[a].what);
}

/* Whether the user, or the default, asked for attempts in this part. */
static bool is_asked_for(const struct import *import, const struct split_plan *plan,
                         enum split split)
{
    const struct import_flags *flags = import->flags;
    switch (plan->way) {
    case SPLIT_GIVEN:
        return flags->split_column[0] != '\0' ? split != TEST
               : split == VALID               ? flags->valid[0] != '\0'
                                              : flags->test[0] != '\0';
    case SPLIT_NONE:
        return false;
    case SPLIT_FOLDS:
        return true;
    case SPLIT_BY_LAST:
        return split == VALID || !plan->within_train;
    case SPLIT_BY_STUDENT:
    case SPLIT_BY_ORDER:
    case SPLIT_BY_TIME:
    case SPLIT_BY_ATTEMPT:
        return plan->percent[split] > 0;
    }
    return false;
}

static void warn_of_empty_parts(const struct import *import,
                                const struct builder_result *result,
                                const struct split_plan *plan)
{
    const struct dataset *head = &result->content.head;
    uint64_t n_by_split[4] = {0}, n_to_learn = 0, n_valid_known = 0;
    for (uint64_t t = 0; t < head->n_attempts; t++) {
        n_by_split[mark_split(result->mark[t])]++;
        n_to_learn +=
            mark_split(result->mark[t]) == TRAIN && mark_outcome(result->mark[t]) != UNKNOWN;
        n_valid_known +=
            mark_split(result->mark[t]) == VALID && mark_outcome(result->mark[t]) != UNKNOWN;
    }
    if (n_to_learn == 0 && n_by_split[VALID] + n_by_split[TEST] > 0)
        log_warn("no known outcome is for training (split %s): models cannot learn from this "
                 "data set",
                 import->split);
    if (n_valid_known == 0 && n_by_split[VALID] > 0)
        log_warn("no known outcome is for validation (attempts: %" PRIu64
                 ", split %s): %straining cannot stop at the best epoch",
                 n_by_split[VALID], import->split,
                 head->target != NULL ? "except for models of a target, " : "");
    const bool no_valid = n_by_split[VALID] == 0 && is_asked_for(import, plan, VALID),
               no_test = n_by_split[TEST] == 0 && is_asked_for(import, plan, TEST);
    if (no_valid || no_test)
        log_warn("no attempt is for %s (%zu student%s, split %s): %s",
                 !no_test    ? "validation"
                 : !no_valid ? "test"
                             : "validation or test",
                 head->n_students, plural(head->n_students), import->split,
                 no_valid ? "training cannot stop at the best epoch"
                          : "models cannot be judged by new attempts");
    else if (n_by_split[VALID] == 0 && plan->way == SPLIT_GIVEN)
        log_say("note: nothing is for validation; --split by-student=90/10 takes it from the "
                "training files");
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Half of the pauses between a student's attempts are longer, of the first students; 0 if there
 * are none. */
static int64_t median_pause(const struct dataset_content *content)
{
    enum { MOST = 1 << 16 };
    const struct dataset *head = &content->head;
    int64_t *pauses = NEW_SCRATCH(int64_t, MOST);
    size_t n = 0;
    for (size_t s = 0; s < head->n_students && n < MOST; s++)
        for (uint64_t t = head->first[s] + 1; t < head->first[s + 1] && n < MOST; t++)
            if (content->time[t] > content->time[t - 1])
                pauses[n++] = content->time[t] - content->time[t - 1];
    qsort(pauses, n, sizeof *pauses, compare_numbers);
    const int64_t median = n > 0 ? pauses[n / 2] : 0;
    memory_free(pauses);
    return median;
}

/* Numbers that were read as seconds but do not look like seconds since 1970. Times rise from
 * one row of a student to the next, or fall throughout; durations of answers do either. A pause
 * of hours between most answers means milliseconds. */
static void warn_of_times(const struct import *import, const struct builder_result *result)
{
    enum { LONG_PAUSE = 1000 };
    const int64_t from_1973 = 100000000, to_2103 = 4200000000;
    const struct dataset_content *content = &result->content;
    const struct dataset *head = &content->head;
    if (import->time_column == NULL || !head->has_time || head->n_attempts == 0)
        return;
    int64_t most = content->time[0];
    for (uint64_t t = 0; t < head->n_attempts; t++)
        most = content->time[t] > most ? content->time[t] : most;
    const double falls =
        result->n_next > 0 ? (double)result->n_falls / (double)result->n_next : 0;
    const int64_t pause = median_pause(content);
    if (most < from_1973 && falls > 0.2 && falls < 0.8)
        log_warn(
            "column %s is small and falls in %.0f %% of a student's rows, as durations do; "
            "attempts are now sorted by it. If it is not a time, --time none keeps the "
            "order of the rows",
            import->time_column, 100 * falls);
    else if ((most < from_1973 && pause >= LONG_PAUSE) || most > to_2103)
        log_warn(
            "column %s is read as seconds: half of the pauses between a student's attempts "
            "are %" PRId64 " s or longer. If it has milliseconds, use --time-unit ms",
            import->time_column, pause);
}

void import_report(const struct import *import, const struct builder_result *result,
                   const struct split_plan *plan)
{
    log_say("read %" PRIu64 " row%s, %.1f MB of text, from %zu file%s in %.2f s",
            import->n_rows, plural(import->n_rows), (double)import->n_bytes / 1e6,
            import->n_files, plural(import->n_files), import->n_seconds);
    summary_say(&result->content);
    if (import->n_bad > 0)
        log_say("skipped %" PRIu64 " bad row%s; first: %s", import->n_bad,
                plural(import->n_bad), import->first_bad);
    report_repeats(import, result);
    if (result->n_converted > 0)
        log_say("note: %" PRIu64 " name%s not UTF-8 and %s read as Latin-1",
                result->n_converted, result->n_converted == 1 ? " is" : "s are",
                result->n_converted == 1 ? "was" : "were");
    if (result->n_united > 0)
        log_warn("%" PRIu64 " name%s both as UTF-8 and as Latin-1 and count%s as one; if these "
                 "are different students or items, convert the file to UTF-8 first",
                 result->n_united, result->n_united == 1 ? " occurs" : "s occur",
                 result->n_united == 1 ? "s" : "");
    if (result->n_idle_students > 0)
        log_say("skipped %" PRIu64 " student%s without attempts", result->n_idle_students,
                plural(result->n_idle_students));
    if (result->n_regrouped > 0)
        log_say("note: %" PRIu64
                " item%s different groups in different rows; an item keeps its "
                "first one. Groups of students or of attempts, such as classes, are --factors",
                result->n_regrouped, result->n_regrouped == 1 ? " has" : "s have");
    report_contradictions(import, result);
    if (import->n_undescribed > 0)
        log_say("note: %" PRIu64 " item%s not in %s", import->n_undescribed,
                import->n_undescribed == 1 ? " is" : "s are", import->flags->item_meta);
    if (import->split_is_default)
        log_say("split %s, the default; --split chooses another", import->split);
    warn_of_empty_parts(import, result, plan);
    warn_of_times(import, result);
    log_say("wrote %s (digest %s)", import->flags->output, result->content.head.digest);
}
