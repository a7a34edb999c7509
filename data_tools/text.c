/* Reads plain or gzip files; the first two bytes distinguish them. Lines are scanned in one
 * buffer of about a megabyte. Only an unfinished line is ever copied: it moves to the front
 * before more is read.
 *
 *     gzip file = member | member | ... | zeros (optional)      member = data | checksum
 *
 * Anything else after a member is a damaged member or part of another file. zlib's own reader
 * silently skips it, and the rest of the answers with it, so members are inflated one by
 * one. */
#include "data_tools/text.h"
#include "base/fail.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, LONGEST_LINE = 1 << 30, GZIP_BLOCK = 1 << 17 };

struct text_gzip {
    z_stream stream;
    bool between; /* between the end of a member and the next */
    unsigned char bytes[GZIP_BLOCK];
};

static enum status read_plain(const struct text *text, void *to, size_t wanted, size_t *n)
{
    *n = 0;
    while (*n < wanted) {
        const ssize_t got = read(text->file, (char *)to + *n, wanted - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(BAD_IO, "cannot read %s: %s", text->path, strerror(errno));
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return OK;
}

static enum status damaged(const struct text *text, const char *why)
{
    return fail(BAD_DATA, "%s: the gzip file is damaged or truncated (%s); download it again",
                text->path, why);
}

/* Moves to the next member, if there is one: at the end avail_in stays 0. */
static enum status next_member(struct text *text)
{
    z_stream *stream = &text->gzip->stream;
    for (;;) {
        if (stream->avail_in == 0) {
            size_t n = 0;
            TRY(read_plain(text, text->gzip->bytes, GZIP_BLOCK, &n));
            stream->next_in = text->gzip->bytes;
            stream->avail_in = (unsigned)n;
        }
        if (stream->avail_in == 0 || stream->next_in[0] != 0)
            break;
        stream->next_in++;
        stream->avail_in--;
    }
    if (stream->avail_in > 0 && stream->next_in[0] != 0x1f)
        return damaged(text, "its end is followed by data that is not gzip");
    text->gzip->between = false;
    return stream->avail_in == 0 || inflateReset(stream) == Z_OK
               ? OK
               : damaged(text, "zlib cannot continue");
}

static enum status read_gzip(struct text *text, void *to, size_t wanted, size_t *n)
{
    z_stream *stream = &text->gzip->stream;
    stream->next_out = to;
    stream->avail_out = (unsigned)wanted;
    *n = 0;
    while (stream->avail_out > 0) {
        if (text->gzip->between) {
            TRY(next_member(text));
            if (stream->avail_in == 0) {
                text->gzip->between = true;
                break;
            }
        }
        if (stream->avail_in == 0) {
            size_t n_in = 0;
            TRY(read_plain(text, text->gzip->bytes, GZIP_BLOCK, &n_in));
            stream->next_in = text->gzip->bytes;
            stream->avail_in = (unsigned)n_in;
            if (n_in == 0)
                return damaged(text, "it ends too early");
        }
        const int result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return damaged(text, stream->msg != NULL ? stream->msg : "zlib cannot continue");
        text->gzip->between = result == Z_STREAM_END;
    }
    *n = wanted - stream->avail_out;
    return OK;
}

/* Reads fewer bytes than wanted only at the end of the file. */
static enum status read_bytes(struct text *text, char *to, size_t wanted, size_t *n)
{
    if (text->gzip != NULL)
        return read_gzip(text, to, wanted, n);
    const size_t n_first = size_min(text->n_first, wanted);
    memcpy(to, text->first, n_first);
    text->n_first -= n_first;
    TRY(read_plain(text, to + n_first, wanted - n_first, n));
    *n += n_first;
    return OK;
}

/* Detects gzip by the first two bytes. */
static enum status recognize(struct text *text)
{
    TRY(read_plain(text, text->first, sizeof text->first, &text->n_first));
    if (text->n_first < 2 || memcmp(text->first, "\x1f\x8b", 2) != 0)
        return OK;
    text->gzip = NEW(struct text_gzip, 1);
    memcpy(text->gzip->bytes, text->first, 2);
    text->gzip->stream = (z_stream){.next_in = text->gzip->bytes, .avail_in = 2};
    enum { GZIP_ONLY = 16 };
    return inflateInit2(&text->gzip->stream, MAX_WBITS + GZIP_ONLY) == Z_OK
               ? OK
               : fail(BAD_IO, "%s: zlib cannot read this file; is there enough memory?",
                      text->path);
}

enum status text_more(struct text *text)
{
    memmove(text->buffer, text->buffer + text->begin, text->end - text->begin);
    text->end -= text->begin;
    text->begin = 0;
    if (text->capacity - text->end < text->capacity / 2) {
        if (text->capacity >= LONGEST_LINE)
            return fail(BAD_DATA, "%s:%llu: a line of more than %d MB; is this a text file?",
                        text->path, (unsigned long long)text->line + 1, LONGEST_LINE >> 20);
        text->capacity *= 2;
        text->buffer = memory_resize(text->buffer, text->capacity + 1, 1);
    }
    const size_t wanted = text->capacity - text->end;
    size_t n = 0;
    TRY(read_bytes(text, text->buffer + text->end, wanted, &n));
    if (memchr(text->buffer + text->end, '\0', n) != NULL)
        return fail(
            BAD_DATA,
            "%s: the file has NUL bytes, so it is not text in UTF-8 or Latin-1; convert "
            "it, or name another file",
            text->path);
    text->end += n;
    text->n_bytes += n;
    text->at_end = n < wanted;
    text->buffer[text->end] = '\n';
    return OK;
}

enum status text_open(struct text *text, const char *path)
{
    *text = (struct text){.path = memory_text("%s", path), .file = -1};
    struct stat found;
    if (stat(path, &found) != 0)
        return fail(errno == ENOENT || errno == ENOTDIR ? BAD_USER : BAD_IO,
                    "cannot open %s: %s", path, strerror(errno));
    if (S_ISDIR(found.st_mode))
        return fail(BAD_USER, "%s: this is a directory; expected a file", path);
    text->file = open(path, O_RDONLY | O_CLOEXEC);
    if (text->file < 0)
        return fail(BAD_IO, "cannot open %s: %s", path, strerror(errno));
    /* Imports may read a million small files: allocate no more than a plain file can fill. */
    text->capacity = size_min(BLOCK, size_max(1024, (size_t)found.st_size + 1));
    TRY(recognize(text));
    text->buffer = memory_resize(NULL, text->capacity + 1, 1);
    TRY(text_more(text));
    if (text->end == 0)
        return fail(BAD_DATA, "%s: the file is empty", path);
    /* The last line may end in LF nevertheless: look into the first one. */
    const char *first_end = memchr(text->buffer, '\n', text->end);
    const size_t n_first = first_end != NULL ? (size_t)(first_end - text->buffer) : text->end;
    if (n_first > 0 && memchr(text->buffer, '\r', n_first - 1) != NULL)
        return fail(BAD_DATA,
                    "%s: lines end in CR without LF; convert the line ends, for example with "
                    "tr '\\r' '\\n'",
                    path);
    if (text->end >= 3 && memcmp(text->buffer, "\xef\xbb\xbf", 3) == 0)
        text->begin = 3;
    return OK;
}

void text_close(struct text *text)
{
    if (text->gzip != NULL)
        inflateEnd(&text->gzip->stream);
    if (text->path != NULL && text->file >= 0)
        close(text->file);
    memory_free(text->gzip);
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
