/* The bytes and lines of a text file, plain or gzipped. */
#ifndef COHORT_TEXT_H
#define COHORT_TEXT_H

#include "base/base.h"
#include <zlib.h>

struct text_gzip; /* where a gzip is being inflated */

/* A piece of the reader's buffer: valid until the next line is asked for. */
struct span {
    char *start;
    size_t n;
};

struct text {
    char *path;
    int file;               /* -1: none is open */
    struct text_gzip *gzip; /* NULL: the file is plain */
    char first[2];          /* of a plain file, read to see what it is */
    size_t n_first;         /* that are still to be given out */
    char *buffer;
    size_t capacity;
    size_t begin, end; /* unread bytes; buffer[end] is always a newline, to stop a scan */
    bool at_end;       /* nothing follows what is in the buffer */
    uint64_t line;     /* number of the line that was returned last */
    uint64_t n_bytes;  /* read so far, as text */
};

/* Refuses what is not there, empty, or not text; skips a UTF-8 byte order mark. */
CHECKED enum status text_open(struct text *text, const char *path);
void text_close(struct text *text);

/* Reads more behind the unread bytes, which may move; sets at_end. */
CHECKED enum status text_more(struct text *text);

/* The next line without its end (LF or CR LF), with room for a NUL byte behind it. *got is
 * false at the end of the file. */
CHECKED enum status text_line(struct text *text, struct span *line, bool *got);

static inline bool span_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static inline struct span span_trim(struct span span)
{
    while (span.n > 0 && span_is_blank(span.start[0])) {
        span.start++;
        span.n--;
    }
    while (span.n > 0 && span_is_blank(span.start[span.n - 1]))
        span.n--;
    return span;
}

bool span_is(struct span span, const char *word); /* in any case of letters */

/* The next of the pieces between `separator`s, taken off the front of *rest; false when none is
 * left. The end of the text after a separator counts as no piece. */
bool span_next(struct span *rest, char separator, struct span *piece);

#endif
