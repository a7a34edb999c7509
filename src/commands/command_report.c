/* cohort report: one HTML page about a run, or about several beside each other. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "report/report.h"
#include <stddef.h>

struct values {
    const char *output, *data, *title;
    int split;
    int64_t n_rows;
};

static const char *const splits[] = {"train", "valid", "test", "all", NULL};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "report.html", 0, 0, NULL, "the page"}, 'o'},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "another data set than the one the runs were trained on; its items are found by name"},
     0},
    {{"split", OPTION_CHOICE, AT(split), "test", 0, 0, splits,
      "which attempts to score; where there are none, test, valid or train instead"},
     0},
    {{"title", OPTION_TEXT, AT(title), "", 0, 0, NULL, "what the page is called"}, 0},
    {{"top", OPTION_INTEGER, AT(n_rows), "20", 1, 1e6, NULL, "rows of long tables"}, 0},
};

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_report, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_report);
    if (status == OK && n_words > REPORT_MOST_RUNS)
        status = fail(BAD_USAGE, "report: %d runs are given, expected at most %d on a page",
                      n_words, REPORT_MOST_RUNS);
    if (status == OK && values.output[0] == '\0')
        status = fail(BAD_USAGE, "report: where to? Name a file with -o");
    if (status == OK) {
        const struct report_plan plan = {.data = values.data,
                                         .title = values.title,
                                         .output = values.output,
                                         .split = values.split,
                                         .n_rows = values.n_rows};
        status = report_write(comm, words, (size_t)n_words, &plan);
    }
    if (status == OK)
        log_say("wrote %s", values.output);
    memory_free(words);
    return status;
}

const struct command command_report = {
    .name = "report",
    .usage =
        "report RUN_OR_CHECKPOINT... [-o REPORT.html] [--data DATA.h5] [--split SPLIT] ...",
    .summary = "Writes a page about a run for people: how good it is and what it learned, with "
               "pictures",
    .details =
        "One HTML file that can be mailed: pictures are in it, it fetches nothing and needs "
        "no\n"
        "scripts. It has the scores of `cohort evaluate` with 95 % intervals beside the mean "
        "of\n"
        "each item, calibration, how predictions get better as more of a student is seen, the\n"
        "hardest and easiest items, the learning curve, the model's tables, the data in "
        "numbers,\n"
        "and the settings with the command that gives the same model again. Several runs (up "
        "to\n"
        "8) stand side by side. The bytes are the same at any number of ranks.",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
