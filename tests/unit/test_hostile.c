/* ranks: 1 2 3 */
/* Malicious data sets: attributes larger than their buffers, arrays that do not fit together,
 * links to and data in other files, shapes without data, changed content. All ranks together
 * refuse each with an error message, before any training. */
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/h5.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct comm world;

enum { N_STUDENTS = 40, N_ITEMS = 9 };

static void open_class(struct tiny *class)
{
    tiny_begin(class, N_ITEMS, true);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 14, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, s % 4 == 0 ? 0 : s % 17, 6);
    }
    tiny_finish(class, &world);
}

/* The replacement of an array. */
static void replace(hid_t file, const char *name, hid_t type, hid_t creation, hsize_t n,
                    hid_t memory, const void *values)
{
    hid_t space = H5Screate_simple(1, &n, NULL);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(array >= 0);
    if (values != NULL)
        assert_true(H5Dwrite(array, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(array);
    H5Sclose(space);
}

/* One number of an array. */
static void poke(hid_t file, const char *name, hsize_t place, uint64_t value)
{
    const hsize_t one = 1;
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT), all = H5Dget_space(array);
    hid_t part = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(all, H5S_SELECT_SET, &place, NULL, &one, NULL);
    assert_true(H5Dwrite(array, H5T_NATIVE_UINT64, part, all, H5P_DEFAULT, &value) >= 0);
    H5Sclose(part);
    H5Sclose(all);
    H5Dclose(array);
}

static uint64_t peek(hid_t file, const char *name, uint64_t place)
{
    uint64_t value = 0;
    tiny_must(h5_read_range(file, name, H5T_NATIVE_UINT64, place, 1, &value, NULL));
    return value;
}

static void attribute(hid_t file, const char *name, hid_t type, hsize_t n, const void *values)
{
    hid_t space = H5Screate_simple(1, &n, NULL);
    H5Adelete(file, name);
    hid_t id = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, type, values) >= 0);
    H5Aclose(id);
    H5Sclose(space);
}

static const int64_t many[1000] = {1, 1, 1};

static void long_attribute(hid_t file, uint64_t n)
{
    (void)n;
    attribute(file, "withheld", H5T_STD_I64LE, COUNT(many), many);
}

static void text_for_a_number(hid_t file, uint64_t n)
{
    (void)n;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 4000);
    attribute(file, "version", type, 2, many);
    H5Tclose(type);
}

static void text_in_the_heap(hid_t file, uint64_t n)
{
    (void)n;
    const char *text = "cohort data set";
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    attribute(file, "format", type, 1, &text);
    H5Tclose(type);
}

static void many_texts(hid_t file, uint64_t n)
{
    (void)n;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 16);
    attribute(file, "format", type, 400, many);
    H5Tclose(type);
}

static void short_marks(hid_t file, uint64_t n)
{
    uint8_t marks[4096] = {0};
    replace(file, "/attempts/mark", H5T_STD_U8LE, H5P_DEFAULT, n / 2, H5T_NATIVE_UINT8, marks);
}

static void long_marks(hid_t file, uint64_t n)
{
    uint8_t marks[4096] = {0};
    replace(file, "/attempts/mark", H5T_STD_U8LE, H5P_DEFAULT, n + 1, H5T_NATIVE_UINT8, marks);
}

static void marks_in_two_dimensions(hid_t file, uint64_t n)
{
    const hsize_t size[2] = {n, 1};
    hid_t space = H5Screate_simple(2, size, NULL);
    H5Ldelete(file, "/attempts/mark", H5P_DEFAULT);
    uint8_t marks[4096] = {0};
    hid_t array = H5Dcreate2(file, "/attempts/mark", H5T_STD_U8LE, space, H5P_DEFAULT,
                             H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(array, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, marks);
    H5Dclose(array);
    H5Sclose(space);
}

static void fractions_for_items(hid_t file, uint64_t n)
{
    const double items[4096] = {0.5};
    replace(file, "/attempts/item", H5T_IEEE_F64LE, H5P_DEFAULT, n, H5T_NATIVE_DOUBLE, items);
}

static void a_named_type(hid_t file, uint64_t n)
{
    uint8_t marks[4096] = {0};
    hid_t type = H5Tcopy(H5T_STD_U8LE);
    H5Tcommit2(file, "/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    replace(file, "/attempts/mark", type, H5P_DEFAULT, n, H5T_NATIVE_UINT8, marks);
    H5Tclose(type);
}

static void numbers_elsewhere(hid_t file, uint64_t n)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, n);
    replace(file, "/attempts/mark", H5T_STD_U8LE, creation, n, H5T_NATIVE_UINT8, NULL);
    H5Pclose(creation);
}

