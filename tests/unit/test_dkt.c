/* builds: float double */
/* Deep knowledge tracing against an oracle written from the equations: losses, predictions and
 * gradients. In double precision, also the gradient against finite differences of the model's
 * own loss. */
#include "base/h5.h"
#include "data/sequence.h"
#include "dkt_class.h"
#include "learn/layers/recurrent.h"

#ifdef COHORT_REAL_DOUBLE
static void test_gradient_against_differences(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < N_VARIANTS; v++) {
        char *small = variant(v, 3, 0), *padded = variant(v, 17, 0);
        compare_with_differences(&class, small, 4, v); /* another quarter for each variant */
        compare_with_differences(&class, padded, 211, v);
        memory_free(small);
        memory_free(padded);
    }
    tiny_close(&class);
}

#endif

/* Compare loss, gradient and predictions with the oracle's. */
static void compare_with_oracle(const struct tiny *class, const char *options, size_t stride)
{
    struct bench bench;
    open_bench(&bench, class, options);
    struct oracle o;
    oracle_open(&o, &bench.tiny, &class->shard);
    o.draw = bench.draw;
    double total = 0, *gradient = NEW(double, o.params->n);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        double expected[MOST_STEPS];
        real p[MOST_STEPS];
        total += oracle_loss(&o, s, true, expected);
        bench.model->kind->predict(bench.model, bench.work, s, 7, p);
        for (size_t t = 0; t < class->first[s + 1] - class->first[s]; t++)
            if (!(fabs((double)p[t] - expected[t]) < tolerance))
                fail_msg("%s: student %u, attempt %zu: %.17g instead of %.17g", options, s, t,
                         (double)p[t], expected[t]);
        const double step = 4e-3;
        size_t n = 0;
        for (size_t i = 0; i < o.params->n; i++) {
            if (params_find(o.params, i) == NULL || n++ % stride != 0)
                continue;
            const double value = o.value[i];
            double f[6];
            for (unsigned k = 0; k < 6; k++) {
                o.value[i] = value + moved(k, step);
                f[k] = oracle_loss(&o, s, false, NULL);
            }
            o.value[i] = value;
            gradient[i] += difference(f, step);
        }
    }
    const double loss = accumulate(&bench, all_students, N_STUDENTS);
    expect_padding(&bench, options);
    if (!(fabs(loss - total) < (is_double ? 1e-11 : 1e-4)))
        fail_msg("%s: loss %.12g instead of %.12g", options, loss, total);
    int64_t n_targets = 0;
    bool has_training[N_STUDENTS];
    bench.model->kind->training(bench.work, has_training, &n_targets);
    assert_int_equal(bench.tally.n_scored, n_targets);
    expect_gradient(&bench, options, gradient, stride, is_double ? 1e-7 : 2e-5,
                    is_double ? 1e-10 : 2e-5);
    memory_free(gradient);
    oracle_close(&o);
    close_bench(&bench);
}

/* Also for windows, whose gradient belongs to a loss with constants in it. */
static void test_against_oracle(void **state)
{
    (void)state;
    static const int windows[] = {0, 1, 2, 5, 29, 30};
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < N_VARIANTS; v++) {
        char *small = variant(v, 3, windows[v % 5 + v % 2]);
        compare_with_oracle(&class, small, 23);
        memory_free(small);
    }
    for (unsigned v = 0; v < 9; v++) { /* each cell and number of layers, many units */
        char *padded = variant(v + 18 + 27 * (v % 2), 17, windows[v % 6]);
        compare_with_oracle(&class, padded, 401);
        memory_free(padded);
    }
    tiny_close(&class);
}

/* A window as long as the students cuts off nothing; one shorter by a step cuts off
 * something. */
