/* ranks: 1 3 */
/* A trained model and a data set, on all ranks; and checkpoints whose digest is correct but
 * whose content is wrong: every command refuses them with an error message, on all ranks. */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "runs/inference.h"
#include "tiny.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static struct comm world;
static char home[256];

/* Run a command given as words separated by blanks; `@` stands for the test's directory. */
static enum status run(const struct command *command, const char *line)
{
    char *words = NEW(char, strlen(line) + 1 + 16 * sizeof home), *end = words;
    for (const char *c = line; *c != '\0'; c++)
        if (*c == '@')
            end += sprintf(end, "%s", home);
        else
            *end++ = *c;
    char *argv[16] = {NULL};
    int argc = 0;
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    fail_clear();
    enum status status = comm_agree(&world, command->run(&world, argc, argv));
    memory_free(words);
    return status;
}

static char *in_home(const char *name)
{
    return memory_text("%s/%s", home, name);
}

static int settle(void **state)
{
    (void)state;
    snprintf(home, sizeof home, "%s/opened.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (world.rank == 0 && mkdtemp(home) == NULL)
        return -1;
    comm_broadcast(&world, home, sizeof home, 0);
    log_mute(true);
    const bool ready =
        run(&command_simulate, "simulate irt --students 90 --items 7 --seed 3 -o @/class.h5") ==
            OK &&
        run(&command_train, "train model.kind=rbm model.hidden=3 data=@/class.h5 run=@/run "
                            "train.epochs=2 train.batch=30 train.block=5") == OK;
    if (!ready)
        printf("# %s\n", fail_sentence());
    return ready ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    comm_barrier(&world);
    char *command = memory_text("rm -r %s", home);
    const int left = world.rank == 0 ? system(command) : 0;
    memory_free(command);
    return left;
}

static void test_open_model_and_data(void **state)
{
    (void)state;
    char *path = in_home("run");
    struct inference inference;
    fail_clear();
    assert_int_equal(inference_open(&inference, path, "", &world), OK);
    assert_true(inference.own_data);
    assert_int_equal(inference.model->n_items, 7);
    int64_t n = (int64_t)inference.shard.n_students;
    comm_sum_i64(&world, &n, 1);
    assert_int_equal(n, 90);
    assert_int_equal(tiny_before(&world, (int64_t)inference.shard.n_students),
                     inference.shard.first_student);

    struct item_counts counts;
    assert_true(inference_counts(&inference, &counts));
    int64_t expected[2] = {0};
    for (uint64_t t = 0; t < inference.shard.n_attempts; t++)
        if (mark_split(inference.shard.mark[t]) == TRAIN && inference.shard.item[t] == 4)
            expected[mark_outcome(inference.shard.mark[t])]++;
    comm_sum_i64(&world, expected, 2);
    assert_true(expected[0] > 0 && expected[1] > 0);
    assert_int_equal(counts.wrong[4], expected[0]);
    assert_int_equal(counts.right[4], expected[1]);
    memory_free(counts.right);
    inference_close(&inference);
    memory_free(path);
}

/* Write a checkpoint like the run's, but with other settings or with one number changed; and with
 * the digest of other data, if it is not NULL. */
static void write_for(const char *digest, const char *from, const char *to, double number,
                      size_t place)
{
    char *path = in_home("run/best.h5"), *target = in_home("changed.h5");
    struct inference inference;
    assert_int_equal(inference_open_model(&inference, path, &world), OK);
    const struct checkpoint *old = &inference.checkpoint;
    char *config = memory_text("%s", old->config);
    if (from != NULL) {
        char *at = strstr(config, from);
        assert_non_null(at);
        char *longer =
            memory_text("%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
        memory_free(config);
        config = longer;
    } else {
        inference.model->params.value[place] = (real)number;
    }
    const struct checkpoint_content content = {
        .model = inference.model,
        .config = config,
        .data_digest = digest != NULL ? digest : old->data_digest,
        .items = checkpoint_items(old),
        .progress = &old->progress,
    };
    char *bytes = NULL;
    size_t n = 0;
    enum status status = world.rank == 0 ? checkpoint_bytes(&content, &bytes, &n) : OK;
    if (status == OK && world.rank == 0)
        status = atomic_file_write(target, bytes, n);
    status = comm_agree(&world, status);
    if (status != OK)
        print_error("%s\n", fail_sentence());
    assert_int_equal(status, OK);
    memory_free(bytes);
    memory_free(config);
    memory_free(path);
    memory_free(target);
    inference_close(&inference);
}

static void write_changed(const char *from, const char *to, double number, size_t place)
{
    write_for(NULL, from, to, number, place);
}

static const struct {
    const struct command *command;
    const char *line;
} lines[] = {
    {&command_evaluate, "evaluate @/changed.h5 --data @/class.h5"},
    {&command_predict, "predict @/changed.h5 --data @/class.h5 -o @/p.csv"},
    {&command_export, "export @/changed.h5 -o @/tensors.h5"},
    {&command_inspect, "inspect @/changed.h5"},
};

static void expect_refused(enum status status, const char *words)
{
    for (size_t l = 0; l < COUNT(lines); l++) {
        assert_int_equal(run(lines[l].command, lines[l].line), status);
        if (strstr(fail_sentence(), words) == NULL)
            print_error("%s: the sentence is '%s'\n", lines[l].line, fail_sentence());
        assert_non_null(strstr(fail_sentence(), words));
        assert_non_null(strstr(fail_sentence(), "changed.h5"));
    }
    fail_clear();
}

static void test_unchanged(void **state)
{
    (void)state;
    write_changed("hidden = 3", "hidden = 3", 0, 0);
    for (size_t l = 0; l < COUNT(lines); l++)
        assert_int_equal(run(lines[l].command, lines[l].line), OK);
    assert_int_equal(run(&command_verify, "verify @/changed.h5"), OK);
}

static void test_not_a_number(void **state)
{
    (void)state;
    const double numbers[] = {NAN, INFINITY, -INFINITY};
    for (size_t n = 0; n < COUNT(numbers); n++) {
        write_changed(NULL, NULL, numbers[n], 1);
        expect_refused(BAD_DATA, "number 1 of /parameters/weights is not finite");
        assert_int_equal(run(&command_verify, "verify @/changed.h5"), BAD_DATA);
    }
}

static void test_settings_that_do_not_fit(void **state)
{
    (void)state;
    write_changed("hidden = 3", "hidden = 4", 0, 0);
    expect_refused(BAD_DATA,
                   "/parameters/weights is missing or does not have the shape that this");
    expect_refused(BAD_DATA, "/config.ini run=ANOTHER`");
    write_changed("hidden = 3", "hidden = 0", 0, 0);
    expect_refused(BAD_USER, "hidden = 0");
    write_changed("kind = rbm", "kind = oracle", 0, 0);
    expect_refused(BAD_USER, "oracle");
    write_changed("[model]", "[model", 0, 0);
    expect_refused(BAD_USER, "is not a section");
}

/* What a checkpoint says of the data it was trained on must fit the data. */
static void test_data_that_do_not_fit(void **state)
{
    (void)state;
    static const char *const folds[] = {"\nfold = 2", "\nfold = -1"};
    for (size_t f = 0; f < COUNT(folds); f++) {
        write_changed("\nfold = 0", folds[f], 0, 0);
        for (size_t l = 0; l < 2; l++) {
            assert_int_equal(run(lines[l].command, lines[l].line), BAD_DATA);
            assert_non_null(strstr(fail_sentence(), "changed.h5: says that it was trained on "
                                                    "fold "));
        }
    }
    assert_int_equal(
        run(&command_simulate, "simulate irt --students 30 --items 9 --seed 3 -o @/other.h5"),
        OK);
    char *path = in_home("other.h5");
    struct dataset other;
    assert_int_equal(dataset_open(&other, path, &world), OK);
    write_for(other.digest, "hidden = 3", "hidden = 3", 0, 0);
    dataset_close(&other);
    memory_free(path);
    static const struct {
        const struct command *command;
        const char *line;
    } readers[] = {{&command_evaluate, "evaluate @/changed.h5 --data @/other.h5"},
                   {&command_predict, "predict @/changed.h5 --data @/other.h5 -o @/p.csv"}};
    for (size_t r = 0; r < COUNT(readers); r++) {
        assert_int_equal(run(readers[r].command, readers[r].line), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), "does not know its item 'item-8'"));
    }
    fail_clear();
}

