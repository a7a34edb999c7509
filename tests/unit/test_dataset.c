/* ranks: 1 2 3 5 */
/* Data sets: they read back the same on any number of ranks; damage is detected; items are
 * mapped to a model's items. */
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/h5.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;

enum { N_STUDENTS = 61, N_ITEMS = 9 };

static void open_class(struct tiny *class)
{
    tiny_begin(class, N_ITEMS, true);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 14, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, s % 4 == 0 ? 0 : s % 17, 6);
    }
    class->draft.head.item_group[2] = -1;
    tiny_finish(class, &world);
}

static void expect_same_names(const struct names *a, const struct names *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        assert_string_equal(names_get(a, i), names_get(b, i));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    const struct dataset *head = &class.draft.head, *got = &class.dataset;
    assert_int_equal(got->n_students, N_STUDENTS);
    assert_int_equal(got->n_attempts, class.n_attempts);
    assert_true(got->withheld && !got->has_time);
    assert_string_equal(got->source, "a test");
    assert_string_equal(got->digest, head->digest[0] ? head->digest : got->digest);
    expect_same_names(&got->items, &head->items);
    expect_same_names(&got->skills, &head->skills);
    expect_same_names(&got->groups, &head->groups);
    assert_memory_equal(got->first, class.first, (N_STUDENTS + 1) * sizeof *got->first);
    assert_memory_equal(got->item_first, head->item_first, (N_ITEMS + 1) * sizeof(uint64_t));
    assert_memory_equal(got->item_skills, head->item_skills, N_ITEMS * sizeof(uint32_t));
    assert_memory_equal(got->item_group, head->item_group, N_ITEMS * sizeof(int32_t));
    assert_memory_equal(class.shard.item, class.item, class.n_attempts * sizeof(uint32_t));
    assert_memory_equal(class.shard.mark, class.mark, class.n_attempts);
    assert_null(class.shard.time);
    if (world.rank == 0)
        assert_int_equal(dataset_verify(class.path, NULL), OK);
    tiny_close(&class);
}

/* Every rank reads its own range, which may be empty. */
static void test_ranges(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (int round = 0; round < 6; round++) {
        const struct rng rng = {
            .seed = 3, .part = (uint32_t)round, .who = (uint32_t)world.rank};
        const size_t first = (size_t)rng_below(&rng, 0, N_STUDENTS + 1);
        const size_t n = round == 0 ? 0 : (size_t)rng_below(&rng, 1, N_STUDENTS + 1 - first);
        struct shard shard;
        struct names names;
        tiny_must(dataset_read(&class.dataset, first, n, &shard));
        assert_int_equal(shard.n_attempts, class.first[first + n] - class.first[first]);
        assert_int_equal(shard.first[0], 0);
        for (size_t s = 0; s < n; s++)
            assert_int_equal(shard.first[s + 1] - shard.first[s],
                             class.first[first + s + 1] - class.first[first + s]);
        assert_memory_equal(shard.item, class.item + class.first[first],
                            shard.n_attempts * sizeof(uint32_t));
        assert_memory_equal(shard.mark, class.mark + class.first[first], shard.n_attempts);
        shard_free(&shard);
        tiny_must(dataset_read_names(&class.dataset, first, n, &names));
        assert_int_equal(names.n, n);
        for (size_t s = 0; s < n; s++)
            assert_string_equal(names_get(&names, s),
                                names_get(&class.draft.students, first + s));
        names_free(&names);
    }
    tiny_close(&class);
}

static void test_cuts(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (size_t n = 1; n < 2 * N_STUDENTS; n++) {
        size_t last = 0;
        assert_int_equal(dataset_cut(&class.dataset, 0, n), 0);
        assert_int_equal(dataset_cut(&class.dataset, n, n), N_STUDENTS);
        for (size_t w = 1; w <= n; w++) {
            const size_t cut = dataset_cut(&class.dataset, w, n);
            assert_true(cut >= last);
            const double attempts = (double)(class.first[cut] - class.first[last]);
            assert_true(attempts <= (double)class.n_attempts / (double)n + 17);
            last = cut;
        }
    }
    tiny_close(&class);
}