static void test_long_windows(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    /* The last attempt must be for training, or the window could be shorter. */
    class.shard.mark[class.first[4] - 1] = mark_make(CORRECT, TRAIN, true, true);
    for (unsigned v = 0; v < 9; v++) {
        static const int windows[] = {0, 30, 1000000000, 29};
        struct bench bench[COUNT(windows)];
        for (size_t k = 0; k < COUNT(windows); k++) {
            char *options = variant(v, 3, windows[k]);
            open_bench(&bench[k], &class, options);
            memory_free(options);
            accumulate(&bench[k], all_students, N_STUDENTS);
        }
        const size_t n_bytes = bench[0].tally.n * sizeof(int64_t);
        assert_memory_equal(bench[0].tally.values, bench[1].tally.values, n_bytes);
        assert_memory_equal(bench[0].tally.values, bench[2].tally.values, n_bytes);
        assert_memory_not_equal(bench[0].tally.values, bench[3].tally.values, n_bytes);
        for (size_t k = 0; k < COUNT(windows); k++)
            close_bench(&bench[k]);
    }
    tiny_close(&class);
}

/* A block gives the sum of its students one by one, in any order; students without training
 * attempts add nothing. */
static void test_block_is_the_sum_of_its_students(void **state)
{
    (void)state;
    static const uint32_t backwards[N_STUDENTS] = {5, 4, 3, 2, 1, 0};
    struct tiny class;
    open_class(&class);
    uint32_t lengths[N_STUDENTS] = {0}; /* up to the last attempt to train on */
    for (size_t s = 0; s < N_STUDENTS; s++)
        for (uint64_t t = class.first[s]; t < class.first[s + 1]; t++)
            if (mark_split(class.mark[t]) == TRAIN && mark_outcome(class.mark[t]) != UNKNOWN)
                lengths[s] = (uint32_t)(t - class.first[s] + 1);
    assert_int_equal(lengths[0], 6);
    for (unsigned v = 0; v < 27; v++) {
        char *options = variant(v + 27, 17, 0);
        struct bench bench;
        open_bench(&bench, &class, options);
        const size_t n = bench.tally.n;
        double *sum = NEW(double, n), loss = 0;
        assert_memory_equal(bench.model->kind->speed.lengths(bench.work), lengths,
                            sizeof lengths);
        for (uint32_t s = 0; s < N_STUDENTS; s++) {
            const double own = accumulate(&bench, &s, 1);
            assert_true(own > 0 || (s >= 4 && bench.tally.n_scored == 0));
            loss += own;
            for (size_t i = 0; i < n; i++)
                sum[i] += tiny_statistic(&bench.tally, i);
        }
        assert_true(accumulate(&bench, NULL, 0) == 0);
        for (int k = 0; k < 2; k++) {
            const double together =
                accumulate(&bench, k == 0 ? all_students : backwards, N_STUDENTS);
            assert_true(fabs(together - loss) < (is_double ? 1e-11 : 2e-5));
            for (size_t i = 0; i < n; i++)
                if (!(fabs(tiny_statistic(&bench.tally, i) - sum[i]) <
                      (is_double ? 1e-10 : 2e-5)))
                    fail_msg("%s: number %zu: %.12g instead of %.12g", options, i,
                             tiny_statistic(&bench.tally, i), sum[i]);
        }
        memory_free(sum);
        memory_free(options);
        close_bench(&bench);
    }
    tiny_close(&class);
}

/* Students with one target each, at the end: the loss is -log of the predicted probability of
 * the outcome. Only the requested split is predicted. */
