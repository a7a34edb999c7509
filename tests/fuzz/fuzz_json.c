/* Every JSON file that cohort reads, from the fuzzer. An input is files, each after `@@@@
 * NAME`: log.jsonl and result.json of a run, rung-1.json and rung-2.json of a sweep's trials
 * (the same for all), and members, the list of a blend's members. Unreadable JSON is ignored; a
 * run's log holds complete records after it was truncated. */
#include "fuzz.h"

#include "learn/model.h"
#include "report/report_internal.h"
#include "runs/run.h"
#include "sweep/sweep.h"

static struct sweep sweep;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_settle(argc, argv);
    fuzz_prepare(&command_simulate, "irt --students 20 --items 4 --skills 2 -o class.h5");
    fuzz_prepare(&command_train, "data=class.h5 run=run model.kind=rbm model.hidden=2 "
                                 "optimizer.rate=0.01 train.epochs=1 run.save_minutes=0");
    unlink("run/best.h5"); /* one checkpoint is enough */
    unlink("run/previous.h5");
    struct config *config = config_create();
    static const char text[] = "data.file=class.h5\nrun.directory=sweep\nmodel.kind=rbm\n"
                               "model.hidden={2, 3}\noptimizer.rate=log(1e-3, 1e-1)\n"
                               "train.epochs=4\nsweep.design=random\nsweep.trials=3\n"
                               "sweep.rungs=2\n";
    fuzz_must(config_read_text(config, text, "sweep") == OK, "a sweep's text");
    fuzz_must(sweep_create(&sweep, config) == OK && sweep_open(&sweep) == OK, "a sweep");
    for (size_t t = 0; t < sweep.n_trials; t++) {
        char *path = sweep_path(&sweep, t, NULL);
        fuzz_must(mkdir("sweep/trials", 0777) == 0 || t > 0, "a directory of trials");
        fuzz_must(mkdir(path, 0777) == 0, "a directory of a trial");
        memory_free(path);
    }
    return 0;
}

static enum status read_log(void)
{
    struct report_history history = {0};
    report_history_read(&history, "run");
    report_history_free(&history);
    struct run run = {.comm = &fuzz_world, .directory = (char *)"run", .lock = -1};
    return run_log_cut(&run, 3);
}

static enum status look(bool as_json)
{
    char *words[] = {(char *)"inspect", (char *)"run", as_json ? (char *)"--json" : NULL, NULL};
    return fuzz_command(&command_inspect, words);
}

static enum status collect(void)
{
    struct sweep_board board = {0};
    const enum status status = sweep_collect(&sweep, &board);
    sweep_board_free(&sweep, &board);
    size_t n = 0;
    memory_free(sweep_rung(&sweep, 2, &n));
    return status;
}

static enum status blend(const char *members)
{
    struct config *config = config_create();
    const struct model_kind *kind = NULL;
    struct model *model = NULL;
    struct covariates none = {0};
    char *text = memory_text("[model]\nkind=blend\nmembers=%s\n", members);
    enum status status = config_read_text(config, text, "members");
    if (status == OK)
        status = model_choose(config, &kind);
    if (status == OK) {
        model = model_create(kind);
        model->covariates = &none;
        struct model_names names;
        const struct option_group groups[] = {
            {"model", model_name_options, COUNT(model_name_options), &names},
            {"model", kind->options, kind->n_options, model->options},
        };
        status = config_resolve_some(config, groups, COUNT(groups));
    }
    if (status == OK)
        status = model_declare(model, NULL, 20, 4, 2);
    model_destroy(model);
    config_destroy(config);
    memory_free(text);
    return status;
}

static enum status read_part(const struct fuzz_part *part)
{
    if (strcmp(part->name, "log.jsonl") == 0) {
        fuzz_write("run/log.jsonl", part->text, part->n);
        fuzz_judge(look(part->n % 2 == 0), false);
        return read_log();
    }
    if (strcmp(part->name, "result.json") == 0) {
        fuzz_write("run/result.json", part->text, part->n);
        return look(part->n % 2 == 0);
    }
    if (strcmp(part->name, "members") == 0)
        return blend(part->text);
    if (strcmp(part->name, "rung-1.json") != 0 && strcmp(part->name, "rung-2.json") != 0)
        return OK;
    for (size_t t = 0; t < sweep.n_trials; t++) {
        char *path = sweep_path(&sweep, t, part->name);
        fuzz_write(path, part->text, part->n);
        memory_free(path);
    }
    return collect();
}

static enum status read_parts(const uint8_t *data, size_t size)
{
    char *text = memory_text("%*s", (int)size, ""), *rest = text;
    memcpy(text, data, size);
    struct fuzz_part part;
    while (fuzz_next_part(&rest, &size, &part)) {
        part.text[part.n > 0 && rest != NULL ? part.n - 1 : part.n] = '\0';
        fuzz_judge(read_part(&part), false);
    }
    memory_free(text);
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_try(read_parts, data, size, false);
    return 0;
}