/* The digest covers the content: the same in another file, different when anything differs. */
static void test_digest(void **state)
{
    (void)state;
    struct tiny class, other;
    open_class(&class);
    open_class(&other);
    assert_string_not_equal(class.path, other.path);
    assert_string_equal(class.dataset.digest, other.dataset.digest);
    assert_int_equal(strlen(class.dataset.digest), 32);
    if (world.rank == 0) {
        char *bytes[2];
        size_t n_bytes[2];
        tiny_must(file_read(class.path, &bytes[0], &n_bytes[0]));
        tiny_must(file_read(other.path, &bytes[1], &n_bytes[1]));
        assert_int_equal(n_bytes[0], n_bytes[1]);
        assert_memory_equal(bytes[0], bytes[1], n_bytes[0]);
        memory_free(bytes[0]);
        memory_free(bytes[1]);
        for (int change = 0; change < 5; change++) {
            struct dataset *head = &other.draft.head;
            switch (change) {
            case 0:
                other.mark[3] ^= MARK_STEP;
                break;
            case 1:
                other.item[3] = (other.item[3] + 1) % N_ITEMS;
                break;
            case 2:
                other.draft.students.bytes[3] ^= 1;
                break;
            case 3:
                head->item_skills[1] ^= 1;
                break;
            case 4:
                head->item_group[1] = -1;
                break;
            }
            char before[33];
            memcpy(before, head->digest, sizeof before);
            tiny_must(dataset_write(&other.draft, other.path));
            assert_string_not_equal(head->digest, before);
            assert_int_equal(dataset_verify(other.path, NULL), OK);
        }
    }
    tiny_close(&class);
    tiny_close(&other);
}

/* Open and read a file that may be damaged. */
static enum status try_file(const char *path, const struct tiny *class, bool *same)
{
    struct dataset dataset;
    TRY(dataset_open(&dataset, path, &world));
    struct shard shard;
    enum status status = dataset_read(&dataset, 0, dataset.n_students, &shard);
    if (status == OK) {
        *same = dataset.n_students == N_STUDENTS && dataset.n_attempts == class->n_attempts &&
                dataset.withheld && !dataset.has_time &&
                memcmp(shard.item, class->item, class->n_attempts * sizeof(uint32_t)) == 0 &&
                memcmp(shard.mark, class->mark, class->n_attempts) == 0 &&
                memcmp(dataset.item_skills, class->draft.head.item_skills,
                       N_ITEMS * sizeof(uint32_t)) == 0 &&
                memcmp(dataset.item_group, class->draft.head.item_group,
                       N_ITEMS * sizeof(int32_t)) == 0 &&
                strcmp(names_get(&dataset.items, 3), "item 3") == 0;
        shard_free(&shard);
    }
    dataset_close(&dataset);
    return status;
}

/* A file with a flipped bit, or a truncated one, is refused with a message that names it; none
 * of it is misread. */
static void test_damage(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    char *bytes = NULL, path[600];
    size_t n_bytes = 0;
    snprintf(path, sizeof path, "%s.damaged", class.path);
    if (world.rank == 0)
        tiny_must(file_read(class.path, &bytes, &n_bytes));
    comm_broadcast(&world, &n_bytes, sizeof n_bytes, 0);
    const struct rng rng = {.seed = 2, .purpose = RNG_SIMULATE};
    const int n_flips = getenv("COHORT_QUICK") ? 60 : 400;
    int n_noticed = 0;
    for (int round = 0; round < n_flips + 20; round++) {
        const size_t place = (size_t)rng_below(&rng, (uint32_t)round, n_bytes);
        const bool flip = round < n_flips;
        if (world.rank == 0) {
            bytes[place] ^= (char)(1 << round % 8);
            tiny_must(atomic_file_write(path, bytes, flip ? n_bytes : place));
            bytes[place] ^= (char)(1 << round % 8);
        }
        comm_barrier(&world);
        bool same = false;
        fail_clear();
        const enum status status = try_file(path, &class, &same);
        if (status == OK && !same)
            fail_msg("byte %zu, bit %d: the damage was not detected", place, round % 8);
        if (status != OK) {
            assert_int_equal(status, BAD_DATA);
            assert_non_null(strstr(fail_sentence(), path));
            n_noticed++;
        }
        if (!flip)
            assert_int_equal(status, BAD_DATA);
        comm_barrier(&world);
    }
    fail_clear();
    assert_true(n_noticed > n_flips / 10);
    if (world.rank == 0)
        unlink(path);
    memory_free(bytes);
    tiny_close(&class);
}

