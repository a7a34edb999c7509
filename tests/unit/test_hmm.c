/* builds: float double */
/* Chains of two hidden states against sums over all hidden paths; long chains without
 * forgetting, which have few paths. */
#include "base/memory.h"
#include "base/rng.h"
#include "bkt_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

extern const struct hmm_table hmm_plain;

static const bool is_double = sizeof(real) == sizeof(double);
static const double tolerance = is_double ? 1e-12 : 1e-5;

static void expect_near(double expected, double got, const char *what)
{
    if (!(fabs(expected - got) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%s: %.17g instead of %.17g", what, got, expected);
}

static void chain_case(size_t n, bool forgets, bool gaps, bool own, uint32_t which)
{
    const struct rng rng = {.seed = 9, .purpose = RNG_SIMULATE, .who = which};
    uint32_t next = 0;
    struct oracle lane[WIDTH];
    struct hmm_rates rates;
    uint16_t right[12] = {0}, known[12] = {0};
    real chance[12 * 2 * WIDTH] __attribute__((aligned(64)));
    for (size_t i = 0; i < WIDTH; i++) {
        struct oracle *o = &lane[i];
        *o = (struct oracle){.n = n};
        /* as stored for the kernel */
        o->p0 = (double)(rates.first[i] = (real)rng_uniform(&rng, next++));
        o->learn = (double)(rates.learn[i] = (real)(0.5 * rng_uniform(&rng, next++)));
        o->forget =
            (double)(rates.forget[i] = (real)(forgets ? 0.3 * rng_uniform(&rng, next++) : 0));
        rates.guess[i] = (real)(0.05 + 0.4 * rng_uniform(&rng, next++));
        rates.slip[i] = (real)(0.05 + 0.4 * rng_uniform(&rng, next++));
        for (size_t t = 0; t < n; t++) {
            o->guess[t] = own ? 0.1 + 0.5 * rng_uniform(&rng, next++) : (double)rates.guess[i];
            o->slip[t] = own ? 0.1 + 0.3 * rng_uniform(&rng, next++) : (double)rates.slip[i];
            o->seen[t] = gaps && rng_below(&rng, next++, 4) == 0
                             ? SEEN_NONE
                             : (int)rng_below(&rng, next++, 2);
            right[t] |= (uint16_t)((o->seen[t] == SEEN_RIGHT) << i);
            known[t] |= (uint16_t)((o->seen[t] != SEEN_NONE) << i);
            chance[2 * t * WIDTH + i] = (real)(o->seen[t] == SEEN_NONE    ? 1
                                               : o->seen[t] == SEEN_RIGHT ? 1 - o->slip[t]
                                                                          : o->slip[t]);
            chance[(2 * t + 1) * WIDTH + i] =
                (real)(o->seen[t] == SEEN_NONE    ? 1
                       : o->seen[t] == SEEN_RIGHT ? o->guess[t]
                                                  : 1 - o->guess[t]);
        }
        oracle_run(o);
    }
    const struct hmm_group group = {n, right, gaps ? known : NULL, own ? chance : NULL};
    real scratch[3 * 12 * WIDTH] __attribute__((aligned(64)));
    real sums[N_CHAINS_SUMS][WIDTH] __attribute__((aligned(64)));
    real plain[N_CHAINS_SUMS][WIDTH] __attribute__((aligned(64)));
    hmm_plain.smooth(&group, &rates, forgets, scratch, plain);
    hmm->smooth(&group, &rates, forgets, scratch, sums);
    assert_memory_equal(sums, plain, sizeof sums); /* every instruction set */
    for (size_t i = 0; i < WIDTH; i++) {
        const struct oracle *o = &lane[i];
        double of[N_SEEN_KINDS] = {0};
        for (size_t t = 0; t < n; t++) {
            of[o->seen[t]] += o->known[t];
            if (own)
                expect_near(o->known[t], (double)scratch[t * WIDTH + i], "a step");
        }
        expect_near(o->known[0], (double)sums[CHAINS_FIRST][i], "first");
        expect_near(o->known[n - 1], (double)sums[CHAINS_LAST][i], "last");
        expect_near(of[SEEN_RIGHT], (double)sums[CHAINS_RIGHT][i], "right");
        expect_near(of[SEEN_WRONG], (double)sums[CHAINS_WRONG][i], "wrong");
        expect_near(of[SEEN_NONE], (double)sums[CHAINS_OTHER][i], "other");
        expect_near(o->learned, (double)sums[CHAINS_LEARNED][i], "learned");
        expect_near(log(o->chance),
                    (double)sums[CHAINS_LOG][i] + log(2) * (double)sums[CHAINS_EXPONENT][i],
                    "log-likelihood");
    }
}

static void test_short_chains_are_sums_over_paths(void **state)
{
    (void)state;
    uint32_t which = 0;
    for (size_t n = 1; n <= 10; n++)
        for (int flags = 0; flags < 8; flags++)
            chain_case(n, flags & 1, flags & 2, flags & 4, which++);
}

/* Without forgetting a path is the step k from which it is in state 1 (n: never). There are n +
 * 1 paths: sum over all, with weights by their logarithms. */
struct path_sums {
    long double log_chance, first, last, right, wrong;
};

static struct path_sums add_paths(const struct hmm_rates *rates, size_t i,
                                  const uint16_t *right, size_t n, long double *weight)
{
    const long double p0 = rates->first[i], learn = rates->learn[i];
    const long double guess = rates->guess[i], slip = rates->slip[i];
    long double log_w = logl(p0), most = -INFINITY, all = 0;
    for (size_t t = 0; t < n; t++)
        log_w += logl(right[t] >> i & 1 ? 1 - slip : slip);
    for (size_t k = 0; k <= n; k++) {
        if (k > 0)
            log_w += logl(right[k - 1] >> i & 1 ? guess / (1 - slip) : (1 - guess) / slip);
        const long double prior =
            k == 0 ? 0
            : k < n
                ? logl(1 - p0) - logl(p0) + (long double)(k - 1) * log1pl(-learn) + logl(learn)
                : logl(1 - p0) - logl(p0) + (long double)(n - 1) * log1pl(-learn);
        weight[k] = log_w + prior;
        most = fmaxl(most, weight[k]);
    }
    for (size_t k = 0; k <= n; k++)
        all += weight[k] = expl(weight[k] - most);
    struct path_sums sums = {.log_chance = most + logl(all), .first = weight[0] / all};
    long double known = 0;
    for (size_t t = 0; t < n; t++) {
        known += weight[t] / all;
        *(right[t] >> i & 1 ? &sums.right : &sums.wrong) += known;
    }
    sums.last = known;
    return sums;
}

/* A run of right outcomes makes state 0 less likely than a rounding error of 1, or than the
 * smallest float; a run of wrong ones brings it back. Very long chains neither overflow nor
 * slow down. A lane has the same bits next to lanes that are longer. */
static void test_long_chains(void **state)
{
    (void)state;
    enum { LONGEST = 20000 };
    struct hmm_rates rates;
    uint16_t *right = NEW(uint16_t, LONGEST);
    real *scratch = NEW(real, 3 * LONGEST * WIDTH);
    long double *weight = NEW(long double, LONGEST + 1);
    real sums[N_CHAINS_SUMS][WIDTH] __attribute__((aligned(64)));
    real again[N_CHAINS_SUMS][WIDTH] __attribute__((aligned(64)));
    static const size_t runs[] = {1, 8, 25, 40, 300, 5000};
    for (size_t c = 0; c < COUNT(runs); c++) {
        const size_t n = runs[c] < 1000 ? 4 * runs[c] + 3 : LONGEST;
        for (size_t t = 0; t < n; t++) /* lane 5 alternates, whatever the others do */
            right[t] = (uint16_t)((t / runs[c] % 2 == 0 ? 0xffdf : 0) | (t % 2) << 5);
        for (size_t i = 0; i < WIDTH; i++) {
            rates.first[i] = (real)0.4;
            rates.learn[i] = (real)(i < 8 ? 1e-5 : 0.02);
            rates.forget[i] = 0;
            rates.guess[i] = (real)(i % 2 == 0 ? 0.2 : 0.01);
            rates.slip[i] = (real)(i % 4 < 2 ? 0.1 : 0.05);
        }
        const struct hmm_group group = {n, right, NULL, NULL};
        hmm->smooth(&group, &rates, false, scratch, sums);
        hmm_plain.smooth(&group, &rates, false, scratch, again);
        assert_memory_equal(sums, again, sizeof sums);
        for (size_t i = 0; i < WIDTH; i++) {
            const struct path_sums paths = add_paths(&rates, i, right, n, weight);
            const double expected[] = {(double)paths.log_chance, (double)paths.first,
                                       (double)paths.last, (double)paths.right,
                                       (double)paths.wrong};
            const double got[] = {(double)sums[CHAINS_LOG][i] +
                                      log(2) * (double)sums[CHAINS_EXPONENT][i],
                                  (double)sums[CHAINS_FIRST][i], (double)sums[CHAINS_LAST][i],
                                  (double)sums[CHAINS_RIGHT][i], (double)sums[CHAINS_WRONG][i]};
            for (size_t q = 0; q < COUNT(got); q++)
                if (!(fabs(got[q] - expected[q]) <= (is_double ? 1e-9
                                                     : q == 0  ? 1e-5
                                                               : 2e-3) *
                                                        fmax(1, fabs(expected[q]))))
                    fail_msg("runs of %zu, lane %zu, sum %zu: %.9g instead of %.9g", runs[c], i,
                             q, got[q], expected[q]);
        }
        for (size_t t = 0; t < n; t++)
            right[t] = (uint16_t)(t % 2 << 5);
        hmm->smooth(&group, &rates, false, scratch, again);
        for (size_t q = 0; q < N_CHAINS_SUMS; q++)
            assert_memory_equal(&sums[q][5], &again[q][5], sizeof(real));
    }
    memory_free(right);
    memory_free(scratch);
    memory_free(weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_chains_are_sums_over_paths),
        cmocka_unit_test(test_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
