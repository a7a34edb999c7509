/* cohort predict: a probability for each attempt, as a CSV table or HDF5 arrays. */
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "runs/inference.h"
#include "runs/parallel_output.h"
#include "runs/scoring.h"
#include "runs/targets.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

struct values {
    const char *data, *output;
    int split;
};

static const char *const splits[] = {"train", "valid", "test", "all", NULL};
enum { SPLIT_ALL = N_SPLITS };

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "", 0, 0, NULL,
      "write to this file: HDF5 if its name ends in .h5, else CSV"},
     'o',
     "FILE"},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "predict this data set (new students, for example) instead of the one the run was "
      "trained on; items are matched by name"},
     0,
     "DATA.h5"},
    {{"split", OPTION_CHOICE, AT(split), "all", 0, 0, splits, "which attempts to predict"},
     0,
     NULL},
};

static unsigned set_of(const struct values *values)
{
    return values->split == SPLIT_ALL ? (1u << N_SPLITS) - 1 : 1u << values->split;
}

/* What this rank predicted, and the names of its students. */
struct part {
    const struct inference *inference;
    struct predictions predictions;
    struct names students;
};

static void print_row(FILE *out, size_t r, const void *arg)
{
    const struct part *part = arg;
    const struct prediction *prediction = &part->predictions.list[r];
    const struct shard *shard = &part->inference->shard;
    const uint64_t place = part->predictions.place[r];
    const enum outcome outcome = mark_outcome(shard->mark[place]);
    csv_quote(out, names_get(&part->students, prediction->student - shard->first_student));
    fputc(',', out);
    csv_quote(out, names_get(&part->inference->dataset.items, shard->item[place]));
    fputc(',', out);
    if (shard->time != NULL)
        fprintf(out, "%" PRId64, shard->time[place]);
    fprintf(out, ",%s,%.9g\n",
            outcome == UNKNOWN   ? ""
            : outcome == CORRECT ? "1"
                                 : "0",
            (double)prediction->probability);
}

static enum status write_csv(struct part *part, const char *path)
{
    const struct shard *shard = &part->inference->shard;
    TRY(comm_agree(part->inference->comm,
                   inference_students(part->inference, shard->first_student, shard->n_students,
                                      &part->students)));
    return parallel_output_write(part->inference->comm, path,
                                 "student,item,time,outcome,probability\n", part->predictions.n,
                                 print_row, part);
}

/* One target per student. */
struct final_part {
    struct target_prediction *targets;
    struct names students;
    size_t first_student;
};

static void print_final(FILE *out, size_t r, const void *arg)
{
    const struct final_part *part = arg;
    const struct target_prediction *final = &part->targets[r];
    csv_quote(out, names_get(&part->students, final->student - part->first_student));
    fputc(',', out);
    if (!isnan(final->target))
        fprintf(out, "%.9g", final->target);
    fprintf(out, ",%.9g,", final->mean);
    if (!isnan(final->variance))
        fprintf(out, "%.9g", sqrt(final->variance));
    fputc('\n', out);
}

static enum status predict_finals(const struct inference *inference,
                                  const struct values *values)
{
    const struct shard *shard = &inference->shard;
    struct final_part part = {.first_student = shard->first_student};
    size_t n = 0;
    if (file_ends_in(values->output, ".h5"))
        return fail(BAD_USER,
                    "-o %s: this model predicts one target per student, which is written as "
                    "CSV only; choose a name "
                    "that does not end in .h5",
                    values->output);
    enum status status = targets_predict(inference->model, inference->work, shard,
                                         set_of(values), &part.targets, &n);
    if (status == OK)
        status = inference_students(inference, shard->first_student, shard->n_students,
                                    &part.students);
    status = comm_agree(inference->comm, status);
    if (status == OK)
        status = parallel_output_write(inference->comm, values->output,
                                       "student,target,prediction,deviation\n", n, print_final,
                                       &part);
    int64_t n_all = (int64_t)n;
    if (status == OK) {
        comm_sum_i64(inference->comm, &n_all, 1);
        log_say("wrote %" PRId64 " predictions to %s", n_all, values->output);
    }
    names_free(&part.students);
    memory_free(part.targets);
    return status;
}

/* The arrays of the HDF5 file: how a number is found, kept in memory and stored. */
enum number { U32, I64, I8, F32 };
struct column {
    const char *name;
    enum number number;
    void (*take)(const struct part *part, size_t r, void *place);
};

static size_t number_size(enum number number)
{
    static const size_t sizes[] = {[U32] = 4, [I64] = 8, [I8] = 1, [F32] = 4};
    return sizes[number];
}

static hid_t number_type(enum number number)
{
    const hid_t types[] = {[U32] = H5T_NATIVE_UINT32,
                           [I64] = H5T_NATIVE_INT64,
                           [I8] = H5T_NATIVE_INT8,
                           [F32] = H5T_NATIVE_FLOAT};
    return types[number];
}

static hid_t number_stored(enum number number)
{
    const hid_t types[] = {[U32] = H5T_STD_U32LE,
                           [I64] = H5T_STD_I64LE,
                           [I8] = H5T_STD_I8LE,
                           [F32] = H5T_IEEE_F32LE};
    return types[number];
}

static void take_student(const struct part *part, size_t r, void *place)
{
    *(uint32_t *)place = part->predictions.list[r].student;
}

static void take_item(const struct part *part, size_t r, void *place)
{
    *(uint32_t *)place = part->inference->shard.item[part->predictions.place[r]];
}

static void take_time(const struct part *part, size_t r, void *place)
{
    *(int64_t *)place = part->inference->shard.time[part->predictions.place[r]];
}