static void test_files_that_are_not_data_sets(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    bool same;
    char path[600];
    snprintf(path, sizeof path, "%s.text", class.path);
    assert_int_equal(try_file(path, &class, &same), BAD_USER); /* missing */
    assert_non_null(strstr(fail_sentence(), path));
    if (world.rank == 0)
        tiny_must(atomic_file_write(path, "student,item,outcome\n", 21));
    comm_barrier(&world);
    fail_clear();
    assert_int_equal(try_file(path, &class, &same), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), path));
    comm_barrier(&world);
    if (world.rank == 0)
        tiny_must(atomic_file_write(path, "", 0));
    comm_barrier(&world);
    fail_clear();
    assert_int_equal(try_file(path, &class, &same), BAD_DATA);
    comm_barrier(&world);
    if (world.rank == 0) { /* an HDF5 file of another program */
        hid_t file = h5_create(path);
        assert_true(file >= 0);
        tiny_must(h5_write_text(file, "format", "something else"));
        tiny_must(h5_close(file, path));
    }
    comm_barrier(&world);
    fail_clear();
    assert_int_equal(try_file(path, &class, &same), BAD_DATA);
    assert_non_null(strstr(fail_sentence(), "not a cohort data set"));
    fail_clear();
    comm_barrier(&world);
    if (world.rank == 0)
        unlink(path);
    tiny_close(&class);
}

/* Map to a model that was stored with the names of its items and skills only. */
static enum status follow(struct dataset *dataset, const struct names *items,
                          const struct names *skills, const struct covariates *covariates)
{
    const struct names none = {0};
    const struct item_table known = {.items = items, .skills = skills, .groups = &none};
    return dataset_renumber(dataset, &known, covariates);
}

/* The model has the items in another order, and some more: attempts and tables are
 * renumbered. */
static void test_map_items_to_model(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    struct names items = {0};
    static const uint32_t order[] = {4, 11, 2, 0, 8, 1, 3, 7, 10, 6, 5, 9}; /* 9.. are new */
    uint32_t place[COUNT(order)];
    for (uint32_t i = 0; i < COUNT(order); i++) {
        char name[32];
        snprintf(name, sizeof name, "item %u", order[i]);
        names_add(&items, name, strlen(name));
        place[order[i]] = i;
    }
    struct dataset dataset;
    struct shard shard;
    tiny_must(dataset_open(&dataset, class.path, &world));
    tiny_must(follow(&dataset, &items, &class.dataset.skills, &class.dataset.covariates));
    assert_int_equal(dataset.n_items, COUNT(order));
    expect_same_names(&dataset.items, &items);
    tiny_must(dataset_read(&dataset, 0, N_STUDENTS, &shard));
    for (size_t t = 0; t < class.n_attempts; t++)
        assert_int_equal(shard.item[t], place[class.item[t]]);
    for (uint32_t i = 0; i < COUNT(order); i++) {
        const uint64_t n = dataset.item_first[place[i] + 1] - dataset.item_first[place[i]];
        assert_int_equal(n, i < N_ITEMS ? 1 : 0);
        assert_int_equal(dataset.item_group[place[i]],
                         i < N_ITEMS ? class.draft.head.item_group[i] : -1);
        if (i < N_ITEMS)
            assert_int_equal(dataset.item_skills[dataset.item_first[place[i]]], i % 2);
    }
    shard_free(&shard);
    dataset_close(&dataset);

    struct names skills = {0}; /* another order, and one skill unknown to the model */
    names_add(&skills, "new", 3);
    names_add(&skills, "odd", 3);
    tiny_must(dataset_open(&dataset, class.path, &world));
    tiny_must(follow(&dataset, &class.dataset.items, &skills, &class.dataset.covariates));
    assert_int_equal(dataset.n_skills, 2);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        assert_int_equal(dataset.item_first[i + 1] - dataset.item_first[i], i % 2);
        if (i % 2 == 1)
            assert_int_equal(dataset.item_skills[dataset.item_first[i]], 1);
    }
    dataset_close(&dataset);
    names_free(&skills);

    tiny_must(dataset_open(&dataset, class.path, &world)); /* its own items: nothing changes */
    tiny_must(follow(&dataset, &class.dataset.items, &class.dataset.skills,
                     &class.dataset.covariates));
    assert_int_equal(dataset.n_items, N_ITEMS);
    dataset_close(&dataset);

    names_free(&items); /* one item is missing */
    for (int i = 0; i < N_ITEMS; i++)
        if (i != 5) {
            char name[32];
            snprintf(name, sizeof name, "item %d", i);
            names_add(&items, name, strlen(name));
        }
    tiny_must(dataset_open(&dataset, class.path, &world));
    assert_int_equal(follow(&dataset, &items, &class.dataset.skills, &class.dataset.covariates),
                     BAD_USER);
    assert_non_null(strstr(fail_sentence(), "'item 5'"));
    fail_clear();
    dataset_close(&dataset);
    names_free(&items);
    tiny_close(&class);
}

