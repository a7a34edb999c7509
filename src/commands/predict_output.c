/* What all tables of `cohort predict` share: names of students, where they come from, and the
 * last line. */
#include "base/log.h"
#include "base/output_stream.h"
#include "commands/predict_internal.h"
#include <inttypes.h>

enum status predict_read_students(const struct inference *inference, const char *output,
                                  struct predict_students *students)
{
    const bool all = output_table_is_h5(output);
    students->first = all ? 0 : inference->shard.first_student;
    if (all && inference->comm->rank > 0)
        return OK;
    return inference_students(inference, students->first,
                              all ? inference->dataset.n_students : inference->shard.n_students,
                              &students->names);
}

void predict_student_cell(const struct predict_students *students, size_t student,
                          struct output_cell *cell)
{
    cell->whole = (int64_t)student;
    if (students->names.n > 0)
        cell->text = names_get(&students->names, student - students->first);
}

void predict_note_withheld(const struct inference *inference)
{
    const struct shard *shard = &inference->shard;
    int64_t n = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        n += mark_outcome(shard->mark[t]) != UNKNOWN && !mark_is_shown(shard->mark[t]);
    comm_sum_i64(inference->comm, &n, 1);
    if (n > 0)
        log_say("note: %lld outcome%s of %s %s withheld by its split and not used; import the "
                "log with --split none and name that file with --data to predict from all "
                "outcomes",
                (long long)n, n == 1 ? "" : "s", inference->dataset.path,
                n == 1 ? "is" : "are");
}

enum status predict_write(const struct inference *inference, const char *output,
                          const struct predict_students *students,
                          const struct output_table *table)
{
    const struct output_attribute attributes[] = {
        {"format", "cohort predictions"},
        {"model", inference->model->kind->name},
        {"checkpoint_digest", inference->checkpoint.digest},
        {"data_digest", inference->dataset.digest},
    };
    struct output_names names[PREDICT_MOST_NAMES + 1] = {{"/students", &students->names}};
    for (size_t k = 0; k < table->n_names; k++)
        names[1 + k] = table->names[k];
    struct output_table all = *table;
    all.names = names;
    all.n_names = 1 + table->n_names;
    all.attributes = attributes;
    all.n_attributes = COUNT(attributes);
    TRY(output_table_write(inference->comm, output, &all));
    int64_t n = (int64_t)table->n_rows;
    comm_sum_i64(inference->comm, &n, 1);
    log_say("wrote %" PRId64 " prediction%s to %s", n, n == 1 ? "" : "s",
            output_stream_name(output));
    return OK;
}
