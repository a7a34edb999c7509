/* A page is one file that can be mailed: the style sheet is inside, there are no scripts, and
 * nothing is loaded; a content security policy in the head enforces this. Colours are CSS
 * variables (plot_colours.c), so that dark screens and paper have their own. */
#include "plot/html.h"
#include "base/memory.h"
#include "cohort.h"
#include "plot/html_style.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void begin(FILE *out, const char *title, int64_t seconds)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'\">\n"
          "<meta name=\"generator\" content=\"cohort " COHORT_VERSION "\">\n",
          out);
    if (seconds > 0)
        fprintf(out, "<meta http-equiv=\"refresh\" content=\"%" PRId64 "\">\n", seconds);
    html_say(out, "title", "%s", title);
    html_style(out);
    fputs("</head>\n<body>\n", out);
}

void html_begin(FILE *out, const char *title)
{
    begin(out, title, 0);
}

void html_begin_live(FILE *out, const char *title, int64_t seconds)
{
    begin(out, title, seconds);
}

void html_end(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}

void html_sections(FILE *out, const char *sections)
{
    static const char head[] = "<h2>", end[] = "</h2>";
    size_t n = 0;
    fputs("<ul class=\"contents\">\n", out);
    for (const char *at = sections; (at = strstr(at, head)) != NULL;) {
        at += strlen(head);
        fprintf(out, "<li><a href=\"#s%zu\">%.*s</a></li>\n", ++n, (int)(strstr(at, end) - at),
                at);
    }
    fputs("</ul>\n", out);
    n = 0;
    for (const char *at = sections; (at = strstr(sections, head)) != NULL;) {
        fprintf(out, "%.*s<h2 id=\"s%zu\">", (int)(at - sections), sections, ++n);
        sections = at + strlen(head);
    }
    fputs(sections, out);
}

/* The character at `text` and its length in bytes; -1 and one byte for invalid UTF-8; -1 for
 * characters that a page may not contain, or that would change the direction of the text after
 * them. */
