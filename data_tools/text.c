/* Files come through zlib, which reads gzip and, untouched, anything else (it looks at the
 * first two bytes). Scanning happens in one buffer of about a megabyte: what is left of an
 * unfinished line moves to its front before more is read, so no line is copied otherwise. A
 * gzip that was cut off or damaged is noticed at the latest at its end, where zlib has a
 * checksum. */
#include "data_tools/text.h"
#include "base/fail.h"
#include "base/memory.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { BLOCK = 1 << 20, LONGEST_LINE = 1 << 30 };

enum status text_more(struct text *text)
{
    memmove(text->buffer, text->buffer + text->begin, text->end - text->begin);
    text->end -= text->begin;
    text->begin = 0;
    if (text->capacity - text->end < text->capacity / 2) {
        if (text->capacity >= LONGEST_LINE)
            return fail(BAD_DATA, "%s:%llu: a line of more than %d MB; this is not such a text",
                        text->path, (unsigned long long)text->line + 1, LONGEST_LINE >> 20);
        text->capacity *= 2;
        text->buffer = memory_resize(text->buffer, text->capacity + 1, 1);
    }
    const size_t wanted = text->capacity - text->end;
    const int n = gzread(text->file, text->buffer + text->end, (unsigned)wanted);
    int error = Z_OK;
    const char *reason = gzerror(text->file, &error);
    if (error == Z_ERRNO)
        return fail(BAD_IO, "%s: cannot be read on: %s", text->path, strerror(errno));
    if (n < 0 || error == Z_BUF_ERROR)
        return fail(BAD_DATA, "%s: the gzip file is damaged or cut off (%s); fetch it again",
                    text->path, error == Z_BUF_ERROR ? "it ends too soon" : reason);
    if (memchr(text->buffer + text->end, '\0', (size_t)n) != NULL)
        return fail(BAD_DATA,
                    "%s: it holds NUL bytes, so it is not a text file in UTF-8 or "
                    "Latin-1; convert it, or name another file",
                    text->path);
    text->end += (size_t)n;
    text->n_bytes += (size_t)n;
    text->at_end = (size_t)n < wanted;
    text->buffer[text->end] = '\n';
    return OK;
}

enum status text_open(struct text *text, const char *path)
{
    *text = (struct text){.path = memory_text("%s", path)};
    struct stat found;
    if (stat(path, &found) != 0)
        return fail(errno == ENOENT || errno == ENOTDIR ? BAD_USER : BAD_IO,
                    "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(found.st_mode))
        return fail(BAD_USER, "%s: this is a directory; expected a file", path);
    text->file = gzopen(path, "rb");
    if (text->file == NULL)
        return fail(BAD_IO, "%s: cannot be opened: %s", path, strerror(errno));
    /* A data set may be a million small files: no more room than a plain file can fill. */
    text->capacity = size_min(BLOCK, size_max(1024, (size_t)found.st_size + 1));
    gzbuffer(text->file, (unsigned)size_min(text->capacity / 4, BLOCK / 8));
    text->buffer = memory_resize(NULL, text->capacity + 1, 1);
    TRY(text_more(text));
    if (text->end == 0)
        return fail(BAD_DATA, "%s: the file is empty", path);
    if (text->end >= 3 && memcmp(text->buffer, "\xef\xbb\xbf", 3) == 0)
        text->begin = 3;
    return OK;
}

void text_close(struct text *text)
{
    if (text->file != NULL)
        gzclose(text->file);
    memory_free(text->buffer);
    memory_free(text->path);
    *text = (struct text){0};
}

enum status text_line(struct text *text, struct span *line, bool *got)
{
    const char *end = NULL;
    for (;;) {
        end = memchr(text->buffer + text->begin, '\n', text->end - text->begin);
        if (end != NULL || text->at_end)
            break;
        TRY(text_more(text));
    }
    *got = text->begin < text->end;
    if (!*got)
        return OK;
    const size_t stop = end != NULL ? (size_t)(end - text->buffer) : text->end;
    *line = (struct span){text->buffer + text->begin, stop - text->begin};
    if (line->n > 0 && line->start[line->n - 1] == '\r')
        line->n--;
    text->begin = size_min(stop + 1, text->end);
    text->line++;
    return OK;
}

bool span_is(struct span span, const char *word)
{
    return strlen(word) == span.n && strncasecmp(span.start, word, span.n) == 0;
}

bool span_next(struct span *rest, char separator, struct span *piece)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->start, separator, rest->n);
    const size_t n = end != NULL ? (size_t)(end - rest->start) : rest->n;
    *piece = (struct span){rest->start, n};
    const size_t taken = size_min(n + 1, rest->n);
    rest->start += taken;
    rest->n -= taken;
    return true;
}
