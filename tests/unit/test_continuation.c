/* What a run and its continuation must share: settings by name, except those added in later
 * versions, and the arithmetic. */
#include "base/fail.h"
#include "base/memory.h"
#include "learn/numerics.h"
#include "runs/continuation.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct option options[] = {
    {"rate", OPTION_NUMBER, 0, "0.001", 0, 10, NULL, "how far a step goes"}};
static const struct option_group group = {"model", options, COUNT(options), NULL};

static enum status check(const char *stored, const char *now)
{
    char *config = memory_text("%s", stored);
    const struct checkpoint checkpoint = {.path = (char[]){"last.h5"}, .config = config};
    const enum status status = continuation_check(&checkpoint, now, &group, 1);
    memory_free(config);
    return status;
}

static void expect_refused(const char *stored, const char *now, const char *sentence)
{
    fail_clear();
    assert_int_equal(check(stored, now), BAD_USER);
    assert_non_null(strstr(fail_sentence(), "last.h5: "));
    if (strstr(fail_sentence(), sentence) == NULL)
        fail_msg("'%s' instead of '%s'", fail_sentence(), sentence);
    fail_clear();
}

#define BEFORE "[model]\nkind = x\nhidden = 4\n\n[train]\nepochs = 3\npatience = 0\nseed = 7\n"

static void test_settings(void **state)
{
    (void)state;
    assert_int_equal(check(BEFORE, BEFORE), OK);
    assert_int_equal(check(BEFORE, "[model]\nkind = x\nhidden = 4\n\n"
                                   "[train]\nepochs = 5\npatience = 9\nseed = 7\n"),
                     OK);
    expect_refused(BEFORE,
                   "[model]\nkind = x\nhidden = 5\n\n"
                   "[train]\nepochs = 3\npatience = 0\nseed = 7\n",
                   "started with 'hidden = 4' but now 'hidden = 5' is requested");
    expect_refused(BEFORE "\n[refit]\nepochs = 3\n", BEFORE "\n[refit]\nepochs = 4\n",
                   "refit has changed: it had 'epochs = 3' and now has 'epochs = 4'");
}

/* `rate` (default 0.001) was added after the run was started. */
static void test_setting_added_later(void **state)
{
    (void)state;
    static const char now[] = "[model]\nkind = x\nhidden = 4\nrate = %s\n\n"
                              "[train]\nepochs = 3\npatience = 0\nseed = 7\n";
    char *same = memory_text(now, "1e-3"), *other = memory_text(now, "0.5");
    assert_int_equal(check(BEFORE, same), OK);
    expect_refused(BEFORE, other,
                   "by a version of cohort without model.rate, but now 'rate = 0.5' is "
                   "requested; set it to its default (0.001) or");
    expect_refused(other, BEFORE, "started with 'rate = 0.5', which is no longer a setting");
    memory_free(same);
    memory_free(other);
}

static void test_numerics(void **state)
{
    (void)state;
    assert_int_equal(numerics_revision("no such kind"), 1);
    assert_null(numerics_since("no such kind", 1, ""));
    assert_true(numerics_revision("dkt") > 1);
    char *since = numerics_since("dkt", 1, "[model]\nkind = dkt\n");
    assert_non_null(strstr(since, "matrix products are summed in a fixed order"));
    memory_free(since);
    assert_null(numerics_since("dkt", numerics_revision("dkt"), ""));
    since = numerics_since("rbm", 1, "[model]\nhidden_kind = binary\n");
    assert_null(strstr(since, "units learn"));
    memory_free(since);
    since = numerics_since("rbm", 1, "[model]\nhidden_kind = relu\n");
    assert_string_equal(strtok(since, ";"), "relu units learn at other rates");
    memory_free(since);
    const int64_t now = numerics_revision("dkt");
    assert_false(numerics_is_newer("dkt", now));
    assert_true(numerics_is_newer("dkt", now + 1));
    assert_false(continuation_say_numerics("a run", "dkt", 0, "")); /* it starts now */
    assert_false(continuation_say_numerics("a run", "dkt", now, ""));
    assert_true(continuation_say_numerics("a run", "dkt", now + 1, ""));
    assert_true(continuation_say_numerics("a run", "dkt", 1, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_setting_added_later),
        cmocka_unit_test(test_numerics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
