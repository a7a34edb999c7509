/* The rule by which a page calls a skill mastered. It is stated on every page that uses it and in
 * the help, and tests/cli/cli_students.sh compares it with what simulated students really know.
 *
 *     mastery     bkt: the chance that the skill is known
 *                 other kinds: the chance of a right answer, mean over the items of the skill
 *
 *     answers at the skill    none     1, 2          3 or more
 *     mastery  high           untried  in progress   mastered
 *              middle         untried  in progress   in progress
 *              below one half untried  in progress   needs help
 *
 * What to practise next is what the student probably does not know yet and practice can reach:
 *
 *     mastery  high           no candidate, whatever the number of answers
 *              middle         second
 *              below one half first            not tried: last
 *
 * Within each of these, the fewest right answers needed come first: the next step is the one
 * that is nearest to what the student can do. Of equal ones, the lowest mastery comes first.
 * What is nearly mastered comes second, since most of it is known in truth.
 *
 * A student who knows a skill still slips, so a chance of a right answer counts as high earlier
 * than a chance of knowing. With 20 % slips and 30 % guesses, 75 % right means 90 % known; with
 * 5 % and 10 %, it means 76 %. */
#include "base/memory.h"
#include "plot/html.h"
#include "report/report_mastery.h"
#include <inttypes.h>
#include <math.h>

struct report_rule report_rule_of(bool knows)
{
    return (struct report_rule){
        .knows = knows, .mastered = knows ? 0.85 : 0.75, .help = 0.5, .answers = 3};
}

enum report_state report_rule_state(const struct report_rule *rule, double mastery,
                                    int64_t answers)
{
    return answers == 0                                            ? STATE_UNTRIED
           : answers >= rule->answers && mastery >= rule->mastered ? STATE_MASTERED
           : answers >= rule->answers && mastery < rule->help      ? STATE_HELP
                                                                   : STATE_PROGRESS;
}

enum report_advice report_rule_advice(const struct report_rule *rule, double mastery,
                                      int64_t answers)
{
    return mastery >= rule->mastered ? ADVISE_NOT
           : answers == 0            ? ADVISE_UNTRIED
           : mastery < rule->help    ? ADVISE_UNKNOWN
                                     : ADVISE_PROGRESS;
}

int report_rule_percent(const struct report_rule *rule, double mastery)
{
    const double bars[] = {rule->mastered, rule->help};
    int percent = (int)lround(100 * mastery);
    for (size_t b = 0; b < COUNT(bars); b++)
        if (mastery < bars[b] && percent == (int)lround(100 * bars[b]))
            percent--;
    return percent;
}

enum { N_LINES = 4 };

/* The rule in short lines; caller frees each. */
static void write_lines(const struct report_rule *rule, const char *thing, char *lines[N_LINES])
{
    lines[0] =
        rule->knows
            ? memory_text("Mastery is the chance that the student knows the %s.", thing)
            : memory_text("Mastery is the chance that the next answer at the %s is right.",
                          thing);
    lines[1] = memory_text("Mastered: a mastery of at least %.0f %% after at least %" PRId64
                           " answers.",
                           100 * rule->mastered, rule->answers);
    lines[2] =
        memory_text("Needs help: a mastery below %.0f %% after at least %" PRId64
                    " answers. In progress: tried, but neither mastered nor in need of help.",
                    100 * rule->help, rule->answers);
    lines[3] = memory_text(
        "Practise next: %ss with a mastery below %.0f %% that at most %d right answers in a "
        "row would make mastered, tried out with the model. First come those tried with a "
        "mastery below %.0f %%, then the others tried, then those not tried; in each group, "
        "the fewest right answers needed.",
        thing, 100 * rule->mastered, (int)REPORT_MOST_NEEDED, 100 * rule->help);
}

char *report_rule_text(const struct report_rule *rule, const char *thing)
{
    char *lines[N_LINES];
    write_lines(rule, thing, lines);
    char *text = memory_text("%s %s %s %s", lines[0], lines[1], lines[2], lines[3]);
    for (size_t k = 0; k < N_LINES; k++)
        memory_free(lines[k]);
    return text;
}

void report_rule_show(FILE *out, const struct report_rule *rule, const char *thing)
{
    char *lines[N_LINES];
    write_lines(rule, thing, lines);
    fputs("<ul>\n", out);
    for (size_t k = 0; k < N_LINES; k++) {
        html_say(out, "li", "%s", lines[k]);
        memory_free(lines[k]);
    }
    fputs("</ul>\n", out);
}
