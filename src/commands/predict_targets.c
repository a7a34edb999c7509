/* cohort predict, for models of one target per student (dkt with model.task=final): one row per
 * student, in the order of the data set. */
#include "base/fail.h"
#include "base/memory.h"
#include "commands/predict_internal.h"
#include "runs/targets.h"
#include <math.h>

/* What this rank predicted. */
struct part {
    struct target_prediction *targets;
    struct predict_students students;
};

static void get_student(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_student_cell(&part->students, part->targets[r].student, cell);
}

static void set_real(struct output_cell *cell, double value)
{
    cell->empty = isnan(value);
    cell->real = value;
}

static void get_target(const void *arg, size_t r, struct output_cell *cell)
{
    set_real(cell, ((const struct part *)arg)->targets[r].target);
}

static void get_prediction(const void *arg, size_t r, struct output_cell *cell)
{
    set_real(cell, ((const struct part *)arg)->targets[r].mean);
}

static void get_deviation(const void *arg, size_t r, struct output_cell *cell)
{
    set_real(cell, sqrt(((const struct part *)arg)->targets[r].variance));
}

static const struct output_column columns[] = {
    {"student", OUTPUT_U32, get_student},
    {"target", OUTPUT_F64, get_target},
    {"prediction", OUTPUT_F64, get_prediction},
    {"deviation", OUTPUT_F64, get_deviation},
};

enum status predict_targets(const struct inference *inference,
                            const struct predict_values *values)
{
    struct part part = {0};
    size_t n = 0;
    if (values->interval && model_task(inference->model) != TASK_DENSITY)
        return fail(BAD_USER,
                    "%s: this model gives no uncertainty for a target (dkt with "
                    "model.loss=gaussian does); omit --interval",
                    inference->checkpoint.path);
    enum status status = targets_predict(inference->model, inference->work, &inference->shard,
                                         predict_set(values), &part.targets, &n);
    if (status == OK)
        status = predict_read_students(inference, values->output, &part.students);
    status = comm_agree(inference->comm, status);
    const struct output_table table = {
        .columns = columns, .n_columns = COUNT(columns), .n_rows = n, .arg = &part};
    if (status == OK)
        status = predict_write(inference, values->output, &part.students, &table);
    names_free(&part.students.names);
    memory_free(part.targets);
    return status;
}
