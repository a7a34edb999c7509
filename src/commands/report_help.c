/* The sections of `cohort help report`: what can be given, what the pages show of models and of
 * students, and how training is watched. */
#include "base/memory.h"
#include "commands/commands.h"
#include "report/report_curves.h"
#include "report/report_mastery.h"

static void pages(struct manual *manual)
{
    static const char *const given[][2] = {
        {"a run or a checkpoint",
         "Scores, calibration, students, items, the course of training, what the model has "
         "learned, the data and the settings."},
        {"several of them",
         "All runs in one table, best first, with 95 % intervals; the differences from the "
         "best run, and which of them are more than chance, as `cohort evaluate A B C` "
         "computes them; and "
         "the pictures of the best 8 with the same axes. Runs that were scored on different "
         "answers are shown but not ranked; `--data` scores all on one data set."},
        {"a cross-validation",
         "The scores of its folds, their mean and their standard deviation, compared with the "
         "baselines."},
        {"a sweep", "The leaderboard, the validation score against each setting, the curves of "
                    "the best trials, and the best trial. Running and failed trials are "
                    "counted."},
        {"a directory of cohort auto",
         "What it chose, and how the best model of each kind compares with that."},
    };
    manual_heading(manual, "PAGES");
    manual_paragraph(
        manual,
        "What is given decides on the page. A DIRECTORY of several runs is given alone.");
    for (size_t g = 0; g < COUNT(given); g++) {
        manual_subheading(manual, given[g][0]);
        manual_paragraph(manual, "%s", given[g][1]);
    }
}

static void learned(struct manual *manual)
{
    static const char *const pictures[][2] = {
        {"hidden units of students",
         "The probability of each hidden unit for a sample of students, in a page about one "
         "run (rbm with binary units, rtrbm). With `run.snapshots=0 1 3 10`, `cohort train` "
         "keeps the model at these epochs, and the page shows how the units came to separate "
         "students."},
        {"items in a plane",
         "The weights of items: of two hidden units, or the first two principal components of "
         "more (rbm, rtrbm, dkt, vae)."},
        {"influence between skills",
         "How far a right rather than a wrong answer at one skill moves the chance at another, "
         "for a student who has answered nothing else (rbm, rtrbm, dkt); of items, if there "
         "are no skills."},
        {"effects",
         "bkt: the rates of each skill. lme and vae: sorted effects with 95 % intervals. ktm: "
         "weights by feature, and what right and wrong answers in a row add. blend: each "
         "member alone, and what is lost without it when the weights of the others are fitted "
         "again."},
    };
    manual_heading(manual, "WHAT A MODEL HAS LEARNED");
    manual_subheading(manual, "learning curves");
    manual_paragraph(
        manual,
        "Every model: at the nth attempt at a skill, the share of right answers in the scored "
        "split and the model's mean chance for the same answers. A point needs %d answers. "
        "Data without skills have items instead.",
        REPORT_FEWEST_ANSWERS);
    manual_subheading(manual, "abilities and difficulties");
    manual_paragraph(
        manual,
        "vae; lme and ktm that can be read as a Rasch model: item characteristic curves, item "
        "and test information, the standard error of measurement, a Wright map, and abilities "
        "with 95 %% intervals. With several abilities, the %d that the most items need are "
        "drawn, each with the others at 0.",
        REPORT_MOST_SCALES);
    for (size_t k = 0; k < COUNT(pictures); k++) {
        manual_subheading(manual, pictures[k][0]);
        manual_paragraph(manual, "%s", pictures[k][1]);
    }
}

/* The rule by which the pages call something mastered. */
static void students(struct manual *manual)
{
    manual_heading(manual, "STUDENTS");
    manual_paragraph(
        manual, "A page about one run shows the students: their mastery of skills, who needs "
                "help with what, growth, and the path of one student. Data without skills "
                "have items instead. Students are numbered; `--names` shows their names. "
                "The page of `--student` shows the name given. Both pages follow one rule, "
                "which they state, and warn of a model that does not beat the baselines.");
    manual_paragraph(
        manual,
        "Who needs help is counted over all skills that students have tried; of a class "
        "of more than 500, an even selection of as many is measured. Skills that are nearly "
        "certain, with a high mastery after too few answers, are listed apart from what "
        "to practise next.");
    for (int knows = 1; knows >= 0; knows--) {
        const struct report_rule rule = report_rule_of(knows);
        char *text = report_rule_text(&rule, "skill");
        manual_subheading(manual, knows ? "Models of kind bkt" : "All other models");
        manual_paragraph(manual, "%s", text);
        memory_free(text);
    }
}

static void watching(struct manual *manual)
{
    manual_heading(manual, "WATCHING");
    manual_paragraph(
        manual,
        "`--watch DIRECTORY` follows a run, a sweep, a cross-validation or a `cohort auto`, "
        "which may be training on another node. It needs no server: the page reloads itself "
        "in the browser until training has ended. It shows the epoch, the time left, the "
        "curves and the last scores; for a sweep the states of its trials and the best so "
        "far. It only reads the files of the run and takes no lock, so training is not "
        "disturbed.");
    manual_paragraph(
        manual,
        "The watcher may be started before training. It ends when training is finished: the "
        "page is then the report, as without `--watch`. Training that was stopped or "
        "killed is recognized by its lock, which is free while there is no result.json. The "
        "watcher then waits for it to continue, as jobs of `cohort submit` do, at most "
        "`--wait` seconds. Ctrl-C ends it at any time: the page stays and no longer reloads.");
}

void report_more_help(struct manual *manual)
{
    pages(manual);
    learned(manual);
    students(manual);
    watching(manual);
}
