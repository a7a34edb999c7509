/* Help and man pages come from the same calls, so they cannot disagree. The two forms:
 *
 *     terminal                                  roff
 *     NAME                                      .SH NAME
 *         cohort-verify - check ...             cohort\-verify \- check ...
 *     OPTIONS                                   .SH OPTIONS
 *         --json              print ...         .TP
 *                                               \fB\-\-json\fR
 *                                               print ...
 *
 * Both fill paragraphs word by word. In roff every hyphen is written \-, so that options can be
 * copied from a page and no word is broken at one. */
#include "base/manual.h"
#include "base/memory.h"
#include "cohort.h"
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BODY = 4, SUBHEADING = 2, CODE = 8, LIST = 26 };         /* columns of a terminal */
enum { NARROWEST = 40, USUAL = 80, WIDEST = 100, SOURCE = 72 }; /* widths; SOURCE: of roff */

struct manual manual_for_terminal(FILE *out)
{
    struct winsize size = {0};
    const int file = out == stdout ? STDOUT_FILENO : fileno(out); /* log.c wraps stdout */
    size_t width = USUAL;
    if (file >= 0 && isatty(file) && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size_max(NARROWEST, size_min(size.ws_col, WIDEST));
    return (struct manual){.out = out, .width = width, .list = LIST};
}

struct manual manual_as_roff(FILE *out)
{
    return (struct manual){.out = out, .roff = true, .width = SOURCE};
}

/* The character at `text` and how many bytes it has; a byte that is not UTF-8 is itself. */
static unsigned decode(const char *text, size_t *n)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = c[0] < 0xc0 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    unsigned code = length == 1 ? c[0] : c[0] & (0x7fu >> length);
    *n = 1;
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return c[0];
        code = code << 6 | (c[i] & 0x3f);
    }
    *n = length;
    return code;
}

