/* builds: float double */
/* DKT's other losses: the task `final` with each of its losses, and the penalties of DKT+.
 * Values against the oracle's states; gradients (in double precision) against finite
 * differences. */
#include "base/h5.h"
#include "dkt_class.h"

static const char *const cells[] = {"rnn", "lstm", "gru"};
static const char *const losses[] = {"cross_entropy", "squared", "gaussian"};
static const char *const inputs[] = {"item", "skill", "both"};

/* All cells, numbers of layers and losses; other settings alternate. */
enum { N_FINALS = 3 * 3 * 3 };
static char *final_variant(unsigned v, int hidden, const char *dropout)
{
    static const int afters[] = {0, 1, 2, 7, 1000};
    return memory_text(
        "task=final, hidden=%d, cell=%s, layers=%u, loss=%s, input=%s, after=%d, "
        "dropout=%s, center=%s, unit=%s, smoothing=%s",
        hidden, cells[v % 3], 1 + v / 3 % 3, losses[v / 9], inputs[v / 2 % 3], afters[v % 5],
        dropout, v / 9 > 0 ? "0.3" : "0", v / 9 > 0 ? "0.7" : "1", v / 9 > 0 ? "0" : "0.1");
}

/* Likewise; the first three kinds are smooth, |y' - y| is not. */
enum { N_SMOOTH = 3 * 3 * 3, N_PENALTIES = 3 * 3 * 5 };
static char *penalty_variant(unsigned v, int hidden, const char *dropout)
{
    static const char *const kinds[] = {"reconstruction=0.7", "waviness2=3",
                                        "reconstruction=0.5, waviness2=2", "waviness=0.9",
                                        "reconstruction=0.1, waviness=0.5, waviness2=2"};
    return memory_text("hidden=%d, cell=%s, layers=%u, input=%s, dropout=%s, %s", hidden,
                       cells[v % 3], 1 + v / 3 % 3, inputs[v / 2 % 3], dropout, kinds[v / 9]);
}

#ifdef COHORT_REAL_DOUBLE
static void test_gradient_against_differences(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < N_FINALS + N_SMOOTH; v++)
        for (int padded = 0; padded < 2; padded++) {
            const char *dropout = (v + padded) % 2 ? "0.3" : "0";
            char *options = v < N_FINALS
                                ? final_variant(v, padded ? 17 : 3, dropout)
                                : penalty_variant(v - N_FINALS, padded ? 17 : 3, dropout);
            compare_with_differences(&class, options, padded ? 97 : 2, v);
            memory_free(options);
        }
    tiny_close(&class);
}
#endif

static double number_option(const struct bench *bench, const char *key)
{
    return oracle_number(bench->tiny.config, key);
}

/* w . h + b of a row of the tensors called NAME and NAME_bias. */
static double output_of(const struct oracle *o, const char *name, size_t row, const double *h)
{
    char bias_name[32];
    snprintf(bias_name, sizeof bias_name, "%s_bias", name);
    const struct place w = oracle_place(o->params, name),
                       b = oracle_place(o->params, bias_name);
    double sum = o->value[b.at + row * b.stride];
    for (size_t j = 0; j < o->hidden; j++)
        sum += h[j] * o->value[w.at + row * w.stride + j];
    return sum;
}

/* The state of the top layer after n attempts of student s. */
static void state_after(const struct oracle *o, size_t s, size_t n, double *h)
{
    struct oracle_states now = {0}, after = {0};
    for (uint64_t a = o->shard->first[s]; n > 0; n--, a++, now = after)
        oracle_advance(o, o->shard->item[a], o->shard->mark[a], &now, &after);
    memcpy(h, now.h[o->n_layers - 1], o->hidden * sizeof *h);
}

/* The loss of a target y where the outputs are m and, for gaussian, log_v. */
static double final_loss(const struct bench *bench, unsigned loss, double y, double m,
                         double log_v)
{
    const double smoothing = number_option(bench, "smoothing");
    const double x = (y - number_option(bench, "center")) / number_option(bench, "unit");
    const double soft = smoothing + (1 - 2 * smoothing) * y;
    return loss == 0   ? -soft * log(oracle_squash(m)) - (1 - soft) * log(oracle_squash(-m))
           : loss == 1 ? (x - m) * (x - m) / 2
                       : (log(2 * acos(-1)) + log_v + (x - m) * (x - m) / exp(log_v)) / 2;
}

