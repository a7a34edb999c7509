/* Whatever is written into a file or on the command line is taken or refused with a sentence,
 * and what was taken survives being written down and read again. */
#include "config.h"
#include "fail.h"
#include "memory.h"
#include "rng.h"
#include "sample_options.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool same_settings(const struct settings *a, const struct settings *b)
{
    return a->model.hidden == b->model.hidden &&
           memcmp(&a->model.rate, &b->model.rate, sizeof a->model.rate) == 0 &&
           a->model.persistent == b->model.persistent && a->model.visible == b->model.visible &&
           strcmp(a->data.file, b->data.file) == 0 && strcmp(a->data.note, b->data.note) == 0 &&
           strcmp(a->run.directory, b->run.directory) == 0 && a->run.seed == b->run.seed;
}

/* The text of these settings reads back as the same settings and the same text. */
static void expect_round_trip(struct settings *settings)
{
    struct settings back;
    struct option_group groups[N_GROUPS], groups_back[N_GROUPS];
    groups_fill(groups, settings);
    groups_fill(groups_back, &back);
    char *text = config_text(groups, N_GROUPS, NULL);
    struct config *again = config_create();
    if (config_read_text(again, text, "text") != OK ||
        config_resolve(again, groups_back, N_GROUPS) != OK)
        fail_msg("%s, in\n%s", fail_sentence(), text);
    if (!same_settings(settings, &back))
        fail_msg("other values came back from\n%s", text);
    char *text_back = config_text(groups_back, N_GROUPS, NULL);
    assert_string_equal(text_back, text);
    memory_free(text);
    memory_free(text_back);
    config_destroy(again);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const double rates[] = {0,     -0.0,   0.1,        1.0 / 3, 5e-324,
                                   1e-30, 0.0002, 9.99999999, 10,      2.2250738585072014e-308};
    static const char *const texts[] = {"",     "a",    "a = b",    "[x]",   "#c",
                                        "a  b", "100%", "\xc3\xa9", "\"q\"", "a\\n"};
    for (size_t r = 0; r < COUNT(rates); r++)
        for (size_t t = 0; t < COUNT(texts); t++) {
            struct settings settings = {
                .model = {.hidden = (int64_t)t * 400 + 1,
                          .rate = rates[r],
                          .persistent = t % 2 == 1,
                          .visible = (int)t % 3},
                .data = {.file = texts[t], .note = texts[COUNT(texts) - 1 - t]},
                .run = {.directory = "r", .seed = r == 0 ? INT64_MIN : INT64_MAX}};
            expect_round_trip(&settings);
        }
    for (uint32_t j = 0; j < 5000; j++) {
        const struct rng rng = {.seed = 8, .purpose = RNG_SIMULATE, .when = j};
        const uint64_t bits = rng_bits(&rng, 0) >> 1;
        double rate = 0;
        memcpy(&rate, &bits, sizeof rate);
        struct settings settings = {
            .model = {.hidden = 1, .rate = rate <= 10 ? rate : 10 * rng_uniform(&rng, 1)},
            .data = {.file = "f", .note = ""},
            .run = {.directory = "r", .seed = (int64_t)rng_bits(&rng, 2)}};
        expect_round_trip(&settings);
    }
}

/* A text made worse: bytes changed, parts cut out, doubled or moved, and now and then the end
 * torn off. Returns its new length; there is room for twice the old one and some more. */
static size_t spoil(char *text, size_t n, const struct rng *rng)
{
    static const char spice[] = "[]=#;.\n\r\t \0%-+eE0123456789_xX\"'\\\xff\x80\x01nayes";
    const size_t n_changes = rng_below(rng, 0, 6);
    uint32_t index = 1;
    for (size_t c = 0; c < n_changes && n > 0; c++) {
        const size_t at = rng_below(rng, index++, n);
        const size_t length = rng_below(rng, index++, size_min(n - at, 30) + 1);
        switch (rng_below(rng, index++, 5)) {
        case 0:
            text[at] = spice[rng_below(rng, index++, sizeof spice - 1)];
            break;
        case 1:
            text[at] = (char)rng_below(rng, index++, 256);
            break;
        case 2:
            memmove(text + at, text + at + length, n - at - length);
            n -= length;
            break;
        case 3:
            memmove(text + at + length, text + at, n - at);
            n += length;
            break;
        default:
            n = rng_below(rng, index++, 4) == 0 ? at : n;
        }
    }
    text[n] = '\0';
    return n;
}

