/* Bytes on their way out, by the name of the output:
 *
 *     NAME       temporary file, fsync, rename (atomic_file.c)
 *     NAME.gz    the same, compressed
 *     -          standard output, written at once; what a failure leaves there is incomplete
 *
 * gzip: the header has no time and no name, and zlib gets its input in blocks of one size. So
 * equal bytes give an equal file, in whatever pieces they were added.
 *
 * Standard output gets the bytes that a file would get. Only a terminal is shown control
 * characters as text, by the guarded stdout of log.c. A reader that goes away (`| head`) is a
 * failed write with a sentence, not a signal. */
#include "base/output_stream.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 1 << 18 };

struct gzip {
    z_stream stream;
    size_t n; /* bytes of `block` in use */
    unsigned char block[BLOCK], out[BLOCK];
};

bool output_stream_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *output_stream_name(const char *path)
{
    return output_stream_is_standard(path) ? "standard output" : path;
}

size_t output_stream_peek(const char *path, char *bytes, size_t n)
{
    gzFile file = file_peek(path, bytes, 1) > 0 ? gzopen(path, "rb") : NULL;
    const int n_read = file != NULL ? gzread(file, bytes, (unsigned)n) : 0;
    if (file != NULL)
        gzclose(file);
    return n_read > 0 ? (size_t)n_read : 0;
}

static enum status cannot_write(const struct output_stream *stream)
{
    const int reason = errno;
    if (output_stream_is_standard(stream->path))
        return fail(BAD_IO, "standard output: cannot write: %s; the output is incomplete",
                    strerror(reason));
    return fail(BAD_IO,
                "%s: cannot write: %s; %sfree some space and run the same command again",
                stream->path, strerror(reason),
                file_exists(stream->path) ? "the previous file is intact; " : "");
}

static bool write_descriptor(const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = write(STDOUT_FILENO, bytes + done, n - done);
        if (got < 0 && errno != EINTR)
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_standard(const char *bytes, size_t n)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    const bool written = isatty(STDOUT_FILENO)
                             ? fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0
                             : write_descriptor(bytes, n);
    const int error = errno;
    signal(SIGPIPE, before);
    errno = error;
    return written;
}

static enum status write_plain(struct output_stream *stream, const void *bytes, size_t n)
{
    errno = 0;
    const bool written =
        output_stream_is_standard(stream->path)
            ? write_standard(bytes, n)
            : fwrite(bytes, 1, n, stream->file) == n && fflush(stream->file) == 0;
    return written ? OK : cannot_write(stream);
}

/* Compresses the block; with Z_FINISH to the end. */
static enum status deflate_block(struct output_stream *stream, int flush)
{
    struct gzip *gzip = stream->gzip;
    gzip->stream.next_in = gzip->block;
    gzip->stream.avail_in = (unsigned)gzip->n;
    gzip->n = 0;
    do {
        gzip->stream.next_out = gzip->out;
        gzip->stream.avail_out = BLOCK;
        deflate(&gzip->stream, flush);
        TRY(write_plain(stream, gzip->out, BLOCK - gzip->stream.avail_out));
    } while (gzip->stream.avail_out == 0);
    return OK;
}

enum status output_stream_begin(struct output_stream *stream, const char *path)
{
    *stream = (struct output_stream){.path = path, .draft = {.file = -1}};
    if (output_stream_is_standard(path))
        return OK;
    TRY(atomic_file_begin(&stream->draft, path));
    stream->file = fopen(stream->draft.name, "wb");
    if (stream->file == NULL)
        return fail(BAD_IO, "%s: cannot write: %s", stream->draft.name, strerror(errno));
    if (!file_ends_in(path, ".gz"))
        return OK;
    enum { WINDOW = 15, GZIP = 16, MEMORY = 8 }; /* zlib's defaults, in the form of gzip */
    stream->gzip = NEW(struct gzip, 1);
    if (deflateInit2(&stream->gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW + GZIP,
                     MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
        return OK;
    memory_free(stream->gzip);
    stream->gzip = NULL;
    return fail(BAD_IO, "%s: zlib cannot start; is there enough memory?", path);
}

enum status output_stream_add(struct output_stream *stream, const char *bytes, size_t n)
{
    if (stream->gzip == NULL)
        return write_plain(stream, bytes, n);
    for (size_t done = 0; done < n;) {
        struct gzip *gzip = stream->gzip;
        const size_t more = size_min(n - done, BLOCK - gzip->n);
        memcpy(gzip->block + gzip->n, bytes + done, more);
        gzip->n += more;
        done += more;
        if (gzip->n == BLOCK)
            TRY(deflate_block(stream, Z_NO_FLUSH));
    }
    return OK;
}

enum status output_stream_end(struct output_stream *stream, enum status status)
{
    if (stream->gzip != NULL) {
        if (status == OK)
            status = deflate_block(stream, Z_FINISH);
        deflateEnd(&stream->gzip->stream);
        memory_free(stream->gzip);
    }
    if (stream->file != NULL && fclose(stream->file) != 0 && status == OK)
        status = fail(BAD_IO, "%s: cannot close: %s", stream->path, strerror(errno));
    if (output_stream_is_standard(stream->path))
        return status;
    if (status == OK)
        return atomic_file_commit(&stream->draft, stream->path);
    atomic_file_abandon(&stream->draft);
    return status;
}
