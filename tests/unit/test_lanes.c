/* ranks: 1 2 3 5 */
/* Lanes: the result of a step does not depend on the number of ranks. Any number of ranks makes
 * the blocks that one rank alone would make. */
#include "base/h5.h"
#include "data/lanes.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};

enum { N_STUDENTS = 211 };

/* Students with 0 to 40 attempts, some without training attempts. */
static void open_class(struct tiny *class, const struct comm *comm, int train)
{
    tiny_begin(class, 6, true);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 8, .purpose = RNG_SIMULATE, .who = s};
        const size_t n = rng_below(&rng, 1000, 5) == 0 ? 40 : (size_t)rng_below(&rng, 1001, 5);
        tiny_random(class, &rng, n, train);
    }
    tiny_finish(class, comm);
}

static bool trains(const struct shard *shard, size_t s)
{
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        if (mark_split(shard->mark[t]) == TRAIN && mark_outcome(shard->mark[t]) != UNKNOWN)
            return true;
    return false;
}

/* The number of attempts of each student. */
static uint32_t *lengths_of(const struct shard *shard)
{
    uint32_t *length = NEW(uint32_t, shard->n_students);
    for (size_t s = 0; s < shard->n_students; s++)
        length[s] = (uint32_t)(shard->first[s + 1] - shard->first[s]);
    return length;
}

/* `length` receives lengths and makes lanes sorted by length; NULL: unsorted. */
static enum status open_lanes(struct lanes *lanes, struct shard *shard,
                              const struct dataset *dataset, size_t batch, size_t block,
                              uint32_t **length)
{
    size_t first = 0, n = 0;
    TRY(lanes_create(lanes, dataset, batch, block, &first, &n));
    TRY(dataset_read(dataset, first, n, shard));
    bool *has_training = NEW(bool, n);
    for (size_t s = 0; s < n; s++)
        has_training[s] = trains(shard, s);
    if (length != NULL)
        *length = lengths_of(shard);
    enum status status =
        lanes_fill(lanes, shard, has_training, length != NULL ? *length : NULL, batch);
    memory_free(has_training);
    return status;
}

/* All blocks of a step, lane by lane, as student numbers of the data set, each block preceded
 * by its length; on rank 0 of the lanes' ranks. */
static uint32_t *gather_step(const struct lanes *lanes, const struct shard *shard, size_t step,
                             size_t *n_all)
{
    uint32_t *own = NULL;
    size_t n_own = 0;
    for (size_t l = 0; l < lanes->n_own; l++) {
        size_t n = 0;
        const uint32_t *block = lanes_block(lanes, l, step, &n);
        own = memory_resize(own, n_own + n + 1, sizeof *own);
        own[n_own++] = (uint32_t)n;
        for (size_t i = 0; i < n; i++)
            own[n_own++] = (uint32_t)(shard->first_student + block[i]);
    }
    uint32_t *all = comm_gather(shard->dataset->comm, own, n_own * sizeof *own, n_all);
    *n_all /= sizeof *all;
    memory_free(own);
    return all;
}

/* The lanes kept are those with students, with the ranges and the order that their numbers
 * define. */
static void expect_ranges(struct lanes *lanes, const struct dataset *dataset, uint64_t seed)
{
    lanes_shuffle(lanes, seed, 4);
    for (size_t l = 0; l < lanes->n_own; l++) {
        const size_t number = lanes->number[l], n = lanes->n_students[l];
        assert_true(l == 0 || lanes->number[l - 1] < number);
        assert_true(lanes->first[l] < lanes->first[l + 1]);
        assert_int_equal(lanes->first[l], dataset_cut(dataset, number, lanes->n_lanes));
        assert_int_equal(lanes->first[l + 1], dataset_cut(dataset, number + 1, lanes->n_lanes));
        const struct rng rng = {
            .seed = seed, .purpose = RNG_ORDER, .when = 4, .who = (uint32_t)number};
        uint32_t order[N_STUDENTS];
        rng_order(&rng, order, n);
        for (size_t i = 0; lanes->length == NULL && i < n; i++)
            assert_int_equal(lanes->order[l][i], lanes->students[l][order[i]]);
    }
}

