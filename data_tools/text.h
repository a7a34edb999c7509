/* The bytes and lines of a text file, plain or gzipped. */
#ifndef COHORT_TEXT_H
#define COHORT_TEXT_H

#include "base/base.h"
#include <zlib.h>

struct text_gzip; /* state of a gzip being inflated */

/* A piece of the reader's buffer, valid until the next line is read. */
struct span {
    char *start;
    size_t n;
};

struct text {
    char *path;
    int file;               /* -1: none is open */
    struct text_gzip *gzip; /* NULL: the file is plain */
    char first[2];          /* of a plain file, read to detect gzip */
    size_t n_first;         /* of these, not yet returned */
    char *buffer;
    size_t capacity;
    size_t begin, end; /* unread bytes; buffer[end] is always LF, to stop scans */
    bool at_end;       /* the buffer holds the end of the file */
    uint64_t line;     /* number of the current line */
    uint64_t n_bytes;  /* read so far, as text */
};

/* Fails if the file is missing, empty, not text, or has CR line ends; skips a byte order
 * mark. */
CHECKED enum status text_open(struct text *text, const char *path);
void text_close(struct text *text);

/* Reads more after the unread bytes, which may move; sets at_end. */
CHECKED enum status text_more(struct text *text);

/* The next line without its end (LF or CR LF), with room for a NUL byte after it. *got is false
 * at the end of the file. */
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

bool span_is(struct span span, const char *word); /* ignoring case */

/* Removes the next piece up to a `separator` from the front of *rest; false at the end. There
 * is no empty piece after a final separator. */
bool span_next(struct span *rest, char separator, struct span *piece);

#endif
