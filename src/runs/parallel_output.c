/* Ranks take turns: one rank prints a piece of its rows into memory and sends it to rank 0,
 * which appends it to the file. The bytes therefore do not depend on the number of ranks, and a
 * table may be larger than the memory of any rank. All ranks agree after every piece, so a full
 * disk stops them together. */
#include "runs/parallel_output.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output_stream.h"
#include "runs/inference.h"
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 22 };

struct piece {
    char *bytes; /* from memory_stream */
    size_t n;
};

static void print_piece(struct piece *piece, const char *between, bool begun, size_t *next,
                        size_t n_rows, void (*row)(FILE *, size_t, const void *),
                        const void *arg)
{
    FILE *out = memory_stream(&piece->bytes, &piece->n);
    for (; *next < n_rows && ftell(out) < PIECE; begun = true) {
        if (begun)
            fputs(between, out);
        row(out, (*next)++, arg);
    }
    if (fclose(out) != 0)
        fail_abort(BAD_IO, "out of memory while printing a table");
}

enum status parallel_output_check_old(const char *path, const char *pattern, const char *what)
{
    char bytes[4096] = "";
    if (output_stream_is_standard(path) || file_peek(path, bytes, 1) == 0)
        return OK;
    bytes[output_stream_peek(path, bytes, sizeof bytes - 1)] = '\0';
    regex_t regex;
    ENSURE(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    const bool is_own = regexec(&regex, bytes, 0, NULL, 0) == 0;
    regfree(&regex);
    return is_own ? OK
                  : fail(BAD_USER,
                         "%s: this file exists and is not %s; choose another file name, or "
                         "remove it first",
                         path, what);
}

static enum status begin(const char *path, const char *head, struct output_stream *stream)
{
    TRY(output_stream_begin(stream, path));
    return output_stream_add(stream, head, strlen(head));
}

enum status parallel_output_text(const struct comm *comm, const char *path,
                                 const struct text_frame *frame, size_t n_rows,
                                 void (*row)(FILE *, size_t, const void *), const void *arg)
{
    struct output_stream stream;
    enum status status =
        comm_agree(comm, comm->rank == 0 ? begin(path, frame->head, &stream) : OK);
    struct {
        int64_t more, begun; /* whether this rank has more rows; whether there was a row */
    } turn = {0, 0};
    size_t next = 0;
    for (int rank = 0; rank < comm->size && status == OK; rank++)
        for (turn.more = 1; turn.more && status == OK;) {
            struct piece piece = {0};
            if (comm->rank == rank) {
                print_piece(&piece, frame->between, turn.begun, &next, n_rows, row, arg);
                turn.more = next < n_rows;
                turn.begun |= n_rows > 0;
            }
            comm_broadcast(comm, &turn, sizeof turn, rank);
            size_t n = 0;
            char *bytes = comm_gather(comm, piece.n > 0 ? piece.bytes : "", piece.n, &n);
            status =
                comm_agree(comm, comm->rank == 0 ? output_stream_add(&stream, bytes, n) : OK);
            memory_free(bytes);
            free(piece.bytes);
        }
    if (comm->rank == 0) {
        if (status == OK)
            status = output_stream_add(&stream, frame->tail, strlen(frame->tail));
        status = output_stream_end(&stream, status);
    }
    return comm_agree(comm, status);
}

enum status parallel_output_write(const struct comm *comm, const char *path, const char *head,
                                  size_t n_rows, void (*row)(FILE *, size_t, const void *),
                                  const void *arg)
{
    const struct text_frame frame = {head, "", ""};
    return parallel_output_text(comm, path, &frame, n_rows, row, arg);
}

/* Arrays do not replace a checkpoint or a data set. */
static enum status check_old_h5(const char *path)
{
    enum path_kind kind = PATH_RUN;
    const enum status status = inference_recognize(path, &kind);
    fail_clear();
    if (status != OK || kind == PATH_RUN)
        return OK;
    return fail(
        BAD_USER,
        "%s: this is a %s, which would be replaced; choose another name, or remove it first",
        path, kind == PATH_DATA_SET ? "data set" : "checkpoint");
}

enum status parallel_output_h5_begin(const char *path, struct atomic_file *draft, hid_t *file)
{
    TRY(check_old_h5(path));
    TRY(parallel_output_check_old(path, "^.HDF", "an HDF5 file"));
    TRY(atomic_file_begin(draft, path));
    *file = h5_create(draft->name);
    return *file < 0 ? fail(BAD_IO, "%s: cannot write: %s", path, strerror(errno)) : OK;
}

enum status parallel_output_h5_end(enum status status, const char *path,
                                   struct atomic_file *draft, hid_t file)
{
    const bool failed = status != OK;
    if (failed && file >= 0)
        h5_let_go(file);
    else if (!failed)
        status = h5_close(file, path);
    if (status == OK)
        return atomic_file_commit(draft, path);
    atomic_file_abandon(draft);
    return failed && file >= 0 ? fail_context(status, "%s", path) : status;
}

enum status parallel_output_h5_array(const struct comm *comm, hid_t file, const char *name,
                                     hid_t file_type, hid_t type, size_t n_rows,
                                     size_t n_columns, const void *values)
{
    const size_t row_size = H5Tget_size(type) * size_max(1, n_columns);
    size_t n_bytes = 0;
    void *all = comm_gather(comm, values, n_rows * row_size, &n_bytes);
    enum status status = OK;
    if (comm->rank == 0) {
        const uint64_t shape[2] = {n_bytes / row_size, n_columns};
        status = h5_write(file, name, file_type, type, n_columns > 0 ? 2 : 1, shape, all);
    }
    memory_free(all);
    return comm_agree(comm, status);
}
