/* Pages in both forms: filled lines, escapes of roff, and the space between blocks. */
#include "base/fail.h"
#include "base/manual.h"
#include "base/memory.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The output of `write` in a form. Caller frees. */
static char *written(void (*write)(struct manual *), bool roff)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    struct manual manual = roff ? manual_as_roff(out) : manual_for_terminal(out);
    write(&manual);
    fclose(out);
    return text;
}

static void expect(void (*write)(struct manual *), bool roff, const char *expected)
{
    char *text = written(write, roff);
    assert_string_equal(text, expected);
    free(text);
}

static void write_blocks(struct manual *manual)
{
    manual_title(manual, "cohort-x", 7, "Do it");
    manual_heading(manual, "OPTIONS");
    manual_item(manual, "-o, --output FILE", "the file", "default: a-b");
    manual_item(manual, "--a-name-that-is-quite-long", "on a line of its own", NULL);
    manual_subheading(manual, "[train]");
    manual_prose(manual, "One\nparagraph.\n\n  code 'x' \\\n    more\n\nAnother, with `code`.");
    manual_heading(manual, "END");
    manual_synopsis(manual, "cohort x", "WORD");
}

static void test_terminal_text(void **state)
{
    (void)state;
    expect(write_blocks, false,
           "NAME\n    cohort-x - do it\n\nOPTIONS\n"
           "    -o, --output FILE     the file\n"
           "                          default: a-b\n"
           "    --a-name-that-is-quite-long\n"
           "                          on a line of its own\n\n"
           "  [train]\n    One paragraph.\n\n        code 'x' \\\n          more\n\n"
           "    Another, with `code`.\n\nEND\n    cohort x WORD\n");
}

static void test_roff(void **state)
{
    (void)state;
    char *text = written(write_blocks, true);
    const char *body = strstr(text, ".SH NAME");
    assert_int_equal(strncmp(text, ".TH COHORT\\-X 7 \"\" ", 19), 0);
    assert_string_equal(
        body, ".SH NAME\ncohort\\-x \\- do it\n.SH OPTIONS\n"
              ".TP\n\\fB\\-o, \\-\\-output FILE\\fR\nthe file\n.br\ndefault: a\\-b\n"
              ".TP\n\\fB\\-\\-a\\-name\\-that\\-is\\-quite\\-long\\fR\non a line of its own\n"
              ".SS [train]\nOne paragraph.\n"
              ".PP\n.RS 4\n.nf\ncode \\(aqx\\(aq \\e\n  more\n.fi\n.RE\n"
              ".PP\nAnother, with \\fBcode\\fR.\n.SH END\n\\fBcohort x\\fR WORD\n");
    free(text);
}

static void write_odd(struct manual *manual)
{
    manual_paragraph(manual, "%s", ".dot \"q\" x^2~ caf\xc3\xa9 \xff");
    manual_lines(manual, ".a\n\n`b`");
}

static void test_roff_escapes(void **state)
{
    (void)state;
    expect(write_odd, true,
           ".PP\n\\&.dot \\(dqq\\(dq x\\(ha2\\(ti caf\\[u00E9] \\[u00FF]\n"
           ".PP\n.RS 4\n.nf\n\\&.a\n\n\\(gab\\(ga\n.fi\n.RE\n");
    expect(write_odd, false,
           "    .dot \"q\" x^2~ caf\xc3\xa9 \xff\n\n        .a\n\n        `b`\n");
}

static void write_long(struct manual *manual)
{
    for (int i = 0; i < 3; i++)
        manual_paragraph(manual, "%0*d %s %s", 30 + 40 * i, 7, "caf\xc3\xa9",
                         "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a");
}

/* No line exceeds 80 characters, except for a single long word. */
static void test_filled_lines(void **state)
{
    (void)state;
    char *text = written(write_long, false);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
        assert_true(strlen(line) <= 81 || strchr(line + 4, ' ') == NULL);
    assert_non_null(strstr(text, "7 caf\xc3\xa9 a a a"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terminal_text),
        cmocka_unit_test(test_roff),
        cmocka_unit_test(test_roff_escapes),
        cmocka_unit_test(test_filled_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
