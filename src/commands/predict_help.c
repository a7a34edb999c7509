/* The sections of `cohort help predict` about --next, --mastery and --follow. */
#include "commands/predict_internal.h"

void predict_more_help(struct manual *manual)
{
    manual_heading(manual, "NEXT AND MASTERY");
    manual_prose(
        manual,
        "`--next` writes student, item, probability and basis: the chance of every student at "
        "every item of the model, after all attempts of the data set. Outcomes that its split "
        "withholds (by-last, by-attempt) are not used, here and with `--mastery`, and a note "
        "counts them: name a data set that is imported with `--split none`. An item that only "
        "the "
        "data set has follows with the mean chance over items of the model, and basis tells "
        "which, as above. The next attempt is assumed "
        "to begin a step, at the time of the student's last one, with empty covariates. "
        "`--next=skills` writes student, skill and probability: the mean chance over the "
        "items of each skill of the model; new skills are skipped. Both have the digits that "
        "`predict` would write if the attempt "
        "came next, unless the student has answered items that the model was not trained on: "
        "then each such answer counts as one to a single item, not to several.\n\n"
        "`--mastery` writes student, skill, attempts (how often the student tried the skill) "
        "and mastery: the chance that the student can answer. For bkt that is P(known), the "
        "chance that the skill is known after the last attempt, whatever its guess and slip. "
        "For all other models it is the mean chance over the items of the skill; vae and lme "
        "take it from the student's abilities. It is empty for skills without items.\n\n"
        "`--mastery=each` writes the same after each attempt, for the skills of its item: "
        "student, item, time, outcome, skill, attempts and mastery.\n\n"
        "An answer to an item that the model was not trained on counts as one to a similar "
        "item. In data without skills every item counts as a skill. `--split` selects the "
        "students "
        "who have attempts in a split, and with `--mastery=each` these attempts.");
    manual_heading(manual, "FOLLOW");
    manual_prose(
        manual,
        "`--follow` reads one attempt per line from standard input and answers each on "
        "standard output with the chance of a correct answer, then learns the outcome. It "
        "runs on one rank until the input ends. A single line is answered at once; lines that "
        "are "
        "waiting are answered together, which is faster. Answers come in the order of the "
        "lines.\n\n"
        "The chances have the digits that `predict` writes for the same attempts if the lines "
        "of a student come in the order of their times: each line counts as the student's next "
        "attempt. An empty "
        "outcome is the one difference: here it is a question, which does not count as an "
        "attempt; `cohort import` reads it as an attempt of unknown outcome, which here is "
        "written unknown.\n\n"
        "If the first line begins with {, every line is a JSON object; otherwise it is the "
        "header of CSV (separated by commas, tabs, semicolons or |; cells may be quoted, but "
        "end in their line). Columns or keys, of which student and item are required; they may "
        "have any of the "
        "names that `cohort import csv` recognizes (user_id, correct ...), and a warning lists "
        "those that are not used:");
    static const struct {
        const char *name, *meaning;
    } fields[] = {
        {"student, item", "names, as in the data set; unknown students are new"},
        {"outcome", "0/1, true/false, correct/incorrect or yes/no; empty, null or absent: a "
                    "question, which teaches nothing; unknown: an attempt was made, but its "
                    "outcome is not known"},
        {"time", "a number or a date, in any form that `cohort import` reads; required if the "
                 "model uses times"},
        {"skills", "of an item that the model has not seen: a list, or one text as in `cohort "
                   "import`"},
        {"group", "of an item that the model has not seen"},
        {"step", "1 if the attempt begins a step (the default), 0 if it belongs to the step "
                 "of the one before"},
        {"COVARIATE", "a covariate of the training data, by its name"},
    };
    for (size_t k = 0; k < COUNT(fields); k++)
        manual_item(manual, fields[k].name, fields[k].meaning, NULL);
    manual_prose(
        manual,
        "Answers are CSV with the columns line, student, item, probability, note and error, or "
        "JSON objects with these keys where they have a value. An item that the model has not "
        "seen is predicted as `predict` does, from items of its skills, of its group or of "
        "all, "
        "and the note says so; it keeps the skills and the group of the last line that had "
        "them. With `--strict` it is answered with an error instead. A line that cannot be "
        "read is "
        "answered with an error and changes nothing. Empty lines are skipped.\n\n"
        "All times have one form: that of `--time-format` and `--time-unit`, else that of the "
        "data set, else that of the first time. A message says where 9/8/2012 is assumed to "
        "begin with the month.\n\n"
        "With `--data`, the students of this data set start with their attempts in it, as far "
        "as their outcomes are not withheld: import it with `--split none`. "
        "Students are kept in memory until the end, up to `--students` of them. For dkt, rtrbm "
        "and vae this takes a few numbers per hidden unit and student; the other models keep "
        "all attempts.\n\n"
        "With `--pseudonyms KEYFILE`, lines have names and the data set has their pseudonyms: "
        "names are hashed as `cohort import --pseudonyms` does with the same key, and answers "
        "have them as they came. The key file must exist. Without the option, a name is a "
        "student whom data with pseudonyms do not know.");
}
