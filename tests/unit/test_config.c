/* Settings: what is read, what is refused, and with which message. */
#include "base/atomic_file.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/manual.h"
#include "base/memory.h"
#include "base/rng.h"
#include "sample_options.h"
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct config *config; /* a new one for each test */

static int begin(void **state)
{
    (void)state;
    fail_clear();
    config = config_create();
    return 0;
}

static int end(void **state)
{
    (void)state;
    config_destroy(config);
    fail_clear();
    return 0;
}

static void read_text(const char *text)
{
    if (config_read_text(config, text, "a.ini") != OK)
        fail_msg("%s", fail_sentence());
}

static void set(const char *assignment)
{
    if (config_set(config, assignment, "the command line") != OK)
        fail_msg("%s", fail_sentence());
}

/* The error message contains all these words (NULL-terminated); clears it. */
static void expect_words(const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(fail_sentence(), *words) == NULL)
            fail_msg("'%s' does not contain '%s'", fail_sentence(), *words);
    fail_clear();
}
#define SAYS(...) expect_words((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **state)
{
    (void)state;
    struct settings got;
    set("data=class.h5");
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(got.model.hidden, 15);
    assert_true(got.model.rate == 0.001);
    assert_false(got.model.persistent);
    assert_int_equal(got.model.visible, 1);
    assert_string_equal(got.data.file, "class.h5");
    assert_string_equal(got.data.note, "");
    assert_string_equal(got.run.directory, "runs/one");
    assert_int_equal(got.run.seed, 1);
}

static void test_settings_file(void **state)
{
    (void)state;
    struct settings got;
    read_text("# a comment\n"
              "; another = one\n"
              "\n"
              "[model]\n"
              "  hidden = 30\r\n"
              "rate=2.5e-3\n"
              "\tpersistent\t=\tyes\t\n"
              "[ data ]\n"
              "file = my class.h5\n"
              "note = a = b # and [c]; %s\n"
              "[run]\n"
              "seed = -9223372036854775808\n"
              "[model]\n"
              "visible = gaussian");
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(got.model.hidden, 30);
    assert_true(got.model.rate == 2.5e-3);
    assert_true(got.model.persistent);
    assert_int_equal(got.model.visible, 2);
    assert_string_equal(got.data.file, "my class.h5");
    assert_string_equal(got.data.note, "a = b # and [c]; %s");
    assert_true(got.run.seed == INT64_MIN);
    assert_string_equal(config_get(config, "model", "hidden"), "30");
    assert_null(config_get(config, "model", "hiden"));
    assert_null(config_get(config, "data", "hidden"));
}

static void test_dotted_keys(void **state)
{
    (void)state;
    struct settings got;
    read_text("model.hidden = 7\ndata.file = x\n[run]\nseed = 4\n");
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(got.model.hidden, 7);
    assert_string_equal(got.data.file, "x");
    assert_int_equal(got.run.seed, 4);
}

static void test_last_value_counts(void **state)
{
    (void)state;
    struct settings got;
    read_text("[model]\nhidden = 3\n[data]\nfile = a\n");
    read_text("[model]\nhidden = 4\n");
    assert_string_equal(config_get(config, "model", "hidden"), "4");
    set("model.hidden=5");
    set(" model.rate = 0.5 ");
    set("data=b");
    set("run=there");
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(got.model.hidden, 5);
    assert_true(got.model.rate == 0.5);
    assert_string_equal(got.data.file, "b");
    assert_string_equal(got.run.directory, "there");
}

static void test_user_settings_override_suggestions(void **state)
{
    (void)state;
    struct settings got;
    set("data=b");
    set("model.hidden=5");
    assert_int_equal(
        config_suggest(config, "[model]\nhidden = 9\nrate = 2\nvisible = softmax\n", "preset"),
        OK);
    assert_int_equal(config_suggest(config, "[model]\nrate = 3\n", "preset"), OK);
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(got.model.hidden, 5);
    assert_true(got.model.rate == 2); /* an earlier suggestion takes precedence */
    assert_string_equal(config_get(config, "model", "hidden"), "5");
    set("model.rate=1");
    assert_int_equal(resolve(config, &got), OK);
    assert_true(got.model.rate == 1);
}

