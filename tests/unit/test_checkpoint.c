/* ranks: 1 3 */
/* Checkpoints: they read back the same on any number of ranks. Every rank refuses a checkpoint
 * that is damaged, truncated or holds a NaN, with an error message. */
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/h5.h"
#include "runs/checkpoint.h"
#include "runs/run.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>
#include <xxhash.h>

#include <cmocka.h>

static struct comm world;

/* A model for a class, with an optimizer and one byte of state per student. */
struct bench {
    struct tiny class;
    struct tiny_model tiny;
    struct exact_slices slices;
    struct optimizer optimizer;
    uint8_t *state; /* of this rank's students */
    size_t n_state;
    char path[600];
};

static const struct optimizer_options adam = {.method = METHOD_ADAM, .rate = 0.1};
static const struct progress somewhere = {.epoch = 3,
                                          .step = 5,
                                          .all_steps = 41,
                                          .best_epoch = 2,
                                          .stale = 1,
                                          .n_scored = 1234,
                                          .loss = -56789,
                                          .numerics = 3,
                                          .best = 0.6251};

static void open_bench(struct bench *b)
{
    tiny_begin(&b->class, 5, false);
    for (uint32_t s = 0; s < 20; s++) {
        const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(&b->class, &rng, 6, 8);
    }
    tiny_finish(&b->class, &world);
    tiny_model_open(&b->tiny, "rbm", "hidden = 3, conditional = yes", &b->class.dataset);
    exact_slices_create(&b->slices, &world, &b->tiny.model->params);
    optimizer_create(&b->optimizer, &adam, &b->tiny.model->params, &b->slices, 10, 1);
    const size_t first = size_cut(20, (size_t)world.rank, (size_t)world.size);
    b->n_state = size_cut(20, (size_t)world.rank + 1, (size_t)world.size) - first;
    b->state = NEW(uint8_t, b->n_state);
    snprintf(b->path, sizeof b->path, "%s.checkpoint", b->class.path);
}

static void close_bench(struct bench *b)
{
    comm_barrier(&world);
    if (world.rank == 0)
        unlink(b->path);
    memory_free(b->state);
    optimizer_destroy(&b->optimizer);
    exact_slices_destroy(&b->slices);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

/* Each rank fills in the state of its own students. */
static void fill(struct bench *b)
{
    tiny_model_scatter(&b->tiny, 1, 9);
    for (int k = 0; k < b->optimizer.n_slots; k++)
        for (size_t i = b->slices.cuts[world.rank]; i < b->slices.cuts[world.rank + 1]; i++)
            b->optimizer.slot[k][i] = ((real)i + (real)0.25) * (real)(k + 1);
    const size_t first = size_cut(20, (size_t)world.rank, (size_t)world.size);
    for (size_t s = 0; s < b->n_state; s++)
        b->state[s] = (uint8_t)(7 * (first + s));
}

/* Collective: the bytes of the checkpoint, on rank 0. */
static char *bytes_of(struct bench *b, size_t *n_bytes)
{
    for (int k = 0; k < b->optimizer.n_slots; k++)
        exact_slices_collect(&b->slices, b->optimizer.slot[k]);
    size_t n_state = 0;
    void *state = comm_gather(&world, b->state, b->n_state, &n_state);
    const struct checkpoint_content content = {
        .model = b->tiny.model,
        .config = "[model]\nkind = rbm\nhidden = 3\nconditional = yes\n",
        .data_digest = b->class.dataset.digest,
        .items = dataset_items(&b->class.dataset),
        .progress = &somewhere,
        .optimizer = &b->optimizer,
        .state = state,
        .n_state = n_state,
    };
    char *bytes = NULL;
    *n_bytes = 0;
    if (world.rank == 0)
        assert_int_equal(checkpoint_bytes(&content, &bytes, n_bytes), OK);
    memory_free(state);
    return bytes;
}

static void store(const struct bench *b, const char *bytes, size_t n_bytes)
{
    if (world.rank == 0)
        assert_int_equal(atomic_file_write(b->path, bytes, n_bytes), OK);
    comm_barrier(&world);
}

static void write_checkpoint(struct bench *b)
{
    size_t n_bytes = 0;
    char *bytes = bytes_of(b, &n_bytes);
    store(b, bytes, n_bytes);
    memory_free(bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct bench a, b;
    open_bench(&a);
    open_bench(&b);
    fill(&a);
    size_t n_first = 0, n_second = 0;
    char *first = bytes_of(&a, &n_first);
    store(&a, first, n_first);

    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&checkpoint, a.path, &world), OK);
    assert_string_equal(checkpoint.model, "rbm");
    assert_string_equal(checkpoint.data_digest, a.class.dataset.digest);
    assert_memory_equal(&checkpoint.progress, &somewhere, sizeof somewhere);
    assert_int_equal(checkpoint.items.n, 5);
    assert_string_equal(names_get(&checkpoint.items, 4), "item 4");
    assert_string_equal(names_get(&checkpoint.groups, 0), "all");
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(checkpoint.item_first[i + 1], i + 1);
        assert_int_equal(checkpoint.item_skills[i], i % 2);
        assert_int_equal(checkpoint.item_group[i], 0);
    }
    assert_int_equal(checkpoint_params(&checkpoint, &world, b.tiny.model), OK);
    assert_int_equal(checkpoint_slots(&checkpoint, &world, &b.optimizer), OK);
    assert_int_equal(checkpoint_state(&checkpoint, &world, b.state, b.n_state), OK);
    checkpoint_close(&checkpoint);

    const struct params *params = &a.tiny.model->params;
    assert_memory_equal(b.tiny.model->params.value, params->value, params->n * sizeof(real));
    for (size_t s = 0; s < a.n_state; s++)
        assert_int_equal(a.state[s], b.state[s]);
    char *second = bytes_of(&b, &n_second);
    assert_int_equal(n_first, n_second);
    if (world.rank == 0)
        assert_memory_equal(first, second, n_first);
    memory_free(first);
    memory_free(second);
    close_bench(&b);
    close_bench(&a);
}

