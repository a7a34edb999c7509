/* cohort predict, for models that predict answers: one row per attempt, in the order of the
 * data set. */
#include "base/fail.h"
#include "base/memory.h"
#include "commands/predict_internal.h"
#include "data/origin.h"
#include "runs/scoring.h"
#include <string.h>

/* What this rank predicted. */
struct part {
    const struct inference *inference;
    struct predictions predictions;
    float *deviation; /* of each prediction; NULL: not asked for */
    struct predict_students students;
    struct names items; /* of the model, then unseen ones */
    struct origin origin;
};

static uint8_t mark_of(const struct part *part, size_t r)
{
    return part->inference->shard.mark[part->predictions.place[r]];
}

static void get_student(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_student_cell(&part->students, part->predictions.list[r].student, cell);
}

static void get_item(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    const struct inference *inference = part->inference;
    const size_t item =
        stand_ins_asked(&inference->stand_ins, &inference->shard, part->predictions.place[r]);
    const size_t n_items = inference->dataset.n_items;
    cell->whole = (int64_t)item;
    cell->text = item < n_items ? names_get(&inference->dataset.items, item)
                                : names_get(&inference->dataset.unseen.items, item - n_items);
}

/* Dates as the source wrote them; HDF5 has the data set's whole numbers. */
static void get_time(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    const struct shard *shard = &part->inference->shard;
    const uint64_t place = part->predictions.place[r];
    cell->empty = shard->time == NULL;
    if (cell->empty)
        return;
    cell->whole = shard->time[place];
    cell->plain = strchr(part->origin.time_format.text, '%') == NULL;
    cell->text = cell->space;
    origin_print_time(&part->origin, shard, place, cell->space);
}

static void get_outcome(const void *arg, size_t r, struct output_cell *cell)
{
    const enum outcome outcome = mark_outcome(mark_of(arg, r));
    cell->empty = outcome == UNKNOWN;
    cell->whole = (int64_t)outcome;
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
    cell->whole = (int64_t)mark_split(mark_of(arg, r));
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
    int64_t n = (int64_t)part.predictions.n;
    comm_sum_i64(inference->comm, &n, 1);
    enum status status = OK;
    if (n == 0)
        status =
            fail(BAD_USER,
                 "%s: no attempts for %s, so there is nothing to predict; `cohort inspect` "
                 "shows the splits",
                 inference->dataset.path, predict_splits[values->split]);
    else if (values->interval)
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
