/* cohort report: one HTML page about a run, or a comparison of several. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "report/report.h"
#include "report/report_watch.h"
#include "runs/parallel_output.h"
#include <stddef.h>
#include <string.h>

struct values {
    const char *output, *data, *title, *figures, *student;
    bool names, watch;
    int split, metric;
    int64_t n_rows;
    struct report_watch_plan watching;
};

static const char *const splits[] = {"train", "valid", "test", "all", NULL};
/* The monitored one, then as in enum metric. */
static const char *const metrics[] = {"monitored", "cbd",  "log_loss",          "auc",
                                      "accuracy",  "rmse", "calibration_error", NULL};

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
    {{"metric", OPTION_CHOICE, AT(metric), "monitored", 0, 0, metrics,
      "the score that several runs are ranked and drawn by; monitored: that of train.monitor, "
      "or "
      "the log-loss if runs differ in it"},
     0,
     NULL},
    {{"student", OPTION_TEXT, AT(student), "", 0, 0, NULL,
      "write the page of this student instead: what is mastered, in progress, and to practise "
      "next"},
     0,
     "NAME"},
    {{"names", OPTION_SWITCH, AT(names), "no", 0, 0, NULL,
      "show the names of students; without it, students are numbered as in the data set"},
     0,
     NULL},
    {{"title", OPTION_TEXT, AT(title), "", 0, 0, NULL, "title of the page"}, 0, "TEXT"},
    {{"figures", OPTION_TEXT, AT(figures), "", 0, 0, NULL,
      "write every picture into this directory as SVG and PDF, with its numbers as CSV; PDF "
      "needs rsvg-convert"},
     0,
     "DIRECTORY"},
    {{"top", OPTION_INTEGER, AT(n_rows), "20", 1, 1e6, NULL,
      "maximum number of rows in long tables"},
     0,
     NULL},
    {{"watch", OPTION_SWITCH, AT(watch), "no", 0, 0, NULL,
      "follow the training of a run or a sweep: write the page again while it goes on"},
     0,
     NULL},
    {{"every", OPTION_NUMBER, AT(watching.every), "10", 0.2, 86400, NULL,
      "with --watch: seconds between two looks at the files"},
     0,
     "SECONDS"},
    {{"wait", OPTION_NUMBER, AT(watching.wait), "3600", 0, 1e9, NULL,
      "with --watch: seconds to wait for training to begin, or to continue after it stopped"},
     0,
     "SECONDS"},
};

static enum status check_watch(const struct values *values, int n_words)
{
    if (!values->watch)
        return OK;
    if (n_words > 1)
        return fail(BAD_USAGE, "report: %d runs given with --watch; expected one", n_words);
    if (strcmp(values->output, "-") == 0)
        return fail(BAD_USAGE,
                    "report: --watch writes its page again and again; name a file with -o");
    return OK;
}

/* Rank 0. */
static enum status check_output(const char *output)
{
    TRY(command_check_output(&command_report, output, "the file to write"));
    return parallel_output_check_old(
        output, "^<!DOCTYPE html>.*<meta name=\"generator\" content=\"cohort ",
        "a page of `cohort report`");
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_report, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_report);
    if (status == OK && n_words > 1 && values.student[0] != '\0')
        status = fail(BAD_USAGE, "report: %d runs given with --student; expected one", n_words);
    if (status == OK)
        status = check_watch(&values, n_words);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? check_output(values.output) : OK);
    if (status == OK) {
        const struct report_plan plan = {.data = values.data,
                                         .title = values.title,
                                         .output = values.output,
                                         .figures = values.figures,
                                         .split = values.split,
                                         .n_rows = values.n_rows,
                                         .metric = values.metric,
                                         .student = values.student,
                                         .names = values.names,
                                         .compares = n_words > 1};
        status = values.watch ? report_watch(comm, words[0], &plan, &values.watching)
                              : report_write(comm, words, (size_t)n_words, &plan);
    }
    if (status == OK)
        log_say("wrote %s", values.output);
    memory_free(words);
    return status;
}

const struct command command_report = {
    .name = "report",
    .usage =
        "report RUN_OR_CHECKPOINT...|DIRECTORY [-o REPORT.html] [--watch] [--data DATA.h5] "
        "...",
    .summary = "Write an HTML page on how good a model is and what it learned",
    .details =
        "The page is one HTML file that can be mailed: it contains its pictures, loads nothing "
        "from the network and needs no scripts. It shows the scores of `cohort evaluate` with "
        "95 % intervals, "
        "compared with the mean of each item; calibration; how predictions improve as more "
        "attempts of a student are known; the hardest and easiest items; the learning curve; "
        "what the model has learned, in tables and pictures; a summary of the data; and the "
        "settings, with the command that "
        "trains the same model again.\n\n"
        "A page about one run also shows its students, by number unless `--names` is given. "
        "`--student NAME` writes a page about one student for a teacher.\n\n"
        "Several runs are compared: a table of all, and pictures of the best 8. A sweep, a "
        "cross-validation or a directory of `cohort auto` has a page too. The output is "
        "identical, byte for byte, for any number of ranks.",
    .examples = "Write a page about one run, and one that compares two:\n\n"
                "  cohort report runs/rbm -o rbm.html\n"
                "  cohort report runs/rbm runs/dkt -o comparison.html\n\n"
                "Compare runs by AUC; report a sweep:\n\n"
                "  cohort report runs/* --metric auc -o all.html\n"
                "  cohort report sweeps/rbm -o sweep.html\n\n"
                "Write the page of one student:\n\n"
                "  cohort report runs/bkt --student ada -o ada.html\n\n"
                "Follow a run while it trains:\n\n"
                "  cohort report --watch runs/dkt -o dkt.html",
    .exit_status = "With --watch: 0 if training is finished; 85 if it stopped and did not "
                   "continue, or after Ctrl-C; 1 if it never began.",
    .see_also = "cohort-evaluate(1), cohort-inspect(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .more_help = report_more_help,
    .run = run,
};