static void test_missing_value(void **state)
{
    (void)state;
    struct settings got;
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("data.file", "the data set");
}

static void test_unknown_key(void **state)
{
    (void)state;
    struct settings got;
    read_text("[data]\nfile = a\n\n[model]\nhiden = 3\n");
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("a.ini:5", "model.hiden", "model.hidden");
}

static void test_unknown_section_and_command_line(void **state)
{
    (void)state;
    struct settings got;
    set("data=a");
    set("modle.hidden=3");
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("the command line", "modle.hidden", "model.hidden");
}

static void test_values_out_of_range(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        bool good;
    } cases[] = {
        {"model.hidden", "1", true},
        {"model.hidden", "4096", true},
        {"model.hidden", "0", false},
        {"model.hidden", "4097", false},
        {"model.hidden", "", false},
        {"model.hidden", "3.5", false},
        {"model.hidden", "3x", false},
        {"model.hidden", "1e3", false},
        {"model.hidden", "0x10", false},
        {"model.hidden", "99999999999999999999", false},
        {"model.hidden", "-1", false},
        {"model.hidden", "five", false},
        {"model.hidden", "3 4", false},
        {"run.seed", "9223372036854775807", true},
        {"run.seed", "-5", true},
        {"run.seed", "9223372036854775808", false},
        {"model.rate", "0", true},
        {"model.rate", "10", true},
        {"model.rate", "1e-300", true},
        {"model.rate", ".5", true},
        {"model.rate", "-0.1", false},
        {"model.rate", "10.0000001", false},
        {"model.rate", "nan", false},
        {"model.rate", "inf", false},
        {"model.rate", "1e999", false},
        {"model.rate", "1,5", false},
        {"model.rate", "", false},
        {"model.rate", "1.5.2", false},
        {"model.persistent", "yes", true},
        {"model.persistent", "no", true},
        {"model.persistent", "true", true},
        {"model.persistent", "off", true},
        {"model.persistent", "maybe", false},
        {"model.persistent", "", false},
        {"model.persistent", "2", false},
        {"model.visible", "gaussian", true},
        {"model.visible", "Gaussian", false},
        {"model.visible", "", false},
        {"model.visible", "soft", false},
    };
    for (size_t j = 0; j < COUNT(cases); j++) {
        struct config *one = config_create();
        char *text = memory_text("%s=%s", cases[j].key, cases[j].value);
        struct settings got;
        fail_clear();
        assert_int_equal(config_set(one, "data=a", "here"), OK);
        assert_int_equal(config_set(one, text, "word 3"), OK);
        const enum status status = resolve(one, &got);
        if (status != (cases[j].good ? OK : BAD_USER))
            fail_msg("%s returns %d: %s", text, status, fail_sentence());
        if (status != OK)
            SAYS("word 3", strchr(cases[j].key, '.') + 1, cases[j].value, "expected");
        memory_free(text);
        config_destroy(one);
    }
}

static void test_errors_name_range_and_choices(void **state)
{
    (void)state;
    struct settings got;
    set("data=a");
    read_text("[model]\nhidden = 5000\n");
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("a.ini:2", "hidden", "5000", "1 to 4096");
    set("model.hidden=5");
    set("model.visible=sofmax");
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("bernoulli", "gaussian", "did you mean 'softmax'");
}

