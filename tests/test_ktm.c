/* builds: float double */
/* Knowledge tracing machines against what can be said without them: counts against a plain
 * recount, features kept against features made, the gradient against differences of the loss,
 * logistic regression against Newton's method on a dense matrix and against log-odds, singular
 * designs against smaller ones. */
#include "../src/models/ktm_parts.h"
#include "h5.h"
#include "lanes.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 6, N_SKILLS = 3, N_STUDENTS = 30 };

/* Items have one skill, two, none, one, three and one; times rise by 0, 1, 2, 4, ... 512. */
static void open_class(struct tiny *class, bool withheld)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 1, 3, 3, 4, 7, 8};
    static const uint32_t skills[] = {0, 1, 2, 1, 0, 1, 2, 2};
    tiny_begin(class, N_ITEMS, withheld);
    struct dataset *head = &class->draft.head;
    head->item_skills = memory_resize(head->item_skills, COUNT(skills), sizeof *skills);
    memcpy(head->item_first, first, sizeof first);
    memcpy(head->item_skills, skills, sizeof skills);
    head->n_skills = N_SKILLS;
    head->has_time = true;
    names_add(&head->skills, "third", 5);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 6, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, s == 4 ? 0 : 3 + s % 23, 7);
    }
    int64_t *time = NEW(int64_t, class->n_attempts);
    for (size_t t = 1; t < class->n_attempts; t++)
        time[t] = time[t - 1] + (1 << t % 11) / 2;
    class->draft.time = time;
    tiny_finish(class, &world);
    memory_free(time);
}

/* A model with what it takes to learn. */
struct bench {
    struct tiny_model tiny;
    struct model *model;
    void *work;
    struct lanes lanes;
    struct exact_slices slices;
    struct pass pass;
};

static void open_bench(struct bench *b, const char *options, struct tiny *class)
{
    *b = (struct bench){0};
    tiny_model_open(&b->tiny, "ktm", options, &class->dataset);
    b->model = b->tiny.model;
    int64_t counts[2 * N_ITEMS];
    for (size_t i = 0; i < 2 * N_ITEMS; i++)
        counts[i] = 1 + (int64_t)(i % 4);
    const struct item_counts item_counts = {class->dataset.n_items, counts, counts + N_ITEMS};
    b->model->kind->init(b->model, 7, &item_counts);
    b->work = b->model->kind->attach(b->model, &class->shard);
    size_t first = 0, n = 0;
    tiny_must(lanes_create(&b->lanes, &class->dataset, 12, 4, &first, &n));
    bool has_training[N_STUDENTS];
    int64_t n_attempts = 0;
    b->model->kind->training(b->work, has_training, &n_attempts);
    tiny_must(lanes_fill(&b->lanes, &class->shard, has_training, NULL, 12));
    exact_slices_create(&b->slices, &world, &b->model->params);
    b->pass = (struct pass){.comm = &world, .slices = &b->slices, .lanes = &b->lanes};
}

static void close_bench(struct bench *b)
{
    exact_slices_destroy(&b->slices);
    lanes_destroy(&b->lanes);
    b->model->kind->detach(b->work);
    tiny_model_close(&b->tiny);
}

static void learn(struct bench *b, int most_epochs)
{
    for (int epoch = 0; epoch < most_epochs && !b->pass.converged; epoch++) {
        b->pass.loss = b->pass.n_scored = 0;
        b->pass.draw.epoch = (uint32_t)epoch;
        tiny_must(b->model->kind->learn(b->model, b->work, &b->pass));
    }
}

/* ---- features against a recount */

static bool has_skill(const struct dataset *d, uint32_t item, uint32_t skill)
{
    for (uint64_t j = d->item_first[item]; j < d->item_first[item + 1]; j++)
        if (d->item_skills[j] == skill)
            return true;
    return false;
}

/* What a count is at attempt t of student s: all attempts before it are looked at again. */
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

/* Whether (how often, for skills) a row of a `previous` feature holds at attempt t. */
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

/* The sum of the values that attempt `a` of a walk has in some rows. */
static double sum_of(const struct sparse *attempts, size_t a, size_t row)
{
    double sum = 0;
    for (size_t e = attempts->first[a]; e < attempts->first[a + 1]; e++)
        if (attempts->row[e] == row)
            sum += (double)attempts->x[e];
    return sum;
}