static void virtual_marks(hid_t file, uint64_t n)
{
    const hsize_t size = n;
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &size, NULL);
    H5Pset_virtual(creation, space, "other.h5", "/attempts/mark", space);
    replace(file, "/attempts/mark", H5T_STD_U8LE, creation, n, H5T_NATIVE_UINT8, NULL);
    H5Sclose(space);
    H5Pclose(creation);
}

static void a_filter(hid_t file, uint64_t n)
{
    const hsize_t size = n;
    uint8_t marks[4096] = {0};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &size);
    H5Pset_shuffle(creation);
    replace(file, "/attempts/mark", H5T_STD_U8LE, creation, n, H5T_NATIVE_UINT8, marks);
    H5Pclose(creation);
}

static void a_soft_link(hid_t file, uint64_t n)
{
    (void)n;
    H5Lmove(file, "/items/group", H5L_SAME_LOC, "/group", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/group", file, "/items/group", H5P_DEFAULT, H5P_DEFAULT);
}

static void an_external_link(hid_t file, uint64_t n)
{
    (void)n;
    H5Ldelete(file, "/skills", H5P_DEFAULT);
    H5Lcreate_external("/dev/stdin", "/skills", file, "/skills", H5P_DEFAULT, H5P_DEFAULT);
}

static void a_shape_without_numbers(hid_t file, uint64_t n)
{
    (void)n;
    const hsize_t chunk = 1 << 16;
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    replace(file, "/attempts/item", H5T_STD_U32LE, creation, (hsize_t)1 << 58,
            H5T_NATIVE_UINT32, NULL);
    H5Pclose(creation);
}

static void no_offsets(hid_t file, uint64_t n)
{
    (void)n;
    replace(file, "/students/names_first", H5T_STD_U64LE, H5P_DEFAULT, 0, H5T_NATIVE_UINT64,
            NULL);
}

static void no_offsets_of_items(hid_t file, uint64_t n)
{
    (void)n;
    replace(file, "/items/names_first", H5T_STD_U64LE, H5P_DEFAULT, 0, H5T_NATIVE_UINT64, NULL);
}

static void offset_behind_the_names(hid_t file, uint64_t n)
{
    (void)n;
    poke(file, "/students/names_first", N_STUDENTS, 1 << 20);
}

static void first_name_from_nowhere(hid_t file, uint64_t n)
{
    (void)n;
    poke(file, "/items/names_first", 0, (uint64_t)1 << 60);
}

static void skills_from_nowhere(hid_t file, uint64_t n)
{
    (void)n;
    poke(file, "/items/skill_first", 0, 1);
}

static void another_outcome(hid_t file, uint64_t n)
{
    const uint64_t mark = peek(file, "/attempts/mark", n - 1);
    poke(file, "/attempts/mark", n - 1, (mark & ~3u) | (mark & 1 ? INCORRECT : CORRECT));
}

static void another_item(hid_t file, uint64_t n)
{
    const uint64_t item = peek(file, "/attempts/item", n / 2);
    poke(file, "/attempts/item", n / 2, (item + 1) % N_ITEMS);
}

static void another_length(hid_t file, uint64_t n)
{
    (void)n;
    poke(file, "/students/first", 3, peek(file, "/students/first", 3) - 1);
}

static void another_split(hid_t file, uint64_t n)
{
    (void)n;
    const int64_t no = 0;
    attribute(file, "withheld", H5T_STD_I64LE, 1, &no);
}

static void another_digest(hid_t file, uint64_t n)
{
    (void)n;
    poke(file, "/digests/attempts", 1, 7);
}

static const struct {
    void (*spoil)(hid_t file, uint64_t n_attempts);
    const char *sentence;
} harms[] = {
    {long_attribute, "attribute withheld is missing or damaged"},
    {text_for_a_number, "attribute version is missing or damaged"},
    {text_in_the_heap, "not a cohort data set"},
    {many_texts, "not a cohort data set"},
    {short_marks, "/attempts/mark has"},
    {long_marks, "/attempts/mark has"},
    {marks_in_two_dimensions, "/attempts/mark has an unexpected shape"},
    {fractions_for_items, "/attempts/item"},
    {a_named_type, "/attempts/mark does not hold plain numbers"},
    {numbers_elsewhere, "/attempts/mark has its numbers in other files"},
    {virtual_marks, "/attempts/mark is a virtual data set"},
    {a_filter, "/attempts/mark is stored with a filter"},
    {a_soft_link, "/items/group is a link"},
    {an_external_link, "is a link"},
    {a_shape_without_numbers, "/attempts/item claims more numbers"},
    {no_offsets, "/students/names_first"},
    {no_offsets_of_items, "names in /items are damaged"},
    {offset_behind_the_names, "names in /students are damaged"},
    {first_name_from_nowhere, "names in /items are damaged"},
    {skills_from_nowhere, "/items/skill_first is wrong at item"},
    {another_outcome, "do not match their stored digest"},
    {another_item, "do not match their stored digest"},
    {another_length, "but "},
    {another_split, "is damaged or was changed"},
    {another_digest, "is damaged or was changed"},
};

/* Each rank opens the file and reads its part, as in training. */
static enum status read_part(const char *path)
{
    struct dataset dataset;
    struct shard shard;
    TRY(dataset_open(&dataset, path, &world));
    const size_t rank = (size_t)world.rank, n_ranks = (size_t)world.size;
    const size_t first = dataset_cut(&dataset, rank, n_ranks);
    enum status status =
        dataset_read(&dataset, first, dataset_cut(&dataset, rank + 1, n_ranks) - first, &shard);
    if (status == OK)
        shard_free(&shard);
    dataset_close(&dataset);
    return status;
}

/* Rank 0: a copy of the class, open for changes. */
static hid_t open_copy(const struct tiny *class, const char *path)
{
    char *bytes = NULL;
    size_t n_bytes = 0;
    tiny_must(file_read(class->path, &bytes, &n_bytes));
    tiny_must(atomic_file_write(path, bytes, n_bytes));
    memory_free(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void test_malicious_changes(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    char path[600];
    snprintf(path, sizeof path, "%s.spoilt", class.path);
    for (size_t h = 0; h < COUNT(harms); h++) {
        if (world.rank == 0) {
            hid_t file = open_copy(&class, path);
            harms[h].spoil(file, class.n_attempts);
            assert_true(H5Fclose(file) >= 0);
        }
        comm_barrier(&world);
        const enum status status = read_part(path);
        if (status != BAD_DATA || strstr(fail_sentence(), path) == NULL ||
            strstr(fail_sentence(), harms[h].sentence) == NULL)
            fail_msg("harm %zu (%s): status %d, '%s'", h, harms[h].sentence, (int)status,
                     fail_sentence());
        fail_clear();
        comm_barrier(&world);
    }
    if (world.rank == 0) {
        fail_clear();
        unlink(path);
    }
    tiny_close(&class);
}

/* Student names are read separately. */
static void test_malicious_names(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    static const struct {
        const char *name;
        uint64_t place, value;
    } changes[] = {
        {"/students/names", 3, 'x'},
        {"/students/names_first", 5, 0},
        {"/students/names_first", 5, (uint64_t)1 << 50},
        {"/students/names_first", 0, (uint64_t)1 << 50},
        {"/students/names_first", 0, 4},
    };
    char path[600];
    snprintf(path, sizeof path, "%s.spoilt", class.path);
    for (size_t c = 0; world.rank == 0 && c < COUNT(changes); c++) {
        hid_t file = open_copy(&class, path);
        poke(file, changes[c].name, changes[c].place, changes[c].value);
        assert_true(H5Fclose(file) >= 0);
        const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
        struct dataset dataset;
        struct names names;
        tiny_must(dataset_open(&dataset, path, &self));
        assert_int_equal(dataset_read_names(&dataset, 3, 9, &names), BAD_DATA);
        assert_null(names.bytes);
        fail_clear();
        dataset_close(&dataset);
        assert_int_equal(dataset_verify(path, NULL), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), path));
        fail_clear();
        unlink(path);
    }
    tiny_close(&class);
}

static void negate_b(hid_t file)
{
    static const double b[] = {-1, 2, -3};
    replace(file, "/truth/b", H5T_IEEE_F64LE, H5P_DEFAULT, COUNT(b), H5T_NATIVE_DOUBLE, b);
}

static void remove_b(hid_t file)
{
    H5Ldelete(file, "/truth/b", H5P_DEFAULT);
}

static void remove_truth(hid_t file)
{
    H5Ldelete(file, "/truth", H5P_DEFAULT);
}

static void rename_b(hid_t file)
{
    H5Lmove(file, "/truth/b", file, "/truth/c", H5P_DEFAULT, H5P_DEFAULT);
}

static void change_truth_digest(hid_t file)
{
    H5Adelete(file, "truth_digest");
    tiny_must(h5_write_text(file, "truth_digest", "0123"));
}

static void remove_truth_digest(hid_t file)
{
    H5Adelete(file, "truth_digest");
}

/* What no model sees has a digest of its own, and the digest of the data set stays. */
static void test_truth(void **state)
{
    (void)state;
    static const double a[] = {1, 1, 1, 1}, b[] = {1, -2, 3};
    static const struct truth truths[] = {{"b", 1, {3}, b}, {"a", 2, {2, 2}, a}};
    static void (*const spoil[])(hid_t) = {negate_b, remove_b, remove_truth, rename_b,
                                           change_truth_digest};
    struct tiny class;
    open_class(&class);
    char path[600], digest[33];
    snprintf(path, sizeof path, "%s.spoilt", class.path);
    memcpy(digest, class.draft.head.digest, sizeof digest);
    for (size_t s = 0; world.rank == 0 && s <= COUNT(spoil); s++) {
        class.draft.truths = truths;
        class.draft.n_truths = COUNT(truths);
        tiny_must(dataset_write(&class.draft, path));
        assert_string_equal(class.draft.head.digest, digest);
        const char *note = "";
        tiny_must(dataset_verify(path, &note));
        assert_null(note);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(file >= 0);
        if (s < COUNT(spoil))
            spoil[s](file);
        else
            remove_truth_digest(file); /* as in earlier versions */
        assert_true(H5Fclose(file) >= 0);
        const enum status status = dataset_verify(path, &note);
        assert_int_equal(status, s < COUNT(spoil) ? BAD_DATA : OK);
        if (status == OK)
            assert_non_null(strstr(note, "/truth"));
        else
            assert_non_null(strstr(fail_sentence(), "/truth does not match its stored digest"));
        fail_clear();
        unlink(path);
    }
    tiny_close(&class);
}

/* A change is detected by the rank that reads its piece of 64 Ki attempts, and only then;
 * wherever the ranks' ranges begin and end. */
static void test_change_is_found_in_its_piece(void **state)
{
    (void)state;
    enum { N = 170, LENGTH = 1000, CHANGED = 100000 };
    struct tiny class;
    tiny_begin(&class, N_ITEMS, false);
    for (uint32_t s = 0; s < N; s++) {
        tiny_student(&class);
        for (uint32_t t = 0; t < LENGTH; t++)
            tiny_attempt(&class, (s + t) % N_ITEMS,
                         mark_make((s * t) % 2 ? CORRECT : INCORRECT, TRAIN, true, true));
    }
    tiny_finish(&class, &world);
    char path[600];
    snprintf(path, sizeof path, "%s.spoilt", class.path);
    for (int changed = 0; changed < 2; changed++) {
        if (world.rank == 0) {
            hid_t file = open_copy(&class, path);
            if (changed)
                poke(file, "/attempts/mark", CHANGED, class.mark[CHANGED] ^ 1);
            H5Fclose(file);
        }
        comm_barrier(&world);
        assert_int_equal(read_part(path), changed ? BAD_DATA : OK);
        if (changed)
            assert_non_null(strstr(fail_sentence(), "attempts 65536 to 131071 do not match"));
        fail_clear();
        struct dataset dataset;
        tiny_must(dataset_open(&dataset, path, &world));
        for (size_t first = 0; first + 5 <= N; first += 7) {
            struct shard shard;
            const size_t end = first + 5;
            const bool hit =
                changed && first * LENGTH < 2 << 16 && end * LENGTH > (size_t)1 << 16;
            const enum status status = dataset_read(&dataset, first, 5, &shard);
            assert_int_equal(status, hit ? BAD_DATA : OK);
            if (status == OK) {
                assert_memory_equal(shard.item, class.item + first * LENGTH,
                                    5 * LENGTH * sizeof *shard.item);
                assert_memory_equal(shard.mark, class.mark + first * LENGTH, 5 * LENGTH);
                shard_free(&shard);
            }
            fail_clear();
        }
        dataset_close(&dataset);
        comm_barrier(&world);
    }
    if (world.rank == 0)
        unlink(path);
    tiny_close(&class);
}

/* Opening a pipe would block until there is a writer. */
static void test_pipe_is_refused(void **state)
{
    (void)state;
    char *path = memory_text("%s/cohort.pipe.%d", "/tmp", (int)getpid());
    comm_broadcast(&world, path, strlen(path) + 1, 0);
    if (world.rank == 0)
        assert_int_equal(mkfifo(path, 0600), 0);
    comm_barrier(&world);
    assert_int_equal(read_part(path), BAD_USER);
    assert_non_null(strstr(fail_sentence(), path));
    fail_clear();
    comm_barrier(&world);
    if (world.rank == 0)
        unlink(path);
    memory_free(path);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malicious_changes),
        cmocka_unit_test(test_malicious_names),
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_change_is_found_in_its_piece),
        cmocka_unit_test(test_pipe_is_refused),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