static void take_outcome(const struct part *part, size_t r, void *place)
{
    const enum outcome outcome =
        mark_outcome(part->inference->shard.mark[part->predictions.place[r]]);
    *(int8_t *)place = outcome == UNKNOWN ? -1 : (int8_t)outcome;
}

static void take_split(const struct part *part, size_t r, void *place)
{
    *(int8_t *)place =
        (int8_t)mark_split(part->inference->shard.mark[part->predictions.place[r]]);
}

static void take_probability(const struct part *part, size_t r, void *place)
{
    *(float *)place = part->predictions.list[r].probability;
}

static const struct column columns[] = {
    {"student", U32, take_student}, {"item", U32, take_item},
    {"time", I64, take_time},       {"outcome", I8, take_outcome},
    {"split", I8, take_split},      {"probability", F32, take_probability},
};

static enum status write_column(const struct part *part, const struct column *column,
                                hid_t file)
{
    const size_t n = part->predictions.n, size = number_size(column->number);
    char *values = NEW_SCRATCH(char, n *size);
    for (size_t r = 0; r < n; r++)
        column->take(part, r, values + r * size);
    enum status status = parallel_output_h5_array(part->inference->comm, file, column->name,
                                                  number_stored(column->number),
                                                  number_type(column->number), n, 0, values);
    memory_free(values);
    return status;
}

/* What is not one number for each attempt; rank 0. */
static enum status write_head(struct part *part, hid_t file)
{
    const struct inference *inference = part->inference;
    TRY(h5_write_text(file, "format", "cohort predictions"));
    TRY(h5_write_text(file, "model", inference->model->kind->name));
    TRY(h5_write_text(file, "checkpoint_digest", inference->checkpoint.digest));
    TRY(h5_write_text(file, "data_digest", inference->dataset.digest));
    TRY(inference_students(inference, 0, inference->dataset.n_students, &part->students));
    TRY(names_write(file, "/students", &part->students));
    return names_write(file, "/items", &inference->dataset.items);
}

static enum status write_h5(struct part *part, const char *path)
{
    const struct comm *comm = part->inference->comm;
    struct atomic_file draft = {.file = -1};
    hid_t file = -1;
    enum status status = comm->rank == 0 ? parallel_output_h5_begin(path, &draft, &file) : OK;
    if (comm->rank == 0 && status == OK)
        status = write_head(part, file);
    status = comm_agree(comm, status);
    for (size_t c = 0; status == OK && c < COUNT(columns); c++)
        if (columns[c].take != take_time || part->inference->shard.time != NULL)
            status = write_column(part, &columns[c], file);
    if (comm->rank == 0)
        status = parallel_output_h5_end(status, path, &draft, file);
    return comm_agree(comm, status);
}

static enum status predict(const struct inference *inference, const struct values *values)
{
    struct part part = {.inference = inference};
    TRY(comm_agree(inference->comm,
                   scoring_predict(inference->model, inference->work, &inference->shard,
                                   set_of(values), &part.predictions)));
    int64_t n = (int64_t)part.predictions.n;
    comm_sum_i64(inference->comm, &n, 1);
    enum status status = OK;
    if (n == 0)
        status =
            fail(BAD_USER,
                 "%s: no attempts for %s, so there is nothing to predict; `cohort inspect` "
                 "shows the splits",
                 inference->dataset.path, splits[values->split]);
    else if (file_ends_in(values->output, ".h5"))
        status = write_h5(&part, values->output);
    else
        status = write_csv(&part, values->output);
    if (status == OK)
        log_say("wrote %" PRId64 " predictions to %s", n, values->output);
    names_free(&part.students);
    scoring_free(&part.predictions);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_predict, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = command_usage(&command_predict);
    if (status == OK)
        status = command_check_output(&command_predict, values.output, "the file to write");
    if (status == OK) {
        struct inference inference;
        status = inference_open(&inference, words[0], values.data, comm);
        if (status == OK)
            status = inference_check_splits(&inference, set_of(&values));
        if (status == OK)
            status = model_task(inference.model) == TASK_TRACE
                         ? predict(&inference, &values)
                         : predict_finals(&inference, &values);
        inference_close(&inference);
    }
    memory_free(words);
    return status;
}

const struct command command_predict = {
    .name = "predict",
    .usage = "predict RUN_OR_CHECKPOINT [--data DATA.h5] [--split SPLIT] -o FILE.csv|FILE.h5",
    .summary = "Write the probability of a correct answer for every attempt",
    .details =
        "Predict each attempt from the student's earlier attempts, and write one line per "
        "attempt, in the order of the data set. Outcomes of earlier attempts are used only if "
        "they are shown: known, and not withheld by `cohort import` (--withheld, --split "
        "by-last or by-attempt).\n\n"
        "CSV columns: student,item,time,outcome,probability; time and outcome are empty where "
        "they are unknown. HDF5 arrays: student and item (numbers into /students/names and "
        "/items/names, from 0), time, outcome (-1: unknown), split (0 train, 1 valid, 2 test) "
        "and probability.\n\n"
        "For new students, import their answers and name the file with --data. The model must "
        "have been trained on every item in it.\n\n"
        "A model that predicts one target per student (dkt with model.task=final) writes "
        "student,target,prediction,deviation instead: "
        "the known target, its predicted mean and its standard deviation, which is empty where "
        "the model does not predict it.\n\n"
        "The file is identical, byte for byte, for any number of ranks.",
    .examples = "Predict the test attempts:\n\n"
                "  cohort predict runs/rbm --split test -o test.csv\n\n"
                "Predict new students:\n\n"
                "  cohort import csv new.csv --split none -o new.h5\n"
                "  cohort predict runs/rbm --data new.h5 -o new_predictions.csv",
    .see_also = "cohort-evaluate(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