static void check_feature(const struct tiny *class, const struct ktm_feature *f, size_t s,
                          const struct sparse *attempts, size_t a, uint64_t t)
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
        else if (f->what == KTM_PREVIOUS)
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
                   "attempts_skill:within=600:shared attempts_item:within=10000000000",
                   &class);
        struct ktm_work *work = b.work;
        assert_int_equal(work->design.n, 28);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            ktm_walk_student(&work->walk, &class.shard, s, 7, false, work->design.n_common + s);
            const struct sparse *attempts = &work->walk.attempts;
            assert_int_equal(attempts->n, class.shard.first[s + 1] - class.shard.first[s]);
            for (size_t a = 0; a < attempts->n; a++)
                for (size_t j = 0; j < work->design.n; j++)
                    check_feature(&class, &work->design.list[j], s, attempts, a,
                                  class.shard.first[s] + a);
        }
        close_bench(&b);
        tiny_close(&class);
    }
}

/* Time since the last attempt: in bin 0 the first one, then bins that double. */
static void test_elapsed(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=elapsed elapsed:log", &class);
    struct ktm_work *work = b.work;
    const size_t logs = work->design.list[0].first_row, bins = work->design.list[1].first_row;
    assert_int_equal(work->design.list[1].n_rows, KTM_BINS);
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

/* Features asked for again are those made the first time, whether all, some or none are kept.
 */
static void test_kept(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=student item skill wins_skill:log wins:within=90", &class);
    struct ktm_work *work = b.work;
    static const size_t most[] = {1 << 20, 1500, 0};
    for (size_t m = 0; m < COUNT(most); m++) {
        struct ktm_kept *kept = ktm_kept_create(N_STUDENTS, most[m]);
        size_t n_kept = 0;
        for (size_t again = 0; again < 2; again++)
            for (size_t s = 0; s < N_STUDENTS; s++) {
                const size_t row = work->design.n_common + s;
                const struct ktm_seen seen =
                    ktm_kept_student(kept, &work->walk, &class.shard, s, row);
                n_kept += seen.place != work->walk.place;
                ktm_walk_student(&work->walk, &class.shard, s, 1u << TRAIN, true, row);
                const struct sparse *a = &work->walk.attempts, *k = &seen.attempts;
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
        ktm_kept_free(kept);
    }
    close_bench(&b);
    tiny_close(&class);
}

/* ---- derivatives */

static const char *const designs[] = {
    "features=item skill wins:log fails:log wins_skill:log fails_skill:log",
    "features=student item skill wins_skill:l2=3, factors=3",
    "features=student:l2=0:factors_l2=2 attempts fails_skill:shared:log elapsed, factors=17",
    "features=student item previous_skill:by_item, l2=0.3, factors=8",
    "features=student wins_skill:within=64:log wins_skill:within=700:log attempts:within=8, "
    "factors=2",
};

static void test_gradient(void **state)
{
    (void)state;
    if (!is_double)
        return;
    for (size_t d = 0; d < COUNT(designs); d++) {
        struct tiny class;
        struct bench b;
        open_class(&class, d % 2 == 1);
        open_bench(&b, designs[d], &class);
        tiny_model_scatter(&b.tiny, 0.4, 9 + d);
        const struct params *params = &b.model->params;
        real *gradient = NEW(real, params->n), *other = NEW(real, params->n);
        double loss = 0, up = 0, down = 0;
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss, gradient));
        double largest = 0;
        for (size_t i = 0; i < params->n; i++) {
            if (params_find(params, i) == NULL) {
                assert_true(gradient[i] == 0);
                continue;
            }
            const real kept = params->value[i], step = (real)1e-4;
            params->value[i] = kept + step;
            tiny_must(ktm_gradient(b.model, b.work, &b.pass, &up, other));
            params->value[i] = kept - step;
            tiny_must(ktm_gradient(b.model, b.work, &b.pass, &down, other));
            params->value[i] = kept;
            const double slope = (up - down) / (2 * (double)step);
            largest = fmax(largest, fabs((double)gradient[i]));
            if (!(fabs(slope - (double)gradient[i]) < 1e-6 * fmax(1, fabs(slope))))
                fail_msg("%s: %s: %g by differences, %g", designs[d],
                         params_find(params, i)->name, slope, (double)gradient[i]);
        }
        assert_true(largest > 1);
        memory_free(gradient);
        memory_free(other);
        close_bench(&b);
        tiny_close(&class);
    }
}

/* Outcomes that are not shown, and not for training, have no part in the gradient. */
static void test_nothing_held_out_is_learned(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, true);
    open_bench(
        &b,
        "features=student item wins:log fails_skill attempts wins_item:within=900, factors=3",
        &class);
    tiny_model_scatter(&b.tiny, 0.4, 3);
    const size_t n = b.model->params.n;
    real *before = NEW(real, n), *after = NEW(real, n);
    double loss = 0, loss_after = 0;
    tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss, before));
    size_t n_flipped = 0;
    for (int train = 0; train < 2; train++) {
        for (size_t t = 0; t < class.n_attempts; t++)
            if ((mark_split(class.shard.mark[t]) == TRAIN) == (train == 1) &&
                mark_outcome(class.shard.mark[t]) != UNKNOWN) {
                class.shard.mark[t] ^= 1;
                n_flipped++;
            }
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &loss_after, after));
        assert_int_equal(memcmp(before, after, n * sizeof *before) == 0, train == 0);
    }
    assert_true(n_flipped > 100);
    memory_free(before);
    memory_free(after);
    close_bench(&b);
    tiny_close(&class);
}