static void add_names(struct names *names, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        names_add(names, list[i], strlen(list[i]));
}

/* Open a data set for a model with this table of items. */
static void follow_table(struct dataset *dataset, const char *path,
                         const struct item_table *known)
{
    const struct covariates none = {0};
    tiny_must(dataset_open(dataset, path, &world));
    tiny_must(dataset_renumber(dataset, known, &none));
}

/* Skills and groups come from the model, by name; contradictions in the file are recorded. */
static void test_map_skills_and_groups_to_model(void **state)
{
    (void)state;
    struct tiny class, bare;
    open_class(&class);
    tiny_begin(&bare, 3, false); /* without skills and groups */
    memset(bare.draft.head.item_first, 0, 4 * sizeof(uint64_t));
    memset(bare.draft.head.item_group, 0xff, 3 * sizeof(int32_t));
    bare.draft.head.n_skills = bare.draft.head.n_groups = 0;
    names_free(&bare.draft.head.skills);
    names_free(&bare.draft.head.groups);
    tiny_text(&bare, "a1 b0 c1");
    tiny_finish(&bare, &world);

    /* items 8 .. 0, then one that is not in the data; skills and groups in reverse order */
    enum { N = N_ITEMS + 1 };
    struct names items = {0}, skills = {0}, groups = {0};
    add_names(&skills, (const char *[]){"odd", "even"}, 2);
    add_names(&groups, (const char *[]){"none", "all"}, 2);
    uint64_t first[N + 1] = {0};
    uint32_t skill[N + 1];
    int32_t group[N];
    for (uint32_t i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "item %u", i < N_ITEMS ? N_ITEMS - 1 - i : i);
        names_add(&items, name, strlen(name));
        first[i + 1] = i + 1;
        skill[i] = (N_ITEMS - 1 - i) % 2 == 1 ? 0 : 1;
        group[i] = i < N_ITEMS && class.draft.head.item_group[N_ITEMS - 1 - i] < 0 ? -1 : 1;
    }
    skill[N] = 1;
    struct item_table known = {&items, &skills, &groups, first, skill, group};
    struct dataset dataset;
    const char *const paths[] = {class.path, bare.path};
    for (size_t p = 0; p < COUNT(paths); p++) {
        follow_table(&dataset, paths[p], &known);
        assert_null(dataset.other_skills);
        assert_null(dataset.other_groups);
        assert_int_equal(dataset.n_skills, 2);
        assert_int_equal(dataset.n_groups, 2);
        expect_same_names(&dataset.skills, &skills);
        expect_same_names(&dataset.groups, &groups);
        assert_memory_equal(dataset.item_first, first, sizeof first);
        assert_memory_equal(dataset.item_skills, skill, N * sizeof *skill);
        assert_memory_equal(dataset.item_group, group, sizeof group);
        dataset_close(&dataset);
    }

    skill[N_ITEMS - 1 - 4] = 0; /* item 4 is odd to the model */
    follow_table(&dataset, class.path, &known);
    assert_non_null(strstr(dataset.other_skills,
                           "item 'item 4' has skills 'even', but 'odd' in the model's"));
    assert_null(dataset.other_groups);
    dataset_close(&dataset);
    follow_table(&dataset, bare.path, &known);
    assert_null(dataset.other_skills);
    dataset_close(&dataset);

    skill[N_ITEMS - 1 - 4] = 1;
    for (size_t i = N_ITEMS - 1 - 2; i < N; i++) /* item 2 has both: they move up by one */
        first[i + 1]++;
    for (size_t j = N; j > N_ITEMS - 1 - 2; j--)
        skill[j] = skill[j - 1];
    skill[N_ITEMS - 1 - 2] = 0;
    follow_table(&dataset, class.path, &known);
    assert_non_null(strstr(dataset.other_skills,
                           "item 'item 2' has skills 'even', but 'odd', 'even' in the"));
    dataset_close(&dataset);

    for (size_t i = 0; i < N; i++)
        group[i] = 0;
    follow_table(&dataset, class.path, &known);
    assert_non_null(
        strstr(dataset.other_groups, "is in group 'all', but in 'none' in the model's"));
    assert_int_equal(dataset.n_groups, 1); /* the file's own */
    dataset_close(&dataset);
    names_free(&items);
    names_free(&skills);
    names_free(&groups);
    tiny_close(&bare);
    tiny_close(&class);
}