static void compare_with_one_rank(const struct tiny *class, const struct tiny *alone,
                                  size_t batch, size_t block, bool by_length)
{
    struct lanes lanes, one;
    struct shard shard, whole;
    uint32_t *length = NULL, *whole_length = NULL;
    assert_int_equal(
        open_lanes(&lanes, &shard, &class->dataset, batch, block, by_length ? &length : NULL),
        OK);
    assert_int_equal(open_lanes(&one, &whole, &alone->dataset, batch, block,
                                by_length ? &whole_length : NULL),
                     OK);
    assert_int_equal(one.n_lanes, (batch + block - 1) / block);
    assert_true(one.n_own <= N_STUDENTS);
    assert_int_equal(lanes.n_lanes, one.n_lanes);
    assert_int_equal(lanes.n_steps, one.n_steps);
    assert_int_equal(lanes.most_students, one.most_students);
    expect_ranges(&lanes, &class->dataset, 77);
    int64_t n_kept = (int64_t)lanes.n_own;
    comm_sum_i64(&world, &n_kept, 1);
    assert_int_equal(n_kept, one.n_own);

    size_t n_training = 0;
    for (size_t s = 0; s < N_STUDENTS; s++)
        n_training += trains(&whole, s);
    assert_true(n_training > 50 && n_training < N_STUDENTS);
    assert_int_equal(one.n_steps, (n_training + batch - 1) / batch);

    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        int met[N_STUDENTS] = {0};
        lanes_shuffle(&lanes, 77, epoch);
        lanes_shuffle(&one, 77, epoch);
        size_t fewest = SIZE_MAX, most = 0;
        for (size_t step = 0; step < one.n_steps; step++) {
            size_t n_got = 0, n_expected = 0;
            uint32_t *got = gather_step(&lanes, &shard, step, &n_got);
            uint32_t *expected = gather_step(&one, &whole, step, &n_expected);
            if (world.rank == 0) {
                assert_int_equal(n_got, n_expected);
                assert_memory_equal(got, expected, n_got * sizeof *got);
            }
            const size_t n_students = n_expected - one.n_own;
            assert_true(n_students <= one.most_students);
            fewest = size_min(fewest, n_students);
            most = size_max(most, n_students);
            for (size_t i = 0; i < n_expected;)
                for (uint32_t n = expected[i++]; n > 0; n--)
                    met[expected[i++]]++;
            memory_free(got);
            memory_free(expected);
        }
        /* No step is a small remainder. */
        assert_true(by_length || most - fewest <= one.n_lanes);
        for (size_t s = 0; s < N_STUDENTS; s++)
            assert_int_equal(met[s], trains(&whole, s));
    }
    lanes_destroy(&lanes);
    lanes_destroy(&one);
    memory_free(length);
    memory_free(whole_length);
    shard_free(&shard);
    shard_free(&whole);
}

static void test_blocks_are_those_of_one_rank(void **state)
{
    (void)state;
    struct tiny class, alone;
    open_class(&class, &world, 6);
    open_class(&alone, &self, 6);
    for (int by_length = 0; by_length < 2; by_length++) {
        compare_with_one_rank(&class, &alone, 20, 3, by_length);
        compare_with_one_rank(&class, &alone, 5, 1, by_length);
        compare_with_one_rank(&class, &alone, 1000, 16, by_length); /* all in one step */
        compare_with_one_rank(&class, &alone, 100, 20, by_length);
        compare_with_one_rank(&class, &alone, 400, 1, by_length); /* lanes without students */
        compare_with_one_rank(&class, &alone, 1000000007, 1, by_length); /* most without */
        compare_with_one_rank(&class, &alone, SIZE_MAX / 4, 3, by_length);
    }
    tiny_close(&class);
    tiny_close(&alone);
}

/* Ranks own contiguous lanes that cover all; lanes have about the same number of attempts. */
static void test_ranges_of_lanes(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &world, 6);
    struct lanes lanes;
    struct shard shard;
    assert_int_equal(open_lanes(&lanes, &shard, &class.dataset, 60, 5, NULL), OK);
    assert_int_equal(lanes.n_lanes, 12);
    assert_int_equal(lanes.n_own > 0 ? lanes.number[0] : 0,
                     tiny_before(&world, (int64_t)lanes.n_own));
    assert_int_equal(tiny_before(&world, (int64_t)shard.n_students), shard.first_student);
    int64_t sums[2] = {(int64_t)lanes.n_own, (int64_t)shard.n_students};
    comm_sum_i64(&world, sums, 2);
    assert_int_equal(sums[0], lanes.n_lanes);
    assert_int_equal(sums[1], N_STUDENTS);
    assert_int_equal(lanes.first[0], shard.first_student);
    assert_int_equal(lanes.first[lanes.n_own], shard.first_student + shard.n_students);
    for (size_t l = 0; l < lanes.n_own; l++) {
        assert_int_equal(lanes.number[l], lanes.number[0] + l);
        const double n =
            (double)(class.first[lanes.first[l + 1]] - class.first[lanes.first[l]]);
        assert_true(fabs(n - (double)class.n_attempts / (double)lanes.n_lanes) <= 41);
    }
    lanes_destroy(&lanes);
    shard_free(&shard);
    tiny_close(&class);
}

/* The order depends on seed, epoch and lane: different for each, the same when repeated. */
static void test_order_depends_on_seed_and_epoch(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &world, 9);
    struct lanes lanes;
    struct shard shard;
    assert_int_equal(open_lanes(&lanes, &shard, &class.dataset, 40, 8, NULL), OK);
    uint32_t *before = NEW(uint32_t, N_STUDENTS);
    for (size_t l = 0; l < lanes.n_own; l++) {
        const size_t n_bytes = lanes.n_students[l] * sizeof *before;
        lanes_shuffle(&lanes, 1, 5);
        memcpy(before, lanes.order[l], n_bytes);
        lanes_shuffle(&lanes, 1, 6);
        assert_memory_not_equal(before, lanes.order[l], n_bytes);
        lanes_shuffle(&lanes, 2, 5);
        assert_memory_not_equal(before, lanes.order[l], n_bytes);
        lanes_shuffle(&lanes, 1, 5);
        assert_memory_equal(before, lanes.order[l], n_bytes);
    }
    memory_free(before);
    lanes_destroy(&lanes);
    shard_free(&shard);
    tiny_close(&class);
}

