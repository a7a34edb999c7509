/* builds: float double */
/* Features of knowledge tracing machines against independent computations: counts against a
 * plain recount, cached features against new ones, predictions against those after a different
 * continuation. */
#include "base/h5.h"
#include "ktm_class.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool has_skill(const struct dataset *d, uint32_t item, uint32_t skill)
{
    for (uint64_t j = d->item_first[item]; j < d->item_first[item + 1]; j++)
        if (d->item_skills[j] == skill)
            return true;
    return false;
}

/* A count at attempt t of student s, from all attempts before it. */
static double recount(const struct tiny *class, size_t s, uint64_t t,
                      const struct ktm_feature *f, uint32_t of_index)
{
    const struct shard *shard = &class->shard;
    double count = 0, weight = 1;
    for (uint64_t other = t; other-- > shard->first[s];) {
        const uint8_t mark = shard->mark[other];
        if ((f->of == KTM_OF_ITEM && shard->item[other] != of_index) ||
            (f->of == KTM_OF_SKILL &&
             !has_skill(&class->dataset, shard->item[other], of_index)) ||
            (f->within > 0 && shard->time[other] + (int64_t)f->within <= shard->time[t]))
            continue;
        if (f->what == KTM_ATTEMPTS)
            count += weight;
        else if (!mark_is_shown(mark))
            continue;
        else if (mark_outcome(mark) == (f->what == KTM_WINS ? CORRECT : INCORRECT))
            count += weight;
        weight *= f->decay;
    }
    return count;
}

/* Whether (for skills: how often) a row of a `previous` feature is active at attempt t. */
static double previous(const struct tiny *class, const struct ktm_feature *f, size_t s,
                       uint64_t t, uint32_t row)
{
    const struct shard *shard = &class->shard;
    if (t == shard->first[s])
        return 0;
    const uint32_t by = row / (uint32_t)f->n_each, each = row % (uint32_t)f->n_each;
    const uint32_t item = shard->item[t - 1];
    const uint8_t mark = shard->mark[t - 1];
    if ((f->by == KTM_OF_ITEM && shard->item[t] != by) ||
        (f->by == KTM_OF_SKILL && !has_skill(&class->dataset, shard->item[t], by)))
        return 0;
    const uint32_t seen = mark_is_shown(mark) ? (mark_outcome(mark) == CORRECT ? 1 : 0) : 2;
    return each % 3 == seen &&
           (f->of == KTM_OF_ITEM ? item == each / 3
                                 : has_skill(&class->dataset, item, each / 3));
}

static void check_feature(const struct tiny *class, const struct ktm_feature *f, size_t s,
                          const struct fm_features *attempts, size_t a, uint64_t t)
{
    const struct dataset *d = &class->dataset;
    const uint32_t item = class->shard.item[t];
    for (uint32_t row = 0; row < f->n_rows; row++) {
        double expected = 0;
        if (f->what == KTM_STUDENT)
            expected = row == s;
        else if (f->what == KTM_ITEM)
            expected = row == item;
        else if (f->what == KTM_SKILL)
            expected = has_skill(d, item, row);
        else if (f->what == KTM_TIME)
            continue;
        else if (f->what == KTM_LEVEL)
            expected = class->covariate[2 * t + 1] == row;
        else if (f->what == KTM_NUMBER) {
            const double load = class->covariate[2 * t];
            expected = isnan(load)           ? 0
                       : f->value == KTM_RAW ? load
                       : load < 0            ? -log1p(-load)
                                             : log1p(load);
        } else if (f->what == KTM_PREVIOUS)
            expected = previous(class, f, s, t, row);
        else
            for (uint32_t index = 0;
                 index < (f->of == KTM_OF_SKILL || f->by == KTM_OF_SKILL ? N_SKILLS : 1);
                 index++) {
                const bool by_skills = f->of == KTM_OF_SKILL || f->by == KTM_OF_SKILL;
                if ((by_skills && !has_skill(d, item, index)) ||
                    (f->by == KTM_OF_SKILL && row != index) ||
                    (f->by == KTM_OF_ITEM && row != item))
                    continue;
                const double n = recount(class, s, t, f, f->of == KTM_OF_SKILL ? index : item);
                expected += f->value == KTM_LOG ? log1p(n) : n;
            }
        assert_true(fabs(sum_of(attempts, a, f->first_row + row) - expected) < 1e-5);
    }
}