/* Nothing but OK, or a failure of the user's kinds with a sentence. */
static bool taken(enum status status, const char *text)
{
    if (status == OK)
        return true;
    if ((status != BAD_USER && status != BAD_USAGE) || strlen(fail_sentence()) < 10)
        fail_msg("status %d, sentence '%s' for\n%s", status, fail_sentence(), text);
    fail_clear();
    return false;
}

static void test_fuzz_files(void **state)
{
    (void)state;
    static const char *const seeds[] = {
        ("[model]\nhidden = 30\nrate = 0.001\npersistent = yes\nvisible = bernoulli\n[data]\n"
         "file = class.h5\nnote = of 2024\n\n[run]\nseed = 7\ndirectory = runs/rbm\n"),
        "# comment\nmodel.hidden = 3\r\ndata.file=a\n; more\n[run]\nseed=-1",
        "[data]\nfile=x\n",
    };
    int n_good = 0, n_bad = 0;
    for (uint32_t j = 0; j < 30000; j++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .when = j};
        const char *seed = seeds[j % COUNT(seeds)];
        const size_t n = strlen(seed);
        char *text = NEW(char, 2 * n + 256);
        memcpy(text, seed, n);
        spoil(text, n, &rng);
        struct config *one = config_create();
        struct settings got;
        bool good = taken(config_read_text(one, text, "fuzz"), text);
        if (good)
            good = taken(resolve(one, &got), text);
        if (good)
            expect_round_trip(&got);
        n_good += good;
        n_bad += !good;
        config_destroy(one);
        memory_free(text);
    }
    assert_true(n_good > 1000 && n_bad > 1000);
}

static void test_fuzz_random_bytes(void **state)
{
    (void)state;
    static const char alphabet[] = "[]=#;.\n\n\n ab\xff";
    for (uint32_t j = 0; j < 20000; j++) {
        const struct rng rng = {.seed = 6, .purpose = RNG_SIMULATE, .when = j};
        char text[64];
        const size_t n = rng_below(&rng, 0, sizeof text);
        for (uint32_t b = 0; b < n; b++)
            text[b] = j % 2 ? alphabet[rng_below(&rng, b + 1, sizeof alphabet - 1)]
                            : (char)(1 + rng_below(&rng, b + 1, 255));
        text[n] = '\0';
        struct config *one = config_create();
        struct settings got;
        if (taken(config_read_text(one, text, "fuzz"), text))
            taken(resolve(one, &got), text);
        config_destroy(one);
    }
}

static void test_fuzz_command_line(void **state)
{
    (void)state;
    static const char *const seeds[] = {"model.hidden=30", "data=class.h5", "run.seed=7",
                                        "model.visible=softmax"};
    int n_good = 0;
    for (uint32_t j = 0; j < 20000; j++) {
        const struct rng rng = {.seed = 7, .purpose = RNG_SIMULATE, .when = j};
        const char *seed = seeds[j % COUNT(seeds)];
        char text[256];
        memcpy(text, seed, strlen(seed));
        spoil(text, strlen(seed), &rng);
        struct config *one = config_create();
        struct settings got;
        assert_int_equal(config_set(one, "data=a", "fuzz"), OK);
        if (taken(config_set(one, text, "fuzz"), text) && taken(resolve(one, &got), text)) {
            expect_round_trip(&got);
            n_good++;
        }
        config_destroy(one);
    }
    assert_true(n_good > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fuzz_files),
        cmocka_unit_test(test_fuzz_random_bytes),
        cmocka_unit_test(test_fuzz_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
