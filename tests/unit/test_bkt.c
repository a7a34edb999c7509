/* builds: float double */
/* Bayesian knowledge tracing against sums over all hidden paths: predictions and one step of
 * EM. Then complete fits: the log-likelihood never falls, and the rates of a simulated class
 * are recovered. */
#include "base/h5.h"
#include "base/log.h"
#include "bkt_oracle.h"
#include "data_tools/simulate.h"
#include "runs/stepper.h"
#include "tiny.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);
static const double tolerance = is_double ? 1e-12 : 1e-5;

static void expect_near(double expected, double got, const char *what)
{
    if (!(fabs(expected - got) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%s: %.17g instead of %.17g", what, got, expected);
}

enum { N_ITEMS = 6, N_SKILLS = 3 };

/* Items a to f: skill 0; 0; 1; 0 and 1; none; 1. Skill 2 has no items. */
static void open_class(struct tiny *class, bool withheld)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 1, 2, 3, 5, 5, 6};
    static const uint32_t skills[] = {0, 0, 1, 0, 1, 1};
    tiny_begin(class, N_ITEMS, withheld);
    struct dataset *head = &class->draft.head;
    memcpy(head->item_first, first, sizeof first);
    memcpy(head->item_skills, skills, sizeof skills);
    head->n_skills = N_SKILLS;
    names_add(&head->skills, "third", 5);
    tiny_text(class, "a1 b0 c? d1. e0v c1 b1t.");
    tiny_text(class, "");
    tiny_text(class, "e1 e0");
    tiny_text(class, "d?");
    for (uint32_t s = 0; s < 30; s++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, 1 + s % 10, s % 7 == 0 ? 0 : 7);
    }
    tiny_finish(class, &world);
}

struct bench {
    struct tiny class;
    struct tiny_model tiny;
    struct model *model;
    const struct bkt_options *options;
    const struct bkt_shape *shape;
    struct exact_slices slices;
    void *work;
};

static void open_bench(struct bench *b, const char *options, bool withheld)
{
    *b = (struct bench){0};
    open_class(&b->class, withheld);
    char *exact = memory_text("most_odds=0, %s", options);
    tiny_model_open(&b->tiny, "bkt", exact, &b->class.dataset);
    memory_free(exact);
    b->model = b->tiny.model;
    b->options = b->model->options;
    b->shape = bkt_shape(b->model);
    b->model->kind->init(b->model, 7, NULL);
    b->work = b->model->kind->attach(b->model, &b->class.shard, TO_TRAIN);
    exact_slices_create(&b->slices, &world, &b->model->params);
}

