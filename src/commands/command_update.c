/* cohort update: continues training a finished run with new data. It is `cohort train update=RUN`
 * with a name for the new run, and a comparison of both runs at the end. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "runs/run.h"
#include "runs/run_find.h"
#include <stddef.h>
#include <string.h>

struct values {
    const char *data;
};

static const struct flag flags[] = {
    {{"data", OPTION_TEXT, offsetof(struct values, data), "", 0, 0, NULL,
      "the new data set, best with all attempts up to now"},
     0,
     "NEW.h5"},
};

/* RUN-NEW for the data set DIRECTORY/NEW.h5; caller frees. */
static char *name_run(const char *run, const char *data)
{
    const char *slash = strrchr(data, '/');
    const char *name = slash != NULL ? slash + 1 : data;
    size_t n_run = strlen(run);
    while (n_run > 1 && run[n_run - 1] == '/')
        n_run--;
    const char *dot = strrchr(name, '.');
    const size_t n = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    return memory_text("%.*s-%.*s", (int)n_run, run, (int)n, name);
}

static const char *find_setting(const char *const *words, int n, const char *key)
{
    for (int w = 0; w < n; w++)
        if (strncmp(words[w], key, strlen(key)) == 0)
            return words[w] + strlen(key);
    return NULL;
}

/* The value of a setting that has a short name, or NULL. */
static const char *find_either(const char *const *words, int n, const char *key,
                               const char *full)
{
    const char *value = find_setting(words, n, key);
    return value != NULL ? value : find_setting(words, n, full);
}

/* The data may be given as a setting, too. */
static enum status check_words(const char *const *words, int n, struct values *values)
{
    if (n == 0 || strchr(words[0], '=') != NULL)
        return command_usage(&command_update);
    for (int w = 1; w < n; w++)
        if (strchr(words[w], '=') == NULL)
            return fail(BAD_USAGE,
                        "update: '%s' is a second run; expected one run, then settings as "
                        "section.key=value",
                        words[w]);
    const char *data = find_either(words, n, "data=", "data.file=");
    if (data != NULL && values->data[0] != '\0' && strcmp(data, values->data) != 0)
        return fail(BAD_USAGE, "update: --data %s and data=%s are two data sets; give one",
                    values->data, data);
    if (data != NULL)
        values->data = data;
    if (values->data[0] == '\0')
        return fail(BAD_USAGE, "update: --data NEW.h5 is missing: the data set to learn from");
    return OK;
}

/* Collective: trains, with the words of `cohort train`. */
static enum status train(const struct comm *comm, const char *const *words, int n,
                         const char *data, const char *run)
{
    char **argv = NEW(char *, (size_t)n + 4);
    int argc = 0;
    argv[argc++] = memory_text("train");
    argv[argc++] = memory_text("train.update=%s", words[0]);
    argv[argc++] = memory_text("data.file=%s", data);
    argv[argc++] = memory_text("run.directory=%s", run);
    for (int w = 1; w < n; w++)
        argv[argc++] = memory_text("%s", words[w]);
    const enum status status = command_train.run(comm, argc, argv);
    for (int a = 0; a < argc; a++)
        memory_free(argv[a]);
    memory_free(argv);
    return status;
}

/* Rank 0: the held-out attempts of a finished run: test, else validation, else NULL. */
static const char *held_out(const char *run)
{
    static const char *const splits[] = {"test", "valid"};
    char *path = memory_text("%s/result.json", run);
    json_t *result = run_json(path);
    const char *found = NULL;
    for (size_t s = 0; found == NULL && s < COUNT(splits); s++)
        if (json_object_get(result, splits[s]) != NULL)
            found = splits[s];
    json_decref(result);
    memory_free(path);
    return found;
}

/* Collective: scores n runs, with the words of `cohort evaluate`. */
static enum status evaluate(const struct comm *comm, const char *const *runs, size_t n,
                            const char *data, const char *split)
{
    const char *const options[] = {"--data", data, "--split", split};
    char **argv = NEW(char *, 1 + n + COUNT(options));
    int argc = 0;
    argv[argc++] = memory_text("evaluate");
    for (size_t r = 0; r < n; r++)
        argv[argc++] = memory_text("%s", runs[r]);
    for (size_t o = 0; o < COUNT(options); o++)
        argv[argc++] = memory_text("%s", options[o]);
    const enum status status = command_evaluate.run(comm, argc, argv);
    for (int a = 0; a < argc; a++)
        memory_free(argv[a]);
    memory_free(argv);
    return status;
}