static void expect_damaged(const char *path)
{
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&checkpoint, path, &world), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), path));
    fail_clear();
}

static void test_damage(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b);
    fill(&b);
    size_t n_bytes = 0;
    char *bytes = bytes_of(&b, &n_bytes);
    int64_t n = (int64_t)n_bytes;
    comm_max_i64(&world, &n, 1);
    for (int64_t i = 0; i < n; i = i < 600 ? i + 41 : i + 977) { /* every part of the file */
        if (world.rank == 0)
            bytes[i] ^= 4;
        store(&b, bytes, n_bytes);
        expect_damaged(b.path);
        if (world.rank == 0)
            bytes[i] ^= 4;
    }
    const int64_t sizes[] = {0, 1, 100, 511, 512, 513, n / 2, n - 1};
    for (size_t j = 0; j < COUNT(sizes); j++) {
        store(&b, bytes, (size_t)sizes[j]);
        expect_damaged(b.path);
    }
    store(&b, bytes, n_bytes);
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&checkpoint, b.path, &world), OK);
    checkpoint_close(&checkpoint);
    memory_free(bytes);
    close_bench(&b);
}

/* Rewrite the header so that its digest matches the bytes after it, whatever was changed. */
static void sign(const char *path)
{
    enum { BLOCK = 512 };
    char *bytes = NULL, digest[33], text[BLOCK];
    size_t n = 0;
    assert_int_equal(file_read(path, &bytes, &n), OK);
    const XXH128_hash_t hash = XXH3_128bits(bytes + BLOCK, n - BLOCK);
    snprintf(digest, sizeof digest, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    snprintf(text, sizeof text, "cohort checkpoint\nxxh3-128 %s of the %zu bytes that follow\n",
             digest, n - BLOCK);
    memset(bytes, '\n', BLOCK);
    memcpy(bytes, text, strlen(text));
    assert_int_equal(atomic_file_write(path, bytes, n), OK);
    memory_free(bytes);
}

/* Collective: write a checkpoint with one number changed in an attribute or a one-dimensional
 * array, under a correct digest. */
static void write_altered(struct bench *b, const char *name, size_t place, int64_t number)
{
    fill(b);
    write_checkpoint(b);
    if (world.rank == 0) {
        hid_t file = H5Fopen(b->path, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(file >= 0);
        if (name[0] == '/') {
            hid_t array = H5Dopen2(file, name, H5P_DEFAULT), all = H5Dget_space(array);
            int64_t values[64];
            assert_true(H5Sget_simple_extent_npoints(all) <= (hssize_t)COUNT(values));
            assert_true(
                H5Dread(array, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
            values[place] = number;
            assert_true(
                H5Dwrite(array, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
            H5Sclose(all);
            H5Dclose(array);
        } else {
            hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
            assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &number) >= 0);
            H5Aclose(attribute);
        }
        H5Fclose(file);
        sign(b->path);
    }
    comm_barrier(&world);
}

static void expect_refused(const char *path, enum status expected, const char *why)
{
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&checkpoint, path, &world), expected);
    assert_non_null(strstr(fail_sentence(), path));
    assert_non_null(strstr(fail_sentence(), why));
    fail_clear();
}

/* A file of a newer version is not damaged: a run that took it for damaged would set it
 * aside. */
static void test_versions(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b);
    write_altered(&b, "version", 0, 3);
    expect_refused(b.path, BAD_USER, "written by a newer version of cohort (format 3;");

    char *directory = memory_text("%s.run", b.path),
         *last = memory_text("%s/last.h5", directory);
    struct run run;
    struct checkpoint checkpoint;
    bool found = false;
    assert_int_equal(run_open(&run, directory, &world), OK);
    if (world.rank == 0)
        assert_int_equal(rename(b.path, last), 0);
    comm_barrier(&world);
    assert_int_equal(run_resume(&run, &checkpoint, &found), BAD_USER);
    assert_false(found);
    fail_clear();
    comm_barrier(&world);
    if (world.rank == 0) {
        assert_true(file_exists(last));
        assert_int_equal(run_remove(&run, "last.h5"), OK);
        assert_int_equal(run_remove(&run, "lock"), OK);
    }
    run_close(&run);
    if (world.rank == 0)
        assert_int_equal(rmdir(directory), 0);
    memory_free(directory);
    memory_free(last);

    write_altered(&b, "version", 0, 0);
    expect_refused(b.path, BAD_DATA, "version");
    close_bench(&b);
}

/* Models use the skills and groups of items as row numbers. */
static void test_invalid_items(void **state)
{
    (void)state;
    static const struct {
        const char *array;
        size_t place;
        int64_t number;
    } bad[] = {{"/items/skill_first", 0, 1}, {"/items/skill_first", 2, 5},
               {"/items/skill_first", 5, 6}, {"/items/skill_first", 5, 4},
               {"/items/skills", 3, 2},      {"/items/group", 4, 1},
               {"/items/group", 0, -2}};
    struct bench b;
    open_bench(&b);
    for (size_t j = 0; j < COUNT(bad); j++) {
        write_altered(&b, bad[j].array, bad[j].place, bad[j].number);
        expect_refused(b.path, BAD_DATA, "the skills or groups of items are damaged");
    }
    close_bench(&b);
}

/* The digest is correct, since the program itself wrote the NaN. */
static void test_nan_parameters(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t j = 0; j < COUNT(bad); j++) {
        struct bench b;
        struct checkpoint checkpoint;
        open_bench(&b);
        fill(&b);
        const struct params *params = &b.tiny.model->params;
        const struct tensor *tensor = &params->tensors[j];
        const size_t n = params_size(params, tensor);
        real *dense = NEW(real, n);
        dense[n - 1] = (real)bad[j];
        params_put(params, tensor, dense, params->value);
        memory_free(dense);
        write_checkpoint(&b);
        assert_int_equal(checkpoint_open(&checkpoint, b.path, &world), OK);
        assert_int_equal(checkpoint_params(&checkpoint, &world, b.tiny.model), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), b.path));
        assert_non_null(strstr(fail_sentence(), tensor->name));
        assert_non_null(strstr(fail_sentence(), "not finite"));
        fail_clear();

        struct config *config = config_create();
        struct model *model = NULL;
        assert_int_equal(checkpoint_model(&checkpoint, &world, config, NULL, &model), BAD_DATA);
        assert_null(model);
        fail_clear();
        config_destroy(config);
        checkpoint_close(&checkpoint);
        close_bench(&b);
    }
}

