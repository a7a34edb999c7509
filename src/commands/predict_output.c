/* What all tables of `cohort predict` share: names of students, cells of attempts, where they come
 * from, and the last line. */
#include "base/fail.h"
#include "base/log.h"
#include "base/output_stream.h"
#include "commands/predict_internal.h"
#include <inttypes.h>
#include <string.h>

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

void predict_item_cell(const struct inference *inference, uint64_t t, struct output_cell *cell)
{
    const struct dataset *dataset = &inference->dataset;
    const size_t item = stand_ins_asked(&inference->stand_ins, &inference->shard, t);
    cell->whole = (int64_t)item;
    cell->text = item < dataset->n_items
                     ? names_get(&dataset->items, item)
                     : names_get(&dataset->unseen.items, item - dataset->n_items);
}

void predict_time_cell(const struct inference *inference, const struct origin *origin,
                       uint64_t t, struct output_cell *cell)
{
    const struct shard *shard = &inference->shard;
    cell->empty = shard->time == NULL;
    if (cell->empty)
        return;
    cell->whole = shard->time[t];
    cell->plain = strchr(origin->time_format.text, '%') == NULL;
    cell->text = cell->space;
    origin_print_time(origin, shard, t, cell->space);
}

void predict_outcome_cell(const struct inference *inference, uint64_t t,
                          struct output_cell *cell)
{
    const enum outcome outcome = mark_outcome(inference->shard.mark[t]);
    cell->empty = outcome == UNKNOWN;
    cell->whole = (int64_t)outcome;
}

enum status predict_check_rows(const struct inference *inference,
                               const struct predict_values *values, size_t n_rows)
{
    const bool all = values->split == PREDICT_ALL;
    int64_t n = (int64_t)n_rows;
    comm_sum_i64(inference->comm, &n, 1);
    return n > 0 ? OK
                 : fail(BAD_USER,
                        "%s: no attempts%s%s, so there is nothing to predict; `cohort "
                        "inspect` shows the splits",
                        inference->dataset.path, all ? "" : " for ",
                        all ? "" : predict_splits[values->split]);
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
