/* A stream of bytes to a file, to a gzipped file or to standard output. */
#ifndef COHORT_OUTPUT_STREAM_H
#define COHORT_OUTPUT_STREAM_H

#include "base/atomic_file.h"
#include "base/base.h"
#include <stdio.h>

/* A file appears complete or not at all. Its bytes depend only on the bytes added, not on the
 * pieces in which they are added. */
struct output_stream {
    const char *path; /* "-": standard output; a name that ends in .gz: gzipped */
    struct atomic_file draft;
    FILE *file;
    struct gzip *gzip; /* NULL: plain */
};

/* On one rank. End the stream even if beginning or adding failed; `status` is the first
 * failure. */
CHECKED enum status output_stream_begin(struct output_stream *stream, const char *path);
CHECKED enum status output_stream_add(struct output_stream *stream, const char *bytes,
                                      size_t n);
CHECKED enum status output_stream_end(struct output_stream *stream, enum status status);

/* The first bytes of a plain file that such a stream wrote, uncompressed; returns how many. */
size_t output_stream_peek(const char *path, char *bytes, size_t n);

/* Whether a path stands for standard output; what messages call a path. */
bool output_stream_is_standard(const char *path);
const char *output_stream_name(const char *path);

#endif