static void test_state_of_the_optimizer(void **state)
{
    (void)state;
    struct bench b;
    struct checkpoint checkpoint;
    open_bench(&b);
    fill(&b);
    if (world.rank == world.size - 1)
        b.optimizer.slot[1][b.slices.cuts[world.size - 1]] = (real)NAN;
    write_checkpoint(&b);
    assert_int_equal(checkpoint_open(&checkpoint, b.path, &world), OK);
    assert_int_equal(checkpoint_params(&checkpoint, &world, b.tiny.model), OK);
    assert_int_equal(checkpoint_slots(&checkpoint, &world, &b.optimizer), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), "/optimizer/square"));
    fail_clear();
    checkpoint_close(&checkpoint);
    close_bench(&b);
}

static void test_state_of_students(void **state)
{
    (void)state;
    struct bench b;
    struct checkpoint checkpoint;
    uint8_t more[64];
    open_bench(&b);
    fill(&b);
    write_checkpoint(&b);
    assert_int_equal(checkpoint_open(&checkpoint, b.path, &world), OK);
    assert_int_equal(checkpoint_state(&checkpoint, &world, more, b.n_state + 1), BAD_DATA);
    fail_clear();
    assert_int_equal(checkpoint_state(&checkpoint, &world, NULL, 0), OK);
    checkpoint_close(&checkpoint);
    close_bench(&b);
}