static void test_malformed_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "[",     "[]", "[model",         "[mo del]", "hidden", "= 3",     "a b = 3",
        "[[x]]", "]",  "k\xc3\xa9y = 1", "[x] y",    "=",      "(a) = 2", "[model]x"};
    for (size_t j = 0; j < COUNT(lines); j++) {
        char *text = memory_text("[model]\n\nhidden = 3\n%s\n", lines[j]);
        fail_clear();
        if (config_read_text(config, text, "b.ini") != BAD_USER)
            fail_msg("'%s' was accepted", lines[j]);
        SAYS("b.ini:4", "expected");
        memory_free(text);
    }
    fail_clear();
    assert_int_equal(config_read_text(config, "\nhidden = 3\n", "b.ini"), BAD_USER);
    SAYS("b.ini:2", "'hidden' has no section");
    static const char *const assignments[] = {"hidden=3", "model.hidden", "",
                                              "=",        "a b.c=3",      "--hidden"};
    for (size_t j = 0; j < COUNT(assignments); j++) {
        fail_clear();
        if (config_set(config, assignments[j], "word 4") != BAD_USAGE)
            fail_msg("'%s' was accepted", assignments[j]);
        SAYS("word 4", "expected section.key=value");
    }
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    assert_int_equal(atomic_file_write(path, bytes, n), OK);
}

static void test_read_from_disk(void **state)
{
    (void)state;
    const char *where = getenv("TMPDIR");
    char *directory = memory_text("%s/config.XXXXXX", where ? where : "/tmp");
    assert_non_null(mkdtemp(directory));
    char *path = memory_text("%s/a.ini", directory);
    assert_int_equal(config_read(config, path), BAD_USER);
    SAYS(path);
    assert_int_not_equal(config_read(config, directory), OK);
    SAYS(directory);
    write_file(path, "[model]\0hidden = 3\n", 19);
    assert_int_equal(config_read(config, path), BAD_USER);
    SAYS(path, "text");
    write_file(path, "", 0);
    assert_int_equal(config_read(config, path), OK);
    write_file(path, "[model]\nhidden = 8\n[data]\nfile = c.h5\nnot a line\n", 49);
    assert_int_equal(config_read(config, path), BAD_USER);
    SAYS(path, ":5");
    write_file(path, "\xef\xbb\xbf[model]\nhidden = 9\n", 22); /* a byte-order mark */
    assert_int_equal(config_read(config, path), OK);
    assert_string_equal(config_get(config, "model", "hidden"), "9");
    write_file(path, "[model]\nhidden = 8\n", 19);
    assert_int_equal(config_read(config, path), OK);
    assert_string_equal(config_get(config, "model", "hidden"), "8");
    unlink(path);
    rmdir(directory);
    memory_free(path);
    memory_free(directory);
}

static void test_long_lines(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    char *text = NEW(char, LONG + 64);
    memcpy(text, "data.note = ", 12);
    memset(text + 12, 'x', LONG);
    memcpy(text + 12 + LONG, "\ndata.file=y\n", 13);
    struct settings got;
    read_text(text);
    assert_int_equal(resolve(config, &got), OK);
    assert_int_equal(strlen(got.data.note), LONG);
    memset(text, 'k', LONG);
    assert_int_equal(config_read_text(config, text, "b.ini"), BAD_USER);
    SAYS("b.ini:1");
    memcpy(text + LONG, "=3", 3);
    assert_int_equal(config_read_text(config, text, "b.ini"), BAD_USER);
    SAYS("b.ini:1", "no section");
    text[5] = '.';
    assert_int_equal(config_read_text(config, text, "b.ini"), OK);
    assert_int_equal(resolve(config, &got), BAD_USER);
    SAYS("b.ini:1");
    memory_free(text);
}

static void test_omitted_settings(void **state)
{
    (void)state;
    struct settings got;
    struct option_group groups[N_GROUPS];
    set("data=secret.h5");
    groups_fill(groups, &got);
    assert_int_equal(config_resolve(config, groups, N_GROUPS), OK);
    char *text = config_text(groups, N_GROUPS, (const char *const[]){"data", "run", NULL});
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "[run]"));
    assert_non_null(strstr(text, "[model]"));
    assert_non_null(strstr(text, "hidden = 15"));
    memory_free(text);
    text = config_text(groups, N_GROUPS, (const char *const[]){"model.hidden", NULL});
    assert_non_null(strstr(text, "secret")); /* omits a single key */
    assert_non_null(strstr(text, "[model]"));
    assert_null(strstr(text, "hidden = 15"));
    memory_free(text);
}