static int32_t decode(const char *text, size_t *length)
{
    const unsigned char *c = (const unsigned char *)text;
    *length = 1;
    if (c[0] < 0x80)
        return c[0] >= 0x20 && c[0] != 0x7f ? c[0] : c[0] == '\n' || c[0] == '\t' ? ' ' : -1;
    const size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c[0] < 0xc2 || c[0] > 0xf4)
        return -1;
    int32_t code = c[0] & (0xff >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (c[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return -1;
    *length = n;
    if (code < 0xa0 || (code >= 0x202a && code <= 0x202e) ||
        (code >= 0x2066 && code <= 0x2069) || (code & 0xfffe) == 0xfffe ||
        (code >= 0xfdd0 && code <= 0xfdef))
        return -1;
    return code;
}

/* Widths in eighths of a column. Letters of one column are 8 units of a picture wide on average;
 * wide ones count more, so that a name in capitals keeps its place. Two columns are for the
 * characters of East Asia, for emoji, and for the sign in place of a character that cannot be
 * shown. */
enum { COLUMN = 8 };
static size_t width_of(int32_t code)
{
    const bool is_wide = code < 0 || (code >= 0x1100 && code <= 0x115f) ||
                         (code >= 0x2e80 && code <= 0xffe6) || code >= 0x1f300;
    if (is_wide)
        return 2 * COLUMN;
    if (code == 'W' || code == 'M' || code == 'm' || code == '@' || code == '%')
        return 13;
    if (code == '<' || code == '>' || code == '=' || code == '+' || code == '#' || code == '&')
        return 12;
    return code >= 'A' && code <= 'Z' ? 10 : COLUMN;
}

static size_t width_of_text(const char *text)
{
    size_t n = 0;
    for (size_t length = 0; *text != '\0'; text += length)
        n += width_of(decode(text, &length));
    return n;
}

size_t html_columns(const char *text)
{
    return (width_of_text(text) + COLUMN - 1) / COLUMN;
}

size_t html_break(const char *text, size_t most)
{
    size_t width = 0, n = 0, after_space = 0;
    for (size_t length = 0; text[n] != '\0'; n += length) {
        const int32_t code = decode(text + n, &length);
        width += width_of(code);
        if (width > most * COLUMN && code != ' ')
            return after_space > 0 ? after_space : n > 0 ? n : length;
        if (code == ' ')
            after_space = n + length;
    }
    return n;
}

static void print_character(FILE *out, const char *text, size_t length, int32_t code)
{
    switch (code) {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&#39;", out);
        break;
    case ' ': /* also tabs and line breaks */
        fputc(' ', out);
        break;
    case -1:
        fputs("\xef\xbf\xbd", out);
        break;
    default:
        fwrite(text, 1, length, out);
    }
}

void html_text(FILE *out, const char *text)
{
    for (size_t length = 0; *text != '\0'; text += length) {
        const int32_t code = decode(text, &length);
        if (code == ' ' && text[length] == '%')
            fputs("\u00a0", out); /* a percentage is not broken into lines */
        else
            print_character(out, text, length, code);
    }
}

static bool is_combining(int32_t code)
{
    return (code >= 0x300 && code <= 0x36f) || code == 0x200d ||
           (code >= 0xfe00 && code <= 0xfe0f);
}

void html_cut(FILE *out, const char *text, size_t most)
{
    size_t rest = width_of_text(text), used = 0;
    if (rest <= most * COLUMN) {
        html_text(out, text);
        return;
    }
    const size_t room = (most - 1) * COLUMN;
    int32_t code = 0;
    for (size_t length = 0; *text != '\0'; text += length) {
        code = decode(text, &length);
        if (used + width_of(code) > (room + COLUMN) / 2)
            break;
        used += width_of(code);
        rest -= width_of(code);
        print_character(out, text, length, code);
    }
    fputs("…", out);
    for (size_t length = 0; *text != '\0'; text += length) {
        code = decode(text, &length);
        if (used + rest <= room && !is_combining(code))
            break;
        rest -= width_of(code);
    }
    html_text(out, text);
}

void html_name(FILE *out, const char *name)
{
    fputs("<bdi>", out);
    html_text(out, name);
    fputs("</bdi>", out);
}

static void print_format(FILE *out, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = NEW(char, (size_t)(n > 0 ? n : 0) + 1);
    vsnprintf(text, (size_t)(n > 0 ? n : 0) + 1, format, arguments);
    html_text(out, text);
    memory_free(text);
}

void html_say(FILE *out, const char *element, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(out, "<%s>", element);
    print_format(out, format, arguments);
    fprintf(out, "</%.*s>\n", (int)strcspn(element, " "), element);
    va_end(arguments);
}

void html_fold(FILE *out, const char *title)
{
    fputs("<details><summary>", out);
    html_say(out, "h3", "%s", title);
    fputs("</summary>\n", out);
}

/* Inside a quoted text of a style: everything but letters, digits and spaces is escaped. */
static void css_text(FILE *out, const char *text)
{
    for (size_t length = 0; *text != '\0'; text += length) {
        const int32_t code = decode(text, &length);
        if (code >= 0x80 || code == ' ' || (code >= '0' && code <= '9') ||
            (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z'))
            print_character(out, text, length, code);
        else
            fprintf(out, "\\%x ", (unsigned)(code < 0 ? 0xfffd : code));
    }
}

bool html_has_long_word(const char *text)
{
    enum { LONG = 24 };
    size_t width = 0;
    for (size_t length = 0; *text != '\0' && width <= LONG * COLUMN; text += length) {
        const int32_t code = decode(text, &length);
        width = code == ' ' ? 0 : width + width_of(code);
    }
    return width > LONG * COLUMN;
}

/* Long names of columns may be broken after "_": a space without width follows. */
static void print_head(FILE *out, const char *head, bool is_long)
{
    for (size_t length = 0; *head != '\0'; head += length) {
        const int32_t code = decode(head, &length);
        print_character(out, head, length, code);
        if (code == '_' && is_long)
            fputs("\u200b", out);
    }
}

void html_table_begin(FILE *out, const char *const *heads, size_t n)
{
    fputs("<div class=\"wide\"><table", out);
    if (n > FEW_HEADS) {
        fprintf(out, " class=\"%s\" style=\"",
                n > SOME_HEADS      ? "tall"
                : n > SEVERAL_HEADS ? "board"
                                    : "cards");
        for (size_t h = 1; h < size_min(n, MOST_HEADS); h++) {
            fprintf(out, "--h%zu:'", h + 1);
            css_text(out, heads[h]);
            fputs("';", out);
        }
        fputs("\"", out);
    }
    fputs(">\n<thead><tr>", out);
    for (size_t h = 0; h < n; h++) {
        const bool is_long = html_columns(heads[h]) > 12;
        fprintf(out, "<th scope=\"col\"%s>",
                html_has_long_word(heads[h]) ? " class=\"any\""
                : is_long                    ? " class=\"long\""
                                             : "");
        print_head(out, heads[h], is_long);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

void html_row(FILE *out, const char *name)
{
    fprintf(out, "<tr><th scope=\"row\"%s>", html_has_long_word(name) ? " class=\"any\"" : "");
    html_text(out, name);
    fputs("</th>", out);
}

void html_number(FILE *out, int digits, double value)
{
    if (!isfinite(value))
        fputs("<td></td>", out);
    else
        fprintf(out, "<td>%s</td>", html_fixed(digits, value).text);
}

void html_count(FILE *out, int64_t n)
{
    fprintf(out, "<td>%s</td>", html_whole(n).text);
}

void html_row_end(FILE *out)
{
    fputs("</tr>\n", out);
}

void html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

void html_figures(FILE *out)
{
    fputs("<div class=\"figures\">\n", out);
}

void html_figure(FILE *out, const char *title)
{
    fputs("<figure>", out);
    html_say(out, "h3", "%s", title);
}

void html_caption(FILE *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("<figcaption>", out);
    print_format(out, format, arguments);
    fputs("</figcaption></figure>\n", out);
    va_end(arguments);
}

void html_figures_end(FILE *out)
{
    fputs("</div>\n", out);
}

void html_panels(FILE *out, const char *title)
{
    fputs("<figure class=\"full\">", out);
    html_say(out, "h3", "%s", title);
    fputs("<div class=\"panels\">\n", out);
}

void html_panel(FILE *out, const char *name)
{
    fputs("<div>", out);
    html_say(out, "h4", "%s", name);
}

void html_panel_end(FILE *out)
{
    fputs("</div>\n", out);
}

void html_panels_end(FILE *out)
{
    fputs("</div>\n", out);
}

struct html_word html_whole(int64_t n)
{
    struct html_word word = {""};
    char digits[24];
    const size_t length =
        (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n < 0 ? -(uint64_t)n : (uint64_t)n);
    char *to = word.text;
    if (n < 0)
        to += sprintf(to, "−");
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && length > 4)
            to += sprintf(to, "\u202f");
        *to++ = digits[i];
    }
    return word;
}

struct html_word html_fixed(int digits, double value)
{
    struct html_word word, size;
    if (fabs(value) >= 1e15)
        return html_short(value);
    snprintf(size.text, sizeof size.text, "%.*f", digits, fabs(value));
    const bool is_zero = size.text[strspn(size.text, "0.")] == '\0';
    snprintf(word.text, sizeof word.text, "%s%.*f", value < 0 && !is_zero ? "−" : "", digits,
             fabs(value));
    return word;
}

struct html_word html_short(double value)
{
    struct html_word word = {""};
    if (!isfinite(value))
        return word;
    if (value == floor(value) && fabs(value) < 1e15)
        return html_whole((int64_t)value);
    const bool long_one = fabs(value) >= 1000 && fabs(value) < 1e12;
    snprintf(word.text, sizeof word.text, long_one ? "%s%.1f" : "%s%.4g", value < 0 ? "−" : "",
             fabs(value));
    return word;
}
