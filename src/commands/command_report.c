/* cohort report: one HTML page about a run, or a comparison of several. */
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
    {{"output", OPTION_TEXT, AT(output), "report.html", 0, 0, NULL, "write the page here"},
     'o',
     "FILE"},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "score this data set instead of the one the runs were trained on; items are matched by "
      "name"},
     0,
     "DATA.h5"},
    {{"split", OPTION_CHOICE, AT(split), "test", 0, 0, splits,
      "which attempts to score; if there are none, the first of test, valid and train that has "
      "some"},
     0,
     NULL},
    {{"title", OPTION_TEXT, AT(title), "", 0, 0, NULL, "title of the page"}, 0, "TEXT"},
    {{"top", OPTION_INTEGER, AT(n_rows), "20", 1, 1e6, NULL,
      "maximum number of rows in long tables"},
     0,
     NULL},
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
        status = fail(BAD_USAGE, "report: %d runs given; expected at most %d on a page",
                      n_words, REPORT_MOST_RUNS);
    if (status == OK)
        status = command_check_output(&command_report, values.output, "the file to write");
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
    .summary = "Write an HTML page on how good a model is and what it learned",
    .details =
        "The page is one HTML file that can be mailed: it contains its pictures, loads nothing "
        "from the network and needs no scripts. It shows the scores of `cohort evaluate` with "
        "95 % intervals, "
        "compared with the mean of each item; calibration; how predictions improve as more "
        "attempts of a student are known; the hardest and easiest items; the learning curve; "
        "the model's tables; a summary of the data; and the settings, with the command that "
        "trains the same model again.\n\n"
        "Up to 8 runs are compared side by side. The output is identical, byte for byte, for "
        "any number of ranks.",
    .examples = "Write a page about one run, and one that compares two:\n\n"
                "  cohort report runs/rbm -o rbm.html\n"
                "  cohort report runs/rbm runs/dkt -o comparison.html",
    .see_also = "cohort-evaluate(1), cohort-inspect(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
