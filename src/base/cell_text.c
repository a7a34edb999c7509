/* printf pads by bytes, but a terminal shows characters: u with two dots has two bytes and one
 * column, a Chinese character three bytes and two columns, a combining accent no column. So tables
 * are padded here, by the width of each UTF-8 character in columns. The C library's wcwidth would
 * depend on the user's locale.
 *
 * A line break in a name must not break the table: it is shown as \n. Other control characters
 * become text as everywhere (see log.c). */
#include "base/cell_text.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranges of characters that take two columns, or none. */
static const struct {
    uint32_t from, to;
    size_t width;
} ranges[] = {
    {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x0610, 0x061a, 0},
    {0x064b, 0x065f, 0},   {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},
    {0x200b, 0x200f, 0},   {0x202a, 0x202e, 0},   {0x2060, 0x2064, 0},   {0x20d0, 0x20ff, 0},
    {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xa960, 0xa97f, 2},   {0xac00, 0xd7a3, 2},
    {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},
    {0xfeff, 0xfeff, 0},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
    {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}, {0xe0100, 0xe01ef, 0},
};

static size_t width_of(uint32_t character)
{
    for (size_t r = 0; r < COUNT(ranges); r++)
        if (character >= ranges[r].from && character <= ranges[r].to)
            return ranges[r].width;
    return 1;
}

/* The bytes of the character at `text`, and its columns. A byte that is not UTF-8 is one column,
 * as terminals show it. */
static size_t next(const char *text, size_t *width)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    uint32_t character = n == 1 ? first : first & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) {
            *width = 1;
            return 1;
        }
        character = character << 6 | ((unsigned char)text[i] & 0x3f);
    }
    *width = width_of(character);
    return n;
}

/* The text as one line. Caller frees. */
static char *one_line(const char *text)
{
    char *shown = log_shown(text), *line = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&line, &n);
    if (shown == NULL)
        fail_abort(BAD_IO, "out of memory for a table");
    for (const char *at = shown; *at != '\0'; at++)
        if (*at == '\n')
            fputs("\\n", out);
        else
            fputc(*at, out);
    fclose(out);
    log_shown_free(shown);
    return line;
}

/* The bytes that fit into `most` columns (0: all), and their columns. */
static size_t fit(const char *line, size_t most, size_t *width)
{
    size_t n = 0, own = 0;
    for (*width = 0; line[n] != '\0'; *width += own) {
        const size_t n_bytes = next(line + n, &own);
        if (most > 0 && *width + own > most)
            break;
        n += n_bytes;
    }
    return n;
}

size_t cell_text_width(const char *text)
{
    char *line = one_line(text);
    size_t width = 0;
    fit(line, 0, &width);
    free(line);
    return width;
}

static void print(const char *text, size_t width, size_t most, bool right)
{
    char *line = one_line(text);
    size_t own = 0;
    const size_t n = fit(line, most, &own);
    const int pad = (int)(width > own ? width - own : 0);
    printf("%*s%.*s%*s", right ? pad : 0, "", (int)n, line, right ? 0 : pad, "");
    free(line);
}

void cell_text_left(const char *text, size_t width, size_t most)
{
    print(text, width, most, false);
}

void cell_text_right(const char *text, size_t width)
{
    print(text, width, 0, true);
}