/* Losses and predictions of targets match the head of dkt_target.c. */
static void test_final_targets(void **state)
{
    (void)state;
    static const uint32_t who[] = {3, 5, 0, 2, 1}; /* without the student who has no attempts */
    struct tiny class;
    open_class(&class);
    /* The split of the last attempt is the student's split; the last student has no target. */
    class.shard.mark[class.first[4] - 1] = mark_make(CORRECT, TRAIN, true, true);
    assert_true(mark_split(class.mark[class.first[1] - 1]) == TEST);
    for (unsigned v = 0; v < N_FINALS; v++) {
        char *options = final_variant(v, 3, "0");
        const unsigned kind = v / 9;
        struct bench bench;
        struct oracle o;
        open_bench(&bench, &class, options);
        oracle_open(&o, &bench.tiny, &class.shard);
        const double center = number_option(&bench, "center");
        const double unit = number_option(&bench, "unit");
        const size_t after = (size_t)number_option(&bench, "after");
        double mean[COUNT(who)], variance[COUNT(who)], total = 0;
        bench.model->kind->target.predict(bench.model, bench.work, who, COUNT(who), mean,
                                          variance);
        for (size_t k = 0; k < COUNT(who); k++) {
            const size_t s = who[k], n = class.first[s + 1] - class.first[s];
            double h[MOST_HIDDEN];
            state_after(&o, s, after == 0 ? n : size_min(after, n), h);
            const double m = output_of(&o, "target", 0, h);
            const double log_v = kind == 2 ? output_of(&o, "target", 1, h) : 0;
            if (s >= 1 && s <= 3)
                total += final_loss(&bench, kind, class.dataset.target[s], m, log_v);
            assert_true(fabs(mean[k] - (kind == 0 ? oracle_squash(m) : center + unit * m)) <
                        2 * tolerance);
            assert_true(kind == 2
                            ? fabs(variance[k] / (unit * unit * exp(log_v)) - 1) < 3 * tolerance
                            : isnan(variance[k]));
        }
        const double loss = accumulate(&bench, all_students, N_STUDENTS);
        assert_int_equal(bench.tally.n_scored, 3);
        if (!(fabs(loss - total) < (is_double ? 1e-10 : 2e-5)))
            fail_msg("%s: loss %.12g instead of %.12g", options, loss, total);
        oracle_close(&o);
        close_bench(&bench);
        memory_free(options);
    }
    tiny_close(&class);
}

/* Losses with penalties of student s, from their definition. `sign` (may be NULL) holds the
 * signs of all jumps. They are stored there or, if `frozen`, |jump| is sign times jump, which
 * is smooth. */
static double penalized(const struct oracle *o, const struct bench *bench, size_t s,
                        double (*sign)[N_ITEMS], bool frozen)
{
    const struct shard *shard = o->shard;
    const double r = number_option(bench, "reconstruction");
    const double w1 = number_option(bench, "waviness");
    const double w2 = number_option(bench, "waviness2");
    const uint64_t start = shard->first[s];
    size_t n = 0; /* up to the last attempt to train on */
    for (uint64_t a = start; a < shard->first[s + 1]; a++)
        if (mark_split(shard->mark[a]) == TRAIN && mark_outcome(shard->mark[a]) != UNKNOWN)
            n = a - start + 1;
    double total = oracle_loss(o, s, true, NULL), before[N_ITEMS] = {0};
    struct oracle_states now = {0}, after = {0};
    for (size_t t = 1; t < n; t++, now = after) {
        const uint8_t mark = shard->mark[start + t - 1];
        oracle_advance(o, shard->item[start + t - 1], mark, &now, &after);
        const double *h = after.h[o->n_layers - 1];
        if (mark_split(mark) == TRAIN && mark_is_shown(mark)) {
            const double x = oracle_logit(o, shard->item[start + t - 1], h);
            total -= r * log(oracle_squash(mark_outcome(mark) == CORRECT ? x : -x));
        }
        for (uint32_t i = 0; i < N_ITEMS; i++) {
            const double y = oracle_squash(oracle_logit(o, i, h));
            const double jump = t > 1 ? y - before[i] : 0;
            if (!frozen)
                sign[t][i] = jump < 0 ? -1 : 1;
            total += (w1 * sign[t][i] * jump + w2 * jump * jump) / N_ITEMS;
            before[i] = y;
        }
    }
    return total;
}

/* Values and gradients of the penalties. */
static void test_penalties(void **state)
{
    (void)state;
    struct tiny class;
    open_class(&class);
    for (unsigned v = 0; v < N_PENALTIES; v++) {
        char *options = penalty_variant(v, 3, "0");
        struct bench bench;
        struct oracle o;
        open_bench(&bench, &class, options);
        oracle_open(&o, &bench.tiny, &class.shard);
        double total = 0, *gradient = NEW(double, o.params->n);
        for (size_t s = 0; s < N_STUDENTS; s++) {
            double sign[MOST_STEPS][N_ITEMS];
            total += penalized(&o, &bench, s, sign, false);
            for (size_t i = v % 7; i < o.params->n; i += 7) {
                const double value = o.value[i], step = 4e-3;
                double f[6];
                for (unsigned k = 0; k < 6; k++) {
                    o.value[i] = value + moved(k, step);
                    f[k] = penalized(&o, &bench, s, sign, true);
                }
                o.value[i] = value;
                gradient[i] += difference(f, step);
            }
        }
        const double loss = accumulate(&bench, all_students, N_STUDENTS);
        if (!(fabs(loss - total) < (is_double ? 1e-10 : 2e-4)))
            fail_msg("%s: loss %.12g instead of %.12g", options, loss, total);
        for (size_t i = v % 7; i < o.params->n; i += 7) {
            const double got = -tiny_statistic(&bench.tally, i);
            if (params_find(o.params, i) != NULL &&
                !(fabs(got - gradient[i]) <=
                  (is_double ? 1e-7 : 3e-5) * fabs(gradient[i]) + (is_double ? 1e-9 : 5e-5)))
                fail_msg("%s: %s, number %zu: %.12g instead of %.12g", options,
                         params_find(o.params, i)->name, i, got, gradient[i]);
        }
        memory_free(gradient);
        oracle_close(&o);
        close_bench(&bench);
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
        cmocka_unit_test(test_final_targets),
        cmocka_unit_test(test_penalties),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    comm_finish(&world);
    return n_failed;
}
