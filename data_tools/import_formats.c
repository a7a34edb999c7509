/* The table of formats. A format is a reader and, for tables with named columns, a preset: the
 * names of the columns and their codes. A new format of this kind needs only a preset and a row
 * here. */
#include "data_tools/import.h"

/* The names that public data sets and exports use, the surest first. */
const struct import_preset import_csv_preset = {
    .student = "student|student_id|user|user_id|learner|learner_id|anon_student_id|uid|pupil|"
               "pupil_id|participant|participant_id|candidate|candidate_id|person_id|"
               "user_full_name|student_name|username|user_name|full_name|email_address|email",
    .item = "item|item_id|question|question_id|problem_id|exercise_id|task_id|content_id|"
            "Problem Name+Step Name|problem|exercise|task|problem_name|question_name|item_name|"
            "exercise_name|template_id",
    .outcome =
        "correct|is_correct|outcome|answered_correctly|correct_first_attempt|correctness|"
        "result|score|grade|response",
    .time =
        "timestamp|time|datetime|date_time|answered_at|date_answered|submitted_at|created_at|"
        "start_time|started_at|first_transaction_time|step_start_time|time_stamp|unix_time|"
        "submit_time|server_timestamp|time_created|when|date",
    .last_order = "order_id|order",
    .skills = "skills|skill|skill_name|skill_names|kc|kcs|KC(*|knowledge_component|"
              "knowledge_components|concept|concepts|skill_id|skill_ids|concept_id|concept_ids|"
              "kc_id|kc_ids|tags|tag|topic|topics|topic_id|subject|subjects|subject_id",
    .meta_skills = "skills|skill|skill_name|skill_id|concept_id|kc|subject_id|tags|tag|topic",
    .skills_may_be_items = true,
    .says_columns = true,
    .merge = MERGE_SKILLS,
};

/* Handles all kinds of files: `outcome` is 1 correct, 2 incorrect, 3 skipped, 4 timed out;
 * files without it have `correct`, 1 or 0; test files have neither. */
static const struct import_preset grockit_preset = {
    .student = "user_id",
    .item = "question_id",
    .outcome = "outcome|correct",
    .time = "round_started_at",
    .skills = "tag_string",
    .group = "track_name",
    .skill_separator = "space",
    .incorrect = "2",
    .unknown = "34",
    .outcome_may_lack = true,
    .split = "by-last",
    .withheld = true,
};

/* A problem with several skills has one row per skill, all with the same order_id. */
static const struct import_preset assistments_preset = {
    .student = "user_id",
    .item = "problem_id",
    .outcome = "correct",
    .order = "order_id",
    .skills = "skill_name|skill_id|skill",
    .skill_separator = "none",
    .merge = MERGE_ALL,
};

static const struct import_preset kddcup_preset = {
    .student = "Anon Student Id",
    .item = "Problem Name+Step Name",
    .outcome = "Correct First Attempt",
    .time = "First Transaction Time|Step Start Time",
    .skills = "KC(*",
    .group = "Problem Hierarchy",
    .skill_separator = "~~",
    .outcome_may_lack = true,
    .no_quotes = true,
};

static const struct import_preset eedi_preset = {
    .student = "UserId|user_id",
    .item = "QuestionId|question_id",
    .outcome = "IsCorrect|is_correct",
    .time = "DateAnswered",
    .key = "AnswerId",
    .key_time = "DateAnswered",
    .meta_skills = "SubjectId|subject_id",
};

#define COLUMN_FLAGS                                                                           \
    " student item outcome time order skills group target covariates factors split-column "    \
    "delimiter skill-separator threshold time-unit time-format item-meta q-matrix item-names " \
    "skill-names step session-gap merge-repeats keep-repeats "