/* A run does not continue from a step beyond the end of the epoch. */
static void test_step_beyond_epoch(void **state)
{
    (void)state;
    char *from = in_home("run/last.h5"), *directory = in_home("far"),
         *target = in_home("far/last.h5");
    struct inference inference;
    fail_clear();
    assert_int_equal(inference_open_model(&inference, from, &world), OK);
    struct progress progress = inference.checkpoint.progress;
    progress.finished = 0;
    progress.step = 1000;
    const struct checkpoint_content content = {
        .model = inference.model,
        .config = inference.checkpoint.config,
        .data_digest = inference.checkpoint.data_digest,
        .items = checkpoint_items(&inference.checkpoint),
        .progress = &progress,
    };
    char *bytes = NULL;
    size_t n = 0;
    enum status status = world.rank == 0 ? file_make_directory(directory) : OK;
    if (status == OK && world.rank == 0)
        status = checkpoint_bytes(&content, &bytes, &n);
    if (status == OK && world.rank == 0)
        status = atomic_file_write(target, bytes, n);
    assert_int_equal(comm_agree(&world, status), OK);
    memory_free(bytes);
    inference_close(&inference);
    assert_int_equal(run(&command_train,
                         "train model.kind=rbm model.hidden=3 data=@/class.h5 run=@/far "
                         "train.epochs=5 train.batch=30 train.block=5"),
                     BAD_DATA);
    assert_non_null(strstr(fail_sentence(), "its step is beyond the end of the epoch"));
    fail_clear();
    memory_free(from);
    memory_free(directory);
    memory_free(target);
}