static void test_loss_is_minus_log_p(void **state)
{
    (void)state;
    static const char *const students[] = {"b1", "c0", "b1v c0v d1", "a? c1v b0t. c0",
                                           "e1v e1v e0v e1v e0v e1v e0v e1"};
    struct tiny class;
    tiny_begin_skills(&class, true);
    for (size_t s = 0; s < COUNT(students); s++)
        tiny_text(&class, students[s]);
    tiny_finish(&class, &world);
    for (unsigned v = 0; v < 27; v++) {
        char *options = variant(v, v % 2 ? 17 : 3, 0);
        struct bench bench;
        open_bench(&bench, &class, options);
        for (uint32_t s = 0; s < COUNT(students); s++) {
            const size_t n = class.first[s + 1] - class.first[s];
            real p[16] = {0};
            for (size_t t = 0; t < n; t++)
                p[t] = -7;
            bench.model->kind->predict(bench.model, bench.work, s, 1u << TRAIN, p);
            for (size_t t = 0; t + 1 < n; t++)
                if (mark_split(class.mark[class.first[s] + t]) != TRAIN)
                    assert_true(p[t] == -7);
            const bool right = mark_outcome(class.mark[class.first[s + 1] - 1]) == CORRECT;
            const double chance = right ? (double)p[n - 1] : 1 - (double)p[n - 1];
            const double loss = accumulate(&bench, &s, 1);
            assert_int_equal(bench.tally.n_scored, 1);
            if (!(fabs(loss + log(chance)) < (is_double ? 1e-12 : 1e-5)))
                fail_msg("%s: student %u: loss %.14g, but -log p is %.14g", options, s, loss,
                         -log(chance));
        }
        memory_free(options);
        close_bench(&bench);
    }
    tiny_close(&class);
}

/* Probabilities have the same bits for one student and for many, whichever students share a
 * block. */
static void test_many_students_at_once(void **state)
{
    (void)state;
    static const uint32_t some[] = {3, 1, 0};
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < 27; v++) {
        char *options = variant(v, 17, 0);
        struct bench bench;
        open_bench(&bench, &class, options);
        const struct model_kind *kind = bench.model->kind;
        real one[64], all[64], three[64];
        for (size_t a = 0; a < 64; a++)
            one[a] = all[a] = three[a] = -7;
        for (size_t s = 0; s < N_STUDENTS; s++)
            kind->predict(bench.model, bench.work, s, 5, one + class.first[s]);
        kind->speed.predict_many(bench.model, bench.work, all_students, N_STUDENTS, 5, all);
        kind->speed.predict_many(bench.model, bench.work, some, COUNT(some), 5, three);
        assert_memory_equal(one, all, sizeof one);
        for (size_t a = 0; a < class.n_attempts; a++) {
            const bool asked =
                a < class.first[2] || (a >= class.first[3] && a < class.first[4]);
            assert_true(three[a] == (asked ? one[a] : -7));
            assert_true((one[a] == -7) == (mark_split(class.mark[a]) == VALID));
        }
        close_bench(&bench);
        memory_free(options);
    }
    tiny_close(&class);
}

/* hidden() is the state after all attempts. */
static void test_hidden_state(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < 9; v++) {
        char *options = variant(v, 17, 0);
        struct bench bench;
        struct oracle o;
        open_bench(&bench, &class, options);
        oracle_open(&o, &bench.tiny, &class.shard);
        assert_int_equal(bench.model->kind->view.n_hidden(bench.model), 17);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            struct oracle_states now = {0}, after = {0};
            for (uint64_t a = class.first[s]; a < class.first[s + 1]; a++, now = after)
                oracle_advance(&o, class.item[a], class.mark[a], &now, &after);
            real activation[17];
            bench.model->kind->view.hidden(bench.model, bench.work, s, activation);
            for (size_t j = 0; j < 17; j++)
                assert_true(fabs((double)activation[j] - now.h[o.n_layers - 1][j]) < tolerance);
        }
        oracle_close(&o);
        close_bench(&bench);
        memory_free(options);
    }
    tiny_close(&class);
}

/* With dropout 0.3 the derivative by the output row is d times the state. Three tenths of the
 * state are dropped and the rest scaled by 1/0.7, with different units for every student,
 * attempt and epoch. */