static void close_bench(struct bench *b)
{
    exact_slices_destroy(&b->slices);
    b->model->kind->detach(b->work);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

static double pass(struct bench *b, uint32_t epoch, bool *converged)
{
    struct pass pass = {.comm = &world, .slices = &b->slices, .draw = {7, epoch}};
    tiny_must(b->model->kind->fit.learn(b->model, b->work, &pass));
    if (converged != NULL)
        *converged = pass.converged;
    return ldexp((double)pass.loss, -LOSS_BITS);
}

static double rate_at(const struct bench *b, size_t panel, size_t row, size_t c)
{
    const struct params *p = &b->model->params;
    return bkt_chance(bkt_row(p, p->value, panel, row)[c]);
}

static bool has_skill(uint32_t item, size_t k)
{
    return k == 0 ? item == 0 || item == 1 || item == 3
                  : k == 1 && (item == 2 || item == 3 || item == 5);
}

/* The trace of a student and skill before attempt `end`: shown attempts, or in training the
 * attempts to train on. */
static void trace_of(const struct bench *b, size_t s, size_t k, uint64_t end, bool trains,
                     struct oracle *o)
{
    const struct shard *shard = &b->class.shard;
    *o = (struct oracle){
        .p0 = rate_at(b, b->shape->skill_panel, k, RATE_FIRST),
        .learn = rate_at(b, b->shape->skill_panel, k, RATE_LEARN),
        .forget = b->options->forget ? rate_at(b, b->shape->skill_panel, k, RATE_FORGET) : 0};
    for (uint64_t t = shard->first[s]; t < end; t++) {
        const uint8_t mark = shard->mark[t];
        if (!has_skill(shard->item[t], k))
            continue;
        const bool own = b->options->items && shard->item[t] != 3;
        const size_t panel = own ? b->shape->item_panel : b->shape->skill_panel;
        const size_t row = own ? shard->item[t] : k, at = own ? 0 : RATE_GUESS;
        o->guess[o->n] = rate_at(b, panel, row, at);
        o->slip[o->n] = rate_at(b, panel, row, at + 1);
        const bool counts = mark_outcome(mark) != UNKNOWN &&
                            (trains ? mark_split(mark) == TRAIN : mark_is_shown(mark));
        o->seen[o->n++] = !counts                         ? SEEN_NONE
                          : mark_outcome(mark) == CORRECT ? SEEN_RIGHT
                                                          : SEEN_WRONG;
    }
}

static const char *const variants[] = {"prior=0",
                                       "prior=3, forget=yes",
                                       "prior=2, items=yes",
                                       "prior=1, items=yes, forget=yes",
                                       "several=product",
                                       "several=weakest, restarts=4, explore=3",
                                       "items=yes, restarts=3, explore=5, forget=yes",
                                       "prior=0, restarts=6, explore=2"};

static void test_predictions_are_sums_over_paths(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++)
        for (int withheld = 0; withheld < 2; withheld++) {
            struct bench b;
            open_bench(&b, variants[v], withheld);
            pass(&b, 0, NULL);
            tiny_model_scatter(&b.tiny, 0.7, 5);
            const struct shard *shard = &b.class.shard;
            for (size_t s = 0; s < shard->n_students; s++) {
                real p[16];
                b.model->kind->predict(b.model, b.work, s, 7, p);
                for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
                    double sum = 0, product = 1, weakest = 1, n = 0;
                    for (size_t k = 0; k < N_SKILLS; k++) {
                        if (!has_skill(shard->item[t], k))
                            continue;
                        struct oracle o;
                        trace_of(&b, s, k, t + 1, false, &o);
                        o.n--;
                        const double right = oracle_next(&o, o.guess[o.n], o.slip[o.n]);
                        sum += right;
                        product *= right;
                        weakest = fmin(weakest, right);
                        n++;
                    }
                    if (n > 0)
                        expect_near(b.options->several == SEVERAL_MEAN      ? sum / n
                                    : b.options->several == SEVERAL_PRODUCT ? product
                                                                            : weakest,
                                    (double)p[t - shard->first[s]], variants[v]);
                }
            }
            close_bench(&b);
        }
}

/* Long runs, whose odds exceed the range of a number. A path of a skill that is never forgotten
 * is the attempt from which it is known, weighed by its logarithm. With `most_odds` a few
 * opposite answers undo a long run. */
static void test_long_runs(void **state)
{
    (void)state;
    enum { RUN = 2500, N = 2 * RUN };
    static char text[3 * N + 1];
    for (size_t t = 0; t < N; t++)
        memcpy(text + 3 * t, t < RUN ? "a1 " : "a0 ", 3);
    struct tiny class;
    tiny_begin(&class, 1, false);
    tiny_text(&class, text);
    tiny_finish(&class, &world);
    real p[2][N];
    struct tiny_model tiny;
    for (int capped = 0; capped < 2; capped++) {
        tiny_model_open(&tiny, "bkt", capped ? "most_odds=1000" : "most_odds=0",
                        &class.dataset);
        tiny.model->kind->init(tiny.model, 7, NULL);
        void *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
        tiny.model->kind->predict(tiny.model, work, 0, 7, p[capped]);
        tiny.model->kind->detach(work);
        if (!capped)
            tiny_model_close(&tiny);
    }
    const real *row = bkt_row(&tiny.model->params, tiny.model->params.value, 0, 0);
    const double p0 = bkt_chance(row[RATE_FIRST]), learn = bkt_chance(row[RATE_LEARN]);
    const double guess = bkt_chance(row[RATE_GUESS]), slip = bkt_chance(row[RATE_SLIP]);
    double moved = 0;
    /* log (P(not known, outcomes) / P(known, outcomes)) before each attempt */
    long double log_odds = logl((1 - p0) / p0);
    for (size_t t = 0; t < N; t++) {
        const double unknown = (double)(1 / (1 + expl(-log_odds)));
        expect_near((1 - unknown) * (1 - slip) + unknown * guess, (double)p[0][t], "long runs");
        log_odds += logl(t < RUN ? guess / (1 - slip) : (1 - guess) / slip);
        log_odds += log1pl(-learn) - log1pl(learn * expl(log_odds));
        moved = fmax(moved, fabs((double)(p[0][t] - p[1][t])));
        if (t == RUN + 10) /* ten wrong answers undo odds of 1000 */
            assert_true(p[0][t] > 0.8 && p[1][t] < 0.35);
    }
    assert_true(moved > 0.4);
    assert_true(p[0][N - 1] < 0.35); /* an equally long run of wrong answers undoes all of it */
    tiny_model_close(&tiny);
    tiny_close(&class);
}

