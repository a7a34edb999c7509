/* A page is one file that can be mailed: the style sheet is inside, there are no scripts, and
 * nothing is loaded; a content security policy in the head enforces this. Colours are CSS
 * variables (plot_colours.c), so that dark screens and paper have their own. */
#include "plot/html.h"
#include "base/memory.h"
#include "cohort.h"
#include "plot/plot.h"
#include "plot/plot_colours.h"
#include "plot/plot_heat.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Tables with more than FEW_HEADS columns become cards on a phone. Those with more than SEVERAL
 * may be wider than the text of the page, and become cards where the window is narrower than
 * that; those with more than SOME_HEADS become cards everywhere. */
enum { FEW_HEADS = 4, SEVERAL_HEADS = 9, SOME_HEADS = 13, MOST_HEADS = 100 };

static const char style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:68rem;padding:2rem 1.25rem 4rem;background:var(--paper);"
    "color:var(--ink);font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',"
    "sans-serif}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}\n"
    "h2{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:1rem;border-top:1px solid "
    "var(--line)}\n"
    "h3{font-size:1.05rem;margin:1.8rem 0 .4rem}\n"
    "h1,h2,h3,h4,p,li,dd,th,td,summary,figcaption{overflow-wrap:break-word}\n"
    "p,li,dd{max-width:46rem}p{margin:.5rem 0}\n"
    ".under,figcaption,.note{color:var(--soft)}\n"
    ".note,figcaption{font-size:.88rem}\n"
    ".lead{font-size:1.12rem;background:var(--tint);border-left:4px solid var(--good);"
    "padding:.8rem 1.1rem;margin:1.2rem 0;max-width:none}.lead p{max-width:none}\n"
    ".warn{background:var(--amber);border-left-color:var(--warn)}\n"
    ".numbers{display:flex;flex-wrap:wrap;gap:.6rem 2.2rem;margin:1rem 0;padding:0;"
    "list-style:none}\n"
    ".numbers b{display:block;font-size:1.45rem;line-height:1.25;"
    "font-variant-numeric:tabular-nums}\n"
    ".numbers span{color:var(--soft);font-size:.88rem}\n"
    ".wide{overflow-x:auto;margin:.8rem 0}\n"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.28rem .6rem;text-align:right;border-bottom:1px solid var(--line);"
    "unicode-bidi:isolate;vertical-align:top}\n"
    "thead th{color:var(--soft);font-weight:600;vertical-align:bottom}\n"
    "th:first-child{text-align:left;padding-left:0}tbody th{font-weight:500}\n"
    "td{white-space:nowrap}td small{display:block;color:var(--soft);white-space:normal}\n"
    "@media screen and (min-width:70rem){td small{white-space:nowrap}}\n"
    "th:first-child{min-width:9rem;white-space:normal}th.any{overflow-wrap:anywhere}\n"
    "td.names{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:14rem}"
    "table:has(td.names) thead th:last-child{text-align:left}\n"
    "tr.base{background:var(--tint)}"
    "td.name{white-space:normal;overflow-wrap:anywhere;text-align:left;min-width:9rem}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:1.2rem 2rem;margin:1rem 0}\n"
    ".figures figure{flex:1 1 24rem;max-width:31rem;min-width:0}\n"
    "figure.full,.figures figure.full{flex-basis:100%;max-width:none}\n"
    ".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(21rem,100%),1fr));"
    "gap:.6rem 1rem;margin:.4rem 0}.panels div{break-inside:avoid;min-width:0}"
    "h4{font-size:.95rem;font-weight:600;margin:.3rem 0}\n"
    "figure{margin:0;break-inside:avoid}figure h3{margin:.4rem 0}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.35rem "
    "1.2rem;margin:.6rem "
    "0}dt{font-weight:600}dd{margin:0}\n"
    "@media (max-width:36rem){dl{grid-template-columns:minmax(0,1fr)}dd{margin:0 0 .4rem}"
    "body{padding:1rem 1rem 3rem}h1{font-size:1.5rem}.lead{font-size:1rem}"
    ".figures figure{flex-basis:100%}th,td{padding:.28rem .35rem}"
    "th:first-child{min-width:5rem;overflow-wrap:anywhere}td.names{min-width:9rem}td.name{min-"
    "width:0}"
    "td:last-child{padding-right:0}}\n"
    ".board td{white-space:normal;overflow-wrap:anywhere}\n"
    "thead th.long{min-width:6rem}\n"
    "code{font-size:.9em}pre{font-size:.85rem}"
    "code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\n"
    "pre{background:var(--tint);padding:.8rem 1rem;overflow-x:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere}\n"
    "progress{display:block;width:100%;height:.6rem;margin:.6rem 0;accent-color:var(--good)}\n"
    "details{margin:.6rem 0}summary{cursor:pointer}summary h3{display:inline}\n"
    ".contents{columns:20rem;padding-left:1.2rem}.contents a{color:inherit}\n"
    "@media print{html{font-size:14px}body{max-width:none;padding:0}.wide{overflow:visible}"
    "th,td{padding:.2rem .35rem;font-size:.8rem}small{font-size:.79rem}h2,h3{break-after:avoid}"
    "tr{break-inside:avoid}"
    "details::details-content{content-visibility:visible;block-size:auto}}\n";

/* Rows of tables of this class as cards: the name of the row, then its cells, each below its
 * head, which the variables --h2, --h3, ... of the table hold. */
static void card_rules(FILE *out, const char *name, const char *columns, int n)
{
    fprintf(out,
            ".%s thead{display:none}.%s,.%s tbody{display:block}"
            ".%s tr{display:grid;grid-template-columns:repeat(%s);padding:.5rem 0;"
            "border-bottom:1px solid var(--line)}",
            name, name, name, name, columns);
    fprintf(out,
            ".%s th,.%s td{border:0;padding:.15rem .5rem .15rem 0;text-align:left;min-width:0;"
            "overflow-wrap:anywhere;white-space:normal}"
            ".%s th{grid-column:1/-1;font-weight:600}.%s td:empty{display:none}"
            ".%s td::before{display:block;color:var(--soft);font-size:.79rem}"
            ".%s small{white-space:normal}.%s td.name,.%s td.names{grid-column:1/-1}",
            name, name, name, name, name, name, name, name);
    for (int c = 2; c <= n; c++)
        fprintf(out, ".%s td:nth-child(%d)::before{content:var(--h%d)}", name, c, c);
    fputc('\n', out);
}

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
    fputs("<style>\n", out);
    plot_colours_style(out);
    fprintf(out, "%s%s%s", style, plot_style_sheet, plot_heat_style_sheet);
    card_rules(out, "tall", "auto-fill,minmax(5.6rem,1fr)", MOST_HEADS);
    fputs("@media (max-width:36rem){", out);
    card_rules(out, "cards", "3,1fr", SOME_HEADS);
    fputs("}\n@media screen and (max-width:80rem){", out);
    card_rules(out, "board", "auto-fill,minmax(5.6rem,1fr)", SOME_HEADS);
    fputs("}\n@media screen and "
          "(min-width:80.01rem){.wide:has(.board){width:max-content;min-width:100%;"
          "max-width:calc(100vw - 3rem);position:relative;left:50%;transform:translateX(-50%)}",
          out);
    fputs("}\n</style>\n</head>\n<body>\n", out);
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
        fprintf(out, "<td>%s%.*f</td>", value < 0 ? "−" : "", digits, fabs(value));
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