static void test_dropout(void **state)
{
    (void)state;
    enum { HIDDEN = 50, EPOCHS = 300 };
    struct tiny class;
    tiny_begin_skills(&class, true);
    for (int s = 0; s < 2; s++)
        tiny_text(&class, "b1v c0v b1 b1v b1v");
    tiny_finish(&class, &world);
    struct bench whole, thinned;
    open_bench(&whole, &class, "hidden=50, cell=gru, dropout=0");
    open_bench(&thinned, &class, "hidden=50, cell=gru, dropout=0.3");
    const struct place row = oracle_place(&whole.model->params, "output"),
                       bias = oracle_place(&whole.model->params, "output_bias");
    const size_t at = row.at + row.stride, bias_at = bias.at + bias.stride; /* of item b */
    const uint32_t who[2] = {0, 1};
    accumulate(&whole, who, 1);
    double h[HIDDEN];
    for (size_t j = 0; j < HIDDEN; j++)
        h[j] = tiny_statistic(&whole.tally, at + j) / tiny_statistic(&whole.tally, bias_at);
    size_t n_out = 0, n_same = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        bool out[2][HIDDEN];
        thinned.draw.epoch = epoch;
        for (size_t s = 0; s < 2; s++) {
            accumulate(&thinned, who + s, 1);
            for (size_t j = 0; j < HIDDEN; j++) {
                const double got = tiny_statistic(&thinned.tally, at + j) /
                                   tiny_statistic(&thinned.tally, bias_at);
                out[s][j] = got == 0;
                assert_true(out[s][j] || fabs(got - h[j] / 0.7) < 1e-5);
                n_out += out[s][j];
            }
        }
        for (size_t j = 0; j < HIDDEN; j++)
            n_same += out[0][j] == out[1][j];
    }
    const double n = 2.0 * EPOCHS * HIDDEN, same = 0.3 * 0.3 + 0.7 * 0.7;
    assert_true(fabs((double)n_out - 0.3 * n) < 4 * sqrt(0.3 * 0.7 * n));
    assert_true(fabs((double)n_same - same * n / 2) < 4 * sqrt(same * (1 - same) * n / 2));

    const double loss = accumulate(&thinned, who, 2);
    assert_true(accumulate(&thinned, who, 2) == loss);
    thinned.draw.seed++;
    assert_true(accumulate(&thinned, who, 2) != loss);
    close_bench(&whole);
    close_bench(&thinned);
    tiny_close(&class);
}

/* Advancing one student at a time, one step at a time, gives the states of all together, to the
 * bit. */
static void test_advance_step_by_step(void **state)
{
    (void)state;
    enum { STUDENTS = 7, HIDDEN = 21 };
    static const uint32_t length[STUDENTS] = {5, 1, 30, 2, 0, 5, 17},
                          who[] = {6, 5, 4, 3, 2, 1, 0};
    for (unsigned v = 0; v < 9; v++) {
        struct params params = {0};
        struct recurrent stack;
        recurrent_declare(&stack, (enum recurrent_kind)(v % 3), 1 + v / 3, HIDDEN, &params);
        params_allocate(&params);
        recurrent_init(&stack, &params, 8);
        struct sequence sequence = {0};
        struct recurrent_run run = {0};
        sequence_arrange(&sequence, who, STUDENTS, length);
        recurrent_reserve(&stack, &run, &sequence);
        const size_t width = stack.width, columns = stack.n_gates * width;
        real *input = NEW(real, sequence.n_rows * columns);
        const struct rng rng = {.seed = v, .purpose = RNG_SIMULATE};
        for (size_t r = 0; r < sequence.n_rows; r++)
            for (size_t g = 0; g < stack.n_gates; g++)
                for (size_t j = 0; j < HIDDEN; j++)
                    input[r * columns + g * width + j] =
                        (real)rng_normal(&rng, (uint32_t)(r * columns + g * width + j));
        memcpy(run.z[0], input, sequence.n_rows * columns * sizeof(real));
        recurrent_forward(&stack, &params, &sequence, &run);
        assert_int_equal(sequence.n, STUDENTS - 1);
        struct recurrent_packed packed = {0};
        recurrent_pack(&stack, &params, &packed, false);
        for (size_t room = 1; room <= STUDENTS;
             room += STUDENTS - 1) { /* alone; all together */
            const size_t size = room * width;
            real *h = NEW(real, 3 * size), *c = NEW(real, 3 * size),
                 *z = NEW(real, room * columns), *scratch = NEW(real, 2 * size);
            for (size_t first = 0; first < sequence.n; first += room) {
                memset(h, 0, 3 * size * sizeof *h);
                memset(c, 0, 3 * size * sizeof *c);
                for (size_t t = 0; t < length[sequence.student[first]]; t++) {
                    const size_t n = size_min(room, sequence.active[t] - first);
                    const size_t row = sequence.offset[t] + first;
                    memcpy(z, input + row * columns, n * columns * sizeof *z);
                    if (t > 0)
                        recurrent_advance(&stack, &params, &packed, n, room, z, h, c, scratch);
                    for (size_t l = 0; l < stack.n_layers; l++)
                        assert_memory_equal(h + l * size, run.h[l] + row * width,
                                            n * width * sizeof *h);
                    assert_true(h[HIDDEN] == 0);
                }
            }
            memory_free(h);
            memory_free(c);
            memory_free(z);
            memory_free(scratch);
        }
        recurrent_unpack(&packed);
        memory_free(input);
        recurrent_free(&run);
        sequence_free(&sequence);
        params_free(&params);
    }
}