/* Impossible numbers under a correct digest. */
static void test_impossible_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t value;
        const char *sentence;
    } changes[] = {
        {"students", -1, "is impossible"},
        {"students", INT64_MAX, "is impossible"},
        {"epoch", -7, "is impossible"},
        {"step", INT64_MIN, "is impossible"},
        {"all_steps", INT64_MAX, "is impossible"},
        {"loss", INT64_MIN, "is impossible"},
    };
    struct bench b;
    open_bench(&b);
    fill(&b);
    for (size_t c = 0; c < COUNT(changes); c++) {
        write_checkpoint(&b);
        if (world.rank == 0) {
            hid_t file = H5Fopen(b.path, H5F_ACC_RDWR, H5P_DEFAULT);
            assert_true(H5Adelete(file, changes[c].name) >= 0);
            tiny_must(h5_write_integer(file, changes[c].name, changes[c].value));
            assert_true(H5Fclose(file) >= 0);
            char *bytes = NULL, text[512];
            size_t n_bytes = 0;
            tiny_must(file_read(b.path, &bytes, &n_bytes));
            const XXH128_hash_t hash = XXH3_128bits(bytes + 512, n_bytes - 512);
            const int n = snprintf(
                text, sizeof text,
                "cohort checkpoint\nxxh3-128 %016llx%016llx of the %zu bytes that "
                "follow\n",
                (unsigned long long)hash.high64, (unsigned long long)hash.low64, n_bytes - 512);
            memset(bytes, '\n', 512);
            memcpy(bytes, text, (size_t)n);
            tiny_must(atomic_file_write(b.path, bytes, n_bytes));
            memory_free(bytes);
        }
        comm_barrier(&world);
        struct checkpoint checkpoint;
        assert_int_equal(checkpoint_open(&checkpoint, b.path, &world), BAD_DATA);
        if (strstr(fail_sentence(), changes[c].sentence) == NULL)
            fail_msg("%s: %s", changes[c].name, fail_sentence());
        fail_clear();
        comm_barrier(&world);
    }
    close_bench(&b);
}

/* Settings that ask for more parameters than the file has: nothing is allocated for them. */
static void test_more_parameters_than_the_file_has(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b);
    write_checkpoint(&b);
    struct checkpoint checkpoint;
    tiny_must(checkpoint_open(&checkpoint, b.path, &world));
    memory_free(checkpoint.config);
    checkpoint.config = memory_text("[model]\nkind = rbm\nhidden = 4096\n");
    struct config *config = config_create();
    struct model *model = NULL;
    assert_int_equal(checkpoint_model(&checkpoint, &world, config, NULL, &model), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), "only large enough for"));
    fail_clear();
    assert_null(model);
    config_destroy(config);
    checkpoint_close(&checkpoint);
    close_bench(&b);
}

static void test_missing_file(void **state)
{
    (void)state;
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_open(&checkpoint, "/nowhere/last.h5", &world), BAD_USER);
    assert_non_null(strstr(fail_sentence(), "/nowhere/last.h5"));
    fail_clear();
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_invalid_items),
        cmocka_unit_test(test_nan_parameters),
        cmocka_unit_test(test_state_of_the_optimizer),
        cmocka_unit_test(test_state_of_students),
        cmocka_unit_test(test_impossible_numbers),
        cmocka_unit_test(test_more_parameters_than_the_file_has),
        cmocka_unit_test(test_missing_file),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
