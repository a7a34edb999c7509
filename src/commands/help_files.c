/* cohort-files(5): the formats of all files that cohort writes. The code that writes them is in
 * src/data/dataset_write.c, src/runs/checkpoint.c, src/runs/trainer.c, src/sweep and the
 * commands' own files. */
#include "commands/commands.h"

static void add_items(struct manual *manual, const char *const items[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        manual_item(manual, items[i][0], items[i][1], NULL);
}

static void add_dataset(struct manual *manual)
{
    static const char *const attributes[][2] = {
        {"format, version", "\"cohort data set\" and the version of the format, 2"},
        {"withheld", "1 if single attempts are held out, 0 if whole students are"},
        {"has_time", "1 if attempts have times"},
        {"source", "where the data come from, as text: a note, which no digest covers"},
        {"digest",
         "XXH3 (128 bits, hexadecimal) of what models see: the digests of attempts and "
         "students, and all other arrays except /truth and the origin"},
        {"time_format, time_offset",
         "how the source wrote times: the unit of numbers, or a format as of strptime; minutes "
         "that dates with %z are ahead of UTC"},
        {"origin_digest",
         "XXH3 of the origin: rows, microseconds, files and the format of times"},
        {"truth_digest", "XXH3 of the tables of /truth, if there are any"},
    };
    static const char *const arrays[][2] = {
        {"/students/first",
         "uint64 [students + 1]: attempts of student s are first[s] to first[s + 1] - 1"},
        {"/students/target",
         "double [students], optional: the number to predict for a student; NaN: unknown"},
        {"/attempts/item", "uint16 or uint32 [attempts]: the item, counted from 0"},
        {"/attempts/mark",
         "uint8 [attempts]: bits 0-1 outcome (0 incorrect, 1 correct, 2 unknown), bits 2-3 "
         "split (0 train, 1 valid, 2 test), bit 4 the outcome is shown to later attempts, bit "
         "5 "
         "a new step begins"},
        {"/attempts/time", "int64 [attempts], only if has_time is 1: seconds"},
        {"/attempts/covariate",
         "double [attempts x covariates], optional: the columns of --covariates and --factors; "
         "for a factor, the number of its level; NaN: none"},
        {"/attempts/row",
         "uint32 [attempts], of imported data: the row of the source, counted from 0 over all "
         "files without their headers; of merged rows the first; the attempt in formats with "
         "one line per student"},
        {"/attempts/microsecond",
         "uint32 [attempts], optional: the part of each time below a second"},
        {"/origin/names, /origin/first",
         "names of the source files and uint64 [files + 1]: file f has the rows first[f] to "
         "first[f + 1] - 1"},
        {"/covariates/names", "names of the covariates"},
        {"/covariates/K/names", "names of the levels of covariate K, if it is a factor"},
        {"/items/group", "int32 [items]: the item's group; -1: none"},
        {"/items/skill_first, /items/skills",
         "uint64 [items + 1] and uint32: skills of item i are skills[skill_first[i]] to "
         "skills[skill_first[i + 1] - 1]"},
        {"/X/names, /X/names_first",
         "names of X (students, items, skills, groups, covariates): bytes of all names, each "
         "closed by a NUL byte, and uint64 offsets into them"},
        {"/digests/attempts, /digests/students",
         "uint64 [2 x pieces]: XXH3 (128 bits) of every 65,536 attempts and of every 65,536 "
         "students' names; likewise /digests/row and /digests/microsecond"},
        {"/truth/NAME", "double, optional: the true parameters of a simulated class"},
    };
    manual_heading(manual, "DATA SETS");
    manual_paragraph(manual,
                     "DATA.h5 is an HDF5 file from `cohort import`, `cohort simulate` or "
                     "`cohort sample`. Students are stored in a random order chosen by "
                     "the seed, the attempts of each student in time order.");
    manual_subheading(manual, "Attributes");
    add_items(manual, attributes, COUNT(attributes));
    manual_subheading(manual, "Arrays");
    add_items(manual, arrays, COUNT(arrays));
    manual_paragraph(
        manual, "Every rank checks the digests of what it reads, so a changed or damaged "
                "file is refused before the first step; origin and truth, which training does "
                "not read, when a command reads them. Arrays are chunked with Fletcher-32 "
                "checksums. Files with links, virtual data sets, external storage or other "
                "filters are refused. Version 1 has no /digests; one rank then reads the "
                "whole file once to check it.");
}

static void add_run(struct manual *manual)
{
    static const char *const files[][2] = {
        {"config.ini", "all settings with their final values; `cohort train` reads it"},
        {"log.jsonl", "one JSON record per epoch"},
        {"last.h5, previous.h5", "the newest checkpoint and the one before it"},
        {"best.h5, previous_best.h5",
         "the checkpoint of the epoch with the best validation score, and the one before it"},
        {"snapshots/epoch-N.h5", "copies of the checkpoint at the epochs of run.snapshots"},
        {"result.json", "the scores, written when the run is finished"},
        {"elapsed.json", "seconds of training, while the run is stopped within an epoch"},
        {"lock", "locked while a job trains in the directory; a leftover file is harmless"},
        {"slurm.log, slurm.job", "output of the jobs of `cohort submit`, and the last number"},
        {"last.h5.damaged", "a damaged checkpoint that was set aside on continuing"},
        {"fold-1, fold-2, ...",
         "instead of checkpoints and log: the runs of a cross-validation"},
    };
    static const char *const records[][2] = {
        {"epoch, step", "counted from 1; step counts mini-batches since the start of the run"},
        {"loss", "training loss of the epoch; cohort-models(7) tells what each kind uses"},
        {"valid", "scores on the validation attempts, as in result.json; only in epochs with "
                  "validation"},
        {"likelihood", "with train.monitor = likelihood: nats per step"},
        {"blas, grid",
         "the OpenBLAS kernels and the grid of ranks, as RxC, for models whose last "
         "bits depend on them"},
        {"seconds, attempts_per_second", "time and speed of training in this epoch"},
        {"elapsed", "seconds of training since the first start, without pauses between starts"},
    };
    static const char *const results[][2] = {
        {"model, parameters", "kind of the model and number of its parameters"},
        {"epochs, best_epoch", "epochs trained; the best one by validation (0: none)"},
        {"monitor, stopped_early",
         "the score that selected the best epoch; whether train.patience stopped the run"},
        {"data_digest", "digest of the data set"},
        {"valid, test",
         "scores with these keys: n, cbd, log_loss, auc, accuracy, rmse, calibration_error, r2 "
         "(targets only); null: undefined"},
    };
    manual_heading(manual, "RUN DIRECTORIES");
    manual_paragraph(
        manual, "The directory given by run= has these files. Each is replaced by renaming "
                "a complete new file, so a kill at any time leaves a run that can be "
                "continued.");
    add_items(manual, files, COUNT(files));
    manual_subheading(manual, "Records of log.jsonl");
    add_items(manual, records, COUNT(records));
    manual_subheading(manual, "Keys of result.json");
    add_items(manual, results, COUNT(results));
    manual_paragraph(manual,
                     "For a cross-validation, result.json has folds, valid and test; each "
                     "score has its mean, its standard deviation (spread) and the values "
                     "of all folds.");
}

static void add_checkpoint(struct manual *manual)
{
    static const char *const parts[][2] = {
        {"attributes",
         "format, version, model, numerics (version of the model's arithmetic), config (the "
         "settings as text), data_digest, students, and the progress: epoch, step, all_steps, "
         "best_epoch, best, stale, n_scored, loss, finished, converged"},
        {"/parameters/NAME", "each tensor in its shape"},
        {"/optimizer/SLOT/NAME", "momentum, or Adam's two moments, of each tensor"},
        {"/state", "uint8: training state of each student, such as persistent Gibbs chains"},
        {"/items, /skills, /groups, /covariates",
         "as in a data set: names, and the skills and group of each item"},
        {"/covariates/K/own",
         "uint8: 1 for levels that only one student was trained on; predictions do not use "
         "their effects"},
    };
    manual_heading(manual, "CHECKPOINTS");
    manual_paragraph(
        manual, "A checkpoint begins with 512 bytes of text that contain the XXH3 digest of "
                "all bytes after them. An HDF5 file follows; h5py, h5dump and others open "
                "the checkpoint directly. Its content does not depend on the number of "
                "ranks, the time or the machine.");
    add_items(manual, parts, COUNT(parts));
    manual_paragraph(manual,
                     "A checkpoint stores the skills and groups of its items. Predictions for "
                     "data imported without them are therefore the same. Where data have other "
                     "skills or groups, the stored ones are used and a note says so; `cohort "
                     "predict` and `cohort evaluate` refuse such data with --strict. A "
                     "run that is continued after the arithmetic of its model has "
                     "changed prints a warning.");
}

static void add_tables(struct manual *manual)
{
    static const char *const csv[][2] = {
        {"student, item", "names as they were imported"},
        {"time", "in the form of the source, one form for all; empty: none"},
        {"outcome", "1 correct, 0 incorrect; empty: unknown"},
        {"probability", "predicted probability of a correct answer, with 9 digits"},
        {"split", "train, valid or test, as the data set has it; it tells nothing about what "
                  "the model was trained on if that was another data set"},
        {"basis", "what the attempt was predicted from: item, skill, group or mean"},
        {"row, file",
         "of the source, from 1 without the header; file only if there are several"},
        {"deviation", "with --interval: the standard deviation of the chance"},
    };
    static const char *const h5[][2] = {
        {"attributes",
         "format (\"cohort predictions\"), model, checkpoint_digest, data_digest"},
        {"student, item", "uint32: numbers into /students/names and /items/names, from 0"},
        {"time", "int64, only if the data set has times"},
        {"outcome", "int8: 1 correct, 0 incorrect, -1 unknown"},
        {"split", "int8: 0 train, 1 valid, 2 test"},
        {"basis", "int8: 0 item, 1 skill, 2 group, 3 mean"},
        {"row, file",
         "int64 and uint32, a number into /files/names, only if they are known and "
         "there are several files"},
        {"probability, deviation", "float"},
    };
    manual_heading(manual, "PREDICTIONS");
    manual_paragraph(manual, "`cohort predict` writes one row per attempt, in the order of the "
                             "data set. The columns of a CSV file:");
    add_items(manual, csv, COUNT(csv));
    manual_paragraph(manual, "Models of one target per student write one row per student: "
                             "student,target,prediction,deviation. The parts of an HDF5 file:");
    add_items(manual, h5, COUNT(h5));
    manual_heading(manual, "CSV FILES");
    manual_paragraph(manual,
                     "CSV files contain names as they were imported, in UTF-8, so that other "
                     "programs can match them. A name that begins with =, +, - or @ is not "
                     "changed; a spreadsheet may read it as a formula, so import such columns "
                     "as text. On standard output and standard error, control "
                     "characters in names are shown as text, such as \\u001b.");
}

static void add_sweep(struct manual *manual)
{
    static const char *const files[][2] = {
        {"sweep.ini", "the settings of the sweep"},
        {"size.ini", "sweep.trials and sweep.ranks of the last start, which may change"},
        {"trials/ID", "the run directory of each trial"},
        {"leaderboard.csv",
         "place, trial, state, rung, epochs, the settings, validation and test scores, and for "
         "failed trials the reason"},
        {"effects.csv",
         "for each setting and level: trials, mean and best validation score, and the share of "
         "the variance that the setting explains"},
        {"best.ini", "the settings of the best trial, for `cohort train`"},
        {"slurm", "output of the jobs of `cohort sweep --submit`"},
    };
    manual_heading(manual, "SWEEP DIRECTORIES");
    add_items(manual, files, COUNT(files));
}

void help_files(struct manual *manual)
{
    manual_heading(manual, "DESCRIPTION");
    manual_paragraph(manual,
                     "Data sets and checkpoints are HDF5 files with a format version. Files of "
                     "earlier versions are read, files of a newer version are refused. Numbers "
                     "are little-endian. `cohort inspect` shows what a file contains, and "
                     "`cohort verify` checks its digests.");
    add_dataset(manual);
    add_run(manual);
    add_checkpoint(manual);
    add_tables(manual);
    add_sweep(manual);
}