/* Expected counts of a skill, and of the rows of guess and slip: skills, then items. */
struct counts {
    double yes[N_RATES], all[N_RATES], log_chance;
    double row_yes[N_SKILLS + N_ITEMS][2], row_all[N_SKILLS + N_ITEMS][2];
};

static void count_paths(const struct bench *b, size_t k, struct counts *c)
{
    const struct shard *shard = &b->class.shard;
    *c = (struct counts){0};
    for (size_t s = 0; s < shard->n_students; s++) {
        struct oracle o;
        size_t row[12], n = 0;
        trace_of(b, s, k, shard->first[s + 1], true, &o);
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            if (has_skill(shard->item[t], k))
                row[n++] =
                    b->options->items && shard->item[t] != 3 ? N_SKILLS + shard->item[t] : k;
        while (o.n > 0 && o.seen[o.n - 1] == SEEN_NONE)
            o.n--;
        if (o.n == 0)
            continue;
        oracle_run(&o);
        c->log_chance += log(o.chance);
        c->yes[RATE_FIRST] += o.known[0];
        c->all[RATE_FIRST]++;
        c->yes[RATE_LEARN] += o.learned;
        c->yes[RATE_FORGET] += o.forgotten;
        for (size_t t = 0; t < o.n; t++) {
            c->all[RATE_LEARN] += t + 1 < o.n ? 1 - o.known[t] : 0;
            c->all[RATE_FORGET] += t + 1 < o.n ? o.known[t] : 0;
            if (o.seen[t] == SEEN_NONE)
                continue;
            c->row_all[row[t]][0] += 1 - o.known[t];
            c->row_yes[row[t]][0] += o.seen[t] == SEEN_RIGHT ? 1 - o.known[t] : 0;
            c->row_all[row[t]][1] += o.known[t];
            c->row_yes[row[t]][1] += o.seen[t] == SEEN_WRONG ? o.known[t] : 0;
        }
    }
}

static double prior_term(const struct bkt_options *o, size_t c, double rate)
{
    return o->prior * (bkt_centres[c] * log(rate) + (1 - bkt_centres[c]) * log(1 - rate));
}

static double expected_rate(const struct bkt_options *o, size_t c, double yes, double all)
{
    const double most = c == RATE_GUESS ? o->most_guess : c == RATE_SLIP ? o->most_slip : 1;
    return fmin(most, (yes + o->prior * bkt_centres[c]) / (all + o->prior));
}

/* One step of EM, from rates that are not a fixed point. */
static void test_em_step_is_the_sum_over_paths(void **state)
{
    (void)state;
    for (size_t v = 0; v < 5; v++)
        for (int withheld = 0; withheld < 2; withheld++) {
            struct bench b;
            open_bench(&b, variants[v], withheld);
            pass(&b, 0, NULL);
            struct counts counts[2];
            double fit = 0;
            const size_t n_rates = b.shape->n_rates;
            for (size_t k = 0; k < 2; k++) {
                count_paths(&b, k, &counts[k]);
                fit += counts[k].log_chance;
                for (size_t c = 0; c < n_rates; c++)
                    if (c != RATE_GUESS && c != RATE_SLIP)
                        fit +=
                            prior_term(b.options, c, rate_at(&b, b.shape->skill_panel, k, c));
                for (size_t row = 0; row < N_SKILLS + N_ITEMS; row++)
                    for (size_t c = 0; counts[k].row_all[row][0] > 0 && c < 2; c++)
                        fit += prior_term(
                            b.options, RATE_GUESS + c,
                            row < N_SKILLS
                                ? rate_at(&b, b.shape->skill_panel, row, RATE_GUESS + c)
                                : rate_at(&b, b.shape->item_panel, row - N_SKILLS, c));
            }
            expect_near(-fit, pass(&b, 1, NULL), "loss");
            for (size_t k = 0; k < 2; k++) {
                for (size_t c = 0; c < n_rates; c++)
                    if (c != RATE_GUESS && c != RATE_SLIP)
                        expect_near(
                            expected_rate(b.options, c, counts[k].yes[c], counts[k].all[c]),
                            rate_at(&b, b.shape->skill_panel, k, c), bkt_rate_names[c]);
                for (size_t row = 0; row < N_SKILLS + N_ITEMS; row++)
                    for (size_t c = 0; counts[k].row_all[row][0] > 0 && c < 2; c++)
                        expect_near(expected_rate(b.options, RATE_GUESS + c,
                                                  counts[k].row_yes[row][c],
                                                  counts[k].row_all[row][c]),
                                    row < N_SKILLS
                                        ? rate_at(&b, b.shape->skill_panel, row, RATE_GUESS + c)
                                        : rate_at(&b, b.shape->item_panel, row - N_SKILLS, c),
                                    "guess or slip");
            }
            /* the third skill has no attempts */
            for (size_t c = 0; c < n_rates; c++)
                expect_near(rate_at(&b, b.shape->common_panel, 0, c),
                            rate_at(&b, b.shape->skill_panel, 2, c), "common");
            close_bench(&b);
        }
}