/* A text with single spaces for all white space. Caller frees. */
static char *words_of(const char *text)
{
    char *words = memory_text("%s", text), *to = words;
    for (const char *c = text; *c != '\0'; c++)
        if (!isspace((unsigned char)*c))
            *to++ = *c;
        else if (to > words && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    return words;
}

static void test_help_lists_all_settings(void **state)
{
    (void)state;
    struct settings got;
    struct option_group groups[N_GROUPS];
    groups_fill(groups, &got);
    for (int roff = 0; roff < 2; roff++) {
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        assert_non_null(out);
        struct manual manual = roff ? manual_as_roff(out) : manual_for_terminal(out);
        config_help(&manual, groups, N_GROUPS);
        fclose(out);
        char *words = words_of(text);
        for (size_t g = 0; g < N_GROUPS; g++) {
            assert_non_null(strstr(words, groups[g].section));
            for (size_t o = 0; o < groups[g].n_options; o++) {
                assert_non_null(strstr(words, groups[g].options[o].key));
                assert_non_null(strstr(words, groups[g].options[o].help));
            }
        }
        assert_non_null(strstr(words, "default: 15; range: 1 to 4096"));
        assert_non_null(strstr(words, "default: no; choices: yes, no"));
        assert_non_null(
            strstr(words, "default: softmax; choices: bernoulli, softmax, gaussian"));
        assert_non_null(strstr(words, "required"));
        assert_int_equal(strstr(text, ".SS [model]\n.TP\n") != NULL, roff);
        memory_free(words);
        free(text);
    }
}

static void test_parse_one(void **state)
{
    (void)state;
    struct model model = {0};
    assert_int_equal(config_parse(&model_options[0], "12", "--hidden", &model), OK);
    assert_int_equal(model.hidden, 12);
    assert_int_equal(config_parse(&model_options[0], "twelve", "--hidden", &model), BAD_USER);
    assert_int_equal(model.hidden, 12);
    SAYS("--hidden", "twelve");
}

static void test_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"import", "train", "evaluate", "predict", "inspect"};
    assert_string_equal(config_nearest("trian", names, COUNT(names)), "train");
    assert_string_equal(config_nearest("evalute", names, COUNT(names)), "evaluate");
    assert_string_equal(config_nearest("inspect", names, COUNT(names)), "inspect");
    assert_null(config_nearest("xyzzy", names, COUNT(names)));
    assert_null(config_nearest("train", names, 0));
    char word[1000];
    memset(word, 'e', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    config_nearest(word, (const char *const[]){word, "e", ""}, 3);
    config_nearest("", (const char *const[]){word, "e", ""}, 3);
}

#define WITH_CONFIG(test) cmocka_unit_test_setup_teardown(test, begin, end)

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
        fail_msg("different values read back from\n%s", text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONFIG(test_defaults),
        WITH_CONFIG(test_settings_file),
        WITH_CONFIG(test_dotted_keys),
        WITH_CONFIG(test_last_value_counts),
        WITH_CONFIG(test_user_settings_override_suggestions),
        WITH_CONFIG(test_missing_value),
        WITH_CONFIG(test_unknown_key),
        WITH_CONFIG(test_unknown_section_and_command_line),
        WITH_CONFIG(test_values_out_of_range),
        WITH_CONFIG(test_errors_name_range_and_choices),
        WITH_CONFIG(test_malformed_lines),
        WITH_CONFIG(test_read_from_disk),
        WITH_CONFIG(test_long_lines),
        WITH_CONFIG(test_omitted_settings),
        WITH_CONFIG(test_help_lists_all_settings),
        WITH_CONFIG(test_parse_one),
        WITH_CONFIG(test_nearest_name),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
