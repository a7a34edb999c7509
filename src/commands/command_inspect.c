/* cohort inspect: shows the content of a data set, a checkpoint or a run. Everything is
 * collected as JSON first, and the text is printed from that. */
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
      "data set: list the items with group, skills, attempts and share correct"},
     0,
     NULL},
    {{"students", OPTION_INTEGER, AT(n_students), "0", 0, 4e9, NULL,
      "data set: list the first N students"},
     0,
     NULL},
    {{"truth", OPTION_SWITCH, AT(truth), "no", 0, 0, NULL,
      "trained model: compare what it learned with the true parameters in the data set"},
     0,
     NULL},
    {{"errors", OPTION_SWITCH, AT(errors), "no", 0, 0, NULL,
      "trained model: add standard errors to the tables; this reads the data"},
     0,
     NULL},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
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
        return fail(BAD_USAGE, "inspect: %s is not a data set; --items and --students need one",
                    path);
    if (kind == PATH_DATA_SET && (values->truth || values->errors))
        return fail(BAD_USAGE,
                    "inspect: %s is a data set; --truth and --errors need a trained model",
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
    .summary = "Show the content of a data set, a checkpoint or a run",
    .details =
        "The kind of PATH is detected from its content. For a data set, print the "
        "numbers of students, attempts, items and skills, the outcomes, splits, time range "
        "and digest. For a checkpoint, print model, epoch, step, settings, digests, and the "
        "mean, standard deviation and range of each tensor. For a run, print the same for its "
        "newest checkpoint, list all its checkpoints, tell whether it is finished, and print "
        "the end of its log.\n\n"
        "The digest of a data set or checkpoint depends on its content only.\n\n"
        "--truth uses the best checkpoint of a run. It prints correlation, root mean squared "
        "error and bias of the estimates for items and students, compared with /truth of the "
        "data set, which `cohort simulate` and `cohort import matrix --truth` store. Mixed "
        "models (lme), and ktm models with weights for items and students, are compared as a "
        "Rasch model, logit P = theta - b. There b is minus the sum of the intercept (bias) "
        "and all effects (weights) of the item, and theta is the student's effect (weight).",
    .examples = "Show a data set and its items:\n\n"
                "  cohort inspect class.h5 --items\n\n"
                "Compare a trained model with the truth of a simulated class:\n\n"
                "  cohort inspect runs/vae --truth",
    .see_also = "cohort-export(1), cohort-verify(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