/* ---- logistic regression */

/* Solves a x = y of order n in place by elimination with pivots. */
static void eliminate(double *a, double *y, size_t n)
{
    for (size_t p = 0; p < n; p++) {
        size_t best = p;
        for (size_t r = p + 1; r < n; r++)
            best = fabs(a[r * n + p]) > fabs(a[best * n + p]) ? r : best;
        for (size_t c = 0; c < n; c++) {
            const double kept = a[p * n + c];
            a[p * n + c] = a[best * n + c];
            a[best * n + c] = kept;
        }
        const double kept = y[p];
        y[p] = y[best];
        y[best] = kept;
        for (size_t r = 0; r < n; r++) {
            const double share = r == p ? 0 : a[r * n + p] / a[p * n + p];
            for (size_t c = 0; share != 0 && c < n; c++)
                a[r * n + c] -= share * a[p * n + c];
            y[r] -= share * y[p];
        }
    }
    for (size_t p = 0; p < n; p++)
        y[p] /= a[p * n + p];
}

/* Iteratively reweighted least squares over a dense matrix, from the features of the walk. */
static void regress(struct bench *b, const struct shard *shard, double l2, double *w, size_t n)
{
    struct ktm_work *work = b->work;
    double *a = NEW(double, n *n), *y = NEW(double, n), *x = NEW(double, n);
    for (int round = 0; round < 30; round++) {
        memset(a, 0, n * n * sizeof *a);
        for (size_t j = 0; j < n; j++) {
            y[j] = j > 0 ? -l2 * w[j] : 0;
            a[j * n + j] = j > 0 ? l2 : 0;
        }
        for (size_t s = 0; s < shard->n_students; s++) {
            ktm_walk_student(&work->walk, shard, s, 1u << TRAIN, true,
                             work->design.n_common + s);
            for (size_t t = 0; t < work->walk.attempts.n; t++) {
                const uint8_t mark = shard->mark[shard->first[s] + work->walk.place[t]];
                double score = 0;
                for (size_t j = 0; j < n; j++) {
                    x[j] = j == 0 ? 1 : sum_of(&work->walk.attempts, t, j);
                    score += x[j] * w[j];
                }
                const double p = 1 / (1 + exp(-score));
                for (size_t j = 0; j < n; j++) {
                    y[j] += x[j] * ((mark_outcome(mark) == CORRECT) - p);
                    for (size_t k = 0; k < n; k++)
                        a[j * n + k] += p * (1 - p) * x[j] * x[k];
                }
            }
        }
        eliminate(a, y, n);
        for (size_t j = 0; j < n; j++)
            w[j] += y[j];
    }
    memory_free(a);
    memory_free(y);
    memory_free(x);
}

static void test_logistic_regression(void **state)
{
    (void)state;
    static const char *const features[] = {
        "features=student item, l2=0.7, tolerance=1e-14",
        "features=item skill wins:log fails:log wins_skill:log fails_skill, l2=0.7, "
        "tolerance=1e-14",
        "features=item attempts_skill:log wins_skill:within=100:log wins_skill:within=1000:log "
        "fails:within=1000, l2=0.7, tolerance=1e-14",
    };
    for (size_t d = 0; d < COUNT(features); d++) {
        struct tiny class;
        struct bench b;
        open_class(&class, false);
        open_bench(&b, features[d], &class);
        const size_t n = ((struct ktm_work *)b.work)->design.n_rows;
        double *w = NEW(double, n);
        regress(&b, &class.shard, 0.7, w, n);
        learn(&b, 40);
        assert_true((b.pass.converged || !is_double) && b.pass.n_scored > 150);
        const real *found = ktm_point(b.model).w;
        double spread = 0;
        for (size_t j = 0; j < n; j++) {
            assert_true(fabs((double)found[j] - w[j]) < (is_double ? 1e-6 : 2e-3));
            spread = fmax(spread, fabs(w[j]));
        }
        assert_true(spread > 0.3);
        memory_free(w);
        close_bench(&b);
        tiny_close(&class);
    }
}

/* With the item alone and no penalty, p is the item's share correct; the bias makes this design
 * singular. */