static const char csv_help[] =
    "Read any CSV or TSV with named columns, one attempt per row. Columns of students, items, "
    "outcomes, times and skills with usual names (user_id, problem_id, is_correct, timestamp, "
    "skill_name ...) are found; options name the others, and none means that there is no such "
    "column. Cells may be quoted. Outcomes are 1/0, true/false, correct/incorrect or yes/no, "
    "or "
    "scores with --threshold; empty or NULL is unknown. A row per skill is one attempt: rows "
    "with the same student, item, time and outcome but other skills are merged; without times, "
    "adjacent rows of a student with the same item and outcome. Attempts of a "
    "student at the same time keep the order of the rows.";
static const char four_line_help[] =
    "Read four lines per student: a number and the student, the items, their skills and the "
    "outcomes, separated by commas. --merge-repeats makes one attempt of adjacent entries with "
    "the same item and outcome, which is how such files write an item with several skills.";
static const char three_line_help[] =
    "Read three lines per student: the number of attempts, their items and their outcomes, "
    "separated by commas. Students are called train-1, train-2, ... after their file.";
static const char matrix_help[] =
    "Read one row per student and one column per item, with cells 1, 0 or empty, with or "
    "without a header. --q-matrix may be items by skills or skills by items. --student "
    "names the column with the students' names.";
static const char sequences_help[] =
    "Read music: for each sequence its length T, then T lines with the numbers of the keys "
    "that sound (0, 1, ...; may be empty). Each line becomes a step with one attempt per key, "
    "correct if the key sounds. "
    "Needs --items, the number of keys.";
static const char grockit_help[] =
    "Read the contest What Do You Know? (Grockit, 2011): training.csv, or --train "
    "valid_training.csv --test valid_test.csv. Skipped and timed-out answers are unknown. "
    "Skills are tags, groups are tracks.";
static const char assistments_help[] =
    "Read ASSISTments 2009 skill builder data. Rows with the same order_id are one attempt "
    "with several skills. Attempts are sorted by order_id.";
static const char kddcup_help[] =
    "Read KDD Cup 2010 data (Algebra, Bridge to Algebra). An item is a step of a problem. "
    "Skills are the first KC(...) column, or the one that --skills names. Groups are units "
    "and sections.";
static const char ednet_help[] =
    "Read EdNet KT1: a directory of u1.csv, u2.csv, ... and questions.csv, which is in the "
    "directory, its parent or ../contents, or named by --questions. Skills are tags, groups "
    "are parts.";
static const char eedi_help[] =
    "Read Eedi data (NeurIPS 2020 challenge, tasks 1 and 2). --time-meta "
    "answer_metadata_task_1_2.csv adds times, --item-meta "
    "question_metadata_task_1_2.csv adds subjects as skills, --skill-names "
    "subject_metadata.csv adds their names.";

static const struct import_format formats[] = {
    {{"csv", csv_help, COLUMN_FLAGS}, &import_csv_preset, import_columns},
    {{"three-line", three_line_help, " q-matrix item-names skill-names "},
     NULL,
     import_three_line},
    {{"four-line", four_line_help,
      " q-matrix item-names skill-names skill-separator merge-repeats "},
     NULL,
     import_four_line},
    {{"matrix", matrix_help, " q-matrix truth item-names skill-names student delimiter "},
     NULL,
     import_matrix},
    {{"sequences", sequences_help, " items item-names "}, NULL, import_sequences},
    {{"grockit", grockit_help, COLUMN_FLAGS}, &grockit_preset, import_columns},
    {{"assistments", assistments_help, COLUMN_FLAGS}, &assistments_preset, import_columns},
    {{"kddcup", kddcup_help, COLUMN_FLAGS}, &kddcup_preset, import_columns},
    {{"ednet", ednet_help, " questions step session-gap item-names skill-names "},
     NULL,
     import_ednet},
    {{"eedi", eedi_help, COLUMN_FLAGS " time-meta "}, &eedi_preset, import_columns},
};

const struct subcommands import_menu = {
    .command = "import",
    .noun = "format",
    .takes = " train valid test output split seed withheld targets skip-bad shuffle-outcomes "
             "pseudonyms ",
    .rows = formats,
    .n = COUNT(formats),
    .stride = sizeof formats[0],
};