/* Neither held-out outcomes nor unknown ones affect training. */
static void test_held_out_outcomes_are_not_learned(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench a, b;
        open_bench(&a, variants[v], true);
        open_bench(&b, variants[v], true);
        size_t n_flipped = 0;
        for (uint64_t t = 0; t < b.class.n_attempts; t++) {
            const uint8_t mark = b.class.shard.mark[t];
            if (mark_split(mark) != TRAIN && mark_outcome(mark) != UNKNOWN) {
                b.class.shard.mark[t] ^= 1;
                n_flipped++;
            }
        }
        assert_true(n_flipped > 20);
        for (uint32_t epoch = 0; epoch < 5; epoch++) {
            pass(&a, epoch, NULL);
            pass(&b, epoch, NULL);
        }
        const size_t n_bytes = a.model->params.n * sizeof(real);
        assert_memory_equal(a.model->params.value, b.model->params.value, n_bytes);
        close_bench(&b);
        open_bench(&b, variants[v], true);
        for (uint64_t t = 0; t < b.class.n_attempts; t++)
            if (mark_split(b.class.shard.mark[t]) == TRAIN &&
                mark_outcome(b.class.shard.mark[t]) != UNKNOWN)
                b.class.shard.mark[t] ^= 1;
        pass(&b, 0, NULL);
        assert_memory_not_equal(a.model->params.value, b.model->params.value, n_bytes);
        close_bench(&b);
        close_bench(&a);
    }
}

/* The loss never rises, with any settings and from any start; and training converges. */
static void test_the_likelihood_never_falls(void **state)
{
    (void)state;
    const double slack = is_double ? 1e-11 : 2e-6;
    for (size_t v = 0; v < COUNT(variants); v++) {
        struct bench b;
        open_bench(&b, variants[v], v % 2 == 1);
        double before = INFINITY, first = 0;
        bool converged = false;
        uint32_t epoch = 0;
        for (; epoch < 2000 && !converged; epoch++) {
            const double loss = pass(&b, epoch, &converged);
            if (loss > before + slack * fabs(loss))
                fail_msg("%s: epoch %u: loss %.12g after %.12g", variants[v], epoch, loss,
                         before);
            before = loss;
            first = epoch == 0 ? loss : first;
            for (size_t k = 0; k < N_SKILLS; k++)
                assert_true(rate_at(&b, b.shape->skill_panel, k, RATE_GUESS) +
                                rate_at(&b, b.shape->skill_panel, k, RATE_SLIP) <
                            1);
        }
        assert_true(converged);
        assert_true(epoch > 5 && before < first - 0.5);
        const size_t n_bytes = b.model->params.n * sizeof(real);
        real *end = NEW(real, b.model->params.n);
        memcpy(end, b.model->params.value, n_bytes);
        pass(&b, epoch, &converged); /* a converged fit stays */
        assert_memory_equal(end, b.model->params.value, n_bytes);
        memory_free(end);
        close_bench(&b);
    }
}

/* The best of all starts is kept: no single start has a higher likelihood. */
static void test_restarts(void **state)
{
    (void)state;
    double best = 0;
    for (int which = 0; which < 2; which++) {
        struct bench b;
        open_bench(&b, which == 0 ? "prior=0" : "prior=0, restarts=30, explore=60", false);
        bool converged = false;
        double loss = 0;
        for (uint32_t epoch = 0; epoch < 2000 && !converged; epoch++)
            loss = pass(&b, epoch, &converged);
        if (which == 1)
            assert_true(loss < best + 1e-3);
        best = loss;
        close_bench(&b);
    }
}