/* Collective: compares both runs on the held-out attempts of the new data. Differences are
 * those of single answers; models of one target per student are scored one after the other. */
static enum status compare(const struct comm *comm, const char *before, const char *run,
                           const char *data)
{
    const char *split = comm->rank == 0 ? held_out(run) : NULL;
    char *shared = comm_share_text(comm, split != NULL ? memory_text("%s", split) : NULL);
    if (shared == NULL) {
        log_say("%s has neither test nor validation attempts, so %s and %s are not compared; "
                "import it with --split by-last, for example, to compare them",
                data, run, before);
        return OK;
    }
    char *task =
        comm_share_text(comm, comm->rank == 0 ? run_setting(run, "model", "task") : NULL);
    const char *const runs[] = {run, before};
    log_say("compare %s with %s, the original, on the new data:", run, before);
    enum status status = OK;
    if (task == NULL || strcmp(task, "final") != 0)
        status = evaluate(comm, runs, COUNT(runs), data, shared);
    else
        for (size_t r = 0; status == OK && r < COUNT(runs); r++)
            status = evaluate(comm, &runs[r], 1, data, shared);
    memory_free(task);
    memory_free(shared);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    struct values values = {0};
    enum status status = command_parse(&command_update, argc, argv, &values, words, &n_words);
    if (status == OK)
        status = check_words(words, n_words, &values);
    if (status == OK) {
        const char *given = find_either(words, n_words, "run=", "run.directory=");
        char *directory =
            given != NULL ? memory_text("%s", given) : name_run(words[0], values.data);
        status = train(comm, words, n_words, values.data, directory);
        if (status == OK)
            status = compare(comm, words[0], directory, values.data);
        if (status == OK)
            log_say("the updated run is %s", directory);
        memory_free(directory);
    }
    memory_free(words);
    return status;
}

const struct command command_update = {
    .name = "update",
    .usage = "update RUN --data NEW.h5 [run=DIRECTORY] [section.key=value...]",
    .summary = "Continue training a finished run with new students, answers and items",
    .details =
        "Train the model of RUN further on NEW.h5 and write a new run, by default RUN-NEW. RUN "
        "is not changed. Run the same command again to continue after a stop.\n\n"
        "The model keeps its settings; [train] and [optimizer] may be changed. It starts from "
        "the values of RUN. Items and skills that RUN does not know get rows of their own, and "
        "items without attempts in NEW.h5 keep theirs. Validation attempts of NEW.h5 end the "
        "training as usual. Without them it takes as many epochs as led to the best epoch of "
        "RUN.\n\n"
        "The kinds bkt, lme and ktm are solved for and fitted to NEW.h5 alone, so it should "
        "have all attempts up to now. That is best for the other kinds, too: they slowly "
        "forget "
        "what is not practised any more. Of a blend, update the members and blend them "
        "again.\n\n"
        "At the end both runs are compared on the test attempts of NEW.h5 (or, if there are "
        "none, on validation); models of one target per student are scored one after the "
        "other. "
        "The comparison is fair only if all data sets of a run are split "
        "in the same way, as by --split by-last in every import: otherwise RUN may have been "
        "trained on attempts that NEW.h5 holds out. A warning counts such attempts.\n\n"
        "Items keep the skills and groups that they have in RUN, and a note tells where NEW.h5 "
        "has others; the kinds that are fitted to NEW.h5 alone use those of NEW.h5 and, for "
        "items without any there, those of RUN. So NEW.h5 may be imported without skills; a "
        "note names new items that have none. The checkpoint stores the digests of all data "
        "sets that it was trained on, and `cohort "
        "inspect` names the runs.\n\n"
        "A new run that exists already is continued: only train.epochs, train.patience and "
        "paths may differ, and other data are refused. NEW.h5 with the same name every night "
        "gives the same name RUN-NEW: name the run with run=, or the data set by its date.",
    .examples =
        "Every night, import the whole log, continue training, and predict. The split holds "
        "out the last answers of each student to compare both runs; predictions use "
        "all answers, so they have a data set without a split:\n\n"
        "  cohort import csv log.csv --split by-last -o monday.h5\n"
        "  mpirun -n 4 cohort update runs/dkt --data monday.h5\n"
        "  cohort import csv log.csv --split none -o monday-all.h5\n"
        "  cohort predict runs/dkt-monday --data monday-all.h5 --next -o next.csv",
    .exit_status = "85 if a signal stopped it after saving: run the same command to continue.",
    .see_also = "cohort-train(1), cohort-evaluate(1), cohort-predict(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
