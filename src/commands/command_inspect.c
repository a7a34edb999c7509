/* cohort inspect: what is in a data set, a checkpoint or a run. Everything is collected as JSON
 * first; the words for people are said from that. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/inspect_internal.h"
#include "runs/inference.h"
#include <math.h>
#include <stddef.h>

#define AT(field) offsetof(struct inspect_flags, field)
static const struct flag flags[] = {
    {{"items", OPTION_SWITCH, AT(items), "no", 0, 0, NULL,
      "of a data set: list the items with group, skills, attempts and share correct"},
     0},
    {{"students", OPTION_INTEGER, AT(n_students), "0", 0, 4e9, NULL,
      "of a data set: list so many students"},
     0},
    {{"truth", OPTION_SWITCH, AT(truth), "no", 0, 0, NULL,
      "of a trained model: compare what it learned with what the data were made from"},
     0},
    {{"errors", OPTION_SWITCH, AT(errors), "no", 0, 0, NULL,
      "of a trained model: tables with standard errors, for which the data are read"},
     0},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0},
};

const char *inspect_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

long long inspect_integer(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

double inspect_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static enum status inspect(const char *path, const struct inspect_flags *values)
{
    enum path_kind kind = PATH_RUN;
    TRY(inference_recognize(path, &kind));
    if (kind != PATH_DATA_SET && (values->items || values->n_students > 0))
        return fail(BAD_USAGE,
                    "inspect: %s is not a data set, so it has no list of items or "
                    "students to show",
                    path);
    if (kind == PATH_DATA_SET && (values->truth || values->errors))
        return fail(BAD_USAGE,
                    "inspect: %s is a data set; --truth and --errors are about a trained model",
                    path);
    json_t *object = json_object();
    static const char *const kinds[] = {"data set", "checkpoint", "run"};
    json_object_set_new(object, "kind", json_string(kinds[kind]));
    json_object_set_new(object, "path", command_json_text(path));
    enum status status = kind == PATH_DATA_SET     ? inspect_dataset(path, values, object)
                         : kind == PATH_CHECKPOINT ? inspect_checkpoint(path, object)
                                                   : inspect_run(path, object);
    if (status == OK && (values->truth || values->errors))
        status = inspect_with_data(path, values, object);
    if (status == OK && values->json) {
        command_json_print(json_incref(object));
    } else if (status == OK) {
        if (kind == PATH_DATA_SET)
            inspect_dataset_say(object);
        else
            inspect_run_say(object);
    }
    json_decref(object);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct inspect_flags values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_inspect, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = command_usage(&command_inspect);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? inspect(words[0], &values) : OK);
    memory_free(words);
    return status;
}

const struct command command_inspect = {
    .name = "inspect",
    .usage = "inspect PATH [--items] [--students N] [--truth] [--errors] [--json]",
    .summary = "Shows what is in a data set, a checkpoint or a run",
    .details =
        "What PATH is, is found out from the file itself. A data set: how many students,\n"
        "attempts, items and skills, outcomes, splits, span of time, digest. A checkpoint: "
        "model,\n"
        "epoch, step, tensors with their mean, spread and range, configuration, digests. A "
        "run:\n"
        "the same of its newest checkpoint, all its checkpoints, whether it is finished, and "
        "the\n"
        "end of its log. The digest of a data set or checkpoint depends on its content only.\n"
        "--truth takes the best checkpoint of a run: correlation, root of the mean squared "
        "error\n"
        "and bias of items and students beside /truth of the data set, which `cohort simulate` "
        "or\n"
        "`cohort import matrix --truth` stored there. Mixed models, and machines of kind ktm "
        "with\n"
        "rows for items and students, take part as Rasch's model, logit P = theta - b: b is "
        "minus\n"
        "the intercept (bias) and all effects (weights) of the item, theta the student's "
        "effect\n"
        "(weight).",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