/* Damaged fits and rates in a file do no harm. */
static void test_damaged_rows(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct bench b;
        open_bench(&b, "items=yes", false);
        const struct params *p = &b.model->params;
        real *row = bkt_row(p, p->value, b.shape->skill_panel, 0);
        for (size_t c = 0; c < b.shape->n_rates; c++)
            row[c] = (real)(sign * 1e30);
        for (size_t i = 0; i < 2 * b.model->n_items; i++)
            bkt_row(p, p->value, b.shape->item_panel, i / 2)[i % 2] = (real)(sign * 1e30);
        for (size_t s = 0; s < b.class.shard.n_students; s++) {
            real chance[16] = {0};
            b.model->kind->predict(b.model, b.work, s, 7, chance);
            for (size_t t = 0; t < COUNT(chance); t++)
                assert_true(chance[t] >= 0 && chance[t] <= 1);
        }
        assert_true(fabs(pass(&b, 0, NULL)) < 1e6);
        close_bench(&b);
    }
    struct bench b;
    open_bench(&b, "", false);
    const struct params *p = &b.model->params;
    bkt_row(p, p->value, b.shape->skill_panel, 1)[b.shape->fit] = (real)1e30;
    struct pass pass = {.comm = &world, .slices = &b.slices};
    assert_int_equal(b.model->kind->fit.learn(b.model, b.work, &pass), BAD_DATA);
    close_bench(&b);
}

/* ---- a simulated class */

static void read_truth(hid_t file, const char *name, size_t n, double *values)
{
    char path[64];
    int rank = 0;
    uint64_t shape[4];
    snprintf(path, sizeof path, "/truth/%s", name);
    tiny_must(h5_shape(file, path, &rank, shape));
    assert_int_equal(shape[0], n);
    tiny_must(h5_read(file, path, H5T_NATIVE_DOUBLE, n, values));
}

static void recovers(double forget)
{
    enum { N = 4 };
    char path[] = "/tmp/bkt.XXXXXX";
    const int made = mkstemp(path);
    assert_true(made >= 0 && close(made) == 0);
    const struct simulate_flags flags = {.n_students = 12000,
                                         .n_skills = N,
                                         .n_attempts = 60,
                                         .seed = 11,
                                         .forget = forget,
                                         .split = "none",
                                         .output = path};
    const void *kind = NULL;
    tiny_must(subcommands_find(&simulate_menu, "bkt", &kind));
    tiny_must(simulate_run(kind, &flags));
    struct config *config = config_create();
    char *text = memory_text("[data]\nfile = %s\n[model]\nkind = bkt\nforget = %s\nrestarts = "
                             "3\n[run]\ndirectory = none\n",
                             path, forget > 0 ? "yes" : "no");
    struct settings settings;
    struct stepper stepper;
    tiny_must(config_read_text(config, text, "test"));
    tiny_must(settings_create(&settings, config, NULL));
    tiny_must(stepper_create(&stepper, &world, &settings));
    for (int64_t epoch = 0; epoch < 500 && !stepper.converged; epoch++)
        tiny_must(stepper_step(&stepper, epoch, 0));
    assert_true(stepper.converged);
    const hid_t file = h5_open(path, MPI_COMM_SELF, 1);
    const struct params *p = &stepper.model->params;
    for (size_t c = 0; c < (forget > 0 ? N_RATES : N_RATES - 1); c++) {
        double truth[N];
        read_truth(file, bkt_rate_names[c], N, truth);
        for (size_t k = 0; k < N; k++) {
            const double got = bkt_chance(bkt_row(p, p->value, 0, k)[c]);
            /* measured: at most 0.011, in line with the standard errors */
            if (fabs(got - truth[k]) > 0.025)
                fail_msg("%s of skill %zu: %.4f instead of %.4f", bkt_rate_names[c], k, got,
                         truth[k]);
        }
    }
    H5Fclose(file);
    stepper_destroy(&stepper);
    settings_destroy(&settings);
    memory_free(text);
    unlink(path);
}

static void test_rates_are_recovered(void **state)
{
    (void)state;
    recovers(0);
    recovers(0.05);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    log_mute(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_predictions_are_sums_over_paths),
        cmocka_unit_test(test_em_step_is_the_sum_over_paths),
        cmocka_unit_test(test_held_out_outcomes_are_not_learned),
        cmocka_unit_test(test_the_likelihood_never_falls),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_rates_are_recovered),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