/* HDF5 must not confuse two checkpoints in memory. */
static void test_two_checkpoints_at_once(void **state)
{
    (void)state;
    char *paths[] = {in_home("run/last.h5"), in_home("changed.h5")};
    struct inference inference[2];
    write_changed(NULL, NULL, 12345, 1);
    fail_clear();
    for (int k = 0; k < 2; k++)
        assert_int_equal(inference_open_model(&inference[k], paths[k], &world), OK);
    assert_true(inference[0].model->params.value[1] != 12345);
    assert_true(inference[1].model->params.value[1] == 12345);
    assert_string_not_equal(inference[0].checkpoint.digest, inference[1].checkpoint.digest);
    for (int k = 0; k < 2; k++) {
        inference_close(&inference[k]);
        memory_free(paths[k]);
    }
}

static void test_recognize_checkpoints(void **state)
{
    (void)state;
    enum path_kind kind = PATH_CHECKPOINT;
    char *paths[] = {in_home("class.h5"), in_home("run/last.h5"), in_home("run"),
                     in_home("none"), in_home("")};
    fail_clear();
    assert_int_equal(inference_recognize(paths[0], &kind), OK);
    assert_int_equal(kind, PATH_DATA_SET);
    assert_int_equal(inference_recognize(paths[1], &kind), OK);
    assert_int_equal(kind, PATH_CHECKPOINT);
    assert_int_equal(inference_recognize(paths[2], &kind), OK);
    assert_int_equal(kind, PATH_RUN);
    assert_int_equal(inference_recognize(paths[3], &kind), BAD_USER);
    fail_clear();
    assert_int_equal(inference_recognize(paths[4], &kind), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), "not a run"));
    fail_clear();
    for (size_t p = 0; p < COUNT(paths); p++)
        memory_free(paths[p]);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_model_and_data),
        cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_settings_that_do_not_fit),
        cmocka_unit_test(test_data_that_do_not_fit),
        cmocka_unit_test(test_two_checkpoints_at_once),
        cmocka_unit_test(test_recognize_checkpoints),
        cmocka_unit_test(test_step_beyond_epoch),
    };
    const int n_failed = cmocka_run_group_tests(tests, settle, leave);
    comm_finish(&world);
    return n_failed;
}