static void test_counts(void **state)
{
    (void)state;
    for (int withheld = 0; withheld < 2; withheld++) {
        struct tiny class;
        struct bench b;
        open_class(&class, withheld);
        open_bench(&b,
                   "features=wins student item skill attempts attempts_item:log attempts_skill "
                   "wins_item:by_skill wins_skill:log fails:by_item fails_item:shared "
                   "fails_skill:decay=0.5 wins:decay=0.75:by_skill wins_skill:shared "
                   "elapsed elapsed_skill:log previous_item previous_skill:by_skill "
                   "previous_item:by_skill previous_skill:by_item "
                   "wins:within=1 attempts:within=64 wins_skill:within=64 fails:within=512:log "
                   "wins_skill:within=1000:log fails_item:within=2000:by_skill "
                   "attempts_skill:within=600:shared attempts_item:within=10000000000 "
                   "load teacher load:log",
                   &class);
        struct ktm_work *work = b.work;
        assert_int_equal(work->design->n, 31);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            ktm_walk_student(&work->walk, &class.shard, s, 7, false,
                             work->design->n_common + s);
            const struct fm_features *attempts = &work->walk.attempts;
            assert_int_equal(attempts->n, class.shard.first[s + 1] - class.shard.first[s]);
            for (size_t a = 0; a < attempts->n; a++)
                for (size_t j = 0; j < work->design->n; j++)
                    check_feature(&class, &work->design->list[j], s, attempts, a,
                                  class.shard.first[s] + a);
        }
        close_bench(&b);
        tiny_close(&class);
    }
}

/* Time since the last attempt: bin 0 for the first attempt, then bins that double. */
static void test_elapsed_time(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=elapsed elapsed:log", &class);
    struct ktm_work *work = b.work;
    const size_t logs = work->design->list[0].first_row, bins = work->design->list[1].first_row;
    assert_int_equal(work->design->list[1].n_rows, KTM_BINS);
    for (size_t s = 0; s < N_STUDENTS; s++) {
        ktm_walk_student(&work->walk, &class.shard, s, 7, false, 0);
        for (size_t a = 0; a < work->walk.attempts.n; a++) {
            const uint64_t t = class.shard.first[s] + a;
            const int64_t gap = a > 0 ? class.shard.time[t] - class.shard.time[t - 1] : -1;
            size_t bin = 0;
            for (int64_t most = 1; bin == 0 || most <= gap + 1; most *= 2)
                bin++;
            bin = gap < 0 ? 0 : bin;
            assert_true(sum_of(&work->walk.attempts, a, bins + bin) == 1);
            assert_true(fabs(sum_of(&work->walk.attempts, a, logs) -
                             (gap > 0 ? log1p((double)gap) : 0)) < 1e-5);
        }
    }
    close_bench(&b);
    tiny_close(&class);
}

/* Cached features equal the computed ones, whether the cache holds all, some or none. */
static void test_cached_features(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=student item skill wins_skill:log wins:within=90", &class);
    struct ktm_work *work = b.work;
    static const size_t most[] = {1 << 20, 1500, 0};
    for (size_t m = 0; m < COUNT(most); m++) {
        struct ktm_cache *kept = ktm_cache_create(N_STUDENTS, most[m]);
        size_t n_kept = 0;
        for (size_t again = 0; again < 2; again++)
            for (size_t s = 0; s < N_STUDENTS; s++) {
                const size_t row = work->design->n_common + s;
                const struct ktm_seen seen =
                    ktm_cache_student(kept, &work->walk, &class.shard, s, row);
                n_kept += seen.place != work->walk.place;
                ktm_walk_student(&work->walk, &class.shard, s, 1u << TRAIN, true, row);
                const struct fm_features *a = &work->walk.attempts, *k = &seen.attempts;
                const size_t n = a->n, n_entries = a->first[n];
                assert_int_equal(k->n, n);
                assert_memory_equal(k->first, a->first, (n + 1) * sizeof *a->first);
                assert_memory_equal(k->row, a->row, n_entries * sizeof *a->row);
                assert_memory_equal(k->x, a->x, n_entries * sizeof *a->x);
                assert_memory_equal(seen.place, work->walk.place, n * sizeof *seen.place);
            }
        assert_true(m == 0   ? n_kept == 2 * N_STUDENTS
                    : m == 1 ? n_kept > 0 && n_kept < 2 * N_STUDENTS
                             : n_kept == 0);
        ktm_cache_free(kept);
    }
    close_bench(&b);
    tiny_close(&class);
}

/* A prediction depends only on earlier attempts: changing outcomes from an attempt on keeps the
 * bits of the predictions up to it. */
static void test_predictions_ignore_the_future(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b,
               "features=student item wins:log wins:within=300 fails_skill:within=64:log "
               "attempts_item:within=1000 previous_item, factors=2",
               &class);
    tiny_model_scatter(&b.tiny, 0.5, 5);
    const struct shard *shard = &class.shard;
    const size_t s = 20, n = shard->first[s + 1] - shard->first[s];
    size_t n_moved = 0;
    real before[40], after[40];
    assert_true(n > 15 && n <= 40);
    b.model->kind->predict(b.model, b.work, s, 7, before);
    for (size_t t = n; t-- > 0;) {
        uint8_t *mark = &shard->mark[shard->first[s] + t];
        *mark ^= mark_outcome(*mark) != UNKNOWN;
        b.model->kind->predict(b.model, b.work, s, 7, after);
        assert_memory_equal(before, after, (t + 1) * sizeof *before);
        n_moved += memcmp(before, after, n * sizeof *before) != 0;
    }
    assert_true(n_moved > 10);
    close_bench(&b);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_elapsed_time),
        cmocka_unit_test(test_cached_features),
        cmocka_unit_test(test_predictions_ignore_the_future),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