static void test_log_odds(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=item, l2=0, tolerance=1e-12", &class);
    learn(&b, 40);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        double right = 0, all = 0;
        for (size_t t = 0; t < class.n_attempts; t++)
            if (class.shard.item[t] == i && mark_split(class.shard.mark[t]) == TRAIN &&
                mark_outcome(class.shard.mark[t]) != UNKNOWN) {
                right += mark_outcome(class.shard.mark[t]) == CORRECT;
                all++;
            }
        const real *w = ktm_point(b.model).w;
        assert_true(fabs((double)(w[0] + w[1 + i]) - log(right / (all - right))) <
                    (is_double ? 1e-6 : 1e-3));
    }
    close_bench(&b);
    tiny_close(&class);
}

/* A feature that others add up to changes no prediction. */
static void test_singular(void **state)
{
    (void)state;
    struct tiny class;
    tiny_begin(&class, 3, false); /* all outcomes known and shown: attempts = wins + fails */
    for (uint32_t s = 0; s < 25; s++) {
        const struct rng rng = {.seed = 8, .purpose = RNG_SIMULATE, .who = s};
        tiny_student(&class);
        for (uint32_t t = 0; t < 12; t++)
            tiny_attempt(
                &class, (uint32_t)rng_below(&rng, 2 * t, 3),
                mark_make((enum outcome)rng_below(&rng, 2 * t + 1, 2), TRAIN, true, true));
    }
    tiny_finish(&class, &world);
    struct bench small, large;
    open_bench(&small, "features=item wins fails, l2=0, tolerance=1e-12", &class);
    open_bench(&large, "features=item wins fails attempts, l2=0, tolerance=1e-12", &class);
    learn(&small, 40);
    learn(&large, 40);
    for (size_t s = 0; s < 25; s++) {
        real p[12], q[12];
        small.model->kind->predict(small.model, small.work, s, 7, p);
        large.model->kind->predict(large.model, large.work, s, 7, q);
        for (size_t t = 0; t < 12; t++)
            assert_true(fabs((double)(p[t] - q[t])) < (is_double ? 1e-6 : 1e-3));
    }
    close_bench(&small);
    close_bench(&large);
    tiny_close(&class);
}

/* Epochs never raise the penalised loss, with factors too, and end where the gradient is
 * nothing. */
static void test_loss_falls(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, true);
    open_bench(&b, "features=student item skill, factors=3, l2_factors=0.5, scale=0.5", &class);
    const size_t n = b.model->params.n;
    real *gradient = NEW(real, n);
    double before = 0, after = 0, largest = 0;
    tiny_must(ktm_gradient(b.model, b.work, &b.pass, &before, gradient));
    const double start = before;
    for (int epoch = 0; epoch < 200 && !b.pass.converged; epoch++) {
        tiny_must(b.model->kind->learn(b.model, b.work, &b.pass));
        tiny_must(ktm_gradient(b.model, b.work, &b.pass, &after, gradient));
        assert_true(after <= before + 1e-4);
        before = after;
    }
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)gradient[i]));
    assert_true(b.pass.converged && after < 0.95 * start && largest < 0.1);
    memory_free(gradient);
    close_bench(&b);
    tiny_close(&class);
}

/* A prediction rests on what came before it: with other outcomes from some attempt on, those up
 * to there keep their bits. */
static void test_no_future(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b,
               "features=item wins:log wins:within=300 fails_skill:within=64:log "
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

/* Students of whom nothing was learned (4 made no attempt) have no factors, and those the model
 * does not know no weight of their own. */
static void test_unknown_students(void **state)
{
    (void)state;
    struct tiny class;
    struct bench b;
    open_class(&class, false);
    open_bench(&b, "features=student item, factors=2, l2_factors=0", &class);
    const struct sparse_point point = ktm_point(b.model);
    const real *factors = point.v + (1 + N_ITEMS) * point.stride; /* of students */
    learn(&b, 2);
    for (size_t c = 0; c < 2; c++)
        assert_true(factors[4 * point.stride + c] == 0 && factors[5 * point.stride + c] != 0);
    tiny_model_scatter(&b.tiny, 0.5, 4);
    real p[40];
    b.model->knows_students = false;
    b.model->kind->predict(b.model, b.work, 7, 7, p);
    for (uint64_t t = class.shard.first[7]; t < class.shard.first[8]; t++) {
        const double score = (double)(point.w[0] + point.w[1 + class.shard.item[t]]);
        assert_true(fabs((double)p[t - class.shard.first[7]] - 1 / (1 + exp(-score))) < 1e-6);
    }
    close_bench(&b);
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_elapsed),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_nothing_held_out_is_learned),
        cmocka_unit_test(test_logistic_regression),
        cmocka_unit_test(test_log_odds),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_no_future),
        cmocka_unit_test(test_unknown_students),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
