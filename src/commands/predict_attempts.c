/* cohort predict, for models that predict answers: one row per attempt, in the order of the
 * data set. */
#include "base/memory.h"
#include "commands/predict_internal.h"
#include "data/origin.h"
#include "runs/scoring.h"

/* What this rank predicted. */
struct part {
    const struct inference *inference;
    struct predictions predictions;
    float *deviation; /* of each prediction; NULL: not asked for */
    struct predict_students students;
    struct names items; /* of the model, then unseen ones */
    struct origin origin;
};

static void get_student(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_student_cell(&part->students, part->predictions.list[r].student, cell);
}

static void get_item(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_item_cell(part->inference, part->predictions.place[r], cell);
}

static void get_time(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_time_cell(part->inference, &part->origin, part->predictions.place[r], cell);
}

static void get_outcome(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_outcome_cell(part->inference, part->predictions.place[r], cell);
}

static void get_probability(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    cell->real = (double)part->predictions.list[r].probability;
}

static void get_deviation(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    cell->real = (double)part->deviation[r];
}

static void get_split(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    const uint64_t t = part->predictions.place[r];
    cell->whole = (int64_t)mark_split(part->inference->shard.mark[t]);
    cell->text = predict_splits[cell->whole];
}

static void get_basis(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    cell->whole =
        (int64_t)stand_ins_basis(&part->inference->stand_ins, part->predictions.place[r]);
    cell->text = stand_ins_bases[cell->whole];
}

static void get_row(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    cell->empty = part->origin.row == NULL;
    if (cell->empty)
        return;
    uint64_t number = 0;
    origin_place(&part->origin, part->origin.row[part->predictions.place[r]], &number);
    cell->whole = (int64_t)number;
}

static void get_file(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    uint64_t number = 0;
    const size_t file =
        origin_place(&part->origin, part->origin.row[part->predictions.place[r]], &number);
    cell->whole = (int64_t)file;
    cell->text = names_get(&part->origin.files, file);
}

static const struct output_column columns[] = {
    {"student", OUTPUT_U32, get_student},
    {"item", OUTPUT_U32, get_item},
    {"time", OUTPUT_I64, get_time},
    {"outcome", OUTPUT_I8, get_outcome},
    {"probability", OUTPUT_F32, get_probability},
    {"split", OUTPUT_I8, get_split},
    {"basis", OUTPUT_I8, get_basis},
    {"row", OUTPUT_I64, get_row},
    {"file", OUTPUT_U32, get_file},
    {"deviation", OUTPUT_F32, get_deviation},
};

/* Copies the columns to write. HDF5 has no arrays of which nothing is known; the file is named
 * if there are several. */
static size_t choose_columns(const struct part *part, bool h5,
                             struct output_column chosen[COUNT(columns)])
{
    const bool has_rows = part->origin.row != NULL;
    size_t n = 0;
    for (size_t c = 0; c < COUNT(columns); c++) {
        void (*get)(const void *, size_t, struct output_cell *) = columns[c].get;
        if ((get == get_time && h5 && part->inference->shard.time == NULL) ||
            (get == get_row && h5 && !has_rows) ||
            (get == get_deviation && part->deviation == NULL) ||
            (get == get_file && (!has_rows || part->origin.files.n < 2)))
            continue;
        chosen[n++] = columns[c];
    }
    return n;
}

static enum status write_part(struct part *part, const char *output)
{
    const struct inference *inference = part->inference;
    TRY(comm_agree(inference->comm, predict_read_students(inference, output, &part->students)));
    names_copy(&part->items, &inference->dataset.items);
    names_copy(&part->items, &inference->dataset.unseen.items);
    TRY(origin_read(&inference->shard, &part->origin));
    const struct output_names names[] = {{"/items", &part->items},
                                         {"/files", &part->origin.files}};
    struct output_column chosen[COUNT(columns)];
    const size_t n_chosen = choose_columns(part, output_table_is_h5(output), chosen);
    const struct output_table table = {.columns = chosen,
                                       .n_columns = n_chosen,
                                       .n_rows = part->predictions.n,
                                       .arg = part,
                                       .names = names,
                                       .n_names = part->origin.files.n > 1 ? 2 : 1};
    return predict_write(inference, output, &part->students, &table);
}

enum status predict_attempts(const struct inference *inference,
                             const struct predict_values *values)
{
    struct part part = {.inference = inference};
    TRY(inference_predict(inference, predict_set(values), &part.predictions));
    enum status status = predict_check_rows(inference, values, part.predictions.n);
    if (status == OK && values->interval)
        status = inference_deviate(inference, predict_set(values), &part.predictions,
                                   &part.deviation);
    if (status == OK)
        status = write_part(&part, values->output);
    memory_free(part.deviation);
    names_free(&part.students.names);
    names_free(&part.items);
    origin_free(&part.origin);
    scoring_free(&part.predictions);
    return status;
}
