/* cohort predict --follow: answers attempts that come as lines. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/output_stream.h"
#include "commands/predict_internal.h"
#include "data_tools/pseudonym.h"
#include "runs/follow.h"
#include <inttypes.h>
#include <unistd.h>

static enum status check(const struct comm *comm, const struct predict_values *values)
{
    if (comm->size > 1)
        return fail(BAD_USER,
                    "predict --follow reads standard input on one rank, but there are %d; "
                    "start it without mpirun",
                    comm->size);
    if (values->next != NEXT_NONE || values->mastery != MASTERY_NONE ||
        values->split != PREDICT_ALL || values->interval)
        return fail(BAD_USAGE, "predict: --follow answers the lines of standard input; it "
                               "does not go with --next, --mastery, --interval or --split");
    if (values->output[0] != '\0' && !output_stream_is_standard(values->output))
        return fail(BAD_USAGE,
                    "predict: --follow answers on standard output; omit -o %s, or redirect "
                    "the output to a file",
                    values->output);
    return OK;
}

static enum status follow(const struct inference *inference,
                          const struct predict_values *values)
{
    if (model_task(inference->model) != TASK_TRACE)
        return fail(BAD_USER,
                    "%s: this model predicts one target per student, not single answers",
                    inference->checkpoint.path);
    struct pseudonym_key key;
    if (values->pseudonyms[0] != '\0')
        TRY(pseudonym_key_read(values->pseudonyms, PSEUDONYM_REFUSE, &key));
    const struct follow_times times = {values->time_unit, values->time_format};
    struct follow *follow = follow_create(inference, (size_t)values->students, &times);
    if (values->strict)
        follow_refuse_unseen(follow);
    if (values->pseudonyms[0] != '\0')
        follow_pseudonyms(follow, &key);
    enum status status = OK;
    if (values->data[0] != '\0') {
        predict_note_withheld(inference);
        status = follow_start_from_data(follow);
    }
    if (status == OK)
        status = follow_run(follow, STDIN_FILENO);
    const struct follow_counts counts = follow_counts(follow);
    follow_destroy(follow);
    log_say("answered lines: %" PRIu64 ", with an outcome: %" PRIu64
            "; students: %zu; lines about unseen items: %" PRIu64
            "; memory of the students: %.1f MB",
            counts.n_lines - counts.n_bad, counts.n_outcomes, counts.n_students,
            counts.n_unseen, (double)counts.n_bytes / 1e6);
    return status;
}

enum status predict_follow(const struct comm *comm, const char *path,
                           const struct predict_values *values)
{
    struct inference inference = {.checkpoint = {.file = -1}};
    TRY(check(comm, values));
    enum status status = values->data[0] == '\0'
                             ? inference_open_items(&inference, path, comm)
                             : (values->strict ? inference_open : inference_open_any)(
                                   &inference, path, values->data, comm);
    if (status == OK)
        status = follow(&inference, values);
    inference_close(&inference);
    return status;
}