static size_t columns(const char *text, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* n bytes as roff. Where `spans`, backquotes switch to bold and back; else they are shown. */
static void put_roff(struct manual *manual, const char *text, size_t n, bool spans)
{
    for (size_t i = 0, length = 1; i < n; i += length) {
        const unsigned c = decode(text + i, &length);
        if (c == '`' && spans) {
            manual->code = !manual->code;
            fputs(manual->code ? "\\fB" : "\\fR", manual->out);
        } else if (c >= 0x80) {
            fprintf(manual->out, "\\[u%04X]", c);
        } else {
            const char *escape = c == '\\'   ? "\\e"
                                 : c == '-'  ? "\\-"
                                 : c == '\'' ? "\\(aq"
                                 : c == '`'  ? "\\(ga"
                                 : c == '"'  ? "\\(dq"
                                 : c == '^'  ? "\\(ha"
                                 : c == '~'  ? "\\(ti"
                                             : NULL;
            if (escape != NULL)
                fputs(escape, manual->out);
            else
                fputc((int)c, manual->out);
        }
    }
}

static void begin_line(struct manual *manual)
{
    fprintf(manual->out, "%*s", manual->roff ? 0 : (int)manual->indent, "");
    manual->column = manual->roff ? 0 : manual->indent;
}

static void end_line(struct manual *manual)
{
    if (manual->column > 0)
        fputc('\n', manual->out);
    manual->column = 0;
}

static void put_word(struct manual *manual, const char *word, size_t n)
{
    const size_t n_columns = columns(word, n);
    const bool fits = manual->column + 1 + n_columns <= manual->width;
    if (manual->column > 0 && fits) {
        fputc(' ', manual->out);
        manual->column++;
    } else {
        end_line(manual);
        begin_line(manual);
        if (manual->roff && word[0] == '.')
            fputs("\\&", manual->out); /* or it would be a request */
    }
    if (manual->roff)
        put_roff(manual, word, n, true);
    else
        fwrite(word, 1, n, manual->out);
    manual->column += n_columns;
}

static void put_words(struct manual *manual, const char *text)
{
    for (text += strspn(text, " \n"); *text != '\0'; text += strspn(text, " \n")) {
        const size_t n = strcspn(text, " \n");
        put_word(manual, text, n);
        text += n;
    }
}

/* The space between what was written and what follows. */
static void begin_block(struct manual *manual, enum manual_block block)
{
    const enum manual_block last = manual->last;
    const bool after_heading = last == MANUAL_HEADING || last == MANUAL_SUBHEADING;
    const bool close = block != MANUAL_HEADING && after_heading;
    const bool listed = block == MANUAL_ITEM && last == MANUAL_ITEM;
    end_line(manual);
    if (!manual->roff && last != MANUAL_NOTHING && !close && !listed)
        fputc('\n', manual->out);
    if (manual->roff && (block == MANUAL_PARAGRAPH || block == MANUAL_LINES) && !after_heading)
        fputs(".PP\n", manual->out);
    manual->last = block;
    manual->indent = BODY;
    manual->code = false;
}

void manual_heading(struct manual *manual, const char *text)
{
    begin_block(manual, MANUAL_HEADING);
    if (manual->roff) {
        fputs(".SH ", manual->out);
        put_roff(manual, text, strlen(text), true);
    } else
        fputs(text, manual->out);
    fputc('\n', manual->out);
}

void manual_subheading(struct manual *manual, const char *text)
{
    begin_block(manual, MANUAL_SUBHEADING);
    if (manual->roff) {
        fputs(".SS ", manual->out);
        put_roff(manual, text, strlen(text), true);
    } else
        fprintf(manual->out, "%*s%s", SUBHEADING, "", text);
    fputc('\n', manual->out);
}

/* Without .nh and .ad words would be broken and lines padded, options among them. */
static void begin_roff(struct manual *manual, const char *name, int section)
{
    fputs(".TH ", manual->out);
    for (const char *c = name; *c != '\0'; c++) {
        const char upper = (char)toupper((unsigned char)*c);
        put_roff(manual, &upper, 1, false);
    }
    fprintf(manual->out, " %d \"\" \"cohort %s\" \"cohort\"\n.nh\n.ad l\n", section,
            COHORT_VERSION);
}

void manual_title(struct manual *manual, const char *name, int section, const char *summary)
{
    if (manual->roff)
        begin_roff(manual, name, section);
    manual_heading(manual, "NAME");
    manual->last = MANUAL_PARAGRAPH;
    char *line = memory_text("%s - %s", name, summary);
    char *first = line + strlen(name) + strlen(" - ");
    *first = (char)tolower((unsigned char)*first);
    const size_t width = manual->width;
    if (manual->roff)
        manual->width = SIZE_MAX; /* whatis reads one line */
    put_words(manual, line);
    manual->width = width;
    end_line(manual);
    memory_free(line);
}

static void put_paragraph(struct manual *manual, const char *text)
{
    begin_block(manual, MANUAL_PARAGRAPH);
    put_words(manual, text);
    end_line(manual);
}

void manual_paragraph(struct manual *manual, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const size_t room = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
    va_end(arguments);
    char *text = memory_scratch(room, 1);
    vsnprintf(text, room, format, again);
    va_end(again);
    put_paragraph(manual, text);
    memory_free(text);
}

void manual_synopsis(struct manual *manual, const char *command, const char *rest)
{
    begin_block(manual, MANUAL_PARAGRAPH);
    if (manual->roff)
        fputs("\\fB", manual->out);
    put_words(manual, command);
    if (manual->roff)
        fputs("\\fR", manual->out);
    manual->indent = CODE;
    put_words(manual, rest);
    end_line(manual);
}

void manual_item(struct manual *manual, const char *name, const char *meaning,
                 const char *facts)
{
    begin_block(manual, MANUAL_ITEM);
    const size_t n = strlen(name);
    if (manual->roff) {
        fputs(".TP\n\\fB", manual->out);
        put_roff(manual, name, n, false);
        fputs("\\fR\n", manual->out);
    } else {
        begin_line(manual);
        fputs(name, manual->out);
        manual->column += columns(name, n);
        manual->indent = manual->list;
        if (manual->column + 2 > manual->list)
            end_line(manual);
        else
            manual->column += (size_t)fprintf(manual->out, "%*s",
                                              (int)(manual->list - 1 - manual->column), "");
    }
    put_words(manual, meaning);
    end_line(manual);
    if (facts == NULL || facts[0] == '\0')
        return;
    if (manual->roff && meaning[0] != '\0')
        fputs(".br\n", manual->out);
    put_words(manual, facts);
    end_line(manual);
}

void manual_lines(struct manual *manual, const char *text)
{
    begin_block(manual, MANUAL_LINES);
    if (manual->roff)
        fputs(".RS 4\n.nf\n", manual->out);
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        if (manual->roff) {
            if (text[0] == '.')
                fputs("\\&", manual->out);
            put_roff(manual, text, n, false);
        } else if (n > 0)
            fprintf(manual->out, "%*s%.*s", CODE, "", (int)n, text);
        fputc('\n', manual->out);
        text += n + (text[n] == '\n');
    }
    if (manual->roff)
        fputs(".fi\n.RE\n", manual->out);
}

/* A block of lines without the `margin` that the first of them has. Caller frees. */
static char *unindented(const char *text, size_t n)
{
    const size_t margin = strspn(text, " ");
    char *lines = memory_text("%.*s", (int)n, text), *to = lines;
    for (const char *from = lines; *from != '\0';) {
        from += size_min(margin, strspn(from, " "));
        const size_t length = strcspn(from, "\n") + (from[strcspn(from, "\n")] == '\n');
        memmove(to, from, length);
        to += length;
        from += length;
    }
    *to = '\0';
    return lines;
}

void manual_prose(struct manual *manual, const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        const size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
        char *block = unindented(text, n);
        if (text[0] == ' ')
            manual_lines(manual, block);
        else
            put_paragraph(manual, block);
        memory_free(block);
        text += n + (end != NULL ? 2 : 0);
    }
}