/* With far too large weights probabilities stay probabilities, and nothing becomes NaN. */
static void test_extreme_weights(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < 27; v++) {
        char *options = variant(v, 17, 0);
        struct bench bench;
        open_bench(&bench, &class, options);
        tiny_model_scatter(&bench.tiny, 100, 5);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            real p[MOST_STEPS];
            bench.model->kind->predict(bench.model, bench.work, s, 7, p);
            for (size_t t = 0; t < class.first[s + 1] - class.first[s]; t++)
                assert_true(p[t] >= 0 && p[t] <= 1);
        }
        tally_clear(&bench.tally);
        bench.model->kind->accumulate(bench.model, bench.work, all_students, N_STUDENTS,
                                      &bench.draw, &bench.tally);
        assert_true(bench.tally.loss > 0);
        close_bench(&bench);
        memory_free(options);
    }
    tiny_close(&class);
}

/* Item biases start at the items' log-odds; all other initial values are small and depend on
 * the seed. */
static void test_initial_values(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < 27; v++) {
        char *options = variant(v, 3, 0);
        struct tiny_model tiny;
        tiny_model_open(&tiny, "dkt", options, &class.dataset);
        struct params *params = &tiny.model->params;
        int64_t right[N_ITEMS] = {3, 0, 7, 0, 1}, wrong[N_ITEMS] = {1, 0, 0, 4, 1};
        const struct item_counts counts = {N_ITEMS, right, wrong};
        real *before = NEW(real, params->n);
        tiny.model->kind->init(tiny.model, 3, &counts);
        memcpy(before, params->value, params->n * sizeof *before);
        const struct place bias = oracle_place(params, "output_bias");
        double *logit = item_counts_log_odds(&counts);
        for (size_t i = 0; v / 9 % 3 != 1 && i < N_ITEMS; i++)
            assert_true(fabs((double)params->value[bias.at + i * bias.stride] - logit[i]) <
                        1e-6);
        memory_free(logit);
        size_t n_drawn = 0, n_same = 0;
        tiny.model->kind->init(tiny.model, 4, &counts);
        for (size_t i = 0; i < params->n; i++) {
            const struct tensor *tensor = params_find(params, i);
            if (tensor == NULL) {
                assert_true(before[i] == 0);
            } else if (tensor->decays) {
                assert_true(fabs((double)before[i]) <= 1 / sqrt(3));
                n_drawn++;
                n_same += before[i] == params->value[i];
            }
        }
        assert_true(n_drawn > 0 && n_same <= n_drawn / 100);
        memory_free(before);
        tiny_model_close(&tiny);
        memory_free(options);
    }
    tiny_close(&class);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    const struct CMUnitTest tests[] = {
#ifdef COHORT_REAL_DOUBLE
        cmocka_unit_test(test_gradient_against_differences),
#endif
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_long_windows),
        cmocka_unit_test(test_block_is_the_sum_of_its_students),
        cmocka_unit_test(test_loss_is_minus_log_p),
        cmocka_unit_test(test_many_students_at_once),
        cmocka_unit_test(test_hidden_state),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_advance_step_by_step),
        cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_initial_values),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