/* Levels of a factor by a model's numbers: known levels are renumbered, unknown ones become
 * none, and a level number out of range is damage. */
static void test_levels(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 3, false);
    struct names own = {0}, others = {0};
    static const char *const names[] = {"a", "b", "c"};
    for (size_t l = 0; l < COUNT(names); l++)
        names_add(&own, names[l], 1);
    covariates_add(&class.draft.head.covariates, "load", NULL);
    covariates_add(&class.draft.head.covariates, "teacher", &own);
    for (int s = 0; s < 5; s++)
        tiny_text(&class, "a1 b0 c1 b1");
    class.covariate = NEW(double, 2 * class.n_attempts);
    for (size_t t = 0; t < class.n_attempts; t++) {
        class.covariate[2 * t] = (double)t / 8;
        class.covariate[2 * t + 1] = t % 4 == 3 ? (double)NAN : (double)(t % 4);
    }
    tiny_finish(&class, &world);
    names_add(&others, "c", 1);
    names_add(&others, "z", 1);
    names_add(&others, "a", 1);
    struct covariates covariates = {0};
    covariates_add(&covariates, "school", &own);
    covariates_add(&covariates, "teacher", &others);
    struct dataset dataset;
    struct shard shard;
    tiny_must(dataset_open(&dataset, class.path, &world));
    tiny_must(follow(&dataset, &class.dataset.items, &class.dataset.skills, &covariates));
    expect_same_names(&dataset.covariates.levels[1], &others);
    tiny_must(dataset_read(&dataset, 0, 5, &shard));
    for (size_t t = 0; t < class.n_attempts; t++) {
        const double level = shard.covariate[2 * t + 1];
        assert_true(shard.covariate[2 * t] == (double)t / 8);
        assert_true(t % 4 == 0   ? level == 2
                    : t % 4 == 2 ? level == 0
                                 : isnan(level)); /* b is unknown, the fourth has none */
    }
    shard_free(&shard);
    dataset_close(&dataset);
    covariates_free(&covariates);
    names_free(&others);
    names_free(&own);

    comm_barrier(&world);
    static const struct {
        size_t place;
        double value;
        const char *sentence;
    } harms[] = {{7, 3, "level 3 of teacher"},
                 {4, 1e308, "attempt 2 has 1e+308 in column load"}};
    for (size_t h = 0; h < COUNT(harms); h++) {
        const double was = class.covariate[harms[h].place];
        if (world.rank == 0) {
            class.covariate[harms[h].place] = harms[h].value;
            tiny_must(dataset_write(&class.draft, class.path));
            class.covariate[harms[h].place] = was;
        }
        comm_barrier(&world);
        tiny_must(dataset_open(&dataset, class.path, &world));
        assert_int_equal(dataset_read(&dataset, 0, 5, &shard), BAD_DATA);
        assert_non_null(strstr(fail_sentence(), harms[h].sentence));
        fail_clear();
        dataset_close(&dataset);
        comm_barrier(&world);
    }
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_files_that_are_not_data_sets),
        cmocka_unit_test(test_map_items_to_model),
        cmocka_unit_test(test_map_skills_and_groups_to_model),
        cmocka_unit_test(test_levels),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