/* Within a group of 8 sorted steps, blocks do not overlap in length and have about the same
 * number of attempts. The order of steps is random, the same for all lanes, and different in
 * each epoch. */
static void test_blocks_of_similar_length(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &world, 9);
    struct lanes lanes;
    struct shard shard;
    uint32_t *length = NULL;
    assert_int_equal(open_lanes(&lanes, &shard, &class.dataset, 30, 6, &length), OK);
    assert_true(lanes.n_steps > 4 && lanes.n_steps <= 8);
    size_t before[8] = {0}, n_moved = 0, n_apart = 0;
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        lanes_shuffle(&lanes, 3, epoch);
        for (size_t l = 0; l < lanes.n_own; l++) {
            uint32_t shortest[8], longest[8], most = 0;
            size_t n_attempts[8] = {0}, all = 0;
            for (size_t step = 0; step < lanes.n_steps; step++) {
                size_t n = 0;
                const uint32_t *block = lanes_block(&lanes, l, step, &n);
                shortest[step] = UINT32_MAX;
                longest[step] = 0;
                for (size_t i = 0; i < n; i++) {
                    shortest[step] = (uint32_t)size_min(shortest[step], length[block[i]]);
                    longest[step] = (uint32_t)size_max(longest[step], length[block[i]]);
                    n_attempts[step] += length[block[i]];
                }
                all += n_attempts[step];
                most = (uint32_t)size_max(most, longest[step]);
            }
            for (size_t a = 0; a < lanes.n_steps; a++) {
                assert_true(fabs((double)n_attempts[a] - (double)all / (double)lanes.n_steps) <=
                            (double)most);
                for (size_t b = 0; b < lanes.n_steps; b++) {
                    assert_true(a == b || longest[a] <= shortest[b] ||
                                longest[b] <= shortest[a]);
                    n_apart += longest[a] < shortest[b];
                }
            }
        }
        for (size_t step = 0; step < lanes.n_steps && lanes.n_own > 0; step++) {
            size_t n = 0;
            const size_t at = (size_t)(lanes_block(&lanes, 0, step, &n) - lanes.order[0]);
            n_moved += epoch > 0 && at != before[step];
            before[step] = at;
        }
    }
    if (lanes.n_own > 0)
        assert_true(n_moved > lanes.n_steps && n_apart > 0);
    memory_free(length);
    lanes_destroy(&lanes);
    shard_free(&shard);
    tiny_close(&class);
}

/* With more than 8 steps, each group of 8 is sorted separately, so that students still meet
 * others in every epoch. */
static void test_groups_of_steps(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &self, 9);
    struct lanes lanes;
    struct shard shard;
    uint32_t *length = NULL;
    assert_int_equal(open_lanes(&lanes, &shard, &class.dataset, 4, 4, &length), OK);
    assert_true(lanes.n_steps > 32);
    lanes_shuffle(&lanes, 3, 0);
    size_t n_up = 0;
    for (size_t i = 0; i + 1 < lanes.n_students[0]; i++)
        n_up += length[lanes.order[0][i]] < length[lanes.order[0][i + 1]];
    assert_int_equal(n_up, (lanes.n_steps + 7) / 8 - 1);
    memory_free(length);
    lanes_destroy(&lanes);
    shard_free(&shard);
    tiny_close(&class);
}

static void test_too_many_ranks(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &world, 6);
    struct lanes lanes = {0};
    size_t first = 0, n = 0;
    const enum status status = lanes_create(&lanes, &class.dataset, 8, 8, &first, &n);
    if (world.size == 1) {
        assert_int_equal(status, OK);
        assert_int_equal(lanes.n_lanes, 1);
    } else {
        char ranks[32];
        snprintf(ranks, sizeof ranks, "there are %d ranks", world.size);
        assert_int_equal(status, BAD_USER);
        assert_non_null(strstr(fail_sentence(), ranks));
        assert_non_null(strstr(fail_sentence(), "only 1 block "));
    }
    fail_clear();
    lanes_destroy(&lanes);
    tiny_close(&class);
}

static void test_nothing_to_train_on(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class, &world, 0);
    struct lanes lanes = {0};
    struct shard shard = {0};
    assert_int_equal(open_lanes(&lanes, &shard, &class.dataset, 40, 8, NULL), BAD_USER);
    assert_non_null(strstr(fail_sentence(), class.path));
    fail_clear();
    lanes_destroy(&lanes);
    shard_free(&shard);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_those_of_one_rank),
        cmocka_unit_test(test_ranges_of_lanes),
        cmocka_unit_test(test_order_depends_on_seed_and_epoch),
        cmocka_unit_test(test_blocks_of_similar_length),
        cmocka_unit_test(test_groups_of_steps),
        cmocka_unit_test(test_too_many_ranks),
        cmocka_unit_test(test_nothing_to_train_on),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
